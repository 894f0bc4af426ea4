//! Why a filling came to nothing.

use super::Wish;
use super::ledger;
use crate::blocking::{ConnectError, QueryError};

/// Why the tables are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A statement failed.
    #[error("table `{table}`")]
    Statement {
        /// The table it was about.
        table: String,
        /// What happened.
        source: QueryError,
    },
    /// A statement about all tables together failed.
    #[error(transparent)]
    Together(QueryError),
    /// A table of that name is there already, with unknown content.
    #[error(
        "table `{table}` exists already in database `{database}`; drop it, or name an empty database"
    )]
    Exists {
        /// The table.
        table: String,
        /// The database.
        database: String,
    },
    /// An interrupted filling of other content is there.
    #[error(
        "database `{database}` holds a part of other tables, whose filling was interrupted; finish that, drop the tables and `{}`, or name an empty database",
        ledger::NAME
    )]
    Unfinished {
        /// The database.
        database: String,
    },
    /// The server took rows otherwise than they were sent.
    #[error(
        "table `{table}`: of {sent} rows the server took {taken}, with {warnings} warnings; does its sql_mode or the engine change values?"
    )]
    Changed {
        /// The table.
        table: String,
        /// Rows sent.
        sent: u64,
        /// Rows taken.
        taken: u64,
        /// Warnings.
        warnings: u64,
    },
    /// The server takes no packets that are long enough for a row.
    #[error("max_allowed_packet is {bytes} bytes; raise it to at least 64 kB")]
    SmallPackets {
        /// What the server allows.
        bytes: usize,
    },
    /// A way that was asked for is none of the server's.
    #[error("the server takes no rows by {way}; does it know that, and is it allowed?")]
    NoWay {
        /// The way.
        way: Wish,
    },
    /// An answer makes no sense.
    #[error("table `{table}`: the server's answer to a sum has no numbers")]
    Answer {
        /// The table.
        table: String,
    },
    /// The script that makes the tables failed.
    #[error("the script's `{command}` failed: {why}")]
    Script {
        /// Its command.
        command: &'static str,
        /// Where and what.
        why: String,
    },
    /// [`FillWatch::cancelled`](super::FillWatch::cancelled) was set.
    #[error("cancelled")]
    Cancelled,
    /// [`Place::deadline`](super::Place::deadline) passed.
    #[error("not done within {seconds} s; fill fewer rows or allow more time")]
    TimeUp {
        /// The deadline.
        seconds: f64,
    },
}
