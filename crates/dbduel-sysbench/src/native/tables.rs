//! Commands of the native tests on tables, before and after a run.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dbduel_driver::{ConnectOptions, Connection, Dialect};
use dbduel_workloads::fill::{self, Stage};

use super::super::parsed_options::ParsedOptions;
use super::super::server::Servers;
use super::super::{Job, Stop};
use super::{Native, parameters_of};

/// The seed of the content of tables: a prepared table is the same every time.
const CONTENT_SEED: u64 = 1;
/// Time limit for one statement of a command that measures nothing; the statement watch ends statements that a server
/// will never answer long before.
const STATEMENT: Duration = Duration::from_secs(24 * 3600);
/// Largest temporary table in memory while a table is read in, bytes.
const WARM_UP_BYTES: u64 = 2 << 30;

pub fn options() -> ConnectOptions {
    ConnectOptions {
        statement_deadline: STATEMENT,
        ..ConnectOptions::default()
    }
}

/// The error with its causes.
pub fn fatal(error: impl Into<anyhow::Error>) -> Stop {
    Stop::Fatal(format!("{:#}", error.into()))
}

/// Runs `work` for all tables, distributed over the clients by number. The first error ends it.
fn for_tables(
    job: &Job,
    servers: &Servers,
    tables: u64,
    work: impl Fn(&mut Connection, u64) -> Result<(), Stop> + Sync,
) -> Result<(), Stop> {
    let workers = u64::from(job.general.threads).min(tables);
    if job.general.threads > 1 {
        job.general.voice.notice("Initializing worker threads...\n");
    }
    let first_error = Mutex::new(None);
    let is_over = || {
        let error = first_error.lock().unwrap_or_else(PoisonError::into_inner);
        error.is_some()
    };
    let member = |worker: u64| -> Result<(), Stop> {
        let mut connection = servers.connect(worker as usize, &options())?;
        for number in (worker + 1..=tables).step_by(workers.max(1) as usize) {
            if is_over() {
                break;
            }
            work(&mut connection, number)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (member, first_error) = (&member, &first_error);
            scope.spawn(move || {
                if let Err(error) = member(worker) {
                    let mut first = first_error.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(error);
                }
            });
        }
    });
    let first = first_error
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    first.map_or(Ok(()), Err)
}

pub fn prepare(
    native: &'static Native,
    job: &Job,
    given: &ParsedOptions,
    servers: &Servers,
) -> Result<u8, Stop> {
    // The scripts with one table prepare as many as `--tables` says.
    let workload = match native.is_random_select() {
        true => dbduel_workloads::find("oltp-read-only").map_err(fatal)?,
        false => native.as_workload()?,
    };
    let parameters = parameters_of(workload, job, given, servers)?;
    let voice = job.general.voice;
    let has_index = given.switch("create-secondary");
    let tables = Mutex::new(
        workload
            .tables(servers.dialect, &parameters)
            .into_iter()
            .map(Some)
            .collect::<Vec<_>>(),
    );
    let count = tables.lock().unwrap_or_else(PoisonError::into_inner).len();
    for_tables(job, servers, count as u64, |connection, number| {
        let taken = {
            let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
            tables[number as usize - 1].take()
        };
        let Some(table) = taken else { return Ok(()) };
        let (name, rows) = (table.name.clone(), table.rows);
        let on_stage = |stage| {
            voice.notice(&match stage {
                Stage::Creating => format!("Creating table '{name}'..."),
                Stage::Filling => format!("Inserting {rows} records into '{name}'"),
                // PostgreSQL's numbers of rows are set in this stage too.
                Stage::Finishing if !has_index => return,
                Stage::Finishing => format!("Creating a secondary index on '{name}'..."),
            });
        };
        fill::fill_table(connection, &servers.database, table, CONTENT_SEED, on_stage)
            .map_err(fatal)
    })?;
    Ok(0)
}

/// Reads all rows and the secondary index of each table, as `prewarm` and `warmup` do.
pub fn warm_up(
    job: &Job,
    given: &ParsedOptions,
    servers: &Servers,
    command: &str,
) -> Result<u8, Stop> {
    if servers.dialect != Dialect::MySql {
        return Err(Stop::Fatal(format!(
            "{command} is currently MySQL only; warm up with a run before the measured one"
        )));
    }
    let verb = match command {
        "prewarm" => "Prewarming",
        _ => "Preloading",
    };
    let (tables, rows) = (given.count("tables")?, given.count("table-size")?);
    let key = match given.switch("secondary") {
        true => "",
        false => " FORCE KEY (PRIMARY)",
    };
    for_tables(job, servers, tables, |connection, number| {
        job.general
            .voice
            .notice(&format!("{verb} table sbtest{number}"));
        for sql in [
            format!("SET tmp_table_size = {WARM_UP_BYTES}"),
            format!("SET max_heap_table_size = {WARM_UP_BYTES}"),
        ] {
            connection.execute(&sql).map_err(fatal)?;
        }
        for sql in [
            format!("ANALYZE TABLE sbtest{number}"),
            format!("SELECT AVG(id) FROM (SELECT * FROM sbtest{number}{key} LIMIT {rows}) t"),
            format!(
                "SELECT COUNT(*) FROM (SELECT * FROM sbtest{number} WHERE k LIKE '%0%' LIMIT {rows}) t"
            ),
        ] {
            connection.execute(&sql).map_err(fatal)?;
        }
        Ok(())
    })?;
    Ok(0)
}

pub fn cleanup(
    native: &'static Native,
    job: &Job,
    given: &ParsedOptions,
    servers: &Servers,
) -> Result<u8, Stop> {
    let tables = given.count("tables")?;
    if native.is_random_select() && tables > 1 {
        return Err(Stop::Fatal(format!(
            "{}: this benchmark does not support --tables > 1; oltp_read_only cleanup drops them all",
            native.name
        )));
    }
    drop_tables(job, servers, tables)
}

pub fn drop_tables(job: &Job, servers: &Servers, tables: u64) -> Result<u8, Stop> {
    let mut connection = servers.connect(0, &options())?;
    for number in 1..=tables {
        job.general
            .voice
            .notice(&format!("Dropping table 'sbtest{number}'..."));
        connection
            .execute(&format!("DROP TABLE IF EXISTS sbtest{number}"))
            .map_err(fatal)?;
    }
    Ok(0)
}
