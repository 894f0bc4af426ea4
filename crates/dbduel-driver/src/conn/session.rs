//! The protocol-specific part of a connection: dispatches each call to its protocol.

use dbduel_wire::{Capabilities, CommandError};

use super::Statement;
use super::statement::Kind;
use crate::{
    Dialect, LostError, Sink, StatementError, Summary, Value, mysql, postgresql, sqlite,
    sqlite_version,
};

/// The state of a connection that is logged in.
#[derive(Debug)]
pub(crate) enum Session {
    /// MySQL and MariaDB.
    MySql(mysql::Session),
    /// PostgreSQL.
    PostgreSql(postgresql::Session),
    /// SQLite. Its statements run in the calling thread, so it exchanges no bytes.
    Sqlite(sqlite::Session),
}

/// State of a reply.
pub(crate) enum Progress {
    /// More bytes must come.
    NeedMore,
    /// The server asks for the content that the statement loads.
    Content,
    /// It is complete.
    Done,
}

impl Session {
    #[inline]
    pub(super) fn dialect(&self) -> Dialect {
        match self {
            Session::MySql(_) => Dialect::MySql,
            Session::PostgreSql(_) => Dialect::PostgreSql,
            Session::Sqlite(_) => Dialect::Sqlite,
        }
    }

    /// The server's version from its greeting.
    pub(crate) fn server_version(&self) -> &str {
        match self {
            Session::MySql(session) => session.logged_in.greeting.version(),
            Session::PostgreSql(session) => &session.logged_in.server_version,
            Session::Sqlite(_) => sqlite_version(),
        }
    }

    /// The server's number of the connection.
    pub(crate) fn id(&self) -> u32 {
        match self {
            Session::MySql(session) => session.logged_in.greeting.connection_id,
            Session::PostgreSql(session) => session.logged_in.process,
            Session::Sqlite(session) => session.number(),
        }
    }

    /// Authentication method of the login.
    pub(crate) fn authentication(&self) -> &'static str {
        match self {
            Session::MySql(session) => session.logged_in.method.name(),
            Session::PostgreSql(session) => session.logged_in.method,
            Session::Sqlite(_) => "none",
        }
    }

    pub(crate) fn may_load_files(&self) -> bool {
        match self {
            Session::MySql(session) => {
                let capabilities = session.logged_in.capabilities;
                capabilities.contains(Capabilities::LOCAL_FILES)
            }
            Session::PostgreSql(_) => true,
            Session::Sqlite(_) => false,
        }
    }

    pub(crate) fn has_bulk_execution(&self) -> bool {
        match self {
            Session::MySql(session) => {
                let capabilities = session.logged_in.capabilities;
                capabilities.contains(Capabilities::BULK_EXECUTE)
            }
            Session::PostgreSql(_) => false,
            Session::Sqlite(_) => true,
        }
    }

    /// Appends a statement as text and prepares for its reply.
    pub(super) fn put_query(&mut self, out: &mut Vec<u8>, sql: &[u8]) {
        match self {
            Session::MySql(session) => session.put_query(out, sql),
            Session::PostgreSql(session) => session.put_query(out, sql),
            Session::Sqlite(session) => session.put_text(out, sql),
        }
    }

    /// Appends the execution of a statement with these values and prepares for its reply; `text` is scratch space.
    #[inline]
    pub(super) fn put_execution(
        &mut self,
        statement: &mut Statement,
        out: &mut Vec<u8>,
        text: &mut Vec<u8>,
        values: &[Value<'_>],
    ) -> Result<(), CommandError> {
        match (self, &mut statement.kind) {
            (Session::MySql(session), Kind::MySql { statement, sent }) => {
                session.put_execution(out, statement, sent, values)
            }
            (Session::PostgreSql(session), Kind::PostgreSql { statement, .. }) => {
                session.put_execution(out, statement, values)
            }
            (Session::Sqlite(session), Kind::Sqlite { statement }) => {
                session.bind(*statement, values)
            }
            (session, Kind::Text { pieces, dialect }) => {
                text.clear();
                super::statement::put_text(text, pieces, *dialect, values)?;
                session.put_query(out, text);
                Ok(())
            }
            _ => Err(foreign_statement(values)),
        }
    }

    /// Takes bytes of the reply.
    #[inline]
    pub(super) fn feed<S: Sink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Progress, LostError> {
        match self {
            Session::MySql(session) => session.feed(bytes, sink),
            Session::PostgreSql(session) => session.feed(bytes, sink),
            Session::Sqlite(_) => Err(foreign_statement(&[]).into()),
        }
    }

    /// How a complete reply ended.
    #[inline]
    pub(super) fn outcome(&mut self) -> Result<Summary, StatementError> {
        match self {
            Session::MySql(session) => session.outcome(),
            Session::PostgreSql(session) => session.outcome(),
            Session::Sqlite(_) => Ok(Summary::default()),
        }
    }

    /// Appends the message that ends the session.
    pub(super) fn put_quit(&self, out: &mut Vec<u8>) {
        match self {
            Session::MySql(_) => dbduel_wire::command::quit(out),
            Session::PostgreSql(_) => dbduel_wire::postgresql::command::terminate(out),
            Session::Sqlite(_) => {}
        }
    }
}

/// A statement prepared by a server of another dialect.
#[cold]
pub(super) fn foreign_statement(values: &[Value<'_>]) -> CommandError {
    CommandError::ParameterCount {
        statement: 0,
        expected: 0,
        got: values.len(),
    }
}
