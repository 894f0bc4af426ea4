//! A sweep as text for a terminal.

use super::view::{CurveView, SweepView};
use crate::report::Options;
use crate::report::terminal::{Ink, Page, clean, columns_of, padded};

pub fn terminal(view: &SweepView, options: &Options) -> String {
    let mut page = Page::new(options);
    let title = page.inked(Ink::Bold, &clean(&view.question));
    page.line(&title);
    for note in &view.notes {
        page.wrapped(note);
    }
    for curve in &view.curves {
        page.blank();
        let title = page.inked(Ink::Bold, &clean(&curve.title));
        page.line(&title);
        table(&mut page, curve);
        for sentence in &curve.sentences {
            page.wrapped(sentence);
        }
    }
    page.blank();
    let title = page.inked(Ink::Bold, "Cells");
    page.line(&title);
    for cell in &view.cells {
        let verdicts = match cell.verdicts.as_slice() {
            [] => String::new(),
            some => format!(": {}", some.join("; ")),
        };
        page.wrapped(&format!("{} ({}){verdicts}", cell.label, cell.state));
    }
    page.text
}

/// Columns as wide as their widest cell; numbers need no more.
fn table(page: &mut Page, curve: &CurveView) {
    let width = |column: usize| {
        let rows = curve.rows.iter().chain([&curve.heads]);
        rows.map(|row| columns_of(&clean(&row[column])))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..curve.heads.len()).map(width).collect();
    for (number, row) in [&curve.heads].into_iter().chain(&curve.rows).enumerate() {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&padded(&clean(cell), width + 2));
        }
        let ink = if number == 0 { Ink::Dim } else { Ink::Plain };
        let line = page.inked(ink, line.trim_end());
        page.line(&line);
    }
}
