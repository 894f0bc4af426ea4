//! Why a fill failed.

use dbduel_driver::{ConnectError, Dialect, QueryError};

use super::LoadMethodChoice;
use super::checkpoint;
use crate::parameters::ParameterError;

/// Advice after every incomplete fill.
pub const RESUME: &str = "run the same command again to resume it";

/// Why a fill, or a check of its tables, failed.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A statement failed.
    #[error("table `{table}`")]
    Statement {
        /// The table.
        table: String,
        /// The error.
        source: QueryError,
    },
    /// A statement about all tables together failed.
    #[error(transparent)]
    Together(QueryError),
    /// A table of that name already exists, with unknown content.
    #[error(
        "table `{table}` already exists in database `{database}` and is not part of an interrupted fill; drop it, or name an empty database"
    )]
    Exists {
        /// The table.
        table: String,
        /// The database.
        database: String,
    },
    /// An interrupted fill with other content exists.
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
    /// The server stored the rows in a changed form, or not all of them.
    #[error(
        "table `{table}`: the server stored {taken} of {sent} rows, with {warnings} warnings; does its sql_mode or the engine change values?"
    )]
    Changed {
        /// The table.
        table: String,
        /// Rows sent.
        sent: u64,
        /// Rows stored.
        taken: u64,
        /// Warnings.
        warnings: u64,
    },
    /// The server's packets are too small for a row.
    #[error("max_allowed_packet is {bytes} bytes; raise it to at least 64 kB")]
    SmallPackets {
        /// The server's limit.
        bytes: usize,
    },
    /// The server does not offer the requested method.
    #[error("the server does not accept rows by {method}; is that method supported and enabled?")]
    NoMethod {
        /// The method.
        method: LoadMethodChoice,
    },
    /// The workload does not support the server's dialect.
    #[error("workload `{workload}` has no statements for {}", .dialect.product())]
    Dialect {
        /// The workload.
        workload: &'static str,
        /// The server's dialect.
        dialect: Dialect,
    },
    /// The server requires a primary key in every table, and a table of the workload has none.
    #[error(
        "table `{table}` has no primary key, and the server requires one in every table (server error {code}); set `{setting}` = OFF on the server"
    )]
    PrimaryKey {
        /// The table.
        table: String,
        /// The server's error number.
        code: u32,
        /// The setting that requires it.
        setting: &'static str,
    },
    /// The server's dialect does not support a parameter.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The answer to the digest query is not numeric.
    #[error("table `{table}`: the server's answer to the digest query is not numeric")]
    Answer {
        /// The table.
        table: String,
    },
    /// The script's command failed.
    #[error("the script's `{command}` failed: {why}")]
    Script {
        /// Its command.
        command: &'static str,
        /// Position and error.
        why: String,
    },
    /// A dump cannot be loaded.
    #[error(transparent)]
    Dump(#[from] dbduel_dump::DumpError),
    /// The account that loads a dump cannot be created.
    #[error(transparent)]
    Account(#[from] dbduel_dump::account::AccountError),
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

impl FillError {
    /// True when the same command can complete the fill once the cause is gone. The other errors say what to do instead.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        !matches!(
            self,
            FillError::Exists { .. }
                | FillError::Unfinished { .. }
                | FillError::InProgress { .. }
                | FillError::EarlierConnections { .. }
                | FillError::NoMethod { .. }
                | FillError::Dialect { .. }
                | FillError::PrimaryKey { .. }
                | FillError::Parameter(_)
                | FillError::Dump(_)
                | FillError::Account(_)
        )
    }
}
