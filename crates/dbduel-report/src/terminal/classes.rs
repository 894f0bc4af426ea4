//! Transaction classes for a terminal.

use super::page::{Ink, Page, clean, columns_of, padded};
use crate::view::{ClassText, ClassesView};

/// Indentation of a table, columns.
const INDENT: usize = 4;

/// The tables of the last load level, which is the heaviest where levels differ in clients or rates.
pub(super) fn classes(page: &mut Page, view: &ClassesView) {
    let Some((level, others)) = view.levels.split_last() else {
        return;
    };
    page.blank();
    let columns = columns(view, page.width);
    let label = page.inked(
        Ink::Bold,
        &format!("Transaction classes, {}", clean(&level.label)),
    );
    page.line(&label);
    for cell in &level.cells {
        page.wrapped(&format!("  {}; errors: {}", cell.contender, cell.errors));
        let heads = page.inked(
            Ink::Dim,
            &row(&columns, |column| match column {
                0 => "",
                column => view.columns[column],
            }),
        );
        page.line(&heads);
        for class in &cell.rows {
            page.line(&row(&columns, |column| &class[column].value));
        }
    }
    let texts = level
        .cells
        .iter()
        .flat_map(|cell| cell.rows.iter().flatten());
    let mut ratios = texts.filter(|text| !text.answer.is_empty());
    if ratios.any(|text| !text.doubt.is_empty()) {
        page.wrapped("Intervals, and reasons for classes not compared: HTML page.");
    }
    page.wrapped(&view.note);
    let left_out = view.columns.get(columns.len()..).unwrap_or_default();
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

/// Widths of the first columns of the tables of classes, of so many as the page has room for. All tables have the
/// same, each as wide as its widest cell.
fn columns(view: &ClassesView, page_width: usize) -> Vec<usize> {
    let cells = view.levels.iter().flat_map(|level| &level.cells);
    let classes: Vec<&Vec<ClassText>> = cells.flat_map(|cell| &cell.rows).collect();
    let width = |column: usize| {
        let head = columns_of(view.columns[column]);
        let widths = classes.iter().map(|class| columns_of(&class[column].value));
        widths.chain([head]).max().unwrap_or(head)
    };
    let mut free = page_width.saturating_sub(INDENT);
    (0..view.columns.len())
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
        let text = text(column);
        match column {
            0 => row.push_str(&padded(text, *width)),
            _ => {
                row.push_str(&" ".repeat(width + 1 - columns_of(text)));
                row.push_str(text);
            }
        }
    }
    row
}
