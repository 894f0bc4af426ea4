//! Throughput of one level over time, with every slice visible.

use dbduel_judge::Summary;
use dbduel_judge::summary::{ApartPurpose, Duel, Series, Stretch, WarmUp};
use dbduel_stats::median;

use crate::words;

use super::frame::{Plot, half_width, titled};
use super::scale::{Scale, nice_end, ticks};
use super::style::{colour, legend, mark, mark_radius};
use super::svg::{Anchor, Svg, polyline};
use super::{name_of, names};

/// Draws the chart; `None` before the first slice. Thin lines are ticks, marks are
/// slices, thick lines the rolling mean of five of them, triangles at the axis stalls, triangles at the top
/// large checkpoints, shades warm-ups (in a contender's colour), pilots and long turns (grey).
#[must_use]
pub fn throughput_over_time(summary: &Summary, duel: &Duel, width: f64) -> Option<String> {
    let timeline = &summary.timeline;
    let series: Vec<&Series> = timeline
        .series
        .iter()
        .filter(|series| series.level == duel.level)
        .collect();
    if series.is_empty() {
        return None;
    }
    let mut svg = titled(
        width,
        &format!("Throughput over time, {}", duel.label),
        "transactions/s",
    );
    let top = legend(&mut svg, &names(summary));
    let plot = Plot {
        left: 66.0,
        top: top + 6.0,
        right: width - 8.0,
        bottom: top + 196.0,
    };
    let warm_ups: Vec<&WarmUp> = timeline
        .warm_ups
        .iter()
        .filter(|one| one.level == duel.level)
        .collect();
    let end = nice_end(largest(&series, &warm_ups), 4);
    let axes = Axes {
        plot,
        time: Scale::linear((0.0, timeline.length_s), plot.across()),
        values: Scale::linear((0.0, end), plot.upwards()),
    };
    plot.horizontal_grid(&mut svg, &axes.values, &ticks(0.0, end, 4), words::trimmed);
    svg.begin_group("time-axis");
    time_axis(&mut svg, plot, &axes.time, timeline.length_s, SINCE);
    svg.end_group();
    svg.begin_stretch(
        (plot.left, plot.top - 8.0),
        (plot.width(), plot.height() + 8.0),
        timeline.length_s,
    );
    shade_uncounted(&mut svg, summary, plot, &axes.time);
    for warm_up in warm_ups {
        let points = steps(warm_up.start_s, warm_up.length_s, &warm_up.steps_per_s);
        axes.line(&mut svg, points, "thin", warm_up.contender);
    }
    mark_pauses(&mut svg, summary, &axes);
    let marks: usize = series.iter().map(|series| series.stretches.len()).sum();
    let radius = mark_radius(plot.width(), marks, 1.2);
    for series in &series {
        let between = (f64::NAN, f64::NAN);
        let lines = series.stretches.iter().flat_map(|stretch| {
            steps(stretch.start_s, stretch.length_s, &stretch.steps_per_s).chain([between])
        });
        axes.line(&mut svg, lines, "thin", series.contender);
        let rolling = rolling_mean(&series.stretches);
        axes.line(&mut svg, rolling, "rolling", series.contender);
        mark_slices(&mut svg, summary, series, &axes, radius);
    }
    mark_checkpoints(&mut svg, summary, duel.level, plot, &axes.time);
    svg.end_group();
    Some(svg.finish(
        plot.bottom + 36.0,
        &format!("Throughput over time at {}, one mark per slice", duel.label),
    ))
}

struct Axes {
    plot: Plot,
    time: Scale,
    values: Scale,
}

impl Axes {
    fn place(&self, (at_s, rate): (f64, f64)) -> (f64, f64) {
        (self.time.at(at_s), self.values.held(rate))
    }

    /// Draws a contender's line through rates at instants; an instant that is not a number breaks it.
    fn line(
        &self,
        svg: &mut Svg,
        points: impl IntoIterator<Item = (f64, f64)>,
        kind: &str,
        contender: usize,
    ) {
        let places = points.into_iter().map(|point| self.place(point));
        let class = format!("curve {kind} {}", colour(contender));
        svg.path(&polyline(places), &class, "");
    }
}

