//! One fill of a database at a time, and none while connections of an interrupted one are still active.

use std::time::{Duration, Instant};

use dbduel_driver::{Connection, Dialect, QueryError};

use super::{FillError, checkpoint};

/// How long the server may take to notice that the process that held the lock is gone, seconds.
const LOCK_WAIT_S: u32 = 2;

/// Longest wait for the connections of an interrupted fill: a server notices a closed connection after its current
/// statement, and then rolls back at most one batch.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(300);

/// PostgreSQL's advisory locks have numbers, separate for each database.
const LOCK_NUMBER: u32 = 1_684_169_061;

/// Pause between two checks of the server's connections.
const PAUSE: Duration = Duration::from_millis(50);

/// Takes the server's named lock of this database, which is released when the connection closes. If the server refuses
/// named locks (some clusters do), the fill runs without.
///
/// # Errors
/// [`FillError::InProgress`] when another fill holds it.
pub(super) fn take(connection: &mut Connection, database: &str) -> Result<(), FillError> {
    if takes_lock(connection, database)? {
        return Ok(());
    }
    refuse_if_taken(connection, database)?;
    // Released in between.
    takes_lock(connection, database).map(drop)
}

/// Whether the lock was taken, or the server has none.
fn takes_lock(connection: &mut Connection, database: &str) -> Result<bool, FillError> {
    match connection.dialect() {
        Dialect::MySql => {
            let sql = format!("SELECT GET_LOCK('{}', {LOCK_WAIT_S})", lock_name(database));
            return Ok(value(connection, &sql)?.is_none_or(|taken| taken == "1"));
        }
        // It has no such locks. The lines that two fills write about one chunk have one key, so the later one fails.
        Dialect::Sqlite => return Ok(true),
        Dialect::PostgreSql => {}
    }
    let give_up = Instant::now() + Duration::from_secs(LOCK_WAIT_S.into());
    let sql = format!("SELECT pg_try_advisory_lock({LOCK_NUMBER})");
    loop {
        match value(connection, &sql)?.as_deref() {
            Some("f") if Instant::now() < give_up => std::thread::sleep(PAUSE),
            taken => return Ok(taken != Some("f")),
        }
    }
}

/// Refuses a database that another connection fills.
///
/// # Errors
/// [`FillError::InProgress`].
pub(super) fn refuse_if_taken(
    connection: &mut Connection,
    database: &str,
) -> Result<(), FillError> {
    let sql = match connection.dialect() {
        Dialect::MySql => format!("SELECT IS_USED_LOCK('{}')", lock_name(database)),
        Dialect::PostgreSql => format!(
            "SELECT pid FROM pg_locks JOIN pg_database AS d ON d.oid = database \
             WHERE locktype = 'advisory' AND classid = 0 AND objid = {LOCK_NUMBER} AND granted AND datname = {}",
            Dialect::PostgreSql.literal(database)
        ),
        Dialect::Sqlite => return Ok(()),
    };
    match value(connection, &sql)? {
        Some(holder) => Err(FillError::InProgress {
            database: database.to_owned(),
            connection: holder,
        }),
        None => Ok(()),
    }
}

/// The single value of an answer; `None` for NULL, and where the server refuses the statement.
fn value(connection: &mut Connection, sql: &str) -> Result<Option<String>, FillError> {
    match connection.query(sql) {
        Ok(answer) => Ok(answer.text(0, 0)),
        Err(QueryError::Refused { .. }) => Ok(None),
        Err(error) => Err(FillError::Together(error)),
    }
}

/// Waits until the connections recorded by an interrupted fill are gone, so that none of their work is committed or
/// rolled back later.
pub(super) fn await_earlier_connections(
    connection: &mut Connection,
    deadline: Instant,
) -> Result<(), FillError> {
    let earlier = checkpoint::connections(connection).map_err(FillError::Together)?;
    if earlier.is_empty() {
        return checkpoint::forget_connections(connection).map_err(FillError::Together);
    }
    let give_up = deadline.min(Instant::now() + ROLLBACK_TIMEOUT);
    loop {
        let processes = match connection.dialect() {
            Dialect::PostgreSql => "SELECT pid FROM pg_stat_activity",
            Dialect::MySql | Dialect::Sqlite => "SHOW PROCESSLIST",
        };
        let answer = connection.query(processes).map_err(FillError::Together)?;
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
