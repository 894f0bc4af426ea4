//! The formats of the report on a record set: one text for all its contests, in every format that a single contest has.
//!
//! Functions return text; their only source is the summary of the set.

use dbduel_text::{escaped_json, visible, visible_inked};
use serde::Serialize;

use super::Options;
use super::terminal::{Ink, Page, clean};

/// A format of the report on a record set whose summary is an `S`.
pub struct SetFormat<S> {
    /// Name on the command line.
    pub name: &'static str,
    /// File name; `None` when it is meant for the terminal.
    pub file_name: Option<&'static str>,
    render: fn(&S, &Options) -> String,
}

impl<S> SetFormat<S> {
    /// The report of a record set.
    #[must_use]
    pub fn render(&self, summary: &S, options: &Options) -> String {
        let text = (self.render)(summary, options);
        match self.file_name {
            Some(_) => visible(&text).into_owned(),
            None => visible_inked(&text).into_owned(),
        }
    }
}

impl<S: Serialize> SetFormat<S> {
    /// Every format, as for a single contest.
    pub(crate) const fn all(
        terminal: fn(&S, &Options) -> String,
        html: fn(&S, &Options) -> String,
        markdown: fn(&S, &Options) -> String,
    ) -> [Self; 4] {
        [
            Self {
                name: "terminal",
                file_name: None,
                render: terminal,
            },
            Self {
                name: "html",
                file_name: Some("report.html"),
                render: html,
            },
            Self {
                name: "markdown",
                file_name: Some("report.md"),
                render: markdown,
            },
            Self {
                name: "json",
                file_name: Some("report.json"),
                render: json,
            },
        ]
    }
}

fn json<S: Serialize>(summary: &S, _options: &Options) -> String {
    escaped_json(
        serde_json::to_string_pretty(summary)
            .expect("the summary has string keys and no number that is not finite in JSON's sense")
            + "\n",
    )
}

/// The first lines on the terminal: the question, the headlines and the notes.
pub(crate) fn opening(
    options: &Options,
    question: &str,
    headlines: &[String],
    notes: &[String],
) -> Page {
    let mut page = Page::new(options);
    heading(&mut page, question);
    for line in headlines.iter().chain(notes) {
        page.wrapped(line);
    }
    page
}

/// A heading on the terminal.
pub(crate) fn heading(page: &mut Page, text: &str) {
    let title = page.inked(Ink::Bold, &clean(text));
    page.line(&title);
}
