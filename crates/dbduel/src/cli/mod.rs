//! The command line: what a person may type, a file per verb. Nothing here does anything.

mod audit;
mod check;
mod connection;
mod datasets;
mod drive;
mod export;
mod history;
mod load;
mod report;
mod run;
mod selftest;
mod servers;
mod sysbench;
mod values;
mod verify;
mod watch;
mod workloads;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::judge::IDENTITY;

pub use audit::{Audit, AuditContest, AuditSide};
pub use check::Check;
pub use connection::{Server, Tls, TlsUse};
pub use datasets::Datasets;
pub use drive::Drive;
pub use export::{Export, ExportFormat};
pub use history::History;
pub use load::{Load, LoadArrival};
pub use report::{Report, ReportFormat};
pub use run::{Quickstart, Run};
pub use selftest::Selftest;
pub use servers::Servers;
pub use sysbench::Sysbench;
pub use verify::Verify;
pub use watch::Watch;
pub use workloads::Workloads;

/// Stages fair duels between database servers and says which is faster, by how much, and how sure
/// that is.
#[derive(Debug, Parser)]
#[command(name = "dbduel", version = IDENTITY, after_help = EXIT_CODES, arg_required_else_help = true)]
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
  3    at least one duel is undecided; of verify: it cannot be told
  4    at least one duel is void; of verify: the record was changed
  5    a rule of --fail-if is hit (an undecided duel alone is no failure then), or history shows a
       new change for the worse
  130  interrupted; `dbduel run DIR` goes on with the record";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// A first duel in a few minutes: what does the doublewrite buffer cost?
    Quickstart(Quickstart),
    /// Run an experiment file, or go on with the record in a directory.
    Run(Run),
    /// Drive a server that runs already, without a contest.
    Load(Box<Load>),
    /// sysbench's own command line: its options, tests and scripts, and its output.
    Sysbench(Sysbench),
    /// Render the report of a record again.
    Report(Report),
    /// What changed over many records of one experiment, and when?
    History(History),
    /// What can the lab tell apart on this machine, and what does it cost? Two equal contenders.
    Selftest(Selftest),
    /// The tables behind a report, for other programs.
    Export(Export),
    /// Follow a running contest in a browser on this machine.
    Watch(Watch),
    /// Do the tables hold what the workload promises of them?
    Check(Check),
    /// Was it fair? Compares what servers do with their settings; runs no load.
    Audit(Box<Audit>),
    /// Is a record whole and unedited, and do its figures follow from it?
    Verify(Verify),
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
