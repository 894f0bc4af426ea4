//! Datasets: loaded once per contender and workload, and compared by digests.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_driver::{Connection, TlsMode};
use dbduel_machine::interrupt;
use dbduel_record::Plan;
use dbduel_record::event::{LoadTime, Notice, Severity};
use dbduel_record::plan::Parameters;
use dbduel_server::{Progress, ProgressUnit};
use dbduel_workloads::fill::{self, Digest, FillError, FillWatch, Place};
use dbduel_workloads::{Moment, Verification, Workload};

use super::contest::ContenderServer;

/// Parallel connections that load one dataset.
const CONNECTIONS: u32 = 8;
/// Interval of progress checks during long work on tables.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// The workload's parameters for the resident's contender.
fn parameters_of(plan: &Plan, resident: &ContenderServer) -> Parameters {
    let contender = plan.contenders.iter();
    let contender = contender
        .clone()
        .find(|contender| contender.name == resident.name);
    contender.map_or_else(
        || plan.workload.parameters.clone(),
        |contender| plan.workload_of(contender).parameters,
    )
}

/// Names of the workload's tables; all existing tables for a workload that creates its own, and where a dump is loaded beside them.
///
/// # Errors
/// When the server does not answer.
pub fn tables(
    plan: &Plan,
    workload: &dyn Workload,
    connection: &mut Connection,
) -> Result<Vec<String>> {
    if workload.own_data().is_none() && plan.dump_beside().is_none() {
        let tables = workload.tables(connection.dialect(), &plan.workload.parameters);
        return Ok(tables.into_iter().map(|table| table.name).collect());
    }
    Ok(fill::table_names(connection)?.into_iter().collect())
}

/// Checks the workload's conditions on its tables; also returns a notice when one is violated.
///
/// # Errors
/// When the tables cannot be read.
pub fn verify(
    plan: &Plan,
    workload: &'static dyn Workload,
    resident: &mut ContenderServer,
    moment: Moment,
) -> Result<(Verification, Option<Notice>)> {
    let mut connection = resident.connect(Duration::from_secs_f64(plan.limits.dataset_s))?;
    let parameters = parameters_of(plan, resident);
    let verification = workload.verify(&parameters, &mut connection, moment)?;
    let broken: Vec<String> = verification
        .conditions
        .iter()
        .filter(|condition| !condition.holds())
        .map(|condition| format!("{} ({} violations)", condition.name, condition.violations))
        .collect();
    let notice = (!broken.is_empty()).then(|| {
        let claim = format!(
            "The tables of `{}` violate conditions of the workload: {}.",
            resident.name,
            broken.join(", ")
        );
        Notice::new(
            "data.condition-violated",
            Severity::Void,
            &[&resident.name],
            claim,
            "Read the server's log; an update was lost or a transaction was partially applied.",
        )
    });
    Ok((verification, notice))
}

/// True when none of the workload's tables exists, or only the remainder of an interrupted load.
///
/// # Errors
/// When the server does not answer.
pub fn is_absent(
    plan: &Plan,
    workload: &dyn Workload,
    resident: &mut ContenderServer,
) -> Result<bool> {
    let mut connection = resident.connect(Duration::from_secs_f64(plan.limits.statement_s))?;
    if fill::is_unfinished(&mut connection)? {
        return Ok(true);
    }
    // It is unknown which of them a script or a dump would make, so an empty database alone is without them.
    if workload.own_data().is_some() {
        return Ok(fill::is_empty(&mut connection)?);
    }
    let present = fill::table_names(&mut connection)?;
    let tables = tables(plan, workload, &mut connection)?;
    Ok(tables.iter().all(|table| !present.contains(table)))
}

/// Loads the workload's tables over parallel connections, and the dump of captured statements beside them; returns the load time.
///
/// # Errors
/// When a statement fails, a table of the workload is in the dump, the time limit passes, or the user interrupts.
pub fn fill(
    plan: &Plan,
    workload: &'static dyn Workload,
    resident: &mut ContenderServer,
    progress: &dyn Progress,
) -> Result<LoadTime> {
    let parameters = parameters_of(plan, resident);
    let Some(beside) = plan.dump_beside() else {
        return fill_one(plan, workload, &parameters, resident, progress);
    };
    // First, as a dump replaces tables of its names, and other workloads refuse them.
    let captured = dbduel_workloads::find(&beside.name)?;
    let dump = fill_one(plan, captured, &beside.parameters, resident, progress)?;
    let own = fill_one(plan, workload, &parameters, resident, progress).map_err(|error| {
        match error.downcast_ref() {
            Some(FillError::Exists { table, .. }) => {
                let message = format!(
                    "the dump of [data] has a table `{table}`, and so has `{}`: make the captured statements a duel of their own, or \
                     leave `{}` out",
                    workload.name(),
                    workload.name()
                );
                error.context(message)
            }
            _ => error,
        }
    })?;
    Ok(LoadTime {
        rows: dump.rows + own.rows,
        connections: own.connections,
        rows_s: dump.rows_s + own.rows_s,
        finish_s: dump.finish_s + own.finish_s,
        cpu_s: dump.cpu_s + own.cpu_s,
        remarks: [dump.remarks, own.remarks].concat(),
    })
}

