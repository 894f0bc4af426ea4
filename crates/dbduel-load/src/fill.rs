//! Brings a workload's tables into being, proves what is in them, and takes them away again.
//!
//! Over blocking connections and apart from any measurement. The content follows from the seed alone, in
//! chunks whose borders depend on nothing else, so every contender gets the same rows over any number of
//! connections, whichever way they travel, and also when a filling was interrupted and gone on with.
//! Knows no workload's statements; they come with [`Table`].

mod crew;
mod digest;
mod extent;
mod infile;
mod insert;
mod ledger;
mod parcel;
mod rows;
mod way;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dbduel_record::plan::Parameters;
use dbduel_wire::Credentials;

use crate::address::Address;
use crate::blocking::{ConnectError, Connection, QueryError, TlsMode};
use crate::workloads::{Table, Workload};
use crew::Crew;
pub use digest::{Digest, digest};
pub use extent::Extent;
use ledger::{Done, TABLE_EXISTS};
use parcel::Parcel;
pub use way::Way;

/// Error numbers for "this index or constraint is there already": of a statement that was interrupted
/// between its own end and the line about it.
const DONE_BEFORE: [u16; 2] = [1061, 1826];

/// Where the tables are, and how they are reached.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Where the server listens.
    pub address: &'a Address,
    /// Who works on the tables.
    pub credentials: &'a Credentials,
    /// How much TLS.
    pub tls: &'a TlsMode,
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
    /// Rows that the server has taken, those of an earlier attempt included.
    pub rows_done: AtomicU64,
    /// Rows to fill in altogether; 0 until that is known.
    pub rows_total: AtomicU64,
    /// Set it to end the work after the statements that are running.
    pub cancelled: AtomicBool,
}

