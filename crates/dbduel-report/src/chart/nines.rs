//! The whole latency distribution of a level, on an axis that counts nines.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Profile};

use crate::words;

use super::frame::{Plot, titled};
use super::scale::Scale;
use super::style::{colour, legend, mark};
use super::svg::polyline;
use super::{name_of, names};

/// Quantiles with a label.
const LABELLED: [(f64, &str); 7] = [
    (0.0, "0"),
    (0.5, "50"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
];

/// Draws the chart; `None` when the latency log is missing.
#[must_use]
pub fn latency_curve(summary: &Summary, duel: &Duel, width: f64) -> Option<String> {
    let profiles: Vec<&Profile> = summary
        .profiles
        .iter()
        .filter(|profile| profile.level == duel.level && profile.latency.len() > 1)
        .collect();
    let points = || profiles.iter().flat_map(|profile| &profile.latency);
    let smallest = points()
        .map(|point| point.latency_us)
        .reduce(f64::min)?
        .max(1.0);
    let largest = points().map(|point| point.latency_us).fold(1.0, f64::max);
    let last = points().map(|point| point.quantile).fold(0.5, f64::max);
    let mut svg = titled(
        width,
        &format!("Latency at every quantile, {}", duel.label),
        "",
    );
    let top = legend(&mut svg, &names(summary));
    let plot = Plot {
        left: 58.0,
        top: top + 6.0,
        right: width - 14.0,
        bottom: top + 206.0,
    };
    let (low, high) = (smallest / 1.2, largest * 1.2);
    let values = plot.latencies(&mut svg, (low, high));
    let across = Scale::linear((0.0, nines(last)), plot.across());
    let shown: Vec<(f64, &str)> = LABELLED
        .into_iter()
        .filter(|(quantile, _)| *quantile <= last)
        .collect();
    let at: Vec<f64> = shown.iter().map(|(quantile, _)| nines(*quantile)).collect();
    plot.vertical_grid(&mut svg, &across, &at, |place| {
        let label = shown
            .iter()
            .find(|(quantile, _)| (nines(*quantile) - place).abs() < 1e-9);
        label.map_or_else(String::new, |(_, label)| (*label).to_owned())
    });
    for profile in &profiles {
        let class = colour(profile.contender);
        let places: Vec<(f64, f64)> = profile
            .latency
            .iter()
            .map(|point| {
                (
                    across.at(nines(point.quantile)),
                    values.held(point.latency_us.max(low)),
                )
            })
            .collect();
        svg.path(
            &polyline(places.iter().copied()),
            &format!("curve {class}"),
            "",
        );
        let name = name_of(summary, profile.contender);
        for (place, point) in places.iter().zip(&profile.latency) {
            mark(
                &mut svg,
                profile.contender,
                *place,
                2.5,
                &format!(
                    "{name}: {} % of transactions within {}",
                    words::trimmed_fine(100.0 * point.quantile),
                    words::latency(point.latency_us)
                ),
            );
        }
    }
    plot.axis(&mut svg, "% of transactions at or below");
    Some(svg.finish(
        plot.bottom + 36.0,
        &format!(
            "Latency distribution at {}, quantiles on an axis of nines",
            duel.label
        ),
    ))
}

/// Number of nines of a quantile: 0.9 has one, 0.99 has two.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}
