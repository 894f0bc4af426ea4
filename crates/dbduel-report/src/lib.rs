//! Reports: a summary and findings in, text out.
//!
//! Functions return text; nothing here prints, opens a file, asks for the time or reads the environment. A format has
//! no access to raw events; its only source is the [`Summary`].

mod attribution;
pub mod bisect;
#[cfg(test)]
mod browser;
mod champions;
pub mod chart;
mod explanation;
mod functions;
pub mod history;
mod html;
mod interval_scale;
pub mod json;
mod markdown;
mod method;
mod order_entry;
pub mod pool;
#[cfg(test)]
mod published_schema;
pub mod record_set;
mod scaling;
mod suite;
pub mod sweep;
mod template;
mod terminal;
#[cfg(test)]
mod tests;
mod view;
pub mod words;

pub use terminal::wrap;

use dbduel_audit::Finding;
use dbduel_text::{visible, visible_inked};

use dbduel_judge::Summary;

/// Properties of the place where the report will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal; formats for files ignore them.
    pub width: usize,
    /// Whether the terminal may be sent colours; the caller knows `NO_COLOR`.
    pub colour: bool,
}

/// Length of the report on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalLength {
    /// Verdicts, differences in time, and the first caveats.
    Brief,
    /// All that the format `terminal` has.
    Full,
}

/// A report that is ready to be printed or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The report.
    pub text: String,
    /// Files that it links to, to be written beside it.
    pub files: Vec<ExtraFile>,
}

/// A file beside a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraFile {
    /// File name, without a folder.
    pub name: String,
    /// Content.
    pub text: String,
}

/// A format of reports.
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// Usual file name of such a report; `None` when it is meant for the terminal.
    pub file_name: Option<&'static str>,
    render: fn(&Summary, &[Finding], &Options) -> Rendered,
}

impl Format {
    /// The report of a record.
    #[must_use]
    pub fn render(&self, summary: &Summary, findings: &[Finding], options: &Options) -> Rendered {
        (self.render)(summary, findings, options)
    }
}

/// Every format; a run writes the last one at its end.
pub const FORMATS: &[Format] = &[
    terminal::TERMINAL,
    html::HTML,
    markdown::MARKDOWN,
    json::JSON,
];

/// The format with this name.
#[must_use]
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The report for a terminal, in this length.
#[must_use]
pub fn on_terminal(
    summary: &Summary,
    findings: &[Finding],
    options: &Options,
    length: TerminalLength,
) -> Rendered {
    match length {
        TerminalLength::Brief => terminal::brief(summary, findings, options),
        TerminalLength::Full => terminal::full(summary, findings, options),
    }
}

/// The number of a contender, for colour and shape.
fn number_of(summary: &Summary, contender: &str) -> usize {
    let mut contenders = summary.contenders.iter();
    let position = contenders.position(|facts| facts.name == contender);
    position.unwrap_or(0)
}

impl Rendered {
    /// A report for files, without escape sequences or characters that change the direction of text.
    fn of_files(text: &str, files: Vec<ExtraFile>) -> Self {
        let visible_file = |ExtraFile { name, text }| ExtraFile {
            name,
            text: visible(&text).into_owned(),
        };
        Self {
            text: visible(text).into_owned(),
            files: files.into_iter().map(visible_file).collect(),
        }
    }

    /// A report for a terminal, as [`Rendered::of_files`] but with its own escape sequences for colour.
    fn of_terminal(text: &str) -> Self {
        Self {
            text: visible_inked(text).into_owned(),
            files: Vec::new(),
        }
    }
}
