//! New-Orders per minute of every counted slice over time.

use dbduel_judge::Summary;
use dbduel_judge::summary::Duel;
use dbduel_judge::workloads::order_entry::OrderCell;

use crate::chart::frame::{Plot, titled};
use crate::chart::names;
use crate::chart::overtime::time_axis;
use crate::chart::scale::{Scale, nice_end, ticks};
use crate::chart::style::{colour, legend, mark, mark_radius};
use crate::chart::svg::polyline;
use crate::{number_of, words};

/// Draws the chart; `None` for another workload, or before the first counted slice.
#[must_use]
pub fn new_orders(summary: &Summary, duel: &Duel, width: f64) -> Option<String> {
    let part = summary.order_entry.as_ref()?;
    let cells: Vec<&OrderCell> = part
        .cells
        .iter()
        .filter(|cell| cell.level == duel.level)
        .collect();
    let slices = || cells.iter().flat_map(|cell| &cell.nopm_by_slice);
    let first_ms = slices().map(|slice| slice.start_ms).min()?;
    let since_s = |start_ms: u64| start_ms.saturating_sub(first_ms) as f64 / 1e3;
    let length_s = slices()
        .map(|slice| since_s(slice.start_ms))
        .fold(1.0, f64::max);
    let title = format!("New-Orders per minute, {}", duel.label);
    let mut svg = titled(width, &title, "");
    let top = legend(&mut svg, &names(summary));
    let plot = Plot {
        left: 60.0,
        top: top + 6.0,
        right: width - 8.0,
        bottom: top + 166.0,
    };
    let end = nice_end(slices().map(|slice| slice.nopm).fold(0.0, f64::max), 4);
    let values = Scale::linear((0.0, end), plot.upwards());
    plot.horizontal_grid(&mut svg, &values, &ticks(0.0, end, 4), words::trimmed);
    let time = Scale::linear((0.0, length_s), plot.across());
    time_axis(&mut svg, plot, &time, length_s, "since the first slice");
    let radius = mark_radius(plot.width(), slices().count(), 1.2);
    for cell in &cells {
        let contender = number_of(summary, &cell.contender);
        let points: Vec<(f64, f64)> = cell
            .nopm_by_slice
            .iter()
            .map(|slice| (time.at(since_s(slice.start_ms)), values.held(slice.nopm)))
            .collect();
        let class = format!("curve guide {}", colour(contender));
        svg.path(&polyline(points.iter().copied()), &class, "");
        for (point, slice) in points.iter().zip(&cell.nopm_by_slice) {
            let title = format!(
                "{}, slice {}.{}: {} NOPM",
                cell.contender,
                slice.block,
                slice.position,
                words::number(slice.nopm)
            );
            mark(&mut svg, contender, *point, radius, &title);
        }
    }
    let about = format!(
        "New-Orders per minute over time at {}, one mark per slice",
        duel.label
    );
    Some(svg.finish(plot.bottom + 36.0, &about))
}
