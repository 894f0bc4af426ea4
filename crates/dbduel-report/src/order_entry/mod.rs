//! The order-entry workload's part of a report: NOPM, rollbacks, deliveries.

pub(super) mod chart;

use dbduel_judge::Summary;
use dbduel_judge::workloads::order_entry::{OrderCell, OrderEntry};
use serde::Serialize;

use super::terminal::page::{Ink, Page};
use super::view::figures::how;
use super::view::{Entry, entry};
use crate::{number_of, words};

#[derive(Debug, Clone, Serialize)]
pub struct OrdersView {
    /// Disclaimer that accompanies every figure.
    pub disclaimer: String,
    pub facts: Vec<Entry>,
    pub levels: Vec<OrdersLevel>,
}

#[derive(Debug, Clone, Serialize)]
pub struct OrdersLevel {
    pub label: String,
    pub cells: Vec<OrdersCell>,
}

#[derive(Debug, Clone, Serialize)]
pub struct OrdersCell {
    pub contender: String,
    pub number: usize,
    /// New-Orders per minute.
    pub nopm: String,
    /// Its interval, or why there is none.
    pub doubt: String,
    pub how: String,
    /// Lowest, median and highest slice.
    pub slices: String,
    /// New-Orders, and how many of them were rolled back on purpose.
    pub rolled_back: String,
    /// Deliveries without an order.
    pub deliveries: String,
}

/// The section on order entry; `None` for other workloads.
#[must_use]
pub fn view(summary: &Summary) -> Option<OrdersView> {
    let part = summary.order_entry.as_ref()?;
    let levels = summary.duels.iter().map(|duel| OrdersLevel {
        label: duel.label.clone(),
        cells: part
            .cells
            .iter()
            .filter(|cell| cell.level == duel.level)
            .map(|one| cell(summary, part, one))
            .collect(),
    });
    Some(OrdersView {
        disclaimer: words::sentence(&part.disclaimer),
        facts: facts(part),
        levels: levels.collect(),
    })
}

/// Prints the section on a terminal.
pub fn print(page: &mut Page, view: &OrdersView) {
    page.blank();
    page.wrapped(&view.disclaimer);
    for level in &view.levels {
        page.inked_lines(Ink::Bold, &level.label);
        for cell in &level.cells {
            let text = format!(
                "{}: NOPM {} ({}); {}; {}; deliveries without an order: {}",
                cell.contender,
                cell.nopm,
                cell.doubt,
                cell.slices,
                cell.rolled_back,
                cell.deliveries
            );
            page.labelled((Ink::Plain, "  "), (Ink::Plain, &text));
        }
    }
}

fn facts(part: &OrderEntry) -> Vec<Entry> {
    let pacing = if part.keying_and_think_times {
        "on"
    } else {
        "off: no wait between transactions"
    };
    vec![
        entry("warehouses", words::count(part.warehouses)),
        entry("keying and think times", pacing),
        entry("terminals", &part.terminals),
        entry("mix", &part.mix),
        entry("statements", &part.protocol),
    ]
}

fn cell(summary: &Summary, part: &OrderEntry, cell: &OrderCell) -> OrdersCell {
    OrdersCell {
        contender: cell.contender.clone(),
        number: number_of(summary, &cell.contender),
        nopm: words::value(&cell.nopm, words::number),
        doubt: words::rate_doubt(&cell.nopm),
        how: how(&cell.nopm),
        slices: slices(cell),
        rolled_back: rolled_back(cell),
        deliveries: deliveries(part, &cell.contender),
    }
}

fn slices(cell: &OrderCell) -> String {
    let mut sorted: Vec<f64> = cell.nopm_by_slice.iter().map(|slice| slice.nopm).collect();
    let median = dbduel_stats::median(&mut sorted);
    match (sorted.first(), median, sorted.last()) {
        (Some(low), Some(median), Some(high)) => format!(
            "{}: lowest {}, median {}, highest {}",
            words::things(sorted.len() as u64, "slice"),
            words::number(*low),
            words::number(median),
            words::number(*high)
        ),
        _ => "no slices".to_owned(),
    }
}

fn rolled_back(cell: &OrderCell) -> String {
    let orders = words::count(cell.new_orders);
    match cell.rolled_back {
        Some(count) if cell.new_orders > 0 => format!(
            "{orders} New-Orders, {} of them intended rollbacks",
            words::share(count as f64 / cell.new_orders as f64)
        ),
        Some(_) => "no New-Orders".to_owned(),
        None => {
            format!("{orders} New-Orders, intended rollbacks not recorded")
        }
    }
}

fn deliveries(part: &OrderEntry, contender: &str) -> String {
    let found = part
        .deliveries
        .iter()
        .find(|found| found.contender == contender);
    found.map_or_else(
        || "not recorded".to_owned(),
        |found| {
            format!(
                "{} of {} in the whole run",
                words::count(found.with_skips),
                words::count(found.all)
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::order_entry::order_entry_record;

    #[test]
    fn an_even_number_of_slices_has_the_mean_of_the_two_in_the_middle() {
        let (summary, _) = summarise(&order_entry_record());
        let mut cell = summary.order_entry.unwrap().cells.swap_remove(0);
        cell.nopm_by_slice.truncate(4);
        for (slice, nopm) in cell
            .nopm_by_slice
            .iter_mut()
            .zip([400.0, 100.0, 300.0, 200.0])
        {
            slice.nopm = nopm;
        }
        assert_eq!(
            slices(&cell),
            "4 slices: lowest 100, median 250, highest 400"
        );
    }
}
