//! What the rest of the crate needs of a database: connections, statements, values, rows, and what errors mean.
//!
//! Workloads, scripts, filling and the lab know only what is exported here. `mysql/` and `postgresql/` hold what is a protocol's
//! own: packets, errors, literals. Connections, sockets, TLS and deadlines are not. Which protocol a connection speaks is
//! asked with a branch where bytes are written and read, so a statement costs what its protocol costs.
//!
//! | need | item |
//! | --- | --- |
//! | a client's connection, on its thread's event loop | [`ClientConnection`] |
//! | a connection for settings, schema and loading, which blocks | [`Connection`] |
//! | statements one by one, or several in one round trip | [`Statement`], [`Group`] |
//! | values and rows | [`Value`], [`Row`], [`Sink`] |
//! | what an error means | [`ErrorClass`] |
//! | values in the text of a statement | [`BytesLiteral`], [`TextLiteral`] |

mod blocking;
pub(crate) mod client_errors;
mod conn;
mod deadline;
mod error;
mod mysql;
mod postgresql;
mod result;
pub(crate) mod socket;
mod tls;

use std::ops::Sub;

use serde::{Deserialize, Serialize};

pub use dbduel_wire::reply::{Completion, Values};
pub use dbduel_wire::{Credentials, Row, Sink, Skip, Summary, Value};

pub use blocking::{ConnectOptions, Connection, PreparedStatement};
pub(crate) use conn::Request;
pub use conn::{BulkKind, ClientConnection, Group, Protocol, Statement};
pub(crate) use deadline::{unless_over, within};
pub use error::{
    Cause, ConnectError, ErrorClass, LostError, QueryError, ServerError, StatementError,
};
pub use mysql::{BytesLiteral, TextLiteral};
pub(crate) use postgresql::sqlstate_code;
pub use result::ResultSet;
pub use tls::{Tls, TlsError, TlsMode};

/// What a server speaks: its protocol, and its kind of SQL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// MySQL and MariaDB.
    #[default]
    MySql,
    /// PostgreSQL.
    PostgreSql,
}

impl Dialect {
    /// What messages call its servers.
    #[must_use]
    pub fn product(self) -> &'static str {
        match self {
            Dialect::MySql => "MySQL",
            Dialect::PostgreSql => "PostgreSQL",
        }
    }
}

/// Statements that succeeded, by what they did and not by their verb: a DELETE that found no row is one of the others.
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

    /// Those since an earlier time.
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
