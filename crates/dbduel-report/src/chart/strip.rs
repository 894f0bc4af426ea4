//! The schedule as a strip with one lane per contender.

use dbduel_judge::Summary;
use dbduel_judge::summary::Ran;

use crate::words;

use super::frame::{Plot, titled};
use super::name_of;
use super::overtime::time_axis;
use super::scale::Scale;
use super::style::{colour, fitted, mark};
use super::svg::{Anchor, Svg};

/// Least width of a slice, pixels, so that the alternation is visible.
const SLICE_PX: f64 = 5.0;
const LANE: f64 = 22.0;

/// Draws the strip, of the first slices only when not all fit; `None` before the first slice.
#[must_use]
pub fn schedule_strip(summary: &Summary, width: f64) -> Option<String> {
    let gutter = if width < 640.0 { 96.0 } else { 180.0 };
    let schedule = &summary.timeline.schedule;
    if schedule.is_empty() {
        return None;
    }
    let fitting = ((width - gutter) / SLICE_PX) as usize;
    let shown = whole_blocks(schedule, fitting);
    let all = schedule.len() + summary.timeline.schedule_omitted as usize;
    let zero_s = schedule[0].start_s;
    let end_s = shown
        .iter()
        .map(|ran| ran.start_s + ran.length_s)
        .fold(zero_s, f64::max);
    let length_s = end_s - zero_s;
    let note = if shown.len() < all {
        format!("the first {} of {all} slices", shown.len())
    } else {
        format!("all {all} slices")
    };
    let mut svg = titled(width, "Schedule of slices", &note);
    let lanes = summary.contenders.len() as f64;
    let plot = Plot {
        left: gutter,
        top: 42.0,
        right: width - 8.0,
        bottom: 42.0 + LANE * lanes,
    };
    let since_first = Scale::linear((0.0, length_s), plot.across());
    time_axis(
        &mut svg,
        plot,
        &since_first,
        length_s,
        "since the first slice",
    );
    let time = Scale::linear((zero_s, end_s), plot.across());
    blocks(&mut svg, summary, shown, plot, &time);
    for (contender, facts) in summary.contenders.iter().enumerate() {
        let middle = plot.top + LANE * (contender as f64 + 0.5);
        mark(&mut svg, contender, (6.0, middle), 4.5, "");
        svg.text(
            (17.0, middle + 4.0),
            Anchor::Start,
            "label",
            &fitted(&facts.name, gutter - 24.0),
        );
    }
    for ran in shown {
        let top = plot.top + LANE * ran.contender as f64 + 3.0;
        let (left, right) = (time.at(ran.start_s), time.at(ran.start_s + ran.length_s));
        let class = if ran.counts { "cell" } else { "cell void" };
        let facts = name_of(summary, ran.contender);
        let title = format!(
            "{facts}, block {}, {}, {} from {}{}",
            ran.block,
            level_label(summary, ran),
            words::duration(ran.length_s),
            words::duration(ran.start_s - zero_s),
            if ran.counts {
                ""
            } else {
                "; its block does not count"
            }
        );
        svg.rect(
            (left, top),
            ((right - left).max(1.0), LANE - 6.0),
            &format!("{class} {}", colour(ran.contender)),
            &title,
        );
    }
    Some(svg.finish(
        plot.bottom + 38.0,
        &format!("Schedule of slices: {note}, contenders in turn within mirrored blocks"),
    ))
}

/// The first slices, at most `fitting` of them unless the first block has more, up to the end of a block.
fn whole_blocks(schedule: &[Ran], fitting: usize) -> &[Ran] {
    let mut shown = 0;
    for block in schedule.chunk_by(|one, other| one.block == other.block) {
        if shown > 0 && shown + block.len() > fitting {
            break;
        }
        shown += block.len();
    }
    &schedule[..shown]
}

/// Shades every other block, with its number of clients above.
fn blocks(svg: &mut Svg, summary: &Summary, shown: &[Ran], plot: Plot, time: &Scale) {
    svg.text(
        (plot.left - 8.0, plot.top - 5.0),
        Anchor::End,
        "small",
        "clients",
    );
    let mut free = f64::NEG_INFINITY;
    for (index, block) in shown
        .chunk_by(|one, other| one.block == other.block)
        .enumerate()
    {
        let (Some(first), Some(last)) = (block.first(), block.last()) else {
            continue;
        };
        let (left, right) = (
            time.at(first.start_s),
            time.at(last.start_s + last.length_s),
        );
        if index % 2 == 0 {
            svg.rect(
                (left - 1.0, plot.top),
                (right - left + 2.0, plot.height()),
                "row",
                "",
            );
        }
        let clients = summary
            .duels
            .get(first.level)
            .map_or(0, |duel| duel.load.clients)
            .to_string();
        let (middle, half) = (f64::midpoint(left, right), 3.3 * clients.len() as f64);
        if middle - half > free {
            svg.text((middle, plot.top - 5.0), Anchor::Middle, "tick", &clients);
            free = middle + half + 4.0;
        }
    }
}

fn level_label<'a>(summary: &'a Summary, ran: &Ran) -> &'a str {
    summary
        .duels
        .get(ran.level)
        .map_or("", |duel| duel.label.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_that_is_drawn_is_whole() {
        let schedule: Vec<Ran> = (0..12)
            .map(|at| Ran {
                start_s: f64::from(at),
                length_s: 1.0,
                contender: 0,
                level: 0,
                block: at / 4,
                counts: true,
            })
            .collect();
        for (fitting, shown) in [(3, 4), (4, 4), (7, 4), (8, 8), (11, 8), (12, 12), (99, 12)] {
            assert_eq!(whole_blocks(&schedule, fitting).len(), shown, "{fitting}");
        }
    }
}
