//! The order-entry workload's part for a terminal.

use super::page::{Ink, Page, clean, wrap};
use crate::report::view::{CLASS_COLUMNS, OrdersView};

/// Width of a column of numbers.
const CELL: usize = 9;
/// Width of the names of classes.
const CLASS: usize = 14;
/// Columns of the table of classes that a terminal shows: without the interval of the 90 % quantile.
const SHOWN: [usize; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// NOPM and classes, after the disclaimer.
pub(super) fn orders(page: &mut Page, view: &OrdersView) {
    page.blank();
    page.wrapped(&view.disclaimer);
    for level in &view.levels {
        let label = page.inked(Ink::Bold, &clean(&level.label));
        page.line(&label);
        for cell in &level.cells {
            let words = format!(
                "  {}: NOPM {} ({}); {}; {}; deliveries without an order: {}; errors: {}",
                cell.contender,
                cell.nopm,
                cell.doubt,
                cell.slices,
                cell.rolled_back,
                cell.deliveries,
                cell.errors
            );
            for (index, line) in wrap(&clean(&words), page.width - 2, 2, 2)
                .iter()
                .enumerate()
            {
                page.line(&format!("{}{line}", if index == 0 { "  " } else { "    " }));
            }
            let heads: String = SHOWN
                .iter()
                .map(|column| format!(" {:>CELL$}", CLASS_COLUMNS[*column]))
                .collect();
            let heads = page.inked(Ink::Dim, &format!("    {:CLASS$}{heads}", ""));
            page.line(&heads);
            for class in &cell.classes {
                let cells: String = SHOWN
                    .iter()
                    .map(|column| format!(" {:>CELL$}", without_interval(&class[*column])))
                    .collect();
                page.line(&format!("    {:CLASS$}{cells}", class[0]));
            }
        }
    }
}

fn without_interval(text: &str) -> &str {
    text.split(" (").next().unwrap_or(text)
}
