//! Single statements: as text, or prepared by the server.

use dbduel_wire::{PrepareParser, Prepared, command};

use super::session::Session;
use super::statement::Kind;
use super::{Conn, Protocol, Statement, wired};
use crate::socket::Waiter;
use crate::{
    Dialect, ErrorClass, LostError, ServerError, Sink, Skip, StatementError, Summary, Value, mysql,
};

/// A statement that is written to the output buffer and not sent yet.
pub struct Request(());

impl<W: Waiter> Conn<W> {
    /// Prepares a statement for [`Conn::execute`]. If the server cannot prepare this kind of statement, its text is
    /// sent each time, as users of libmysqlclient do; the same holds for every statement while examples are kept.
    ///
    /// # Errors
    /// The server's error, or a lost connection.
    pub async fn prepare(
        &mut self,
        sql: &str,
        protocol: Protocol,
    ) -> Result<Statement, StatementError> {
        let dialect = self.dialect();
        self.preparations += u64::from(protocol == Protocol::Prepared);
        let is_text = match (protocol, dialect) {
            (Protocol::Prepared, _) => self.examples.is_some(),
            (Protocol::Text, _) => true,
            // MySQL executes one prepared statement per request, PostgreSQL as many as there are.
            (Protocol::Grouped, dialect) => dialect == Dialect::MySql,
        };
        if is_text {
            return Ok(Statement::text(sql, dialect));
        }
        match self.prepare_on_server(sql).await {
            Err(StatementError::Server(error)) if error.class == ErrorClass::NotPreparable => {
                Ok(Statement::text(sql, dialect))
            }
            prepared => prepared,
        }
    }

    /// Prepares a statement on the server.
    pub(crate) async fn prepare_on_server(
        &mut self,
        sql: &str,
    ) -> Result<Statement, StatementError> {
        self.begin_wait();
        let prepared = match self.session {
            Session::MySql(_) => self.prepare_mysql(sql).await,
            Session::PostgreSql(_) => self.prepare_postgresql(sql).await,
            Session::Sqlite(_) => self.prepare_sqlite(sql),
        };
        self.end_wait();
        prepared.map_err(|error| self.explain_failure(error))
    }

    async fn prepare_mysql(&mut self, sql: &str) -> Result<Statement, StatementError> {
        let Session::MySql(session) = &self.session else {
            return Err(foreign());
        };
        self.out.clear();
        command::prepare(&mut self.out, sql.as_bytes());
        let socket = wired(&mut self.socket)?;
        socket.send(&self.waiter, &self.out).await?;
        let mut parser = PrepareParser::new(session.logged_in.capabilities);
        parser.begin();
        let mut fresh = Vec::new();
        loop {
            fresh.clear();
            socket.receive_into(&self.waiter, &mut fresh).await?;
            match parser.feed(&fresh)? {
                (_, Prepared::NeedMore) => {}
                (used, Prepared::Done(_)) if used < fresh.len() => {
                    return Err(mysql::surplus().into());
                }
                (_, Prepared::Done(prepared)) => {
                    let statement = prepared.map_err(ServerError::from)?;
                    let sent = dbduel_wire::SentTypes::default();
                    let kind = Kind::MySql { statement, sent };
                    return Ok(Statement { kind });
                }
            }
        }
    }

    fn prepare_sqlite(&mut self, sql: &str) -> Result<Statement, StatementError> {
        let Session::Sqlite(session) = &mut self.session else {
            return Err(foreign());
        };
        let kind = Kind::Sqlite {
            statement: session.prepare(sql)?,
        };
        Ok(Statement { kind })
    }

    async fn prepare_postgresql(&mut self, sql: &str) -> Result<Statement, StatementError> {
        let Session::PostgreSql(session) = &mut self.session else {
            return Err(foreign());
        };
        self.out.clear();
        let mut preparation = session.put_prepare(&mut self.out, sql);
        let socket = wired(&mut self.socket)?;
        socket.send(&self.waiter, &self.out).await?;
        let mut fresh = Vec::new();
        loop {
            fresh.clear();
            socket.receive_into(&self.waiter, &mut fresh).await?;
            if let Some(prepared) = session.feed_prepared(&mut preparation, &fresh)? {
                let kind = Kind::PostgreSql {
                    statement: prepared?,
                };
                return Ok(Statement { kind });
            }
        }
    }

