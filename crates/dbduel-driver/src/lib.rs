//! Access to databases: connections, statements, values, rows, and the meaning of errors; and the event loop on which
//! the connections of a load's clients wait ([`executor`]).
//!
//! Workloads, scripts, filling and the lab use only what is exported here. `mysql/` and `postgresql/` hold the
//! protocol-specific parts: packets, errors, literals. `sqlite/` has no protocol and runs in this process. Connections,
//! sockets, TLS and deadlines are common. The protocol is selected by a branch where bytes are written and read, so it
//! adds no further cost to a statement.
//!
//! | need | item |
//! | --- | --- |
//! | a client's connection, on its thread's event loop | [`ClientConnection`] |
//! | a connection for settings, schema and loading, which blocks | [`Connection`] |
//! | statements one by one, or several in one round trip | [`Statement`], [`Group`] |
//! | values and rows | [`Value`], [`Row`], [`Sink`] |
//! | what an error means | [`ErrorClass`] |
//! | values in the text of a statement | [`BytesLiteral`], [`TextLiteral`], [`Dialect::literal`] |
//! | names in the text of a statement | [`Dialect::identifier`] |

pub mod address;
mod blocking;
pub mod cancel;
pub mod client_errors;
mod conn;
pub mod database;
mod deadline;
mod error;
pub mod executor;
pub mod introspection;
pub mod mock_server;
mod mysql;
pub mod pgpass;
mod placeholders;
mod postgresql;
mod quoting;
mod result;
pub mod session;
mod session_start;
mod socket;
mod sqlite;
pub mod statement_examples;
pub mod statement_watch;
mod tls;
mod type_class;

use std::ops::Sub;

use dbduel_sql::Syntax;
use serde::{Deserialize, Serialize};

pub use dbduel_wire::reply::{Completion, Values};
pub use dbduel_wire::{Column, Credentials, Row, Sink, Skip, Summary, Value};

pub use blocking::{ConnectOptions, Connection, PreparedStatement};
pub use conn::Request;
pub use conn::{BulkKind, ClientConnection, Group, Protocol, Statement};
pub use deadline::{unless_over, within};
pub use error::{
    Cause, ConnectError, ErrorClass, LostError, QueryError, SCRIPT_FAILED, ServerError,
    StatementError,
};
pub use mysql::{BytesLiteral, TextLiteral};
pub use postgresql::sqlstate_code;
pub use quoting::Identifier;
pub use result::ResultSet;
pub use session_start::SessionStart;
pub(crate) use session_start::is_start as starts_session;
pub use sqlite::{
    SHOW_SETTINGS as SQLITE_SHOW_SETTINGS, SettingError, Settings, check_setting,
    version as sqlite_version,
};
pub use tls::{Tls, TlsError, TlsMode};
pub use type_class::type_class;

/// Protocol and kind of SQL of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// MySQL and MariaDB.
    #[default]
    MySql,
    /// PostgreSQL.
    PostgreSql,
    /// SQLite, which has no protocol.
    Sqlite,
}

impl Dialect {
    /// Name of the product in messages.
    #[must_use]
    pub fn product(self) -> &'static str {
        match self {
            Dialect::MySql => "MySQL",
            Dialect::PostgreSql => "PostgreSQL",
            Dialect::Sqlite => "SQLite",
        }
    }

    /// The statement that begins a transaction. For SQLite it announces a write: SQLite refuses, without waiting, the
    /// first write of a transaction that has read data which another connection changed since.
    #[must_use]
    pub fn begin(self, writes: bool) -> &'static str {
        match self {
            Dialect::Sqlite if writes => "BEGIN IMMEDIATE",
            Dialect::MySql | Dialect::PostgreSql | Dialect::Sqlite => "BEGIN",
        }
    }

    /// How its SQL divides into tokens in sessions with default settings.
    fn syntax(self) -> Syntax {
        match self {
            Dialect::MySql => Syntax::MYSQL,
            Dialect::PostgreSql => Syntax::POSTGRESQL,
            Dialect::Sqlite => Syntax::SQLITE,
        }
    }

    /// True without a server: a statement runs in, and blocks, the thread that sends it, and the processor time of
    /// client and database cannot be separated.
    #[inline]
    #[must_use]
    pub fn is_in_process(self) -> bool {
        self == Dialect::Sqlite
    }
}

/// Successful statements by effect, not by verb: a DELETE that found no row counts as other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    /// They returned rows, or could have.
    pub reads: u64,
    /// They changed rows.
    pub writes: u64,
    /// They did neither.
    pub others: u64,
}

impl Sub for Effects {
    type Output = Effects;

    /// Difference to an earlier count.
    #[inline]
    fn sub(self, earlier: Effects) -> Effects {
        Effects {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            others: self.others - earlier.others,
        }
    }
}

#[cfg(test)]
mod tests;
