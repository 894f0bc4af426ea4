//! Statements that the server has prepared, executed for many rows of values at once: MariaDB's bulk execution.

use std::io;

use dbduel_wire::{
    Capabilities, ColumnKind, PrepareParser, Prepared, Skip, Statement, Summary, Value,
    bulk_execute, command,
};

use super::error::{Failure, excerpt};
use super::{Connection, QueryError};

/// A statement of one connection.
#[derive(Debug)]
pub struct PreparedStatement {
    statement: Statement,
    sql: String,
}

impl Connection {
    /// Whether the server executes one statement for many rows in one request.
    #[must_use]
    pub fn has_bulk_execution(&self) -> bool {
        let capabilities = self.logged_in.capabilities;
        capabilities.contains(Capabilities::BULK_EXECUTE)
    }

    /// Lets the server prepare a statement.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn prepare(&mut self, sql: &str) -> Result<PreparedStatement, QueryError> {
        self.begin(sql)?;
        command::prepare(&mut self.out, sql.as_bytes());
        let prepared = self
            .receive_prepared()
            .map_err(|failure| self.explain(failure, sql))?;
        self.complete();
        match prepared {
            Prepared::Done(Ok(statement)) => Ok(PreparedStatement {
                statement,
                sql: excerpt(sql),
            }),
            Prepared::Done(Err(error)) => Err(QueryError::refused(&error, sql)),
            Prepared::NeedMore => {
                Err(Failure::Io(io::ErrorKind::UnexpectedEof.into()).explain(sql))
            }
        }
    }

    /// Lets the server forget a statement, of which it keeps a limited number. There is no answer.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn forget(&mut self, prepared: PreparedStatement) -> Result<(), QueryError> {
        let PreparedStatement { statement, sql } = prepared;
        self.begin(&sql)?;
        command::close(&mut self.out, &statement);
        self.stream
            .send(&self.out)
            .map_err(|error| self.explain(Failure::Io(error), &sql))?;
        self.complete();
        Ok(())
    }

    /// Sends what is in `out` and reads the answer to a request to prepare.
    fn receive_prepared(&mut self) -> Result<Prepared, Failure> {
        self.stream.send(&self.out)?;
        let mut parser = PrepareParser::new(self.logged_in.capabilities);
        parser.begin();
        loop {
            let received = self.stream.receive(&mut self.buffer)?;
            match parser.feed(&self.buffer[..received])? {
                (_, Prepared::NeedMore) => {}
                (used, _) if used < received => return Err(Failure::Surplus),
                (_, prepared) => return Ok(prepared),
            }
        }
    }

    /// Executes a statement for each of the rows, whose values have these kinds or are NULL; see
    /// [`dbduel_wire::bulk_execute`].
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn execute_for_all<'a, R: AsRef<[Value<'a>]>>(
        &mut self,
        prepared: &PreparedStatement,
        kinds: &[ColumnKind],
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Summary, QueryError> {
        let PreparedStatement { statement, sql } = prepared;
        self.begin(sql)?;
        if let Err(source) = bulk_execute(&mut self.out, statement, kinds, rows) {
            // Nothing was sent.
            self.complete();
            return Err(QueryError::Values {
                sql: sql.clone(),
                source,
            });
        }
        self.finish(sql, None, &mut Skip)
    }
}
