//! Flame graphs of sampled stacks. One server: threads at the top, width is the share of samples. Two servers: width
//! is the mean time of both per transaction, colour the difference.

use dbduel_judge::Summary;
use dbduel_judge::summary::{DifferenceFrame, Flame, FlameDifference, Frame};

use crate::words;

use super::frame::titled;
use super::number_of;
use super::style::{CHARACTER, colour, fitted};
use super::svg::{Anchor, Svg};

const ROW: f64 = 17.0;
const TOP: f64 = 26.0;
/// Frames narrower than `WIDTH_MIN` are not drawn; those narrower than the other bound have no name.
const WIDTH_MIN: f64 = 0.7;
const NAMED_MIN: f64 = 5.0 * CHARACTER;

/// Draws the graph of one contender.
#[must_use]
pub fn flame(summary: &Summary, flame: &Flame, width: f64) -> String {
    let note = words::things(flame.samples, "sample");
    let mut svg = titled(width, &format!("Stacks of {}", flame.contender), &note);
    let class = colour(number_of(summary, &flame.contender));
    let per_sample = width / flame.samples.max(1) as f64;
    let mut deepest = 0;
    for frame in &flame.frames {
        let place = (frame.before as f64 * per_sample, frame.depth);
        let wide = frame.samples as f64 * per_sample;
        let class = format!("frame {} {class}", shade(frame));
        let share = frame.samples as f64 / flame.samples.max(1) as f64;
        let about = format!("{}: {} of the samples", frame.name, words::share(share));
        if draw(&mut svg, place, wide, &frame.name, &class, &about) {
            deepest = deepest.max(frame.depth);
        }
    }
    let label = format!(
        "Flame graph of {}: functions by their share of sampled processor time, threads at the top",
        flame.contender
    );
    svg.finish(height(deepest), &label)
}

/// Draws the difference flame graph of a contender against the baseline.
#[must_use]
pub fn flame_difference(summary: &Summary, difference: &FlameDifference, width: f64) -> String {
    let FlameDifference {
        contender, cpu_us, ..
    } = difference;
    let baseline = &summary.baseline;
    let title = format!("{contender} against {baseline}");
    let note = format!(
        "{} against {} per trx",
        words::latency(cpu_us[1]),
        words::latency(cpu_us[0])
    );
    let mut svg = titled(width, &title, &note);
    let per_us = width / f64::midpoint(cpu_us[0], cpu_us[1]).max(f64::EPSILON);
    let mut deepest = 0;
    for frame in &difference.frames {
        let place = (frame.before_us * per_us, frame.depth);
        let wide = frame.mean_us() * per_us;
        let class = format!("frame {}", tone(frame));
        let about = format!(
            "{}: {} per transaction against {}{}",
            frame.name,
            words::latency(frame.cpu_us[1]),
            words::latency(frame.cpu_us[0]),
            match frame.is_beyond_chance {
                true => "",
                false => ", within sampling error",
            }
        );
        if draw(&mut svg, place, wide, &frame.name, &class, &about) {
            deepest = deepest.max(frame.depth);
        }
    }
    let label = format!(
        "Difference flame graph of {contender} against {baseline}: functions by processor time per transaction"
    );
    svg.finish(height(deepest), &label)
}

/// Draws one frame at its left end and depth; false where it is too narrow.
fn draw(
    svg: &mut Svg,
    (left, depth): (f64, usize),
    wide: f64,
    name: &str,
    class: &str,
    about: &str,
) -> bool {
    if wide < WIDTH_MIN {
        return false;
    }
    let place = (left, TOP + ROW * depth as f64);
    svg.rect(place, ((wide - 0.6).max(0.4), ROW - 1.0), class, about);
    if wide >= NAMED_MIN {
        let text = fitted(name, wide - 6.0);
        svg.text(
            (left + 4.0, place.1 + 12.0),
            Anchor::Start,
            "frame-name",
            &text,
        );
    }
    true
}

fn height(deepest: usize) -> f64 {
    TOP + ROW * (deepest + 1) as f64 + 6.0
}

/// CSS class of a frame: which server spends more time, in three strengths; neutral within sampling error.
fn tone(frame: &DifferenceFrame) -> &'static str {
    let [base, own] = frame.cpu_us;
    let change = (own - base) / own.max(base).max(f64::EPSILON);
    match (frame.is_beyond_chance, change) {
        (false, _) => "same",
        (true, 0.5..) => "costs-more s3",
        (true, 0.2..) => "costs-more s2",
        (true, 0.0..) => "costs-more s1",
        (true, -0.2..) => "costs-less s1",
        (true, -0.5..) => "costs-less s2",
        (true, _) => "costs-less s3",
    }
}

/// CSS class of a frame: threads are strong; below them two shades alternate, so that neighbours are distinguishable.
fn shade(frame: &Frame) -> &'static str {
    match frame.depth {
        0 => "threads",
        depth if depth % 2 == 0 => "even",
        _ => "odd",
    }
}

#[cfg(test)]
mod tests {
    use dbduel_record::Stamped;
    use dbduel_record::event::Event;

    use super::*;
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn samples_of_a_record_are_scaled_by_the_transactions_of_their_level() {
        let mut record = Scenario::duel().record();
        let plan = record.plan.clone();
        for (contender, files) in record.contenders.iter_mut().enumerate() {
            files.stacks.insert(0, "t;main 1000".to_owned());
            record.events.push(Stamped {
                at_ms: 0,
                what: Event::StacksSampled {
                    contender: plan.contenders[contender].name.clone(),
                    level: 0,
                    transactions_per_s: [1000.0, 400.0][contender],
                    cpu_share_per_sample: 0.001,
                },
            });
        }
        let summary = summarise(&record).0;
        let [difference] = summary.flame_differences.as_slice() else {
            panic!("{:?}", summary.flame_differences)
        };
        assert_eq!(difference.cpu_us, [1000.0, 2500.0]);
        let drawing = flame_difference(&summary, difference, 600.0);
        assert!(drawing.contains("frame costs-more s3"), "{drawing}");
        // Without what was committed meanwhile there is nothing to compare.
        record.events.pop();
        assert_eq!(summarise(&record).0.flame_differences, []);
    }
}
