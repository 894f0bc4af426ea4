//! One fill of a database at a time, and none while connections of an interrupted one are still at work.

use std::time::{Duration, Instant};

use super::{FillError, checkpoint};
use crate::driver::{Connection, QueryError};

/// How long the server may take to notice that the process that held the lock is gone, seconds.
const LOCK_WAIT_S: u32 = 2;

/// Longest wait for the connections of an interrupted fill: a server notices a closed connection after the statement
/// that it runs, and then rolls back at most one batch.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(300);

/// Pause between two looks at the server's connections.
const PAUSE: Duration = Duration::from_millis(50);

/// Takes the server's named lock of this database, which is released when the connection closes. A server that refuses
/// named locks (some clusters do) is used without.
///
/// # Errors
/// [`FillError::InProgress`] when another fill holds it.
pub(super) fn take(connection: &mut Connection, database: &str) -> Result<(), FillError> {
    let sql = format!("SELECT GET_LOCK('{}', {LOCK_WAIT_S})", lock_name(database));
    let is_free = value(connection, &sql)?.is_none_or(|taken| taken == "1");
    if is_free {
        return Ok(());
    }
    refuse_if_taken(connection, database)?;
    // Released in between.
    value(connection, &sql).map(drop)
}

/// Refuses a database that another connection fills.
///
/// # Errors
/// [`FillError::InProgress`].
pub(super) fn refuse_if_taken(
    connection: &mut Connection,
    database: &str,
) -> Result<(), FillError> {
    let sql = format!("SELECT IS_USED_LOCK('{}')", lock_name(database));
    match value(connection, &sql)? {
        Some(holder) => Err(FillError::InProgress {
            database: database.to_owned(),
            connection: holder,
        }),
        None => Ok(()),
    }
}

/// The only value of an answer; none for NULL, and where the server refuses the statement.
fn value(connection: &mut Connection, sql: &str) -> Result<Option<String>, FillError> {
    match connection.query(sql) {
        Ok(answer) => Ok(answer.text(0, 0)),
        Err(QueryError::Refused { .. }) => Ok(None),
        Err(error) => Err(FillError::Together(error)),
    }
}

/// Waits until the connections that an interrupted fill wrote down are gone, so that nothing that they began is
/// committed or rolled back later.
pub(super) fn await_earlier_connections(
    connection: &mut Connection,
    deadline: Instant,
) -> Result<(), FillError> {
    let earlier = checkpoint::connections(connection).map_err(FillError::Together)?;
    let give_up = deadline.min(Instant::now() + ROLLBACK_TIMEOUT);
    loop {
        let answer = connection
            .query("SHOW PROCESSLIST")
            .map_err(FillError::Together)?;
        let alive: Vec<String> = (0..answer.rows.len())
            .filter_map(|row| answer.text(row, 0))
            .filter(|id| earlier.contains(id))
            .collect();
        if alive.is_empty() {
            return checkpoint::forget_connections(connection).map_err(FillError::Together);
        }
        if Instant::now() >= give_up {
            return Err(FillError::EarlierConnections {
                connections: alive.join(", "),
            });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Lock names are the server's, not the database's, and at most 64 characters.
fn lock_name(database: &str) -> String {
    let digest = blake3::hash(database.as_bytes()).to_hex();
    format!("dbduel-fill-{}", &digest[..32])
}
