//! Several statements in one round trip.

use dbduel_wire::{ColumnKind, CommandError, Value, postgresql};

use super::session::{Session, foreign_statement};
use super::statement::{Kind, put_text};
use super::{Conn, Statement};
use crate::socket::Waiter;
use crate::{Dialect, LostError, Sink, StatementError, Summary};

/// Statements that go to the server in one request and whose results come back in one reply. The server
/// stops at the first that fails.
///
/// To MySQL they go as one text, to PostgreSQL as executions of prepared statements that one Sync ends.
#[derive(Debug, Default)]
pub struct Group {
    request: Vec<u8>,
    statements: u64,
    results: Results,
}

/// Shape of the reply to prepared statements: columns of all results, and number of columns of each.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) columns: Vec<ColumnKind>,
    pub(crate) counts: Vec<usize>,
    /// True when the last statement commits.
    pub(crate) commits: bool,
}

impl Group {
    /// Forgets all statements.
    pub fn clear(&mut self) {
        self.request.clear();
        self.statements = 0;
        self.results.columns.clear();
        self.results.counts.clear();
    }

    /// Adds a statement with its values.
    ///
    /// # Errors
    /// When the statement takes another number of values, or cannot be in a group: with MySQL one that the server has
    /// prepared, with PostgreSQL one in text, with SQLite any.
    pub fn add(&mut self, statement: &Statement, values: &[Value<'_>]) -> Result<(), LostError> {
        Ok(self.put(statement, values)?)
    }

    fn put(&mut self, statement: &Statement, values: &[Value<'_>]) -> Result<(), CommandError> {
        match &statement.kind {
            Kind::Text {
                pieces,
                dialect: dialect @ Dialect::MySql,
            } => {
                if self.statements > 0 {
                    self.request.push(b';');
                }
                put_text(&mut self.request, pieces, *dialect, values)?;
            }
            Kind::PostgreSql { statement } => {
                let prepared = &statement.statement;
                postgresql::command::execute(&mut self.request, prepared, values)?;
                self.results.columns.extend_from_slice(prepared.columns());
                self.results.counts.push(prepared.columns().len());
                self.results.commits = statement.commits;
            }
            Kind::MySql { .. } | Kind::Text { .. } | Kind::Sqlite { .. } => {
                return Err(foreign_statement(values));
            }
        }
        self.statements += 1;
        Ok(())
    }
}

impl<W: Waiter> Conn<W> {
    /// Runs the statements of a group in one round trip, with the rows of all results handed to `sink`.
    ///
    /// # Errors
    /// The error of the first statement that failed, after which none of the group was run, or a lost
    /// connection; the sink may then have seen some rows.
    pub async fn execute_group<S: Sink>(
        &mut self,
        group: &Group,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        self.out.clear();
        match &mut self.session {
            Session::MySql(session) => {
                if let Some(examples) = &self.examples {
                    examples.note(Dialect::MySql, &group.request);
                }
                session.put_query(&mut self.out, &group.request);
            }
            Session::PostgreSql(session) => {
                session.put_group(&mut self.out, &group.request, &group.results);
            }
            // There is no round trip to save, and no statement gets into a group.
            Session::Sqlite(_) => return Ok(Summary::default()),
        }
        self.statements += group.statements.saturating_sub(1);
        self.round_trip(sink, ()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_one_request_with_all_its_statements() {
        let text = |sql| Statement::text(sql, Dialect::MySql);
        let mut group = Group::default();
        let values = [Value::Unsigned(7), Value::Text("a;b")];
        group.add(&text("BEGIN"), &[]).unwrap();
        group.add(&text("SELECT ?, ?"), &values).unwrap();
        assert_eq!(group.request, b"BEGIN;SELECT 7, 'a;b'");
        assert_eq!(group.statements, 2);
        assert!(group.add(&text("SELECT ?"), &values).is_err());
        group.clear();
        assert!(group.request.is_empty() && group.statements == 0);
    }
}
