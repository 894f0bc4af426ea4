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
use dbduel_text::{escaped_json, visible, visible_inked};

use super::Options;
use super::template::rendered;
use super::terminal::{Ink, Layout, Page, clean};
use view::BisectView;

/// A format of the report on a bisection.
pub struct BisectFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// File name; `None` when it is meant for the terminal.
    pub file_name: Option<&'static str>,
    render: fn(&BisectSummary, &Options) -> String,
}

impl BisectFormat {
    /// The report of a bisection.
    #[must_use]
    pub fn render(&self, summary: &BisectSummary, options: &Options) -> String {
        let text = (self.render)(summary, options);
        match self.file_name {
            Some(_) => visible(&text).into_owned(),
            None => visible_inked(&text).into_owned(),
        }
    }
}

/// Every format, as for a single contest.
pub const FORMATS: &[BisectFormat] = &[
    BisectFormat {
        name: "terminal",
        file_name: None,
        render: |summary, options| terminal(&BisectView::of(summary), options),
    },
    BisectFormat {
        name: "html",
        file_name: Some("report.html"),
        render: |summary, _| html::page(summary, &BisectView::of(summary)),
    },
    BisectFormat {
        name: "markdown",
        file_name: Some("report.md"),
        render: |summary, _| {
            rendered(
                "bisect.md",
                &BTreeMap::from([("view", BisectView::of(summary))]),
            )
        },
    },
    BisectFormat {
        name: "json",
        file_name: Some("report.json"),
        render: |summary, _| json(summary),
    },
];

fn json(summary: &BisectSummary) -> String {
    escaped_json(
        serde_json::to_string_pretty(summary)
            .expect("the summary has string keys and no number that is not finite in JSON's sense")
            + "\n",
    )
}

fn terminal(view: &BisectView, options: &Options) -> String {
    let mut page = Page::new(options);
    let title = page.inked(Ink::Bold, &clean(&view.question));
    page.line(&title);
    for headline in &view.headlines {
        page.wrapped(headline);
    }
    for note in &view.notes {
        page.wrapped(note);
    }
    page.blank();
    let title = page.inked(Ink::Bold, "Steps");
    page.line(&title);
    let layout = Layout::of(&[&view.steps], 0, usize::MAX);
    page.table(&view.steps, &layout);
    page.text
}
