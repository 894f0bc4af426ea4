//! What the rest of the crate needs of a database: connections, statements, values, rows, and what errors mean.
//!
//! Workloads, scripts, filling and the lab know only what is exported here. MySQL and MariaDB are the one implementation;
//! `mysql/` holds all that is theirs: packets, capabilities, error numbers, literals. Sockets, TLS and deadlines are not.
//! Calls are dispatched statically, so a statement costs what the implementation costs.
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
mod deadline;
mod error;
mod mysql;
mod result;
pub(crate) mod socket;
mod tls;

pub use dbduel_wire::reply::{Completion, Values};
pub use dbduel_wire::{Credentials, Row, Sink, Skip, Summary, Value};

pub use blocking::{ConnectOptions, Connection, PreparedStatement};
pub(crate) use deadline::{unless_over, within};
pub use error::{
    Cause, ConnectError, ErrorClass, LostError, QueryError, ServerError, StatementError,
};
pub use mysql::{
    BulkKind, BytesLiteral, ClientConnection, Group, Protocol, Statement, TextLiteral,
};
pub(crate) use mysql::{Request, client_errors};
pub use result::ResultSet;
pub use tls::{Tls, TlsError, TlsMode};

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

#[cfg(test)]
mod tests;
