//! The report on a sweep: a table and charts per factor, in every format that a single contest has.
//!
//! Functions return what is to be written; all that they say is in the [`SweepSummary`].

mod html;
mod text;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::Options;
use super::template::rendered;
use crate::judge::records::sweep::SweepSummary;
use crate::visible::{escaped_json, visible, visible_inked};
use view::SweepView;

/// A format of the report: name on the command line, file name beside the cells, and how it is made.
pub struct SweepFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// File name; `None` when it is meant for the terminal.
    pub file_name: Option<&'static str>,
    render: fn(&SweepSummary, &Options) -> String,
}

impl SweepFormat {
    /// The report.
    #[must_use]
    pub fn render(&self, summary: &SweepSummary, options: &Options) -> String {
        let text = (self.render)(summary, options);
        match self.file_name {
            Some(_) => visible(&text).into_owned(),
            None => visible_inked(&text).into_owned(),
        }
    }
}

/// Every format, as for a single contest.
pub const FORMATS: &[SweepFormat] = &[
    SweepFormat {
        name: "terminal",
        file_name: None,
        render: |summary, options| text::terminal(&SweepView::of(summary), options),
    },
    SweepFormat {
        name: "html",
        file_name: Some("report.html"),
        render: |summary, _| html::page(summary, &SweepView::of(summary)),
    },
    SweepFormat {
        name: "markdown",
        file_name: Some("report.md"),
        render: |summary, _| {
            rendered(
                "sweep.md",
                &BTreeMap::from([("view", SweepView::of(summary))]),
            )
        },
    },
    SweepFormat {
        name: "json",
        file_name: Some("report.json"),
        render: |summary, _| json(summary),
    },
];

fn json(summary: &SweepSummary) -> String {
    escaped_json(
        serde_json::to_string_pretty(summary)
            .expect("the summary has string keys and no number that is not finite in JSON's sense")
            + "\n",
    )
}
