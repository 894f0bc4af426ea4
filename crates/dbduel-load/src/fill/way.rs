//! How rows travel to a server: as a file that it asks for, or as statements.
//!
//! LOAD DATA LOCAL INFILE takes less of the server's time than multi-row INSERT (`benches/loading.rs`
//! measures both; figures are in `docs/load-path.md`), so it is taken wherever the server allows it, and
//! INSERT elsewhere. Either way the rows of a batch, and the line that
//! says that they are in, are one transaction.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::Ordering;

use dbduel_wire::Capabilities;

use super::rows::{self, Rows};
use super::{FillError, FillWatch, infile, insert, ledger};
use crate::blocking::{Connection, QueryError};
use crate::workloads::Table;

/// Largest INSERT, bytes; as large as sysbench's.
const INSERT_BYTES: usize = 512 << 10;

/// Smallest packets that a row surely fits into.
const PACKET_BYTES_MIN: usize = 64 << 10;

/// Room in a packet for what is not the statement itself.
const PACKET_MARGIN: usize = 1 << 10;

/// Error numbers with which servers refuse LOAD DATA LOCAL INFILE.
const NOT_ALLOWED: [u16; 3] = [1148, 3948, 4166];

/// How rows travel to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Multi-row INSERT statements of so many bytes at most.
    Insert {
        /// Largest statement.
        bytes_max: usize,
    },
    /// LOAD DATA LOCAL INFILE, from memory; by INSERT where the server refuses that after all.
    LoadData {
        /// Largest INSERT.
        bytes_max: usize,
    },
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Way::Insert { .. } => "multi-row INSERT",
            Way::LoadData { .. } => "LOAD DATA LOCAL INFILE",
        })
    }
}

impl Way {
    /// The fastest way that the server allows.
    pub(super) fn of(connection: &mut Connection) -> Result<Self, FillError> {
        let answer = connection
            .query("SELECT @@max_allowed_packet, @@local_infile")
            .map_err(FillError::Together)?;
        let packet = answer.text(0, 0).and_then(|text| text.parse().ok());
        let bytes = packet.unwrap_or(0_usize);
        if bytes < PACKET_BYTES_MIN {
            return Err(FillError::SmallPackets { bytes });
        }
        let bytes_max = INSERT_BYTES.min(bytes - PACKET_MARGIN);
        let capabilities = connection.login().capabilities;
        let is_allowed = answer.text(0, 1).as_deref() == Some("1")
            && capabilities.contains(Capabilities::LOCAL_FILES);
        Ok(if is_allowed {
            Way::LoadData { bytes_max }
        } else {
            Way::Insert { bytes_max }
        })
    }

    /// Fills these chunks of a table in one transaction, and writes down that they are in.
    pub(super) fn fill(
        self,
        connection: &mut Connection,
        table: &Table,
        chunks: &Range<u64>,
        seed: u64,
        watch: &FillWatch,
    ) -> Result<(), FillError> {
        let statement = |source| FillError::Statement {
            table: table.name.clone(),
            source,
        };
        connection.execute("START TRANSACTION").map_err(statement)?;
        let taken = self.send(connection, table, chunks, seed, watch)?;
        ledger::rows_are_in(connection, table, chunks, taken).map_err(statement)?;
        connection.execute("COMMIT").map_err(statement)?;
        Ok(())
    }

    /// Sends these chunks of a table. Returns the rows that the server took.
    pub(super) fn send(
        self,
        connection: &mut Connection,
        table: &Table,
        chunks: &Range<u64>,
        seed: u64,
        watch: &FillWatch,
    ) -> Result<u64, FillError> {
        match self {
            Way::LoadData { bytes_max } => match load(connection, table, chunks, seed, watch) {
                Err(FillError::Statement { source, .. }) if is_refusal(&source) => {
                    insert(connection, table, chunks, seed, bytes_max, watch)
                }
                outcome => outcome,
            },
            Way::Insert { bytes_max } => insert(connection, table, chunks, seed, bytes_max, watch),
        }
    }
}

fn is_refusal(error: &QueryError) -> bool {
    error.code().is_some_and(|code| NOT_ALLOWED.contains(&code))
}

/// Returns the rows that the server took.
fn load(
    connection: &mut Connection,
    table: &Table,
    chunks: &Range<u64>,
    seed: u64,
    watch: &FillWatch,
) -> Result<u64, FillError> {
    let mut content = infile::Content::new(Rows::new(table, chunks, seed), watch);
    let summary = connection
        .load(&infile::statement(table), &mut content)
        .map_err(|source| FillError::Statement {
            table: table.name.clone(),
            source,
        })?;
    // A server that reads a local file makes warnings of what would be errors of an INSERT.
    let sent = rows::count(table, chunks);
    if summary.warnings > 0 || summary.affected_rows < sent {
        return Err(FillError::Changed {
            table: table.name.clone(),
            sent,
            taken: summary.affected_rows,
            warnings: summary.warnings,
        });
    }
    Ok(summary.affected_rows)
}

/// Returns the rows that the server took.
fn insert(
    connection: &mut Connection,
    table: &Table,
    chunks: &Range<u64>,
    seed: u64,
    bytes_max: usize,
    watch: &FillWatch,
) -> Result<u64, FillError> {
    let mut taken = 0;
    let rows = Rows::new(table, chunks, seed);
    insert::statements(table, rows, bytes_max, |sql, rows| {
        if watch.cancelled.load(Ordering::Relaxed) {
            return Err(FillError::Cancelled);
        }
        let summary = connection
            .execute(sql)
            .map_err(|source| FillError::Statement {
                table: table.name.clone(),
                source,
            })?;
        taken += summary.affected_rows;
        watch.rows_done.fetch_add(rows, Ordering::Relaxed);
        Ok(())
    })?;
    Ok(taken)
}