    /// Runs a text query and skips its rows.
    ///
    /// # Errors
    /// The server's error, or a lost connection.
    pub async fn query(&mut self, sql: &[u8]) -> Result<Summary, StatementError> {
        self.query_into(sql, &mut Skip).await
    }

    /// As [`Conn::query`], with the rows handed to `sink`.
    ///
    /// # Errors
    /// The server's error, or a lost connection; the sink may then have seen some rows.
    pub async fn query_into<S: Sink>(
        &mut self,
        sql: &[u8],
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        if let Some(examples) = &self.examples {
            examples.note(self.session.dialect(), sql);
        }
        self.out.clear();
        self.session.put_query(&mut self.out, sql);
        self.round_trip(sink, ()).await
    }

    /// Makes the session report to the server's statistics, if [`Conn::flushes_statistics`]; false when the server
    /// refuses. Not a statement of the load, so no example of it is kept.
    ///
    /// # Errors
    /// A lost connection.
    pub async fn flush_statistics(&mut self) -> Result<bool, LostError> {
        self.out.clear();
        self.session
            .put_query(&mut self.out, b"SELECT pg_stat_force_next_flush()");
        match self.round_trip(&mut Skip, ()).await {
            Ok(_) => Ok(true),
            Err(StatementError::Server(_)) => Ok(false),
            Err(StatementError::Lost(lost)) => Err(lost),
        }
    }

    /// Deallocates a statement on the server.
    ///
    /// # Errors
    /// A lost connection.
    pub async fn close(&mut self, statement: Statement) -> Result<(), LostError> {
        self.out.clear();
        match (&mut self.session, &statement.kind) {
            (Session::MySql(_), Kind::MySql { statement, .. }) => {
                command::close(&mut self.out, statement);
            }
            (Session::PostgreSql(session), Kind::PostgreSql { statement }) => {
                session.put_close(&mut self.out, statement);
                let before = (self.statements, self.effects);
                let closed = self.round_trip(&mut Skip, ()).await;
                // It is none of those that the client asks for.
                (self.statements, self.effects) = before;
                return match closed {
                    Err(StatementError::Lost(lost)) => Err(lost),
                    _ => Ok(()),
                };
            }
            (Session::Sqlite(session), Kind::Sqlite { statement }) => {
                session.close(*statement);
                return Ok(());
            }
            _ => return Ok(()),
        }
        self.begin_wait();
        let sent = wired(&mut self.socket)?.send(&self.waiter, &self.out).await;
        self.end_wait();
        sent.map_err(|error| self.explain(error.into()))
    }

    /// Runs a statement with these values and skips its rows.
    ///
    /// # Errors
    /// The server's error, or a lost connection.
    #[inline]
    pub async fn execute(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
    ) -> Result<Summary, StatementError> {
        self.execute_into(statement, values, &mut Skip).await
    }

    /// As [`Conn::execute`], with the rows handed to `sink`.
    ///
    /// # Errors
    /// The server's error, or a lost connection; the sink may then have seen some rows.
    #[inline]
    pub async fn execute_into<S: Sink>(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        // Not by `reply`: another future around the round trip costs 3 % of a point query.
        let Request(()) = self.request(statement, values)?;
        let outcome = self.round_trip(sink, ()).await;
        if outcome.is_err() {
            statement.failed();
        }
        outcome
    }

    /// Writes a statement with these values to the output buffer; [`Conn::reply`] sends it.
    #[inline]
    pub fn request(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
    ) -> Result<Request, StatementError> {
        self.out.clear();
        let (out, text) = (&mut self.out, &mut self.text);
        let written = self.session.put_execution(statement, out, text, values);
        if let Some(examples) = &self.examples
            && statement.is_written_out()
        {
            examples.note(self.session.dialect(), text);
        }
        written.map(Request).map_err(|error| {
            statement.failed();
            LostError::from(error).into()
        })
    }

    /// Sends the statement in the output buffer and reads its reply.
    #[inline]
    pub async fn reply<S: Sink>(
        &mut self,
        statement: &mut Statement,
        Request(()): Request,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        let outcome = self.round_trip(sink, ()).await;
        if outcome.is_err() {
            statement.failed();
        }
        outcome
    }
}

/// The session has another dialect than expected, which callers rule out.
#[cold]
fn foreign() -> StatementError {
    LostError::from(super::session::foreign_statement(&[])).into()
}
