//! Charts as SVG, drawn from a summary alone.
//!
//! One contender has one colour, one shape and one dash pattern in every chart; every chart has a description for
//! screen readers, and tooltips with the exact numbers. Widths are given in pixels, so that a page can hold a wide and
//! a narrow drawing of the same chart. Charts need no font, script or network.

pub(super) mod bar_rows;
mod bars;
mod blocks;
mod dots;
mod factor;
mod flame;
mod forest;
pub(super) mod frame;
mod levels;
mod meanwhile;
mod nines;
pub(super) mod overtime;
pub(super) mod scale;
mod search;
mod steadiness;
mod strip;
pub(super) mod style;
pub(super) mod svg;
mod tradeoff;
mod waterfall;

pub use bars::processor_time;
pub use blocks::block_ratios;
pub use dots::latency_profile;
pub use factor::FactorChart;
pub use flame::{flame, flame_difference};
pub use forest::forest;
pub use levels::{LevelChart, by_level};
pub use meanwhile::meanwhile;
pub use nines::latency_curve;
pub use overtime::throughput_over_time;
pub use search::search;
pub use steadiness::steadiness;
pub use strip::schedule_strip;
pub use style::{COLOURS, STYLE, marker, standalone};
pub use svg::{Svg, escape};
pub use tradeoff::throughput_against_latency;
pub use waterfall::waterfall;

use dbduel_judge::Summary;

use super::number_of;

pub(super) fn names(summary: &Summary) -> Vec<&str> {
    summary
        .contenders
        .iter()
        .map(|contender| contender.name.as_str())
        .collect()
}

fn name_of(summary: &Summary, contender: usize) -> &str {
    summary
        .contenders
        .get(contender)
        .map_or("", |facts| facts.name.as_str())
}
