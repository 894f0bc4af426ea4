//! Classes of single captured statements for a terminal.

use dbduel_text::shortened;

use super::page::{Ink, Page, clean};
use super::table::Layout;
use crate::view::StatementsView;
use crate::view::table::{Group, Table};

/// Classes that a terminal shows; the page has all of them.
const CLASSES_SHOWN: usize = 10;
/// Lines of a class's text.
const HEAD_LINES: usize = 2;
/// Indentation of a class's text.
const HEAD_INDENT: &str = "  ";
/// Indentation of a text about a row.
const DETAIL_INDENT: &str = "      ";
/// Indentation of a table, columns.
const INDENT: usize = 4;

/// The largest classes of the last load level, which is the heaviest where levels differ in clients or rates.
pub(super) fn statement_classes(page: &mut Page, view: &StatementsView) {
    let Some((level, others)) = view.levels.split_last() else {
        return;
    };
    page.blank();
    let label = format!("Classes of statements, {}", clean(&level.label));
    let label = page.inked(Ink::Bold, &label);
    page.line(&label);
    let layout = Layout::of(&[&level.table], INDENT, page.width);
    let shown = level.table.groups.iter().take(CLASSES_SHOWN);
    for group in shown {
        let head = shortened(&group.head, HEAD_LINES * (page.width - HEAD_INDENT.len()));
        page.labelled((Ink::Plain, HEAD_INDENT), (Ink::Plain, &head));
        let rows = Group {
            head: String::new(),
            rows: group.rows.clone(),
        };
        let table = Table {
            groups: vec![rows],
            ..level.table.clone()
        };
        page.table(&table, &layout);
        for detail in group.rows.iter().flat_map(|row| &row.details) {
            page.labelled((Ink::Plain, DETAIL_INDENT), (Ink::Plain, detail));
        }
    }
    let more = level.table.groups.len().saturating_sub(CLASSES_SHOWN);
    if more > 0 {
        page.wrapped(&format!(
            "{more} more on the HTML page, with the intervals."
        ));
    }
    if !level.rest.is_empty() {
        page.wrapped(&level.rest);
    }
    page.wrapped(&view.note);
    if !others.is_empty() {
        page.wrapped("Other load levels: HTML page.");
    }
}
