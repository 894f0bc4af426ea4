//! Progress of a fill: a table beside those that are filled, so that an interrupted fill can be resumed.
//!
//! A line is written in the transaction that inserts its rows. Engines without transactions may have kept rows without
//! their line, so the rows of a table are counted before it is resumed. The table exists only while a fill is
//! unfinished.

use std::collections::BTreeMap;
use std::ops::Range;

use dbduel_driver::{Connection, Dialect, ErrorClass, QueryError};

use crate::Table;

/// Name of the table.
pub(super) const NAME: &str = "dbduel_filling";

/// Kinds of lines.
const RECIPE: &str = "recipe";
const ROWS: &str = "rows";
const FINISH: &str = "finish";
const CONNECTION: &str = "connection";

/// Progress of one table.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Chunks that are in, as runs: first chunk, and end after the last.
    pub chunks: BTreeMap<u64, u64>,
    /// Rows of those chunks, as the server counted.
    pub rows: u64,
    /// Statements run after the rows, by their index.
    pub finishes: Vec<u64>,
}

impl Done {
    /// Runs of chunks below `end` that are missing, in order.
    pub(super) fn missing(&self, end: u64) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut next = 0;
        for (&first, &behind) in &self.chunks {
            if next < first.min(end) {
                missing.push(next..first.min(end));
            }
            next = next.max(behind);
        }
        if next < end {
            missing.push(next..end);
        }
        missing
    }
}

/// Creates the checkpoint of a fill by this recipe. True when one exists from an earlier attempt; [`is_of`] shows
/// whether that followed the same recipe.
pub(super) fn begin(connection: &mut Connection, recipe: &str) -> Result<bool, QueryError> {
    // Names of tables may differ in the case of their letters alone.
    let text = match connection.dialect() {
        Dialect::MySql => "VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        Dialect::PostgreSql | Dialect::Sqlite => "VARCHAR(100)",
    };
    let create = format!(
        "CREATE TABLE {NAME} (kind VARCHAR(10) NOT NULL, subject {text} NOT NULL, \
         first BIGINT NOT NULL, behind BIGINT NOT NULL, amount BIGINT NOT NULL, \
         PRIMARY KEY (kind, subject, first))"
    );
    match connection.execute(&create) {
        Ok(_) => write(connection, RECIPE, recipe, 0, 0, 0).map(|()| false),
        Err(error) if error.class() == Some(ErrorClass::TableExists) => Ok(true),
        Err(error) => Err(error),
    }
}

/// True when the fill that was begun follows this recipe. One that was interrupted before it wrote its recipe has no
/// rows either.
pub(super) fn is_of(connection: &mut Connection, recipe: &str) -> Result<bool, QueryError> {
    let lines = connection.query(&format!(
        "SELECT subject FROM {NAME} WHERE kind = '{RECIPE}'"
    ))?;
    if lines.rows.is_empty() {
        write(connection, RECIPE, recipe, 0, 0, 0)?;
        return Ok(true);
    }
    Ok(lines.text(0, 0).is_some_and(|written| written == recipe))
}

/// Progress of a table.
pub(super) fn done(connection: &mut Connection, table: &Table) -> Result<Done, QueryError> {
    let lines = connection.query(&format!(
        "SELECT kind, first, behind, amount FROM {NAME} WHERE subject = {}",
        connection.dialect().literal(&table.name)
    ))?;
    let mut done = Done::default();
    for row in 0..lines.rows.len() {
        let number = |column| -> u64 {
            let text = lines.text(row, column);
            text.and_then(|text| text.parse().ok()).unwrap_or_default()
        };
        match lines.text(row, 0).as_deref() {
            Some(ROWS) => {
                done.chunks.insert(number(1), number(2));
                done.rows += number(3);
            }
            Some(FINISH) => done.finishes.push(number(1)),
            _ => {}
        }
    }
    Ok(done)
}

/// Records that chunks of a table are in, with the number of rows that the server counted.
pub(super) fn rows_are_in(
    connection: &mut Connection,
    table: &Table,
    chunks: &Range<u64>,
    rows: u64,
) -> Result<(), QueryError> {
    write(
        connection,
        ROWS,
        &table.name,
        chunks.start,
        chunks.end,
        rows,
    )
}