/// What a fill did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FillReport {
    /// Rows of all tables; for a workload whose rows are filled in together, these units.
    pub rows: u64,
    /// Rows of an earlier attempt that were in already.
    pub rows_before: u64,
    /// Connections that filled at the same time.
    pub connections: u32,
    /// Seconds, indexes included.
    pub seconds: f64,
    /// Seconds until all rows were in.
    pub rows_s: f64,
    /// Seconds for what follows on complete tables: secondary indexes, keys, statistics.
    pub finish_s: f64,
    /// Processor time of the filling side for the rows, user and kernel, seconds.
    pub cpu_s: f64,
    /// How the rows travelled; none where the workload brings them in itself.
    pub way: Option<Way>,
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
    /// An interrupted filling of other content is there.
    #[error(
        "database `{database}` holds a part of other tables, whose filling was interrupted; finish that, drop the tables and `{}`, or name an empty database",
        ledger::NAME
    )]
    Unfinished {
        /// The database.
        database: String,
    },
    /// The server took rows otherwise than they were sent.
    #[error(
        "table `{table}`: of {sent} rows the server took {taken}, with {warnings} warnings; does its sql_mode or the engine change values?"
    )]
    Changed {
        /// The table.
        table: String,
        /// Rows sent.
        sent: u64,
        /// Rows taken.
        taken: u64,
        /// Warnings.
        warnings: u64,
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
    /// The script that makes the tables failed.
    #[error("the script's `{command}` failed: {why}")]
    Script {
        /// Its command.
        command: &'static str,
        /// Where and what.
        why: String,
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

/// Creates the workload's tables and fills them, then does what is to be done after the rows are in.
/// `parameters` are resolved. An earlier attempt at the same content that was interrupted is gone on with.
///
/// # Errors
/// [`FillError`]; tables may then exist in part: another attempt goes on with them, and [`clear`] takes
/// them away.
pub fn fill(
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
    seed: u64,
    watch: &FillWatch,
) -> Result<FillReport, FillError> {
    if let Some(own) = workload.own_data() {
        return own.fill(parameters, place, watch);
    }
    let began = Instant::now();
    let mut tables = workload.tables(parameters);
    tables.iter_mut().for_each(|table| table.content.seed(seed));
    let rows = tables.iter().map(|table| table.rows).sum();
    watch.rows_total.store(rows, Ordering::Relaxed);
    let crew = Crew::new(place, watch);
    let mut connection = crew.connect()?;
    let recipe = recipe(workload, parameters, seed);
    let done = prepare(&mut connection, &tables, place.database, &recipe)?;
    let way = Way::of(&mut connection)?;

    let missing: Vec<_> = tables
        .iter()
        .zip(&done)
        .map(|(table, done)| (table, done.missing(rows::chunks(table))))
        .collect();
    let still_missing = missing.iter().flat_map(|(table, runs)| {
        let count = |run| rows::count(table, run);
        runs.iter().map(count)
    });
    let rows_before = rows - still_missing.sum::<u64>();
    watch.rows_done.store(rows_before, Ordering::Relaxed);
    let parcels = parcel::parcels(missing, place.connections, extent::weight);
    let rows_began = Instant::now();
    let cpu = crew.work_through(&parcels, |connection, Parcel { table, batches, .. }| {
        batches.iter().try_for_each(|chunks| {
            way.fill(connection, table, chunks, seed, watch)
                .map_err(|error| error_unless_cancelled(error, watch))
        })
    })?;
    let rows_s = rows_began.elapsed().as_secs_f64();
    // Indexes are built on complete tables.
    let finishes: Vec<_> = tables
        .iter()
        .zip(&done)
        .flat_map(|(table, done)| {
            let numbered = (0_u64..).zip(&table.finish);
            let open = numbered.filter(|(place, _)| !done.finishes.contains(place));
            open.map(move |(place, sql)| (table, place, sql))
        })
        .collect();
    crew.work_through(&finishes, |connection, (table, place, sql)| {
        finish(connection, table, *place, sql)
    })?;
    for sql in &workload.conclude(parameters) {
        connection.execute(sql).map_err(FillError::Together)?;
    }
    ledger::end(&mut connection).map_err(FillError::Together)?;
    Ok(FillReport {
        rows,
        rows_before,
        connections: place.connections,
        seconds: began.elapsed().as_secs_f64(),
        rows_s,
        finish_s: (rows_began.elapsed().as_secs_f64() - rows_s).max(0.0),
        cpu_s: cpu.as_secs_f64(),
        way: Some(way),
    })
}

/// What is being done with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is created.
    Creating,
    /// Rows are put in.
    Filling,
    /// Its indexes are built.
    Finishing,
}

/// Creates one table, fills it and finishes it, over one connection. The content is the one that [`fill`] gives it.
/// `on_stage` is told of each stage before it begins; one with nothing to do is left out.
///
/// # Errors
/// [`FillError`]; the table may then exist in part.
pub fn fill_table(
    connection: &mut Connection,
    database: &str,
    mut table: Table,
    seed: u64,
    mut on_stage: impl FnMut(Stage),
) -> Result<(), FillError> {
    table.content.seed(seed);
    on_stage(Stage::Creating);
    match run(connection, &table, &table.create) {
        Err(FillError::Statement { source, .. }) if source.code() == Some(TABLE_EXISTS) => {
            return Err(exists(&table, database));
        }
        outcome => outcome?,
    }
    let way = Way::of(connection)?;
    if table.rows > 0 {
        on_stage(Stage::Filling);
    }
    let watch = FillWatch::default();
    for chunk in 0..rows::chunks(&table) {
        way.send(connection, &table, &(chunk..chunk + 1), seed, &watch)?;
    }
    if !table.finish.is_empty() {
        on_stage(Stage::Finishing);
    }
    for sql in &table.finish {
        run(connection, &table, sql)?;
    }
    Ok(())
}

/// True when the database holds an interrupted filling, which [`fill`] would go on with.
///
/// # Errors
/// When the server does not answer.
pub fn is_unfinished(connection: &mut Connection) -> Result<bool, QueryError> {
    let tables = connection.query(&format!("SHOW TABLES LIKE '{}'", ledger::NAME))?;
    Ok(!tables.rows.is_empty())
}

/// What the content of the tables follows from, as one word.
fn recipe(workload: &dyn Workload, parameters: &Parameters, seed: u64) -> String {
    let text = format!("{} {parameters:?} {seed}", workload.name());
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// What a statement or a content that was cut short by the user's wish ended with is no error of its own.
fn error_unless_cancelled(error: FillError, watch: &FillWatch) -> FillError {
    if watch.cancelled.load(Ordering::Relaxed) {
        FillError::Cancelled
    } else {
        error
    }
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
    if let Some(own) = workload.own_data() {
        return own.clear(parameters, place);
    }
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
    ledger::end(&mut connection).map_err(FillError::Together)
}

/// Creates the tables, or finds out what an earlier attempt has left. Returns what is done of each.
fn prepare(
    connection: &mut Connection,
    tables: &[Table],
    database: &str,
    recipe: &str,
) -> Result<Vec<Done>, FillError> {
    let is_begun = ledger::begin(connection, recipe).map_err(FillError::Together)?;
    if is_begun && !ledger::is_of(connection, recipe).map_err(FillError::Together)? {
        return Err(FillError::Unfinished {
            database: database.to_owned(),
        });
    }
    let mut done = Vec::with_capacity(tables.len());
    for (index, table) in tables.iter().enumerate() {
        match run(connection, table, &table.create) {
            Err(FillError::Statement { source, .. }) if source.code() == Some(TABLE_EXISTS) => {
                if !is_begun {
                    forsake(connection, &tables[..index])?;
                    return Err(exists(table, database));
                }
                done.push(take_over(connection, table)?);
            }
            Err(error) => return Err(error),
            Ok(()) => {
                ledger::forget(connection, table).map_err(FillError::Together)?;
                done.push(Done::default());
            }
        }
    }
    Ok(done)
}

fn exists(table: &Table, database: &str) -> FillError {
    FillError::Exists {
        table: table.name.clone(),
        database: database.to_owned(),
    }
}

/// Takes back what was created before a table turned out to be in the way.
fn forsake(connection: &mut Connection, created: &[Table]) -> Result<(), FillError> {
    for table in created {
        run(connection, table, &format!("DROP TABLE {}", table.name))?;
    }
    ledger::end(connection).map_err(FillError::Together)
}

/// What an earlier attempt has done of a table. One that holds more or fewer rows than were written down
/// is made anew.
fn take_over(connection: &mut Connection, table: &Table) -> Result<Done, FillError> {
    let statement = |source| FillError::Statement {
        table: table.name.clone(),
        source,
    };
    let done = ledger::done(connection, table).map_err(statement)?;
    let count = format!("SELECT COUNT(*) FROM {}", table.name);
    let answer = connection.query(&count).map_err(statement)?;
    if answer.text(0, 0) == Some(done.rows.to_string()) {
        return Ok(done);
    }
    ledger::forget(connection, table).map_err(statement)?;
    connection
        .execute("SET SESSION foreign_key_checks = 0")
        .map_err(statement)?;
    run(connection, table, &format!("DROP TABLE {}", table.name))?;
    run(connection, table, &table.create)?;
    connection
        .execute("SET SESSION foreign_key_checks = 1")
        .map_err(statement)?;
    Ok(Done::default())
}

/// Runs a statement on a table whose rows are in, and writes that down.
fn finish(
    connection: &mut Connection,
    table: &Table,
    place: u64,
    sql: &str,
) -> Result<(), FillError> {
    match run(connection, table, sql) {
        Err(FillError::Statement { source, .. })
            if source
                .code()
                .is_some_and(|code| DONE_BEFORE.contains(&code)) => {}
        outcome => outcome?,
    }
    ledger::is_finished(connection, table, place).map_err(FillError::Together)
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
