//! The operations: statements sent to the server.
//!
//! One file for writes of links, one for reads of links, one for nodes. Nothing here draws anything; the inputs are
//! given.

pub(super) mod nodes;
pub(super) mod read_links;
pub(super) mod write_links;

use dbduel_driver::{
    ClientConnection, Protocol, Row, Sink, Skip, Statement, StatementError, Summary, Value,
};

/// Key of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LinkKey {
    pub id1: u64,
    pub id2: u64,
    pub link_type: u64,
}

/// Role of a statement in the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// It is the first one.
    Begins,
    /// It is the last one.
    Commits,
}

/// The first or last statement of a transaction. As text, BEGIN or COMMIT is sent in the same packet, so that there
/// are as many round trips as in the original; a prepared statement needs its own.
struct Outer {
    before: Option<Statement>,
    main: Statement,
    after: Option<Statement>,
}

impl Outer {
    async fn prepare(
        conn: &mut ClientConnection,
        protocol: Protocol,
        bound: Bound,
        sql: &str,
    ) -> Result<Self, StatementError> {
        let (main, mut before, mut after) = match (protocol, bound) {
            (Protocol::Text | Protocol::Grouped, Bound::Begins) => {
                (format!("BEGIN;{sql}"), None, None)
            }
            (Protocol::Text | Protocol::Grouped, Bound::Commits) => {
                (format!("{sql};COMMIT"), None, None)
            }
            (Protocol::Prepared, Bound::Begins) => (sql.to_owned(), Some("BEGIN"), None),
            (Protocol::Prepared, Bound::Commits) => (sql.to_owned(), None, Some("COMMIT")),
        };
        let mut outer = Outer {
            main: conn.prepare(&main, protocol).await?,
            before: None,
            after: None,
        };
        if let Some(sql) = before.take() {
            outer.before = Some(conn.prepare(sql, protocol).await?);
        }
        if let Some(sql) = after.take() {
            outer.after = Some(conn.prepare(sql, protocol).await?);
        }
        Ok(outer)
    }

    async fn execute(
        &mut self,
        conn: &mut ClientConnection,
        values: &[Value<'_>],
    ) -> Result<Summary, StatementError> {
        self.execute_into(conn, values, &mut Skip).await
    }

    async fn execute_into<S: Sink>(
        &mut self,
        conn: &mut ClientConnection,
        values: &[Value<'_>],
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        if let Some(before) = &mut self.before {
            conn.execute(before, &[]).await?;
        }
        let summary = conn.execute_into(&mut self.main, values, sink).await?;
        if let Some(after) = &mut self.after {
            conn.execute(after, &[]).await?;
        }
        Ok(summary)
    }
}

/// The first field of the last row, as a number.
#[derive(Default)]
struct Number(Option<i64>);

impl Sink for Number {
    fn wants_columns(&self) -> bool {
        false
    }

    fn row(&mut self, row: &Row<'_>) {
        self.0 = row
            .values()
            .next()
            .and_then(Result::ok)
            .and_then(|value| value.as_i64());
    }
}
