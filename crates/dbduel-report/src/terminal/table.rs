//! Tables on a terminal: as many columns as fit, the small print of a row in a line of its own.

use super::page::{Ink, Page, clean, columns_of, cut, padded};
use crate::view::table::{Column, Table};

/// Layout of tables with the same columns.
pub(crate) struct Layout {
    /// Blanks before each row.
    pub(crate) indent: usize,
    /// Widths of the columns that are shown.
    pub(crate) widths: Vec<usize>,
    /// Whether the small print is shown.
    pub(crate) has_notes: bool,
}

impl Layout {
    /// The first columns of all tables, each as wide as its widest cell, and as many as end within `width`.
    pub(crate) fn of(tables: &[&Table], indent: usize, width: usize) -> Self {
        let columns = tables
            .first()
            .map_or(&[][..], |table| table.columns.as_slice());
        let widest = |at: usize, column: &Column| {
            let rows = tables.iter().flat_map(|table| table.rows());
            let values = rows.map(|row| &row.cells[at].value);
            let texts = values.chain([&column.head]);
            texts.map(|text| columns_of(&clean(text))).max()
        };
        let mut free = width.saturating_sub(indent);
        let mut widths = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let own = widest(at, column).unwrap_or(0);
            let Some(rest) = free.checked_sub(gap(at, column) + own) else {
                break;
            };
            free = rest;
            widths.push(own);
        }
        Self {
            indent,
            widths,
            has_notes: false,
        }
    }
}

/// Blanks before a column.
fn gap(at: usize, column: &Column) -> usize {
    match (at, column.is_number) {
        (0, _) => 0,
        (_, true) => 1,
        (_, false) => 2,
    }
}

impl Page {
    /// The headings of a table, then its groups.
    pub(crate) fn table(&mut self, table: &Table, layout: &Layout) {
        let heads = table.columns.iter().map(|column| column.head.as_str());
        self.row(Ink::Dim, table, layout, heads);
        for group in &table.groups {
            if !group.head.is_empty() {
                let head = self.inked(Ink::Bold, &clean(&group.head));
                self.line(&head);
            }
            for row in &group.rows {
                let values = row.cells.iter().map(|cell| cell.value.as_str());
                self.row(Ink::Plain, table, layout, values);
                let notes = row.cells.iter().map(|cell| cell.note.as_str());
                let mut shown = notes.clone().take(layout.widths.len());
                if layout.has_notes && shown.any(|note| !note.is_empty()) {
                    self.row(Ink::Dim, table, layout, notes);
                }
            }
        }
    }

    fn row<'t>(
        &mut self,
        ink: Ink,
        table: &Table,
        layout: &Layout,
        texts: impl Iterator<Item = &'t str>,
    ) {
        let mut line = " ".repeat(layout.indent);
        let columns = table.columns.iter().zip(&layout.widths);
        for (at, ((column, &width), text)) in columns.zip(texts).enumerate() {
            let text = clean(text);
            line.push_str(&" ".repeat(gap(at, column)));
            match column.is_number {
                true => {
                    let blanks = width.saturating_sub(columns_of(&text));
                    line.push_str(&" ".repeat(blanks));
                    line.push_str(&text);
                }
                false => line.push_str(&padded(cut(&text, width), width)),
            }
        }
        let line = self.inked(ink, line.trim_end());
        self.line(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::view::table::{Cell, Group, NAME, NUMBER};

    #[test]
    fn columns_that_do_not_fit_are_left_out_and_small_print_has_its_own_line() {
        let columns = [
            (NAME, "class"),
            (NUMBER, "ok"),
            ("", "verdict"),
            (NUMBER, "p99"),
        ];
        let noted = Cell {
            note: "±5 %".to_owned(),
            ..Cell::from("1,000")
        };
        let first = [
            Cell::from("双写"),
            noted,
            Cell::from("faster"),
            Cell::from("9 ms"),
        ];
        let second = ["b", "7", "", "12 ms"].map(Cell::from);
        let rows = [first, second].map(|cells| cells.into_iter().collect());
        let mut table = Table::new(columns.map(Column::from).into(), rows);
        table.groups.push(Group {
            head: "16 clients".to_owned(),
            rows: Vec::new(),
        });
        let printed = |width: usize, has_notes: bool| {
            let mut page = Page::new(&Options {
                width: 80,
                colour: false,
            });
            let layout = Layout {
                has_notes,
                ..Layout::of(&[&table], 2, width)
            };
            page.table(&table, &layout);
            page.text
        };
        assert_eq!(
            printed(28, true),
            "  class    ok  verdict   p99\n  双写  1,000  faster   9 ms\n         ±5 %\n  b         7          12 ms\n16 clients\n"
        );
        assert_eq!(
            printed(27, false),
            "  class    ok  verdict\n  双写  1,000  faster\n  b         7\n16 clients\n"
        );
    }
}
