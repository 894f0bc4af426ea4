//! Transaction classes for a terminal.

use super::page::{Ink, Page, clean};
use super::table::Layout;
use crate::view::ClassesView;
use crate::view::table::Table;

/// Indentation of a table, columns.
const INDENT: usize = 4;

/// The tables of the last load level, which is the heaviest where levels differ in clients or rates.
pub(super) fn classes(page: &mut Page, view: &ClassesView) {
    let Some((level, others)) = view.levels.split_last() else {
        return;
    };
    page.blank();
    let cells = view.levels.iter().flat_map(|level| &level.cells);
    let tables: Vec<&Table> = cells.map(|cell| &cell.table).collect();
    let layout = Layout::of(&tables, INDENT, page.width);
    let label = page.inked(
        Ink::Bold,
        &format!("Transaction classes, {}", clean(&level.label)),
    );
    page.line(&label);
    for cell in &level.cells {
        page.wrapped(&format!("  {}; errors: {}", cell.contender, cell.errors));
        page.table(&cell.table, &layout);
    }
    let rows = level.cells.iter().flat_map(|cell| cell.table.rows());
    let mut ratios = rows
        .flat_map(|row| &row.cells)
        .filter(|cell| !cell.answer.is_empty());
    if ratios.any(|ratio| !ratio.note.is_empty()) {
        page.wrapped("Intervals, and reasons for classes not compared: HTML page.");
    }
    page.wrapped(&view.note);
    let columns = tables
        .first()
        .map_or(&[][..], |table| table.columns.as_slice());
    let left_out = columns.iter().skip(layout.widths.len());
    let left_out: Vec<&str> = left_out.map(|column| column.head.as_str()).collect();
    if !left_out.is_empty() {
        page.wrapped(&format!(
            "Columns left out at a width of {}: {}. The HTML page has all.",
            page.width,
            left_out.join(", ")
        ));
    }
    if !others.is_empty() {
        page.wrapped("Other load levels: HTML page.");
    }
}
