//! Methods of sending rows to a server: as values of a prepared statement, as a file that it asks for, or as
//! statements.
//!
//! MariaDB's bulk execution takes the least of the server's time, LOAD DATA LOCAL INFILE less than multi-row INSERT,
//! from MySQL 5.5 to 9.7 and from MariaDB 10.1 to 11.8 (`benches/loading.rs` measures all of them; figures are in
//! `docs/load-path.md`). So the order is the same for all, and each server gets the first that it supports and allows;
//! PostgreSQL has COPY, and SQLite executes a prepared INSERT once per row. The rows of a batch and its line in the
//! checkpoint are one transaction with every method.

use std::fmt;
use std::ops::Range;

use dbduel_driver::{Connection, Dialect, ErrorClass, QueryError};

use super::bulk::{self, Batch};
use super::progress::BatchProgress;
use super::rows::{self, Rows};
use super::{FillError, FillWatch, checkpoint, copy, infile, insert};
use crate::Table;

/// Largest INSERT, bytes; as large as sysbench's.
const INSERT_BYTES: usize = 512 << 10;

/// Smallest packet limit that fits any row.
const PACKET_BYTES_MIN: usize = 64 << 10;

/// Bytes of a packet reserved beside the statement itself.
const PACKET_MARGIN: usize = 1 << 10;

/// Attempts at a batch, or at a statement on a whole table, after lock conflicts.
pub(super) const ATTEMPTS: u32 = 10;

/// Names of the methods.
const INSERT: &str = "multi-row INSERT";
const LOAD_DATA: &str = "LOAD DATA LOCAL INFILE";
const BULK: &str = "bulk execution";
const COPY: &str = "COPY";

/// Largest ratio of a bulk execution's values to their text: a digit and its comma become nine bytes.
const VALUES_PER_TEXT: usize = 5;

/// How rows are sent to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMethod {
    /// Multi-row INSERT statements.
    Insert {
        /// Largest statement.
        bytes_max: usize,
    },
    /// LOAD DATA LOCAL INFILE, from memory; falls back to INSERT where the server refuses it after all.
    LoadData {
        /// Largest INSERT.
        bytes_max: usize,
    },
    /// One prepared INSERT for many rows of values: MariaDB's bulk execution, or SQLite's only way.
    Bulk {
        /// Text of the rows of one request; as values they take at most four and a half times as much.
        bytes_max: usize,
    },
    /// PostgreSQL's COPY, from memory.
    Copy,
}

/// The requested method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMethodChoice {
    /// The fastest measured method that the server allows.
    Fastest,
    /// Multi-row INSERT.
    Insert,
    /// LOAD DATA LOCAL INFILE.
    LoadData,
    /// Bulk execution.
    Bulk,
    /// COPY.
    Copy,
}

impl fmt::Display for LoadMethodChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LoadMethodChoice::Fastest => "any method",
            LoadMethodChoice::Insert => INSERT,
            LoadMethodChoice::LoadData => LOAD_DATA,
            LoadMethodChoice::Bulk => BULK,
            LoadMethodChoice::Copy => COPY,
        })
    }
}

impl fmt::Display for LoadMethod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LoadMethod::Insert { .. } => INSERT,
            LoadMethod::LoadData { .. } => LOAD_DATA,
            LoadMethod::Bulk { .. } => BULK,
            LoadMethod::Copy => COPY,
        })
    }
}

impl LoadMethod {
    /// The requested method, or the fastest one that the server allows.
    pub(super) fn of(
        connection: &mut Connection,
        choice: LoadMethodChoice,
    ) -> Result<Self, FillError> {
        match (connection.dialect(), choice) {
            (Dialect::PostgreSql, LoadMethodChoice::Copy | LoadMethodChoice::Fastest) => {
                return Ok(LoadMethod::Copy);
            }
            (Dialect::Sqlite, LoadMethodChoice::Bulk | LoadMethodChoice::Fastest) => {
                return Ok(LoadMethod::Bulk {
                    bytes_max: INSERT_BYTES,
                });
            }
            (Dialect::PostgreSql | Dialect::Sqlite, method) => {
                return Err(FillError::NoMethod { method });
            }
            (Dialect::MySql, _) => {}
        }
        let answer = connection
            .query("SELECT @@max_allowed_packet, @@local_infile")
            .map_err(FillError::Together)?;
        let packet = answer.text(0, 0).and_then(|text| text.parse().ok());
        let bytes = packet.unwrap_or(0_usize);
        if bytes < PACKET_BYTES_MIN {
            return Err(FillError::SmallPackets { bytes });
        }
        let room = bytes - PACKET_MARGIN;
        let bytes_max = INSERT_BYTES.min(room);
        let may_load = answer.text(0, 1).as_deref() == Some("1") && connection.may_load_files();
        let has_bulk = connection.has_bulk_execution();
        match choice {
            LoadMethodChoice::Bulk | LoadMethodChoice::Fastest if has_bulk => {
                Ok(LoadMethod::Bulk {
                    bytes_max: INSERT_BYTES.min(room / VALUES_PER_TEXT),
                })
            }
            LoadMethodChoice::LoadData | LoadMethodChoice::Fastest if may_load => {
                Ok(LoadMethod::LoadData { bytes_max })
            }
            LoadMethodChoice::Insert | LoadMethodChoice::Fastest => {
                Ok(LoadMethod::Insert { bytes_max })
            }
            method => Err(FillError::NoMethod { method }),
        }
    }

