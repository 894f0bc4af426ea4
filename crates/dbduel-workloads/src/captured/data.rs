//! The tables of a captured workload: a dump, loaded by an account that owns the database and has no other privilege. Clients
//! log in to the same account.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use dbduel_driver::{Connection, Credentials, Dialect, QueryError};
use dbduel_dump::{Applied, DumpError, Target, account, define};
use dbduel_record::plan::Parameters;

use super::{Captured, DDL, DUMP, DUMP_DIGEST, file_digest};
use crate::OwnData;
use crate::fill::{FillError, FillReport, FillWatch, Place, WorkerPool, thread_cpu};
use crate::parameters::Resolved;

impl OwnData for Captured {
    fn account(&self, lab: &Credentials) -> Credentials {
        account::credentials(lab)
    }

    fn fill(
        &self,
        parameters: &Parameters,
        place: &Place<'_>,
        watch: &FillWatch,
    ) -> Result<FillReport, FillError> {
        let (began, cpu_before) = (Instant::now(), thread_cpu());
        let path = Path::new(Resolved(parameters).text(DUMP));
        check_digest(path, Resolved(parameters).text(DUMP_DIGEST))?;
        let own = self.account(place.credentials);
        let mut lab = WorkerPool::new(place, watch).connect()?;
        account::create(&mut lab, place.database, &own)?;
        drop(lab);
        let as_owner = Place {
            credentials: &own,
            ..*place
        };
        let pool = WorkerPool::new(&as_owner, watch);
        let mut is_late = false;
        let mut observe = |progress: dbduel_dump::Progress| {
            watch.rows_done.store(progress.rows, Ordering::Relaxed);
            watch.bytes_done.store(progress.bytes, Ordering::Relaxed);
            let total = progress.bytes_total.unwrap_or_default();
            watch.bytes_total.store(total, Ordering::Relaxed);
            is_late = Instant::now() >= pool.deadline();
            !is_late && !watch.cancel.is_set()
        };
        let loaded = dbduel_dump::load(path, &mut pool.connect()?, &mut observe);
        let loaded = loaded.map_err(FillError::from);
        let rows_s = began.elapsed().as_secs_f64();
        let ddl = Resolved(parameters).text(DDL);
        let defined = loaded.and_then(|loaded| {
            let mut applied = loaded.applied;
            let mut connection = pool.connect()?;
            if let Some(target) = Target::of(&connection).filter(|_| !ddl.is_empty()) {
                let mut go_on = || {
                    is_late = Instant::now() >= pool.deadline();
                    !is_late && !watch.cancel.is_set()
                };
                applied.extend(define(ddl, &target, &mut connection, &mut go_on)?.applied);
            }
            Ok((loaded.rows, applied))
        });
        let (rows, applied) = match defined {
            Err(FillError::Dump(DumpError::Cancelled)) if is_late => {
                return Err(FillError::TimeUp {
                    seconds: place.deadline.as_secs_f64(),
                });
            }
            outcome => outcome?,
        };
        let seconds = began.elapsed().as_secs_f64();
        let remarks = applied.iter().map(Applied::sentence);
        Ok(FillReport {
            rows,
            rows_before: 0,
            // A dump is in order: indexes and keys come after their rows.
            connections: 1,
            seconds,
            rows_s,
            finish_s: (seconds - rows_s).max(0.0),
            cpu_s: thread_cpu().saturating_sub(cpu_before).as_secs_f64(),
            method: None,
            remarks: remarks.collect(),
        })
    }

    /// Empties the database.
    fn clear(
        &self,
        _parameters: &Parameters,
        place: &Place<'_>,
        watch: &FillWatch,
    ) -> Result<(), FillError> {
        let mut lab = WorkerPool::new(place, watch).connect()?;
        empty(&mut lab, place.database).map_err(FillError::Together)
    }
}

/// Refuses another dump than the plan was made for.
fn check_digest(path: &Path, planned: &str) -> Result<(), FillError> {
    if path.as_os_str().is_empty() {
        let why = "there is none yet: `dbduel run`, `attribute` and `bisect` dump the `server` of [data]; name a `dump`";
        return Err(FillError::Dump(DumpError::Format {
            path: path.to_owned(),
            why: why.to_owned(),
        }));
    }
    let found = file_digest(path).map_err(|source| DumpError::Read {
        path: path.to_owned(),
        source,
    })?;
    if found == planned {
        return Ok(());
    }
    let why = format!(
        "its BLAKE3 is {found}, but the plan was made for a dump with {planned}; restore that file, or plan the contest again"
    );
    Err(FillError::Dump(DumpError::Format {
        path: path.to_owned(),
        why,
    }))
}

/// Drops everything in the database.
fn empty(connection: &mut Connection, database: &str) -> Result<(), QueryError> {
    let dialect = connection.dialect();
    if dialect != Dialect::PostgreSql {
        let name = dialect.identifier(database);
        connection.execute(&format!("DROP DATABASE IF EXISTS {name}"))?;
        return connection
            .execute(&format!("CREATE DATABASE {name}"))
            .map(drop);
    }
    let schemas = connection.query(
        r"SELECT nspname FROM pg_namespace WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\_%'",
    )?;
    for row in 0..schemas.rows.len() {
        let schema = schemas.text(row, 0).unwrap_or_default();
        let schema = dialect.identifier(&schema);
        connection.execute(&format!("DROP SCHEMA {schema} CASCADE"))?;
    }
    connection.execute("CREATE SCHEMA public").map(drop)
}
