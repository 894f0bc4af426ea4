//! Throughput against latency, one point per load level, labelled by its clients.

use dbduel_judge::Summary;
use dbduel_judge::summary::Measures;

use crate::words;

use super::frame::{Plot, half_width, titled};
use super::names;
use super::scale::{Scale, nice_end, ticks};
use super::style::{colour, legend, mark};
use super::svg::{Anchor, polyline};

/// Room for labels on the right of the plot, pixels.
const BESIDE: f64 = 30.0;

/// Below this width the note beside the title is short.
const NARROW: f64 = 480.0;

/// Draws the chart; `None` with fewer than two levels.
#[must_use]
pub fn throughput_against_latency(summary: &Summary, width: f64) -> Option<String> {
    let point = |measures: &Measures| -> Option<(f64, f64)> {
        let rate = measures.throughput_per_s.value()?;
        let latency = measures.latency_us_p95.value()?;
        (rate > 0.0 && latency > 0.0).then_some((rate, latency))
    };
    let points: Vec<(f64, f64)> = summary
        .duels
        .iter()
        .flat_map(|duel| &duel.contenders)
        .filter_map(point)
        .collect();
    if summary.duels.len() < 2 || points.is_empty() {
        return None;
    }
    let rates = points.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    let fastest = points
        .iter()
        .map(|(_, us)| *us)
        .fold(f64::INFINITY, f64::min);
    let slowest = points.iter().map(|(_, us)| *us).fold(0.0, f64::max);
    let note = match width < NARROW {
        true => "better: ↘",
        false => "better: right and down",
    };
    let mut svg = titled(width, "Throughput against p95 latency", note);
    let top = legend(&mut svg, &names(summary));
    let plot = Plot {
        left: 58.0,
        top: top + 6.0,
        right: width - BESIDE,
        bottom: top + 226.0,
    };
    let (low, high) = (fastest / 1.4, slowest * 1.4);
    let values = plot.latencies(&mut svg, (low, high));
    let end = nice_end(rates, 5);
    let across = Scale::linear((0.0, end), plot.across());
    plot.vertical_grid(&mut svg, &across, &ticks(0.0, end, 5), words::trimmed);
    let mut taken: Vec<((f64, f64), f64)> = Vec::new();
    for contender in 0..summary.contenders.len() {
        let class = colour(contender);
        let own: Vec<_> = summary
            .duels
            .iter()
            .filter_map(|duel| {
                let measures = duel.contenders.get(contender)?;
                Some((duel, measures, point(measures)?))
            })
            .collect();
        let places = own
            .iter()
            .map(|(.., (rate, us))| (across.at(*rate), values.at(*us)));
        svg.path(&polyline(places), &format!("curve {class}"), "");
        for (duel, measures, (rate, us)) in &own {
            let place = (across.at(*rate), values.at(*us));
            mark(
                &mut svg,
                contender,
                place,
                4.5,
                &format!(
                    "{} at {}: {}/s, p95 {}",
                    measures.contender,
                    duel.label,
                    words::number(*rate),
                    words::latency(*us)
                ),
            );
            let label = duel.load.clients.to_string();
            if let Some(at) = free_place(&taken, plot, place, &label) {
                svg.text(at, Anchor::Start, "small halo", &label);
                taken.push((at, 2.0 * half_width(&label) + HALO));
            }
        }
    }
    plot.axis(&mut svg, "transactions/s; numbers at the marks are clients");
    Some(svg.finish(
        plot.bottom + 36.0,
        "Throughput against p95 latency, one mark per number of clients",
    ))
}

/// Height of a label with its halo, pixels.
const LABEL: f64 = 15.0;
/// Length of the halo on both sides of a label, pixels.
const HALO: f64 = 4.0;

/// Where the label of a mark begins: beside the mark, within the plot and on none of the `taken` labels, of which each has its
/// beginning and its length; `None` without such a place.
fn free_place(
    taken: &[((f64, f64), f64)],
    plot: Plot,
    (x, y): (f64, f64),
    label: &str,
) -> Option<(f64, f64)> {
    let length = 2.0 * half_width(label) + HALO;
    let sides = [x + 8.0, x - 8.0 - length];
    let places = sides.map(|side| [(side, y - 6.0), (side, y + 14.0)]);
    let is_free = |&(left, bottom): &(f64, f64)| {
        let is_apart = |((other, other_bottom), other_length): &((f64, f64), f64)| {
            left > other + other_length
                || left + length < *other
                || (bottom - other_bottom).abs() > LABEL
        };
        let is_beside = left >= plot.left && left + length <= plot.right + BESIDE;
        let is_inside = is_beside && bottom - LABEL >= plot.top && bottom <= plot.bottom;
        is_inside && taken.iter().all(is_apart)
    };
    places.into_iter().flatten().find(is_free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_marks_at_one_place_stand_around_it_and_none_on_another() {
        let plot = Plot {
            left: 0.0,
            top: 0.0,
            right: 300.0,
            bottom: 200.0,
        };
        let mut taken = Vec::new();
        for _ in 0..4 {
            let at = free_place(&taken, plot, (150.0, 100.0), "256").unwrap();
            taken.push((at, 2.0 * half_width("256") + HALO));
        }
        assert_eq!(free_place(&taken, plot, (150.0, 100.0), "256"), None);
        // At the left edge only the right side has room.
        let at = free_place(&[], plot, (2.0, 100.0), "256").unwrap();
        assert!(at.0 > 2.0, "{at:?}");
    }
}