/// Draws a line at every pause, with its length where that touches no other.
fn mark_pauses(svg: &mut Svg, summary: &Summary, axes: &Axes) {
    let plot = axes.plot;
    let mut free = f64::NEG_INFINITY;
    for pause in &summary.timeline.pauses {
        let x = axes.time.at(pause.at_s);
        svg.line((x, plot.top), (x, plot.bottom), "pause");
        let text = format!("pause of {}", words::duration(pause.length_s));
        let length = 2.0 * half_width(&text);
        // On the left of its line where there is no room on the right.
        let start = match x + 4.0 + length > plot.right {
            true => x - 4.0 - length,
            false => x + 4.0,
        };
        if start >= free {
            svg.text((start, plot.top + 10.0), Anchor::Start, "small halo", &text);
            free = start + length + 8.0;
        }
    }
}

/// Draws the contender's shape for every slice, and a triangle at the axis for every stall in it.
fn mark_slices(svg: &mut Svg, summary: &Summary, series: &Series, axes: &Axes, radius: f64) {
    let name = name_of(summary, series.contender);
    for stretch in &series.stretches {
        let middle_s = stretch.start_s + stretch.length_s / 2.0;
        let point = axes.place((middle_s, stretch.throughput_per_s));
        let slices = if stretch.slices > 1 {
            format!(", {} slices", stretch.slices)
        } else {
            String::new()
        };
        let title = format!(
            "{name} from {}: {}/s over {}{slices}",
            words::duration(stretch.start_s),
            words::number(stretch.throughput_per_s),
            words::duration(stretch.length_s),
        );
        mark(svg, series.contender, point, radius, &title);
        for at_s in stalls(stretch) {
            svg.path(
                &stall_mark((axes.time.at(at_s), axes.plot.bottom)),
                &format!("stall {}", colour(series.contender)),
                &format!("{name}: stall at {}", words::duration(at_s)),
            );
        }
    }
}

/// Slices of one contender in a point of the rolling mean.
const ROLLING: usize = 5;
/// A step below this share of its slice's median is a stall.
const STALL: f64 = 0.5;

/// Mean throughput of neighbouring slices, at the middle of their time: transactions over time, not a mean of means.
fn rolling_mean(stretches: &[Stretch]) -> Vec<(f64, f64)> {
    stretches
        .windows(ROLLING.min(stretches.len().max(1)))
        .map(|window| {
            let length_s: f64 = window.iter().map(|one| one.length_s).sum();
            let work: f64 = window
                .iter()
                .map(|one| one.throughput_per_s * one.length_s)
                .sum();
            let middle = &window[window.len() / 2];
            (
                middle.start_s + middle.length_s / 2.0,
                work / length_s.max(f64::MIN_POSITIVE),
            )
        })
        .collect()
}

/// Starts of the stalls in a stretch, seconds of the timeline. The last tick is left out: it may be cut short, and its
/// rate is then noise.
fn stalls(stretch: &Stretch) -> Vec<f64> {
    let Some((_, steps)) = stretch.steps_per_s.split_last() else {
        return Vec::new();
    };
    let Some(median) = median(&mut steps.to_vec()) else {
        return Vec::new();
    };
    let step_s = stretch.length_s / stretch.steps_per_s.len() as f64;
    let is_stalled = |rate: f64| rate < STALL * median;
    let begins = |index: usize| {
        is_stalled(steps[index]) && !index.checked_sub(1).is_some_and(|at| is_stalled(steps[at]))
    };
    (0..steps.len())
        .filter(|&index| begins(index))
        .map(|index| stretch.start_s + (index as f64 + 0.5) * step_s)
        .collect()
}

/// A small triangle that points up from the axis.
fn stall_mark((x, y): (f64, f64)) -> String {
    polyline([(x - 3.5, y), (x + 3.5, y), (x, y - 7.0), (x - 3.5, y)])
}

/// Draws a triangle that points down from the top for every large checkpoint of a level.
fn mark_checkpoints(svg: &mut Svg, summary: &Summary, level: usize, plot: Plot, time: &Scale) {
    let marked = summary.timeline.checkpoints.iter();
    for checkpoint in marked.filter(|one| one.level == level) {
        let (x, y) = (time.at(checkpoint.at_s), plot.top - 1.0);
        let triangle = polyline([
            (x - 3.5, y - 6.0),
            (x + 3.5, y - 6.0),
            (x, y),
            (x - 3.5, y - 6.0),
        ]);
        svg.path(
            &triangle,
            &format!("stall {}", colour(checkpoint.contender)),
            &format!(
                "{}: checkpoint at {} frees {} of log",
                name_of(summary, checkpoint.contender),
                words::duration(checkpoint.at_s),
                words::bytes(checkpoint.freed_bytes as u64)
            ),
        );
    }
}

