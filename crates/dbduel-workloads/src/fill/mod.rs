//! Creates, fills, digests and drops a workload's tables.
//!
//! Over blocking connections and apart from any measurement. The content follows from the seed alone, in chunks of
//! fixed borders, so every contender gets the same rows over any number of connections, by every load method, and also
//! after a fill was interrupted and resumed. The workload's statements come with [`Table`].

mod bulk;
mod checkpoint;
mod claim;
mod copy;
mod crc32;
mod digest;
mod error;
mod extent;
mod infile;
mod insert;
mod load_method;
mod progress;
mod rows;
mod tables;
mod work_unit;
mod worker_pool;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dbduel_driver::address::Address;
use dbduel_driver::introspection;
use dbduel_driver::{Connection, Credentials, Dialect, ErrorClass, QueryError, TlsMode};
use dbduel_record::plan::Parameters;

use crate::parameters::{check_dialect, check_version};
use crate::{Table, Workload};
pub use digest::{Digest, digest};
pub use error::{FillError, RESUME};
pub use extent::Extent;
pub use load_method::{LoadMethod, LoadMethodChoice};
use progress::BatchProgress;
pub use progress::FillWatch;
use tables::{exists, finish, prepare, run};
use work_unit::WorkUnit;
pub(crate) use worker_pool::{WorkerPool, thread_cpu};

/// Location of the tables and access to them.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The dialect.
    pub dialect: Dialect,
    /// Where the server listens.
    pub address: &'a Address,
    /// The account.
    pub credentials: &'a Credentials,
    /// TLS mode.
    pub tls: &'a TlsMode,
    /// The database, which exists.
    pub database: &'a str,
    /// Parallel connections.
    pub connections: u32,
    /// Time for everything together.
    pub deadline: Duration,
}

/// Result of a fill.
#[derive(Debug, Clone, PartialEq)]
pub struct FillReport {
    /// Rows of all tables; for a workload whose rows are inserted together, units.
    pub rows: u64,
    /// Rows of an earlier attempt that were in already.
    pub rows_before: u64,
    /// Parallel connections.
    pub connections: u32,
    /// Seconds, indexes included.
    pub seconds: f64,
    /// Seconds until all rows were in.
    pub rows_s: f64,
    /// Seconds for what follows on complete tables: secondary indexes, keys, statistics.
    pub finish_s: f64,
    /// Processor time of the client side for the rows, user and kernel, seconds.
    pub cpu_s: f64,
    /// How the rows were sent; `None` where the workload inserts them itself.
    pub method: Option<LoadMethod>,
    /// What was changed of foreign data so that the server takes them, a sentence each.
    pub remarks: Vec<String>,
}

/// Creates the workload's tables, fills them, and runs the statements that follow. `parameters` are resolved. An
/// interrupted attempt at the same content is resumed.
///
/// # Errors
/// [`FillError`]; tables may then exist in part: another attempt resumes, and [`clear`] drops them. Of an error that is
/// not [resumable](FillError::is_resumable) a first attempt leaves none.
pub fn fill(
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
    seed: u64,
    watch: &FillWatch,
) -> Result<FillReport, FillError> {
    fill_by(
        LoadMethodChoice::Fastest,
        workload,
        parameters,
        place,
        seed,
        watch,
    )
}

/// As [`fill`], with the load method chosen by the caller. A workload that inserts its rows itself supports only its
/// own.
///
/// # Errors
/// [`FillError`], among others when the server does not allow that method.
pub fn fill_by(
    choice: LoadMethodChoice,
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
    seed: u64,
    watch: &FillWatch,
) -> Result<FillReport, FillError> {
    fill_tables(choice, workload, parameters, place, seed, watch)
        .map_err(|error| error_unless_cancelled(error, watch))
}

