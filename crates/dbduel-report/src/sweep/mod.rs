//! The report on a sweep: a table and charts per factor, in every format that a single contest has.
//!
//! Functions return text; their only source is the [`SweepSummary`].

mod html;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dbduel_judge::records::sweep::SweepSummary;

use super::Options;
use super::record_set::{SetFormat, heading, opening};
use super::template::rendered;
use super::terminal::Layout;
use view::SweepView;

/// Every format, as for a single contest.
pub const FORMATS: &[SetFormat<SweepSummary>] = &SetFormat::all(
    |summary, options| terminal(&SweepView::of(summary), options),
    |summary, _| html::page(summary, &SweepView::of(summary)),
    |summary, _| {
        let view = BTreeMap::from([("view", SweepView::of(summary))]);
        rendered("sweep.md", &view)
    },
);

fn terminal(view: &SweepView, options: &Options) -> String {
    let mut page = opening(options, &view.question, &view.headlines, &view.notes);
    for curve in &view.curves {
        page.blank();
        heading(&mut page, &curve.title);
        let layout = Layout::of(&[&curve.table], 0, usize::MAX);
        page.table(&curve.table, &layout);
        for sentence in &curve.sentences {
            page.wrapped(sentence);
        }
    }
    page.blank();
    heading(&mut page, "Cells");
    for cell in &view.cells {
        let verdicts = match cell.verdicts.as_slice() {
            [] => String::new(),
            some => format!(": {}", some.join("; ")),
        };
        page.wrapped(&format!("{} ({}){verdicts}", cell.label, cell.state));
    }
    page.text
}
