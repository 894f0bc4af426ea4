//! The command line: what a person may type. Nothing here does anything.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Stages fair duels between database servers and says which is faster, by how much, and how sure
/// that is.
#[derive(Debug, Parser)]
#[command(name = "dbduel", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct Cli {
    /// Where servers, datasets and sandboxes are kept [default: $XDG_DATA_HOME/dbduel or
    /// ~/.local/share/dbduel].
    #[arg(long, global = true, env = "DBDUEL_HOME", value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXIT_CODES: &str = "Exit codes:
  0    done; of a contest: every duel is decided
  1    something in the surroundings failed (a download, a server, a disk)
  2    the command line or the experiment file is wrong
  3    at least one duel is undecided
  4    at least one duel is void
  130  interrupted; `dbduel run DIR` goes on with the record";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// A first duel in a few minutes: what does the doublewrite buffer cost?
    Quickstart(Quickstart),
    /// Run an experiment file, or go on with the record in a directory.
    Run(Run),
    /// Render the report of a record again.
    Report(Report),
    /// Servers that can be had, and those that are here.
    #[command(subcommand)]
    Servers(Servers),
    /// Snapshots of loaded datasets.
    #[command(subcommand)]
    Datasets(Datasets),
    /// The workloads and their parameters.
    Workloads(Workloads),
    /// The load process; started by `run`, takes orders on standard input.
    #[command(hide = true)]
    Drive(Drive),
}

/// `dbduel quickstart`.
#[derive(Debug, Args)]
pub struct Quickstart {
    /// Directory that gets the record's directory.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
}

/// `dbduel run`.
#[derive(Debug, Args)]
pub struct Run {
    /// An experiment file (TOML), or the directory of a record to go on with.
    pub target: PathBuf,
    /// Directory that gets the record's directory.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
    /// Print the plan as JSON and stop; starts nothing.
    #[arg(long)]
    pub plan: bool,
    /// Keep the servers' sandboxes after the contest.
    #[arg(long)]
    pub keep: bool,
}

/// `dbduel report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The directory of a record.
    pub record: PathBuf,
    /// What to render.
    #[arg(long, value_enum, default_value_t = ReportFormat::Terminal)]
    pub format: ReportFormat,
    /// Write to this file in place of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
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

/// `dbduel servers`.
#[derive(Debug, Subcommand)]
pub enum Servers {
    /// List known and present servers.
    List {
        /// For programs.
        #[arg(long)]
        json: bool,
    },
    /// Fetch servers and unpack them privately; nothing is installed system-wide.
    Install {
        /// Names such as mariadb-10.11 or mysql-8.0.33.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Remove unpacked servers.
    Remove {
        /// Names as `servers list` shows them.
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// `dbduel datasets`.
#[derive(Debug, Subcommand)]
pub enum Datasets {
    /// List the snapshots.
    List {
        /// For programs.
        #[arg(long)]
        json: bool,
    },
    /// Remove snapshots.
    Remove {
        /// Identifiers as `datasets list` shows them, or `all`.
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// `dbduel workloads`.
#[derive(Debug, Args)]
pub struct Workloads {
    /// Show this one with its parameters.
    pub name: Option<String>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// `dbduel drive`.
#[derive(Debug, Args)]
pub struct Drive {
    /// Threads that drive clients.
    #[arg(long)]
    pub threads: u32,
    /// Processors to stay on, separated by commas.
    #[arg(long, value_delimiter = ',', num_args = 0..)]
    pub cores: Vec<String>,
}