/// Shades uncounted load: in the contender's colour over every warm-up, in grey over pilots and long turns.
pub(super) fn shade_uncounted(svg: &mut Svg, summary: &Summary, plot: Plot, time: &Scale) {
    for apart in &summary.timeline.apart {
        let (left, right) = (
            time.at(apart.start_s),
            time.at(apart.start_s + apart.length_s),
        );
        let what = match apart.purpose {
            ApartPurpose::Pilot => "pilot (choice of turn length) and continuity check",
            ApartPurpose::LongTurns => "long turns of the continuity check",
        };
        svg.rect(
            (left, plot.top),
            (right - left, plot.height()),
            "span apart",
            &format!(
                "{what}, {} of load; not counted",
                words::duration(apart.length_s)
            ),
        );
    }
    for warm_up in &summary.timeline.warm_ups {
        let (left, right) = (
            time.at(warm_up.start_s),
            time.at(warm_up.start_s + warm_up.length_s),
        );
        svg.rect(
            (left, plot.top),
            (right - left, plot.height()),
            &format!("span {}", colour(warm_up.contender)),
            &format!(
                "{}: warm-up of {}, {}; not counted",
                name_of(summary, warm_up.contender),
                words::duration(warm_up.length_s),
                if warm_up.steady {
                    "steady at its end"
                } else {
                    "reached its time limit before it was steady"
                }
            ),
        );
    }
}

/// The middles of equal steps with their values.
pub(super) fn steps(
    start_s: f64,
    length_s: f64,
    values: &[f64],
) -> impl Iterator<Item = (f64, f64)> {
    let step_s = length_s / values.len().max(1) as f64;
    let at = move |index: usize| start_s + (index as f64 + 0.5) * step_s;
    values
        .iter()
        .enumerate()
        .map(move |(index, value)| (at(index), *value))
}

/// Caption of an axis of the whole timeline.
pub(super) const SINCE: &str = "since the first load";

/// Draws ticks of time in seconds, minutes or hours, and the axis's caption.
pub fn time_axis(svg: &mut Svg, plot: Plot, time: &Scale, length_s: f64, since: &str) {
    let (unit_s, unit) = match length_s {
        _ if length_s > 3.0 * 3600.0 => (3600.0, "hours"),
        _ if length_s > 180.0 => (60.0, "minutes"),
        _ => (1.0, "seconds"),
    };
    let count = (plot.width() / 70.0) as usize;
    let at: Vec<f64> = ticks(0.0, length_s / unit_s, count)
        .into_iter()
        .map(|tick| tick * unit_s)
        .collect();
    plot.vertical_grid(svg, time, &at, |tick| words::trimmed(tick / unit_s));
    plot.axis(svg, &format!("{unit} {since}"));
}

fn largest(series: &[&Series], warm_ups: &[&WarmUp]) -> f64 {
    let stretches = series.iter().flat_map(|series| &series.stretches);
    let measured = stretches.flat_map(|stretch| {
        stretch
            .steps_per_s
            .iter()
            .chain(std::iter::once(&stretch.throughput_per_s))
    });
    measured
        .chain(warm_ups.iter().flat_map(|warm_up| &warm_up.steps_per_s))
        .copied()
        .filter(|rate| rate.is_finite())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_below_half_of_the_median_of_an_even_number_of_ticks() {
        let stretch = |steps_per_s: &[f64]| Stretch {
            start_s: 10.0,
            length_s: steps_per_s.len() as f64,
            throughput_per_s: 100.0,
            slices: 1,
            steps_per_s: steps_per_s.to_vec(),
        };
        // The last tick is left out; of the other four the median is 75, and 45 is more than half of it.
        assert_eq!(stalls(&stretch(&[100.0, 45.0, 50.0, 100.0, 0.0])), [0.0; 0]);
        assert_eq!(stalls(&stretch(&[100.0, 30.0, 50.0, 100.0, 0.0])), [11.5]);
    }
}