/// Loads the tables of one workload.
fn fill_one(
    plan: &Plan,
    workload: &'static dyn Workload,
    parameters: &Parameters,
    resident: &mut ContenderServer,
    progress: &dyn Progress,
) -> Result<LoadTime> {
    let name = resident.name.clone();
    let what = format!("{name}: loading");
    let report = watched(plan, resident, progress, &what, |place, watch| {
        let loaders = workload.loaders(parameters).unwrap_or(CONNECTIONS);
        let place = Place {
            connections: loaders,
            ..*place
        };
        fill::fill(workload, parameters, &place, plan.dataset_seed, watch)
    })
    .with_context(|| format!("could not load the data of `{name}`"))?;
    Ok(LoadTime {
        rows: report.rows,
        connections: report.connections,
        rows_s: report.rows_s,
        finish_s: report.finish_s,
        cpu_s: report.cpu_s,
        remarks: report.remarks,
    })
}

/// Drops the workload's tables.
///
/// # Errors
/// When a statement fails.
pub fn clear(
    plan: &Plan,
    workload: &'static dyn Workload,
    resident: &mut ContenderServer,
    progress: &dyn Progress,
) -> Result<()> {
    let name = resident.name.clone();
    let what = format!("{name}: dropping the tables that were loaded for the contest");
    let parameters = parameters_of(plan, resident);
    watched(plan, resident, progress, &what, |place, watch| {
        fill::clear(workload, &parameters, place, watch)
    })
    .with_context(|| format!("could not drop the tables of `{name}`"))
}

/// Row count and content digest of the workload's tables, with those of a dump beside them.
///
/// # Errors
/// When the server does not answer, the time limit passes, or the user interrupts.
pub fn digest(
    plan: &Plan,
    workload: &'static dyn Workload,
    resident: &mut ContenderServer,
    progress: &dyn Progress,
) -> Result<Digest> {
    let name = resident.name.clone();
    let what = format!("{name}: reading the digest of its data");
    let (workload, parameters) = match plan.dump_beside() {
        Some(beside) => (
            dbduel_workloads::find(&beside.name)?,
            beside.parameters.clone(),
        ),
        None => (workload, parameters_of(plan, resident)),
    };
    watched(plan, resident, progress, &what, |place, watch| {
        fill::digest(workload, &parameters, place, watch)
    })
    .with_context(|| format!("could not read the digest of `{name}`"))
}

/// Runs long work on a dataset, shows its progress and checks for an interrupt.
fn watched<T: Send>(
    plan: &Plan,
    resident: &mut ContenderServer,
    progress: &dyn Progress,
    what: &str,
    work: impl FnOnce(&Place<'_>, &FillWatch) -> Result<T, FillError> + Send,
) -> Result<T> {
    let (address, credentials) = resident.backend.endpoint()?;
    let place = Place {
        dialect: resident.dialect,
        address: &address,
        credentials: &credentials,
        // As the load that contests drive.
        tls: &TlsMode::Off,
        database: &resident.database,
        connections: CONNECTIONS,
        deadline: Duration::from_secs_f64(plan.limits.dataset_s),
    };
    let result = watch_over(progress, what, |watch| work(&place, watch));
    interrupt::check()?;
    Ok(result?)
}

/// Runs work on tables in a thread, shows its progress and rate, and passes on an interrupt.
pub fn watch_over<T: Send>(
    progress: &dyn Progress,
    what: &str,
    work: impl FnOnce(&FillWatch) -> T + Send,
) -> T {
    progress.stage(what);
    let watch = FillWatch::default();
    let result = std::thread::scope(|scope| {
        let (working, ended) = channel::<()>();
        let watch = &watch;
        let worker = scope.spawn(move || {
            // Hangs up when the work is done, or panics.
            let _working = working;
            work(watch)
        });
        while ended.recv_timeout(LOOK_PAUSE) == Err(RecvTimeoutError::Timeout) {
            for (done, total, unit) in [
                (&watch.rows_done, &watch.rows_total, ProgressUnit::Rows),
                (&watch.bytes_done, &watch.bytes_total, ProgressUnit::Bytes),
            ] {
                let total = total.load(Ordering::Relaxed);
                if total > 0 {
                    progress.advance(done.load(Ordering::Relaxed), Some(total), unit);
                }
            }
            if interrupt::check().is_err() {
                watch.cancel.cancel();
            }
        }
        worker.join()
    });
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
