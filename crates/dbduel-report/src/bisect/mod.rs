//! The report on a bisection: the found changes, every contest on the way, and a picture of the search, in every format
//! that a single contest has.
//!
//! Functions return text; their only source is the [`BisectSummary`].

mod html;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dbduel_judge::records::bisect::BisectSummary;

use super::Options;
use super::record_set::{SetFormat, heading, opening};
use super::template::rendered;
use super::terminal::Layout;
use view::BisectView;

/// The schema of the report for programs, JSON Schema 2020-12. Fields may be added without a new version.
pub const SCHEMA: &str = include_str!("../../bisect.schema.json");

/// Every format, as for a single contest.
pub const FORMATS: &[SetFormat<BisectSummary>] = &SetFormat::all(
    |summary, options| terminal(&BisectView::of(summary), options),
    |summary, _| html::page(summary, &BisectView::of(summary)),
    |summary, _| {
        let view = BTreeMap::from([("view", BisectView::of(summary))]);
        rendered("bisect.md", &view)
    },
);

fn terminal(view: &BisectView, options: &Options) -> String {
    let mut page = opening(options, &view.question, &view.headlines, &view.notes);
    page.blank();
    heading(&mut page, "Steps");
    let layout = Layout::of(&[&view.steps], 0, usize::MAX);
    page.table(&view.steps, &layout);
    page.text
}
