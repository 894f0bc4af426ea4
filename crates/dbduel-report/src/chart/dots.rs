//! The latencies of one level side by side: mean, quantiles and largest, on a logarithmic axis.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Figure};

use crate::view::figures::{MAX, MEAN, NamedFigure, P50, P95, P99, P999};
use crate::words;

use super::frame::{Plot, shape, titled};
use super::names;
use super::scale::{Scale, logarithmic_ticks};
use super::style::{colour, legend, marker};
use super::svg::Anchor;

const ROWS: [NamedFigure; 6] = [MEAN, P50, P95, P99, P999, MAX];

/// Draws the chart; `None` when no latency was measured. Hollow marks have no interval.
#[must_use]
pub fn latency_profile(summary: &Summary, duel: &Duel, width: f64) -> Option<String> {
    let figures = || {
        duel.contenders
            .iter()
            .flat_map(|measures| ROWS.iter().map(move |(_, figure)| figure(measures)))
    };
    let values: Vec<f64> = figures()
        .filter_map(Figure::value)
        .filter(|value| *value > 0.0)
        .collect();
    let smallest = values.iter().copied().reduce(f64::min)?;
    let largest = values.iter().copied().fold(0.0, f64::max);
    let mut svg = titled(width, &format!("Latency, {}", duel.label), "logarithmic");
    let top = legend(&mut svg, &names(summary));
    let lane = 11.0;
    let row = lane * duel.contenders.len() as f64 + 12.0;
    let plot = Plot {
        left: 52.0,
        top: top + 4.0,
        right: width - 16.0,
        bottom: top + 4.0 + row * ROWS.len() as f64,
    };
    let scale = Scale::logarithmic((smallest / 1.3, largest * 1.3), plot.across());
    for (index, _) in ROWS.iter().enumerate().step_by(2) {
        svg.rect(
            (0.0, plot.top + row * index as f64),
            (plot.right, row),
            "row",
            "",
        );
    }
    let ticks = logarithmic_ticks(smallest / 1.3, largest * 1.3, 8);
    plot.vertical_grid(&mut svg, &scale, &ticks, words::latency_tick);
    for (index, (name, figure)) in ROWS.iter().enumerate() {
        let middle = plot.top + row * (index as f64 + 0.5);
        svg.text((plot.left - 8.0, middle + 4.0), Anchor::End, "label", name);
        for (contender, measures) in duel.contenders.iter().enumerate() {
            let figure = figure(measures);
            let Some(value) = figure.value().filter(|value| *value > 0.0) else {
                continue;
            };
            let y = middle + lane * (contender as f64 - (duel.contenders.len() - 1) as f64 / 2.0);
            let class = colour(contender);
            if let Some((low, high)) = figure.interval() {
                svg.line(
                    (scale.held(low), y),
                    (scale.held(high), y),
                    &format!("whisker {class}"),
                );
            }
            let title = format!(
                "{} {name}: {} ({})",
                measures.contender,
                words::latency(value),
                words::doubt(figure, words::latency)
            );
            svg.path(
                &marker(contender, (scale.held(value), y), 4.2),
                &format!("{} {class}", shape(figure)),
                &title,
            );
        }
    }
    Some(svg.finish(
        plot.bottom + 26.0,
        &format!(
            "Latency at {}: mean, quantiles and largest per contender",
            duel.label
        ),
    ))
}