fn fill_tables(
    choice: LoadMethodChoice,
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
    seed: u64,
    watch: &FillWatch,
) -> Result<FillReport, FillError> {
    if !workload.speaks(place.dialect) {
        return Err(FillError::Dialect {
            workload: workload.name(),
            dialect: place.dialect,
        });
    }
    check_dialect(workload, place.dialect, parameters)?;
    let mut place = *place;
    if place.dialect.is_in_process() {
        // Others would only wait for the one that writes.
        place.connections = 1;
    }
    let place = &place;
    let pool = WorkerPool::new(place, watch);
    let mut connection = pool.connect()?;
    check_version(place.dialect, connection.server_version(), parameters)?;
    claim::take(&mut connection, place.database)?;
    if let Some(own) = workload.own_data() {
        let report = own.fill(parameters, place, watch)?;
        gather_all(&mut connection)?;
        return Ok(report);
    }
    let began = Instant::now();
    let mut tables = workload.tables(place.dialect, parameters);
    tables.iter_mut().for_each(|table| table.content.seed(seed));
    let rows = tables.iter().map(|table| table.rows).sum();
    watch.rows_total.store(rows, Ordering::Relaxed);
    let recipe = recipe(workload, parameters, seed);
    let done = prepare(
        &mut connection,
        &tables,
        place.database,
        &recipe,
        pool.deadline(),
    )?;
    let method = LoadMethod::of(&mut connection, choice)?;

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
    let units = work_unit::units(missing, place.connections, extent::weight);
    let rows_began = Instant::now();
    let cpu = pool.work_through(&units, |connection, WorkUnit { table, batches, .. }| {
        checkpoint::note_connection(connection).map_err(FillError::Together)?;
        batches
            .iter()
            .try_for_each(|chunks| method.fill(connection, table, chunks, seed, watch))
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
    pool.work_through(&finishes, |connection, (table, place, sql)| {
        checkpoint::note_connection(connection).map_err(FillError::Together)?;
        finish(connection, table, *place, sql)
    })?;
    pool.work_through(&tables, |connection, table| gather(connection, &table.name))?;
    for sql in &workload.post_load_sql(place.dialect, parameters) {
        match connection.execute(sql) {
            // A foreign key of an attempt that was interrupted after it.
            Err(error) if error.class() == Some(ErrorClass::IndexExists) => {}
            outcome => drop(outcome.map_err(FillError::Together)?),
        }
    }
    checkpoint::end(&mut connection).map_err(FillError::Together)?;
    Ok(FillReport {
        rows,
        rows_before,
        connections: place.connections,
        seconds: began.elapsed().as_secs_f64(),
        rows_s,
        finish_s: (rows_began.elapsed().as_secs_f64() - rows_s).max(0.0),
        cpu_s: cpu.as_secs_f64(),
        method: Some(method),
        remarks: Vec::new(),
    })
}

/// Gathers the optimizer statistics of a table. For a table that has just been filled a server has none, or wrong
/// ones, until it updates them by itself; a server stopped before that may keep the wrong ones and scan the table
/// where another one uses an index.
///
/// # Errors
/// When the server refuses the statement or does not answer.
pub fn gather_statistics(connection: &mut Connection, table: &str) -> Result<(), QueryError> {
    let sql = introspection::gather_statistics(connection.dialect(), table);
    connection.query(&sql).map(drop)
}

/// Errors that the server reports in a table; empty when there are none, or the server has no checking statement.
///
/// # Errors
/// When the server refuses the statement or does not answer.
pub fn complaints(connection: &mut Connection, table: &str) -> Result<Vec<String>, QueryError> {
    let dialect = connection.dialect();
    let Some(sql) = introspection::check(dialect, table) else {
        return Ok(Vec::new());
    };
    let answer = connection.query(&sql)?;
    let said = (0..answer.rows.len()).filter_map(|row| answer.text(row, answer.columns.len() - 1));
    Ok(said
        .filter(|text| !text.eq_ignore_ascii_case("ok"))
        .collect())
}

/// Gathers the statistics of every table there is, of all schemas.
fn gather_all(connection: &mut Connection) -> Result<(), FillError> {
    if let Some(sql) = introspection::gather_all_statistics(connection.dialect()) {
        return connection.query(sql).map(drop).map_err(FillError::Together);
    }
    for table in table_names(connection).map_err(FillError::Together)? {
        gather(connection, &table)?;
    }
    Ok(())
}

fn gather(connection: &mut Connection, table: &str) -> Result<(), FillError> {
    gather_statistics(connection, table).map_err(|source| FillError::Statement {
        table: table.to_owned(),
        source,
    })
}

/// Stage of work on a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is created.
    Creating,
    /// Rows are put in.
    Filling,
    /// Its indexes are built.
    Finishing,
}

/// Creates one table, fills it and finishes it, over one connection, with the same content as [`fill`]. `on_stage` is
/// called before each stage; one with nothing to do is skipped.
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
        Err(FillError::Statement { source, .. })
            if source.class() == Some(ErrorClass::TableExists) =>
        {
            return Err(exists(&table, database));
        }
        outcome => outcome?,
    }
    let method = LoadMethod::of(connection, LoadMethodChoice::Fastest)?;
    if table.rows > 0 {
        on_stage(Stage::Filling);
    }
    let watch = FillWatch::default();
    for chunk in 0..rows::chunks(&table) {
        let progress = BatchProgress::new(&watch);
        method.send(connection, &table, &(chunk..chunk + 1), seed, &progress)?;
    }
    if !table.finish.is_empty() {
        on_stage(Stage::Finishing);
    }
    for sql in &table.finish {
        run(connection, &table, sql)?;
    }
    Ok(())
}

