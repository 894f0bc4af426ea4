//! Distribution of throughput over the ticks, one ridge per contender.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Steadiness};

use crate::words;

use super::frame::{Plot, titled};
use super::name_of;
use super::scale::{Scale, nice_end, ticks};
use super::style::{colour, fitted, mark};
use super::svg::{Anchor, polyline};

/// Height of a ridge with its bar.
const LANE: f64 = 56.0;
/// Height for a name above its ridge, in drawings that have no room beside it.
const NAME: f64 = 18.0;

/// Draws the chart; `None` without a series.
#[must_use]
pub fn steadiness(summary: &Summary, duel: &Duel, width: f64) -> Option<String> {
    let shapes: Vec<(usize, &Steadiness)> = summary
        .profiles
        .iter()
        .filter(|profile| profile.level == duel.level)
        .filter_map(|profile| Some((profile.contender, profile.steadiness.as_ref()?)))
        .collect();
    let tick_s = shapes.first()?.1.tick_s;
    let end = shapes
        .iter()
        .map(|(_, one)| one.from_per_s + one.bin_per_s * one.counts.len() as f64)
        .fold(0.0, f64::max);
    let mut svg = titled(
        width,
        &format!("Steadiness, {}", duel.label),
        "transactions/s",
    );
    let is_narrow = width < 480.0;
    let (left, lane_height) = if is_narrow {
        (8.0, LANE + NAME)
    } else {
        (150.0, LANE)
    };
    let plot = Plot {
        left,
        top: 30.0,
        right: width - 14.0,
        bottom: 30.0 + lane_height * shapes.len() as f64,
    };
    let end = nice_end(end, 4);
    let scale = Scale::linear((0.0, end), plot.across());
    plot.vertical_grid(&mut svg, &scale, &ticks(0.0, end, 4), words::trimmed);
    for (lane, (contender, one)) in shapes.iter().enumerate() {
        let floor = plot.top + lane_height * (lane as f64 + 1.0) - 10.0;
        let (name_y, name_width) = if is_narrow {
            (floor - LANE + 4.0, width)
        } else {
            (floor - 8.0, left)
        };
        let name = name_of(summary, *contender);
        let class = colour(*contender);
        mark(&mut svg, *contender, (6.0, name_y - 4.0), 4.5, name);
        svg.text(
            (17.0, name_y),
            Anchor::Start,
            "label",
            &fitted(name, name_width - 24.0),
        );
        svg.path(
            &ridge(one, &scale, floor),
            &format!("ridge {class}"),
            &said(name, one),
        );
        let [_, q25, median, q75, _] = one.quantiles_per_s;
        svg.line(
            (scale.at(q25), floor + 4.0),
            (scale.at(q75), floor + 4.0),
            &format!("whisker {class}"),
        );
        svg.line(
            (scale.at(median), floor - 2.0),
            (scale.at(median), floor + 8.0),
            &format!("median {class}"),
        );
    }
    plot.axis(
        &mut svg,
        &format!(
            "over every {} s; bar: middle half, tick: median",
            words::trimmed(tick_s)
        ),
    );
    Some(svg.finish(
        plot.bottom + 36.0,
        &format!("Distribution of throughput over time at {}", duel.label),
    ))
}

/// The outline of the distribution; all ridges have the same height.
fn ridge(one: &Steadiness, scale: &Scale, floor: f64) -> String {
    let highest = one.counts.iter().copied().max().unwrap_or(0).max(1);
    let height = |count: u32| floor - (LANE - 18.0) * f64::from(count) / f64::from(highest);
    let place = |bin: usize| scale.at(one.from_per_s + one.bin_per_s * bin as f64);
    let mut points = vec![(place(0), floor)];
    for (bin, count) in one.counts.iter().enumerate() {
        points.push((place(bin), height(*count)));
        points.push((place(bin + 1), height(*count)));
    }
    points.push((place(one.counts.len()), floor));
    format!("{}Z", polyline(points))
}

fn said(name: &str, one: &Steadiness) -> String {
    let [p5, p25, median, p75, p95] = one.quantiles_per_s.map(words::number);
    format!("{name}: median {median}/s, middle half {p25} to {p75}, nine tenths {p5} to {p95}")
}
