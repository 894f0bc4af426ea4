//! Logs of servers: their formats, how a format is recognised, how files are opened.

pub mod mysql_general;
mod mysql_header;
mod mysql_sessions;
pub mod mysql_slow;
mod mysql_slow_head;
pub mod mysql_table;
pub mod pieces;
pub mod postgresql_csv;
pub mod postgresql_json;
pub mod postgresql_stderr;
pub mod recognise;
#[cfg(test)]
mod testing;
mod text;

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};

use crate::entry::Sink;

/// Longest entry that is kept, bytes; longer ones count as unreadable.
pub const ENTRY_BYTES_MAX: usize = 64 << 20;

/// Product that wrote a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogProduct {
    /// MySQL, and Percona Server, whose logs differ in lines that readers skip.
    Mysql,
    /// MariaDB.
    Mariadb,
    /// PostgreSQL.
    Postgresql,
}

/// Format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// The general log of MySQL or MariaDB, as a file.
    MysqlGeneral,
    /// The slow log of MySQL or MariaDB, as a file.
    MysqlSlow,
    /// The general or the slow log of MySQL or MariaDB, as a table in CSV (`log_output=TABLE`).
    MysqlTable,
    /// PostgreSQL's csvlog.
    PostgresqlCsv,
    /// PostgreSQL's jsonlog (15 and newer).
    PostgresqlJson,
    /// PostgreSQL's stderr log, whose lines begin with `log_line_prefix`.
    PostgresqlStderr,
}

/// What a reader cannot see in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Seconds east of UTC of the times of a log that names no zone; `None` counts as UTC.
    pub timezone_offset_s: Option<i32>,
    /// PostgreSQL's `log_line_prefix`; `None` where the user did not give it.
    pub line_prefix: Option<Vec<u8>>,
    /// Product, as the user or the beginning of the log says; `None` where neither does. A header in the log is more exact.
    pub product: Option<LogProduct>,
}

/// Why a log could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read, or what it has cannot be kept.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not of the format.
    #[error("line {line}: {why}")]
    Unfit {
        /// Line of the log, from 1.
        line: u64,
        /// What is wrong, as a clause.
        why: String,
    },
}

impl LogFormat {
    /// Reads a log of this format to its end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(
        self,
        input: &mut dyn BufRead,
        options: &LogOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let read = match self {
            LogFormat::MysqlGeneral => mysql_general::read,
            LogFormat::MysqlSlow => mysql_slow::read,
            LogFormat::MysqlTable => mysql_table::read,
            LogFormat::PostgresqlCsv => postgresql_csv::read,
            LogFormat::PostgresqlJson => postgresql_json::read,
            LogFormat::PostgresqlStderr => postgresql_stderr::read,
        };
        read(input, options, sink)
    }

    /// The format in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LogFormat::MysqlGeneral => "general log",
            LogFormat::MysqlSlow => "slow log",
            LogFormat::MysqlTable => "log table as CSV",
            LogFormat::PostgresqlCsv => "csvlog",
            LogFormat::PostgresqlJson => "jsonlog",
            LogFormat::PostgresqlStderr => "stderr log",
        }
    }
}

impl LogProduct {
    /// All of them, by the names of the command line.
    pub const NAMES: [(&'static str, LogProduct); 3] = [
        ("mysql", LogProduct::Mysql),
        ("mariadb", LogProduct::Mariadb),
        ("postgresql", LogProduct::Postgresql),
    ];

    /// The product's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LogProduct::Mysql => "MySQL",
            LogProduct::Mariadb => "MariaDB",
            LogProduct::Postgresql => "PostgreSQL",
        }
    }
}
