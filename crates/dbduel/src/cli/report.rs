//! `dbduel report`: a record in one of the formats of reports.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::commands::fail_if::FailIf;

/// `dbduel report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The directory of a record.
    pub record: PathBuf,
    /// What to render.
    #[arg(long, value_enum, default_value_t = ReportFormat::Terminal)]
    pub format: ReportFormat,
    /// List what a reader must be told, and what of it the record has, in place of the report.
    #[arg(long)]
    pub disclosure: bool,
    /// Write to this file in place of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Exit with 5 when this is the case, as in `dbduel run`.
    #[arg(long, value_name = "RULE")]
    pub fail_if: Vec<FailIf>,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Plain text.
    Terminal,
    /// One self-contained page.
    Html,
    /// For code forges and wikis.
    Markdown,
    /// For programs.
    Json,
}

impl ReportFormat {
    /// Its name in the table of formats.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Terminal => "terminal",
            ReportFormat::Html => "html",
            ReportFormat::Markdown => "markdown",
            ReportFormat::Json => "json",
        }
    }
}