/// Refuses a database that another process fills at this moment.
///
/// # Errors
/// [`FillError::InProgress`], and when the server does not answer.
pub fn refuse_if_in_progress(connection: &mut Connection, database: &str) -> Result<(), FillError> {
    claim::refuse_if_taken(connection, database)
}

/// True when the database holds an interrupted fill, which [`fill`] would resume.
///
/// # Errors
/// When the server does not answer.
pub fn is_unfinished(connection: &mut Connection) -> Result<bool, QueryError> {
    Ok(table_names(connection)?.contains(checkpoint::NAME))
}

/// Names of all tables in the connection's default database.
///
/// # Errors
/// When the server does not answer.
pub fn table_names(connection: &mut Connection) -> Result<BTreeSet<String>, QueryError> {
    let present = connection.query(introspection::table_names(connection.dialect()))?;
    let rows = 0..present.rows.len();
    Ok(rows.filter_map(|row| present.text(row, 0)).collect())
}

/// True when the connection's database has no table in any schema.
///
/// # Errors
/// When the server does not answer.
pub fn is_empty(connection: &mut Connection) -> Result<bool, QueryError> {
    let sql = introspection::tables_of_all_schemas(connection.dialect());
    Ok(connection.query(sql)?.rows.is_empty())
}

/// Digest of everything that determines the content of the tables, as one word.
fn recipe(workload: &dyn Workload, parameters: &Parameters, seed: u64) -> String {
    let text = format!("{} {parameters:?} {seed}", workload.name());
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// After a cancellation, replaces the error of the statement or content that it cut short.
fn error_unless_cancelled(error: FillError, watch: &FillWatch) -> FillError {
    if watch.cancel.is_set() {
        FillError::Cancelled
    } else {
        error
    }
}

/// The statement that switches a session's foreign key checks; `None` for PostgreSQL.
fn check_foreign_keys(dialect: Dialect, checks: bool) -> Option<&'static str> {
    match (dialect, checks) {
        (Dialect::PostgreSql, _) => None,
        (Dialect::MySql, false) => Some("SET SESSION foreign_key_checks = 0"),
        (Dialect::MySql, true) => Some("SET SESSION foreign_key_checks = 1"),
        (Dialect::Sqlite, false) => Some("PRAGMA foreign_keys = OFF"),
        (Dialect::Sqlite, true) => Some("PRAGMA foreign_keys = ON"),
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
    watch: &FillWatch,
) -> Result<(), FillError> {
    drop_tables(workload, parameters, place, watch)
        .map_err(|error| error_unless_cancelled(error, watch))
}

fn drop_tables(
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
    watch: &FillWatch,
) -> Result<(), FillError> {
    if let Some(own) = workload.own_data() {
        return own.clear(parameters, place, watch);
    }
    let tables = workload.tables(place.dialect, parameters);
    // On one connection, because servers lock what tables that refer to each other have in common; and
    // without the check of foreign keys, because such tables could only go in one order.
    let mut connection = WorkerPool::new(place, watch).connect()?;
    if let Some(sql) = check_foreign_keys(place.dialect, false) {
        connection.execute(sql).map_err(FillError::Together)?;
    }
    for table in &tables {
        let sql = introspection::drop_if_exists(place.dialect, &table.name);
        run(&mut connection, table, &sql)?;
    }
    checkpoint::end(&mut connection).map_err(FillError::Together)
}
