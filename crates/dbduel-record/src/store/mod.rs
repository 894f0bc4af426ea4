//! The record on disk: a directory that is written append-only and read leniently.
//!
//! ```text
//! DIR/experiment.toml   as given          DIR/plan.json        before anything starts
//! DIR/host.json         the machine       DIR/events.jsonl     the journal
//! DIR/slices.csv        slice × class     DIR/ticks.csv        series inside slices
//! DIR/readings.csv      sampler values    DIR/errors.csv       error codes
//! DIR/seconds.csv       sampler series    DIR/contenders/NAME/ facts about each server
//! DIR/latency.hlog      histograms        DIR/contenders/NAME/statements.json  plans of statements, in suites
//! DIR/commits.csv       acknowledged commits, where the workload keeps them
//! DIR/statements.csv    slice × class of statements, of captured ones; statement-classes.json names the classes
//! DIR/selftest.json     the lab's own resolution, when it was known
//! DIR/answers.json      answers to captured statements, as digests
//! DIR/manifest.jsonl    digests of all these, a line each time that a run ends
//! ```
//!
//! A slice counts when the journal says that it finished; rows of other slices are ignored. Appended rows are synced
//! before the journal mentions them, so no crash can make the journal wrong. Bytes that an interrupted write leaves at the
//! end of a file do not count and are removed before the next write. Acknowledged commits count even when their slice was
//! lost.

mod ends;
mod plan_file;
mod read;
mod write;

use std::path::{Path, PathBuf};

pub use ends::{TornEnd, torn_ends};
pub use plan_file::read_plan;
pub use read::{ContenderFiles, Record, Stint};
pub use write::{Held, RecordWriter, SliceResult};

use crate::names::file_name;
use crate::plan::FormatVersion;

/// The experiment, byte for byte as it was given.
pub const EXPERIMENT: &str = "experiment.toml";
/// The plan.
pub const PLAN: &str = "plan.json";
/// Facts about the machine.
pub const HOST: &str = "host.json";
/// The lab's resolution on this machine, when it was measured before.
pub const SELFTEST: &str = "selftest.json";
/// Answers of the contenders to the same captured statements.
pub const ANSWERS: &str = "answers.json";
/// The journal.
pub const EVENTS: &str = "events.jsonl";
/// Results by slice and class.
pub const SLICES: &str = "slices.csv";
/// Series inside slices.
pub const TICKS: &str = "ticks.csv";
/// Sampler values.
pub const READINGS: &str = "readings.csv";
/// Sampler values second by second.
pub const SECONDS: &str = "seconds.csv";
/// Errors by code.
pub const ERRORS: &str = "errors.csv";
/// Results by slice and class of statements, of captured statements.
pub const STATEMENT_ROWS: &str = "statements.csv";
/// The classes of [`STATEMENT_ROWS`].
pub const STATEMENT_CLASSES: &str = "statement-classes.json";
/// Commits that servers acknowledged.
pub const COMMITS: &str = "commits.csv";
/// Global counters when a stint of a server began.
pub const STATUS_BEFORE: &str = "status.before.tsv";
/// Global counters when a stint of a server ended in order.
pub const STATUS_AFTER: &str = "status.after.tsv";
/// Sampled stacks of a server in records up to format 3.2, under the heaviest load only.
pub(crate) const STACKS: &str = "stacks.folded";
/// Plans of the statements of a suite's workloads on a server.
pub const STATEMENTS: &str = "statements.json";
/// Proof of durability of a server: counts of power cuts before its contest.
pub const PROOF: &str = "proof.json";
/// More stints than in any contest.
const STINTS_MAX: u32 = 10_000;
/// Latency histograms.
pub const LATENCY: &str = "latency.hlog";

/// The append-only files, the journal first.
pub(crate) const GROWING: [&str; 9] = [
    EVENTS,
    SLICES,
    TICKS,
    READINGS,
    SECONDS,
    ERRORS,
    LATENCY,
    COMMITS,
    STATEMENT_ROWS,
];

/// The directory of one contender's files about a stint of its server after the first, which has the contender's own
/// directory. A stint is a stretch of one server process between two readings of its counters: counters restart with
/// their server, so they are never compared across stints.
#[must_use]
pub fn stint_dir(record: &Path, contender: &str, stint: u32) -> PathBuf {
    let dir = contender_dir(record, contender);
    if stint == 0 {
        dir
    } else {
        dir.join(format!("stint-{stint}"))
    }
}

/// Stints of the contender's server with a first reading in the record.
#[must_use]
pub fn stints(record: &Path, contender: &str) -> u32 {
    (0..STINTS_MAX)
        .find(|&stint| {
            !stint_dir(record, contender, stint)
                .join(STATUS_BEFORE)
                .is_file()
        })
        .unwrap_or(STINTS_MAX)
}

/// Sampled stacks of a server under the load of a level, folded: `thread;outermost;…;innermost COUNT` lines.
#[must_use]
pub fn stacks_file(level: usize) -> String {
    format!("stacks-{level}.folded")
}

/// The directory of one contender's files.
#[must_use]
pub fn contender_dir(record: &Path, contender: &str) -> PathBuf {
    record.join("contenders").join(file_name(contender))
}

/// Why a record could not be written or opened.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file operation failed.
    #[error("could not {action} `{path}` of the record")]
    File {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The directory exists and is not empty.
    #[error("`{0}` is not empty; name a new directory, or resume the record with `dbduel run {0}`")]
    NotEmpty(PathBuf),
    /// Another process is writing this record.
    #[error("`{0}` is being written by another dbduel; wait for it, or stop it with Ctrl-C")]
    InUse(PathBuf),
    /// The named directory does not exist.
    #[error(
        "there is no directory `{0}`; a record is a directory created by `dbduel run`, below `results` by default"
    )]
    Nowhere(PathBuf),
    /// The directory has no plan, so it is not a record.
    #[error(
        "`{0}` is not a record: it has no `plan.json`; name a directory created by `dbduel run`"
    )]
    NotARecord(PathBuf),
    /// The directory contains records and is not one itself.
    #[error("`{dir}` is not a record but contains records; name one of them, such as `{last}`")]
    HoldsRecords {
        /// The directory.
        dir: PathBuf,
        /// The record in it with the last name, the newest where `dbduel run` named them.
        last: PathBuf,
    },
    /// A required file is invalid.
    #[error("`{path}` cannot be parsed: {why}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The record is of another major version.
    #[error(
        "`{path}` has record format {}.{}, this dbduel reads format {}.x; use the version of dbduel that \
         wrote it (see `dbduel` in its plan.json)",
        found.major, found.minor, FormatVersion::CURRENT.major
    )]
    OtherFormat {
        /// The record.
        path: PathBuf,
        /// Its version.
        found: FormatVersion,
    },
}

impl RecordError {
    /// True when the named place has no record.
    #[must_use]
    pub fn is_of_place(&self) -> bool {
        matches!(
            self,
            Self::Nowhere(_) | Self::NotARecord(_) | Self::HoldsRecords { .. }
        )
    }
}

/// A part of a record that could not be read and was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// File within the record.
    pub file: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}