    /// Fills these chunks of a table in one transaction, and records them in the checkpoint. Retries after a deadlock
    /// or a lock timeout, which connections that fill neighbouring pages may cause.
    pub(super) fn fill(
        self,
        connection: &mut Connection,
        table: &Table,
        chunks: &Range<u64>,
        seed: u64,
        watch: &FillWatch,
    ) -> Result<(), FillError> {
        let mut attempts_left = ATTEMPTS;
        loop {
            let progress = BatchProgress::new(watch);
            attempts_left -= 1;
            let filled = connection
                .execute(connection.dialect().begin(true))
                .map_err(failed(table));
            let filled = filled
                .and_then(|_| self.send(connection, table, chunks, seed, &progress))
                .and_then(|taken| {
                    checkpoint::rows_are_in(connection, table, chunks, taken).map_err(failed(table))
                })
                .and_then(|()| connection.execute("COMMIT").map_err(failed(table)));
            match filled {
                Err(FillError::Statement { source, .. })
                    if attempts_left > 0 && source.class() == Some(ErrorClass::Conflict) =>
                {
                    progress.undo();
                    connection.execute("ROLLBACK").map_err(failed(table))?;
                }
                outcome => return outcome.map(|_| ()),
            }
        }
    }

    /// Sends these chunks of a table. Returns the rows that the server stored.
    pub(super) fn send(
        self,
        connection: &mut Connection,
        table: &Table,
        chunks: &Range<u64>,
        seed: u64,
        progress: &BatchProgress<'_>,
    ) -> Result<u64, FillError> {
        match self {
            LoadMethod::LoadData { bytes_max } => {
                match load(connection, table, chunks, seed, progress) {
                    Err(FillError::Statement { source, .. })
                        if source.class() == Some(ErrorClass::NoFileLoading) =>
                    {
                        insert(connection, table, chunks, seed, bytes_max, progress)
                    }
                    outcome => outcome,
                }
            }
            LoadMethod::Copy => load(connection, table, chunks, seed, progress),
            LoadMethod::Insert { bytes_max } => {
                insert(connection, table, chunks, seed, bytes_max, progress)
            }
            LoadMethod::Bulk { bytes_max } => {
                match bulk(connection, table, chunks, seed, bytes_max, progress) {
                    // Refused before the first row was sent.
                    Err(FillError::Statement { source, .. })
                        if source.class() == Some(ErrorClass::TooManyPrepared) =>
                    {
                        insert(connection, table, chunks, seed, bytes_max, progress)
                    }
                    outcome => outcome,
                }
            }
        }
    }
}

/// The error of a statement on this table.
pub(super) fn failed(table: &Table) -> impl Fn(QueryError) -> FillError {
    |source| FillError::Statement {
        table: table.name.clone(),
        source,
    }
}

/// Sends rows as the content of one statement. Returns the rows that the server stored.
fn load(
    connection: &mut Connection,
    table: &Table,
    chunks: &Range<u64>,
    seed: u64,
    progress: &BatchProgress<'_>,
) -> Result<u64, FillError> {
    let (statement, append_line): (_, fn(&str, &mut Vec<u8>)) = match connection.dialect() {
        Dialect::MySql => (infile::statement(table), infile::append_line),
        Dialect::PostgreSql | Dialect::Sqlite => (copy::statement(table), copy::append_line),
    };
    let rows = Rows::new(table, chunks, seed);
    let mut content = infile::Content::new(rows, progress, append_line);
    let summary = connection
        .load(&statement, &mut content)
        .map_err(failed(table))?;
    let taken = summary.affected_rows;
    all_taken(table, rows::count(table, chunks), taken, summary.warnings)?;
    Ok(taken)
}

/// Refuses rows that the server changed or left out. When it reads a local file, errors of an INSERT become warnings.
fn all_taken(table: &Table, sent: u64, taken: u64, warnings: u64) -> Result<(), FillError> {
    if warnings > 0 || taken < sent {
        return Err(FillError::Changed {
            table: table.name.clone(),
            sent,
            taken,
            warnings,
        });
    }
    Ok(())
}

/// Sends rows by INSERT. Returns the rows that the server stored.
fn insert(
    connection: &mut Connection,
    table: &Table,
    chunks: &Range<u64>,
    seed: u64,
    bytes_max: usize,
    progress: &BatchProgress<'_>,
) -> Result<u64, FillError> {
    let mut taken = 0;
    let rows = Rows::new(table, chunks, seed);
    insert::statements(table, rows, bytes_max, |sql, rows| {
        if progress.is_cancelled() {
            return Err(FillError::Cancelled);
        }
        let summary = connection.execute(sql).map_err(failed(table))?;
        taken += summary.affected_rows;
        progress.add(rows);
        Ok(())
    })?;
    Ok(taken)
}

/// Sends rows by bulk execution. Returns the rows that the server stored.
fn bulk(
    connection: &mut Connection,
    table: &Table,
    chunks: &Range<u64>,
    seed: u64,
    bytes_max: usize,
    progress: &BatchProgress<'_>,
) -> Result<u64, FillError> {
    let statement = connection
        .prepare(&bulk::statement(connection.dialect(), table))
        .map_err(failed(table))?;
    let mut rows = Rows::new(table, chunks, seed);
    let mut batch = Batch::new(table);
    let (mut sent, mut taken, mut warnings) = (0, 0, 0);
    while batch.refill(&mut rows, bytes_max) {
        if progress.is_cancelled() {
            return Err(FillError::Cancelled);
        }
        let kinds = batch.kinds();
        let summary = connection
            .execute_for_all(&statement, &kinds, batch.values(&kinds))
            .map_err(failed(table))?;
        taken += summary.affected_rows;
        warnings += summary.warnings;
        sent += batch.rows();
        progress.add(batch.units());
    }
    connection.forget(statement).map_err(failed(table))?;
    all_taken(table, sent, taken, warnings)?;
    Ok(taken)
}
