//! A sweep as text: for a terminal, and as Markdown.

use std::fmt::Write as _;

use super::view::{CurveView, SweepView};
use crate::report::Options;
use crate::report::markdown::plain;
use crate::report::terminal::{Ink, Page, clean};

/// For a terminal.
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
    let title = page.inked(Ink::Bold, "cells");
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
        rows.map(|row| clean(&row[column]).chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..curve.heads.len()).map(width).collect();
    for (number, row) in [&curve.heads].into_iter().chain(&curve.rows).enumerate() {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{:<width$}  ", clean(cell));
        }
        let ink = if number == 0 { Ink::Dim } else { Ink::Plain };
        let line = page.inked(ink, line.trim_end());
        page.line(&line);
    }
}

/// As Markdown.
pub fn markdown(view: &SweepView) -> String {
    let mut text = format!("# {}\n\n", plain(&view.question));
    for note in &view.notes {
        let _ = writeln!(text, "- {}", plain(note));
    }
    for curve in &view.curves {
        let _ = write!(text, "\n## {}\n\n", plain(&curve.title));
        let line = |row: &[String]| {
            let cells: Vec<String> = row.iter().map(|cell| plain(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        text.push_str(&line(&curve.heads));
        text.push_str(&format!("|{}\n", " --- |".repeat(curve.heads.len())));
        for row in &curve.rows {
            text.push_str(&line(row));
        }
        for sentence in &curve.sentences {
            let _ = write!(text, "\n{}\n", plain(sentence));
        }
    }
    text.push_str("\n## Cells\n\n");
    for cell in &view.cells {
        let verdicts: String = cell.verdicts.iter().fold(String::new(), |mut all, one| {
            let _ = write!(all, "; {}", plain(one));
            all
        });
        let label = plain(&cell.label);
        let place = match cell.has_report {
            true => format!("[{label}](<cells/{}/report.md>)", cell.name),
            false => label,
        };
        let _ = writeln!(text, "- {place}: {}{verdicts}", cell.state);
    }
    text
}
