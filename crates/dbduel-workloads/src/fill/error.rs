//! Why a fill failed.

use dbduel_driver::{ConnectError, QueryError};

use super::LoadMethodChoice;
use super::checkpoint;
use crate::parameters::ParameterError;

/// The advice after every fill that did not reach its end.
pub const RESUME: &str = "run the same command again to resume it";

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
        "table `{table}` exists already in database `{database}` and belongs to no interrupted fill; drop it, or name an empty database"
    )]
    Exists {
        /// The table.
        table: String,
        /// The database.
        database: String,
    },
    /// An interrupted fill of other content is there.
    #[error(
        "database `{database}` holds part of the tables of an interrupted fill with other parameters; run that command again to resume it, drop the tables and `{}`, or name an empty database",
        checkpoint::NAME
    )]
    Unfinished {
        /// The database.
        database: String,
    },
    /// Another process fills the same database.
    #[error(
        "database `{database}` is being filled by connection {connection} of this server; wait for that fill to end, or name another database"
    )]
    InProgress {
        /// The database.
        database: String,
        /// The server's id of the connection that holds the lock.
        connection: String,
    },
    /// Connections of an interrupted fill do not end.
    #[error(
        "connections {connections} of an interrupted fill are still at work on this server; wait until they end or KILL them, then {RESUME}"
    )]
    EarlierConnections {
        /// Their ids, separated by commas.
        connections: String,
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
    /// The server does not offer the requested method.
    #[error("the server takes no rows by {method}; does it know that, and is it allowed?")]
    NoMethod {
        /// The method.
        method: LoadMethodChoice,
    },
    /// The workload has no statements for such a server.
    #[error("workload `{workload}` has no statements for PostgreSQL")]
    Dialect {
        /// The workload.
        workload: &'static str,
    },
    /// Such a server has nothing for a parameter.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
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
    /// [`FillWatch::cancel`](super::FillWatch::cancel) was set.
    #[error("cancelled")]
    Cancelled,
    /// [`Place::deadline`](super::Place::deadline) passed.
    #[error("the fill was not complete within {seconds} s; fill fewer rows or allow more time")]
    TimeUp {
        /// The deadline.
        seconds: f64,
    },
}
