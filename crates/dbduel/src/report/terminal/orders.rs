//! The order-entry workload's part for a terminal.

use super::page::{Ink, Page, clean, wrap};
use crate::report::view::{CLASS_COLUMNS, OrdersView};

/// What a table of classes is moved to the right by.
const INDENT: usize = 4;

/// NOPM and classes, after the disclaimer.
pub(super) fn orders(page: &mut Page, view: &OrdersView) {
    page.blank();
    page.wrapped(&view.disclaimer);
    let columns = columns(view, page.width);
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
            let heads = page.inked(
                Ink::Dim,
                &row(&columns, |column| match column {
                    0 => "",
                    column => CLASS_COLUMNS[column],
                }),
            );
            page.line(&heads);
            for class in &cell.classes {
                page.line(&row(&columns, |column| &class[column]));
            }
        }
    }
    let left_out = CLASS_COLUMNS.get(columns.len()..).unwrap_or_default();
    if !left_out.is_empty() {
        page.wrapped(&format!(
            "No room in {} columns for {}; a wider terminal shows more, the HTML report all.",
            page.width,
            left_out.join(", ")
        ));
    }
}

/// Widths of the first columns of the tables of classes, of so many as the page has room for. All tables have the
/// same, each as wide as its widest cell.
fn columns(view: &OrdersView, page_width: usize) -> Vec<usize> {
    let cells = view.levels.iter().flat_map(|level| &level.cells);
    let classes: Vec<&Vec<String>> = cells.flat_map(|cell| &cell.classes).collect();
    let width = |column: usize| {
        let head = CLASS_COLUMNS[column].chars().count();
        let widths = classes
            .iter()
            .map(|class| without_interval(&class[column]).chars().count());
        widths.chain([head]).max().unwrap_or(head)
    };
    let mut free = page_width.saturating_sub(INDENT);
    (0..CLASS_COLUMNS.len())
        .map(width)
        .take_while(|width| {
            let fits = *width < free;
            free = free.saturating_sub(width + 1);
            fits
        })
        .collect()
}

/// One row of a table of classes: the name to the left, figures to the right.
fn row<'t>(columns: &[usize], text: impl Fn(usize) -> &'t str) -> String {
    let mut row = " ".repeat(INDENT);
    for (column, width) in columns.iter().enumerate() {
        let text = without_interval(text(column));
        match column {
            0 => row.push_str(&format!("{text:<width$}")),
            _ => row.push_str(&format!(" {text:>width$}")),
        }
    }
    row
}

fn without_interval(text: &str) -> &str {
    text.split(" (").next().unwrap_or(text)
}
