//! The order-entry workload's part for a terminal.

use super::page::{Ink, Page, clean, wrap};
use crate::report::view::OrdersView;

/// NOPM, after the disclaimer.
pub(super) fn orders(page: &mut Page, view: &OrdersView) {
    page.blank();
    page.wrapped(&view.disclaimer);
    for level in &view.levels {
        let label = page.inked(Ink::Bold, &clean(&level.label));
        page.line(&label);
        for cell in &level.cells {
            let words = format!(
                "  {}: NOPM {} ({}); {}; {}; deliveries without an order: {}",
                cell.contender,
                cell.nopm,
                cell.doubt,
                cell.slices,
                cell.rolled_back,
                cell.deliveries
            );
            for (index, line) in wrap(&clean(&words), page.width - 2, 2, 2)
                .iter()
                .enumerate()
            {
                page.line(&format!("{}{line}", if index == 0 { "  " } else { "    " }));
            }
        }
    }
}
