//! Throughput against latency, one point per load level, labelled by its clients.

use dbduel_judge::Summary;
use dbduel_judge::summary::Measures;

use crate::words;

use super::frame::{Plot, titled};
use super::names;
use super::scale::{Scale, nice_end, ticks};
use super::style::{colour, legend, mark};
use super::svg::{Anchor, polyline};

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
        right: width - 30.0,
        bottom: top + 226.0,
    };
    let (low, high) = (fastest / 1.4, slowest * 1.4);
    let values = plot.latencies(&mut svg, (low, high));
    let end = nice_end(rates, 5);
    let across = Scale::linear((0.0, end), plot.across());
    plot.vertical_grid(&mut svg, &across, &ticks(0.0, end, 5), words::trimmed);
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
            svg.text(
                (place.0 + 8.0, place.1 - 6.0),
                Anchor::Start,
                "small halo",
                &duel.load.clients.to_string(),
            );
        }
    }
    plot.axis(&mut svg, "transactions/s; numbers at the marks are clients");
    Some(svg.finish(
        plot.bottom + 36.0,
        "Throughput against p95 latency, one mark per number of clients",
    ))
}
