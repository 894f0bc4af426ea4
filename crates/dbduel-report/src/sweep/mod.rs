//! The report on a sweep: a table and charts per factor, in every format that a single contest has.
//!
//! Functions return text; their only source is the [`SweepSummary`].

mod html;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dbduel_judge::records::sweep::SweepSummary;
use dbduel_text::{escaped_json, visible, visible_inked};

use super::Options;
use super::template::rendered;
use super::terminal::{Ink, Layout, Page, clean};
use view::SweepView;

/// A format of the report on a sweep.
pub struct SweepFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// File name; `None` when it is meant for the terminal.
    pub file_name: Option<&'static str>,
    render: fn(&SweepSummary, &Options) -> String,
}

impl SweepFormat {
    /// The report of a sweep.
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
        render: |summary, options| terminal(&SweepView::of(summary), options),
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

fn terminal(view: &SweepView, options: &Options) -> String {
    let mut page = Page::new(options);
    let title = page.inked(Ink::Bold, &clean(&view.question));
    page.line(&title);
    for headline in &view.headlines {
        page.wrapped(headline);
    }
    for note in &view.notes {
        page.wrapped(note);
    }
    for curve in &view.curves {
        page.blank();
        let title = page.inked(Ink::Bold, &clean(&curve.title));
        page.line(&title);
        let layout = Layout::of(&[&curve.table], 0, usize::MAX);
        page.table(&curve.table, &layout);
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
