//! The tables themselves: created, recovered after an interruption, finished.

use std::time::Instant;

use dbduel_driver::introspection;
use dbduel_driver::{Connection, ErrorClass};

use super::checkpoint::{self, Done};
use super::load_method::{ATTEMPTS, failed};
use super::{FillError, check_foreign_keys, claim};
use crate::Table;

/// Creates the tables, or reads what an earlier attempt has left. Returns the progress of each.
pub(super) fn prepare(
    connection: &mut Connection,
    tables: &[Table],
    database: &str,
    recipe: &str,
    deadline: Instant,
) -> Result<Vec<Done>, FillError> {
    let is_begun = checkpoint::begin(connection, recipe).map_err(FillError::Together)?;
    if is_begun {
        claim::await_earlier_connections(connection, deadline)?;
    }
    if is_begun && !checkpoint::is_of(connection, recipe).map_err(FillError::Together)? {
        return Err(FillError::Unfinished {
            database: database.to_owned(),
        });
    }
    let mut done = Vec::with_capacity(tables.len());
    for (index, table) in tables.iter().enumerate() {
        match run(connection, table, &table.create) {
            Err(FillError::Statement { source, .. })
                if source.class() == Some(ErrorClass::TableExists) =>
            {
                if !is_begun {
                    forsake(connection, &tables[..index])?;
                    return Err(exists(table, database));
                }
                done.push(take_over(connection, table)?);
            }
            Err(error) => {
                let error = without_primary_key(error);
                if !is_begun && !error.is_resumable() {
                    forsake(connection, &tables[..index])?;
                }
                return Err(error);
            }
            Ok(()) => {
                checkpoint::forget(connection, table).map_err(FillError::Together)?;
                done.push(Done::default());
            }
        }
    }
    Ok(done)
}

pub(super) fn exists(table: &Table, database: &str) -> FillError {
    FillError::Exists {
        table: table.name.clone(),
        database: database.to_owned(),
    }
}

/// The error of a CREATE TABLE, with the setting that refuses a table without a primary key.
fn without_primary_key(error: FillError) -> FillError {
    let FillError::Statement { table, source } = error else {
        return error;
    };
    let (code, setting) = match (source.class(), source.code()) {
        // ER_REQUIRES_PRIMARY_KEY, with which MariaDB answers.
        (Some(ErrorClass::NoPrimaryKey), Some(code @ 1173)) => (code, "innodb_force_primary_key"),
        (Some(ErrorClass::NoPrimaryKey), Some(code)) => (code, "sql_require_primary_key"),
        _ => return FillError::Statement { table, source },
    };
    FillError::PrimaryKey {
        table,
        code,
        setting,
    }
}

/// Drops what was created before a table that cannot be created.
fn forsake(connection: &mut Connection, created: &[Table]) -> Result<(), FillError> {
    for table in created {
        let sql = introspection::drop_if_exists(connection.dialect(), &table.name);
        run(connection, table, &sql)?;
    }
    checkpoint::end(connection).map_err(FillError::Together)
}

/// Progress of an earlier attempt on a table. A table with more or fewer rows than recorded is created again.
fn take_over(connection: &mut Connection, table: &Table) -> Result<Done, FillError> {
    let statement = |source| FillError::Statement {
        table: table.name.clone(),
        source,
    };
    let done = checkpoint::done(connection, table).map_err(statement)?;
    let dialect = connection.dialect();
    let count = introspection::count(dialect, &table.name);
    let answer = connection.query(&count).map_err(statement)?;
    if answer.text(0, 0) == Some(done.rows.to_string()) {
        return Ok(done);
    }
    checkpoint::forget(connection, table).map_err(statement)?;
    if let Some(sql) = check_foreign_keys(dialect, false) {
        connection.execute(sql).map_err(statement)?;
    }
    let sql = introspection::drop_if_exists(dialect, &table.name);
    run(connection, table, &sql)?;
    run(connection, table, &table.create)?;
    if let Some(sql) = check_foreign_keys(dialect, true) {
        connection.execute(sql).map_err(statement)?;
    }
    Ok(Done::default())
}

/// Runs a statement on a filled table, and records that. Retries after a deadlock, which two such statements on tables
/// with a foreign key between them may cause.
pub(super) fn finish(
    connection: &mut Connection,
    table: &Table,
    place: u64,
    sql: &str,
) -> Result<(), FillError> {
    for attempts_left in (0..ATTEMPTS).rev() {
        let Err(source) = connection.execute(sql) else {
            break;
        };
        match source.class() {
            Some(ErrorClass::Conflict) if attempts_left > 0 => {}
            // Of a statement that was interrupted between its own end and the line about it.
            // PostgreSQL counts indexes among the tables.
            Some(ErrorClass::IndexExists | ErrorClass::TableExists) => break,
            _ => return Err(failed(table)(source)),
        }
    }
    checkpoint::is_finished(connection, table, place).map_err(FillError::Together)
}

pub(super) fn run(connection: &mut Connection, table: &Table, sql: &str) -> Result<(), FillError> {
    connection.execute(sql).map(drop).map_err(failed(table))
}