/// Records that a statement after the rows has run.
pub(super) fn is_finished(
    connection: &mut Connection,
    table: &Table,
    place: u64,
) -> Result<(), QueryError> {
    write(connection, FINISH, &table.name, place, place + 1, 0)
}

/// Removes the progress of a table.
pub(super) fn forget(connection: &mut Connection, table: &Table) -> Result<(), QueryError> {
    let subject = connection.dialect().literal(&table.name);
    let sql = format!("DELETE FROM {NAME} WHERE subject = {subject}");
    connection.execute(&sql).map(drop)
}

/// Records that this connection works on the fill, with the time, because a restarted server numbers connections from
/// the beginning again.
pub(super) fn note_connection(connection: &mut Connection) -> Result<(), QueryError> {
    let sql = match connection.dialect() {
        Dialect::MySql => format!(
            "INSERT IGNORE INTO {NAME} VALUES ('{CONNECTION}', '', CONNECTION_ID(), CONNECTION_ID() + 1, UNIX_TIMESTAMP())"
        ),
        Dialect::PostgreSql => format!(
            "INSERT INTO {NAME} VALUES ('{CONNECTION}', '', pg_backend_pid(), pg_backend_pid() + 1, \
             extract(epoch FROM now())) ON CONFLICT DO NOTHING"
        ),
        // What a connection of SQLite began ends with its process.
        Dialect::Sqlite => return Ok(()),
    };
    connection.execute(&sql).map(drop)
}

/// Ids of the connections that worked on the fill since the server started.
pub(super) fn connections(connection: &mut Connection) -> Result<Vec<String>, QueryError> {
    let lines = match connection.dialect() {
        Dialect::MySql => {
            let status = connection.query("SHOW GLOBAL STATUS LIKE 'Uptime'")?;
            let uptime_s: u64 = status
                .text(0, 1)
                .and_then(|text| text.parse().ok())
                .unwrap_or_default();
            connection.query(&format!(
                "SELECT first FROM {NAME} WHERE kind = '{CONNECTION}' AND amount + {uptime_s} >= UNIX_TIMESTAMP() - 1 \
                 AND first <> CONNECTION_ID()"
            ))?
        }
        // The number is a process's, which the system gives away again: only a session that was there then is meant.
        Dialect::PostgreSql => connection.query(&format!(
            "SELECT first FROM {NAME} JOIN pg_stat_activity ON pid = first WHERE kind = '{CONNECTION}' \
             AND backend_start <= to_timestamp(amount + 1) AND first <> pg_backend_pid()"
        ))?,
        Dialect::Sqlite => return Ok(Vec::new()),
    };
    Ok((0..lines.rows.len())
        .filter_map(|row| lines.text(row, 0))
        .collect())
}

/// Removes the connections of an interrupted fill.
pub(super) fn forget_connections(connection: &mut Connection) -> Result<(), QueryError> {
    let sql = format!("DELETE FROM {NAME} WHERE kind = '{CONNECTION}'");
    connection.execute(&sql).map(drop)
}

/// Drops the checkpoint.
pub(super) fn end(connection: &mut Connection) -> Result<(), QueryError> {
    let sql = format!("DROP TABLE IF EXISTS {NAME}");
    connection.execute(&sql).map(drop)
}

fn write(
    connection: &mut Connection,
    kind: &str,
    subject: &str,
    first: u64,
    behind: u64,
    amount: u64,
) -> Result<(), QueryError> {
    let subject = connection.dialect().literal(subject);
    let sql =
        format!("INSERT INTO {NAME} VALUES ('{kind}', {subject}, {first}, {behind}, {amount})");
    connection.execute(&sql).map(drop)
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "a list of runs may have only one"
)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_what_no_line_speaks_of() {
        let mut done = Done::default();
        assert_eq!(done.missing(5), [0..5]);
        assert!(done.missing(0).is_empty());
        done.chunks.extend([(2, 4), (6, 7)]);
        assert_eq!(done.missing(9), [0..2, 4..6, 7..9]);
        assert_eq!(done.missing(7), [0..2, 4..6]);
        // Lines beyond the end are of a larger table, which the recipe would have told.
        assert_eq!(done.missing(3), [0..2]);
        done.chunks.insert(0, 2);
        assert_eq!(done.missing(6), [4..6]);
    }
}
