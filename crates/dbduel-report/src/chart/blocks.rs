//! The evidence behind a verdict: the ratio of every block of a level.

use dbduel_judge::Summary;
use dbduel_judge::summary::Duel;

use crate::words;

use super::forest::tick_label;
use super::frame::{Plot, titled};
use super::number_of;
use super::scale::{Scale, ratio_ticks, ticks};
use super::style::{colour, mark, mark_radius};
use super::svg::Anchor;

/// Maximum number of marks per contender; with more blocks, every n-th is shown.
const MARKS_MAX: usize = 400;

/// Distance of the outermost marks from the axis and from the top, pixels.
const AIR: f64 = 7.0;

/// Draws the chart; `None` before the first complete block.
#[must_use]
pub fn block_ratios(summary: &Summary, duel: &Duel, width: f64) -> Option<String> {
    let blocks = duel
        .comparisons
        .iter()
        .map(|comparison| comparison.blocks.len())
        .max()
        .filter(|&blocks| blocks > 0)?;
    let horizon = 1.0 + summary.rule.horizon;
    let ratios = duel
        .comparisons
        .iter()
        .flat_map(|comparison| &comparison.blocks)
        .map(|block| block.ratio);
    let (low, high) = ratios.fold((1.0 / horizon, horizon), |(low, high), ratio| {
        (low.min(ratio), high.max(ratio))
    });
    let (low, high) = (low / horizon.powf(0.4), high * horizon.powf(0.4));
    let mut svg = titled(width, &format!("Ratio of every block, {}", duel.label), "");
    let plot = Plot {
        left: 52.0,
        top: 28.0,
        right: width - 12.0,
        bottom: 190.0,
    };
    let values = Scale::logarithmic((low, high), (plot.bottom - AIR, plot.top + AIR));
    let band = (values.at(horizon), values.at(1.0 / horizon));
    svg.rect(
        (plot.left, band.0),
        (plot.width(), band.1 - band.0),
        "band",
        "within the horizon",
    );
    plot.horizontal_grid(&mut svg, &values, &ratio_ticks(low, high, 5), |tick| {
        tick_label(tick, high / low)
    });
    svg.line(
        (plot.left, values.at(1.0)),
        (plot.right, values.at(1.0)),
        "zero",
    );
    let places = Scale::linear((0.0, blocks as f64), plot.across());
    let every = blocks.div_ceil(MARKS_MAX);
    let radius = mark_radius(plot.width(), blocks, 0.45);
    for comparison in &duel.comparisons {
        let contender = number_of(summary, &comparison.contender);
        let class = colour(contender);
        if let Some((low, high)) = comparison.ratio.interval() {
            let (top, bottom) = (values.held(high), values.held(low));
            let title = format!(
                "{}: {}",
                comparison.contender,
                words::ratio_interval(&comparison.ratio)
            );
            svg.rect(
                (plot.left, top),
                (plot.width(), bottom - top),
                &format!("span {class}"),
                &title,
            );
        }
        for (index, block) in comparison.blocks.iter().enumerate().step_by(every) {
            let title = format!(
                "{}, block {}: {}",
                comparison.contender,
                block.block,
                words::ratio(block.ratio)
            );
            let point = (places.at(index as f64 + 0.5), values.held(block.ratio));
            mark(&mut svg, contender, point, radius, &title);
        }
    }
    let at: Vec<f64> = ticks(0.0, blocks as f64, 6)
        .into_iter()
        .filter(|tick| *tick >= 1.0 && tick.fract() == 0.0)
        .collect();
    for tick in at {
        svg.text(
            (places.at(tick - 0.5), plot.bottom + 15.0),
            Anchor::Middle,
            "tick",
            &words::trimmed(tick),
        );
    }
    plot.axis(&mut svg, "block · tint: interval · grey: horizon");
    Some(svg.finish(
        plot.bottom + 36.0,
        &format!(
            "Throughput ratio of each of {blocks} blocks at {}",
            duel.label
        ),
    ))
}
