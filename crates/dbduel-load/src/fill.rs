//! Brings a workload's tables into being, proves what is in them, and takes them away again.
//!
//! Over blocking connections and apart from any measurement. The content follows from the seed alone, in
//! chunks whose borders depend on nothing else, so every contender gets the same rows over any number of
//! connections. Knows no workload's statements; they come with [`Table`].

mod crew;
mod digest;
mod insert;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dbduel_record::plan::Parameters;
use dbduel_wire::Credentials;

use crate::address::Address;
use crate::blocking::{ConnectError, Connection, QueryError};
use crate::workloads::{Table, Workload};
use crew::Crew;
pub use digest::{Digest, digest};

/// Largest INSERT, bytes; as large as sysbench's.
const INSERT_BYTES: usize = 512 << 10;

/// Room in a packet for what is not the statement itself.
const PACKET_MARGIN: usize = 1 << 10;

/// `ER_TABLE_EXISTS_ERROR`.
const TABLE_EXISTS: u16 = 1050;

/// Where the tables are, and how they are reached.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Where the server listens.
    pub address: &'a Address,
    /// Who works on the tables.
    pub credentials: &'a Credentials,
    /// The database, which exists.
    pub database: &'a str,
    /// Connections that work at the same time.
    pub connections: u32,
    /// Time for everything together.
    pub deadline: Duration,
}

/// How far a fill has got, and whether it is still wanted. Shared with whoever shows progress.
#[derive(Debug, Default)]
pub struct FillWatch {
    /// Rows that the server has taken.
    pub rows_done: AtomicU64,
    /// Rows to fill in altogether; 0 until that is known.
    pub rows_total: AtomicU64,
    /// Set it to end the work after the statements that are running.
    pub cancelled: AtomicBool,
}

/// What a fill did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FillReport {
    /// Rows of all tables.
    pub rows: u64,
    /// Seconds, indexes included.
    pub seconds: f64,
}

/// Why the tables are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A statement failed.
    #[error("table `{table}`: {source}")]
    Statement {
        /// The table it was about.
        table: String,
        /// What happened.
        source: QueryError,
    },
    /// A statement about all tables together failed.
    #[error(transparent)]
    Together(QueryError),
    /// A table of that name is there already, with unknown content.
    #[error(
        "table `{table}` exists already in database `{database}`; drop it, or name an empty database"
    )]
    Exists {
        /// The table.
        table: String,
        /// The database.
        database: String,
    },
    /// The server takes no packets that are long enough for a row.
    #[error("max_allowed_packet is {bytes} bytes; raise it to at least 64 kB")]
    SmallPackets {
        /// What the server allows.
        bytes: usize,
    },
    /// An answer makes no sense.
    #[error("table `{table}`: the server's answer to a sum has no numbers")]
    Answer {
        /// The table.
        table: String,
    },
    /// [`FillWatch::cancelled`] was set.
    #[error("cancelled")]
    Cancelled,
    /// [`Place::deadline`] passed.
    #[error("not done within {seconds} s; fill fewer rows or allow more time")]
    TimeUp {
        /// The deadline.
        seconds: f64,
    },
}

/// A piece of the work.
enum Job<'a> {
    Rows { table: &'a Table, chunk: u64 },
    Finish { table: &'a Table, sql: &'a str },
}

/// Creates the workload's tables and fills them, then does what is to be done after the rows are in.
/// `parameters` are resolved.
///
/// # Errors
/// [`FillError`]; tables may then exist in part, and [`clear`] takes them away.
pub fn fill(
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
    seed: u64,
    watch: &FillWatch,
) -> Result<FillReport, FillError> {
    let began = Instant::now();
    let mut tables = workload.tables(parameters);
    tables.iter_mut().for_each(|table| table.content.seed(seed));
    let rows = tables.iter().map(|table| table.rows).sum();
    watch.rows_total.store(rows, Ordering::Relaxed);
    let crew = Crew::new(place, watch);
    let insert_bytes = create(&crew, &tables, place.database)?;

    let chunks = tables.iter().flat_map(|table| {
        (0..table.rows.div_ceil(insert::CHUNK_ROWS)).map(move |chunk| Job::Rows { table, chunk })
    });
    let finishes = tables.iter().flat_map(|table| {
        table
            .finish
            .iter()
            .map(move |sql| Job::Finish { table, sql })
    });
    let work = |connection: &mut Connection, job: &Job<'_>| match job {
        Job::Rows { table, chunk } => {
            fill_chunk(connection, table, *chunk, seed, insert_bytes, watch)
        }
        Job::Finish { table, sql } => run(connection, table, sql),
    };
    crew.work_through(&chunks.collect::<Vec<_>>(), work)?;
    // Indexes are built on complete tables.
    crew.work_through(&finishes.collect::<Vec<_>>(), work)?;
    let conclusion = workload.conclude(parameters);
    if !conclusion.is_empty() {
        let mut connection = crew.connect()?;
        for sql in &conclusion {
            connection.execute(sql).map_err(FillError::Together)?;
        }
    }
    Ok(FillReport {
        rows,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Drops the workload's tables, as far as they exist.
///
/// # Errors
/// [`FillError`].
pub fn clear(
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
) -> Result<(), FillError> {
    let watch = FillWatch::default();
    let tables = workload.tables(parameters);
    // On one connection, because servers lock what tables that refer to each other have in common; and
    // without the check of foreign keys, because such tables could only go in one order.
    let mut connection = Crew::new(place, &watch).connect()?;
    connection
        .execute("SET SESSION foreign_key_checks = 0")
        .map_err(FillError::Together)?;
    for table in &tables {
        run(
            &mut connection,
            table,
            &format!("DROP TABLE IF EXISTS {}", table.name),
        )?;
    }
    Ok(())
}

/// Creates the tables; returns how long an INSERT may be.
fn create(crew: &Crew<'_>, tables: &[Table], database: &str) -> Result<usize, FillError> {
    let mut connection = crew.connect()?;
    let exists = |table: String| FillError::Exists {
        table,
        database: database.to_owned(),
    };
    // Before the first is created, or a part of ours would stand among another program's tables.
    let present = connection
        .query("SHOW TABLES")
        .map_err(FillError::Together)?;
    let is_there = |table: &&Table| {
        (0..present.rows.len()).any(|row| present.text(row, 0).as_ref() == Some(&table.name))
    };
    if let Some(table) = tables.iter().find(is_there) {
        return Err(exists(table.name.clone()));
    }
    for table in tables {
        run(&mut connection, table, &table.create).map_err(|error| match error {
            FillError::Statement { table, source } if source.code() == Some(TABLE_EXISTS) => {
                exists(table)
            }
            error => error,
        })?;
    }
    let sql = "SELECT @@max_allowed_packet";
    let answer = connection
        .query(sql)
        .map_err(|source| FillError::Statement {
            table: String::new(),
            source,
        })?;
    let bytes = answer
        .text(0, 0)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0_usize);
    if bytes < 64 << 10 {
        return Err(FillError::SmallPackets { bytes });
    }
    Ok(INSERT_BYTES.min(bytes - PACKET_MARGIN))
}

fn run(connection: &mut Connection, table: &Table, sql: &str) -> Result<(), FillError> {
    match connection.execute(sql) {
        Ok(_) => Ok(()),
        Err(source) => Err(FillError::Statement {
            table: table.name.clone(),
            source,
        }),
    }
}

/// Fills one chunk of a table.
fn fill_chunk(
    connection: &mut Connection,
    table: &Table,
    chunk: u64,
    seed: u64,
    insert_bytes: usize,
    watch: &FillWatch,
) -> Result<(), FillError> {
    insert::chunk(table, chunk, seed, insert_bytes, |sql, rows| {
        if watch.cancelled.load(Ordering::Relaxed) {
            return Err(FillError::Cancelled);
        }
        run(connection, table, sql)?;
        watch.rows_done.fetch_add(rows, Ordering::Relaxed);
        Ok(())
    })
}
