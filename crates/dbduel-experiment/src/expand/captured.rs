//! The workload `captured`: its capture and its dump, and the contests that it cannot have.

use std::path::Path;

use dbduel_record::captured::{MODE, NAME, TRACE, is_trace};
use dbduel_record::foreign::read_text;
use dbduel_record::plan::{Contender, LoadLevel, Parameters, SuiteWorkload, Workload};
use dbduel_replay::{
    CAPTURE, DRAW, LOCK_TIMEOUT, PACE, SPEED, TRANSACTIONS_PER_SLICE, longest_quantum_s,
};
use dbduel_server::{Meaning, ServerName};
use dbduel_workloads::captured::{DDL, DUMP};
use serde_json::Value;

use super::contenders::beside;
use crate::experiment::document::{Located, Report};
use crate::experiment::{self, ArrivalKind, DataSource, Experiment, normalised_name, quantity};

/// Largest file of definitions, bytes.
const DDL_BYTES_MAX: u64 = 1 << 16;

/// True for the workload `captured`.
pub(super) fn is_captured(written: &experiment::Workload) -> bool {
    written.name.value == NAME
}

/// Refuses a dump that no workload uses.
pub(super) fn check_data(report: &Report<'_>, experiment: &Experiment) {
    let Some(data) = &experiment.data else {
        return;
    };
    let message = match &experiment.suite {
        Some(suite) if suite.workloads.iter().any(|one| is_captured(&one.workload)) => return,
        Some(_) => format!(
            "[data] goes with the workload `{NAME}`, which is not in this suite: remove [data]"
        ),
        None if is_captured(&experiment.workload) => return,
        None => format!(
            "[data] goes with the workload `{NAME}`; `{}` makes its tables itself: remove [data]",
            experiment.workload.name.value
        ),
    };
    report.add(&data.span, message);
}

/// A workload with the dump of `[data]` among its parameters; `None` for a workload that has none. The dump of a server is empty until
/// it was taken. Refuses a dump that is missing.
pub(super) fn with_dump(
    report: &Report<'_>,
    experiment: &Experiment,
    written: &experiment::Workload,
) -> Option<experiment::Workload> {
    if !is_captured(written) {
        return None;
    }
    let in_workload = written.parameters.iter().map(|(key, _)| key);
    if let Some(key) = in_workload
        .clone()
        .find(|key| normalised_name(&key.value) == DUMP)
    {
        report.add(&key.span, "`dump` belongs in [data]");
        return None;
    }
    let Some(data) = &experiment.data else {
        let message = format!(
            "`{NAME}` needs the tables of its statements: dump them where the capture begins (mysqldump --single-transaction, pg_dump) \
             and name the file as `dump` in [data], or the server that has them as `server`"
        );
        report.add(&written.name.span, message);
        return None;
    };
    let mut whole = written.clone();
    let (dump, span) = match &data.source {
        DataSource::Dump(dump) => (dump.value.clone(), &dump.span),
        DataSource::Server(server) => (String::new(), &server.written.span),
    };
    let key = Located {
        value: DUMP.to_owned(),
        span: span.clone(),
    };
    let value = Located {
        value: Value::from(dump),
        span: span.clone(),
    };
    whole.parameters.push((key, value));
    Some(whole)
}

/// Resolves paths beside the experiment, and the lock timeout to seconds.
pub(super) fn complete_captured(
    report: &Report<'_>,
    path: &Path,
    written: &experiment::Workload,
    given: &mut Parameters,
) {
    check_keys_of_mode(report, written, given);
    for name in [CAPTURE, DUMP] {
        if let Some(Value::String(file)) = given.get_mut(name)
            && !file.is_empty()
        {
            *file = beside(path, file);
        }
    }
    for (key, value) in &written.parameters {
        let Value::String(text) = &value.value else {
            continue;
        };
        match normalised_name(&key.value).as_str() {
            LOCK_TIMEOUT => {}
            DDL => {
                given.insert(key.value.clone(), with_ddl(report, path, value));
                continue;
            }
            _ => continue,
        }
        match quantity::duration(text) {
            Ok(timeout) => {
                given.insert(key.value.clone(), timeout.as_secs_f64().into());
            }
            Err(message) => {
                given.remove(&key.value);
                report.add(&value.span, message);
            }
        }
    }
}

/// The value of `ddl`: statements as they are written, and those of a file beside the experiment.
pub(super) fn with_ddl(report: &Report<'_>, path: &Path, written: &Located<Value>) -> Value {
    let file = written.value.as_str().filter(|text| text.ends_with(".sql"));
    let Some(file) = file else {
        return written.value.clone();
    };
    let file = beside(path, file);
    match read_text(Path::new(&file), DDL_BYTES_MAX) {
        Ok(text) => text.into(),
        Err(error) => {
            let message = format!("`{DDL}`: could not read `{file}`: {error}");
            report.add(&written.span, message);
            Value::from("")
        }
    }
}

/// Refuses keys that belong to the other mode.
fn check_keys_of_mode(report: &Report<'_>, written: &experiment::Workload, given: &mut Parameters) {
    let is_trace = is_trace(given);
    for (key, _) in &written.parameters {
        let name = normalised_name(&key.value);
        let message = match name.as_str() {
            DRAW if is_trace => format!(
                "`{MODE} = \"{TRACE}\"` runs every transaction in its order and draws none; remove `{DRAW}`"
            ),
            PACE | SPEED | TRANSACTIONS_PER_SLICE if !is_trace => format!(
                "`{name}` is for `{MODE} = \"{TRACE}\"`; clients of a mix draw transactions; remove `{name}`"
            ),
            _ => continue,
        };
        report.add(&key.span, message);
        given.remove(&key.value);
    }
}

/// Refuses a load that contradicts the order and the times of a trace.
pub(super) fn check_trace(report: &Report<'_>, experiment: &Experiment, workload: &Workload) {
    if workload.name != NAME || !is_trace(&workload.parameters) {
        return;
    }
    let load = &experiment.load;
    let is_open = |arrival: &&Located<ArrivalKind>| arrival.value != ArrivalKind::Closed;
    let spans = [
        load.arrival
            .as_ref()
            .filter(is_open)
            .map(|one| ("arrival", &one.span)),
        load.rate.as_ref().map(|one| ("rate", &one.span)),
        load.think_time
            .as_ref()
            .map(|one| ("think_time", &one.span)),
    ];
    for (key, span) in spans.into_iter().flatten() {
        let message = format!(
            "the transactions of a trace have their own order and times; remove `{key}`, and set `{PACE}` and `{SPEED}` in [workload]"
        );
        report.add(span, message);
    }
    let epochs = experiment.schedule.epochs.as_ref();
    if let Some(epochs) = epochs.filter(|epochs| epochs.value > 1) {
        let message = "a trace starts the servers on restored tables whenever it ends, so it cannot have `epochs` of planned lengths; remove it";
        report.add(&epochs.span, message);
    }
    let slice = experiment.schedule.slice.as_ref();
    let limit_s = slice.map_or(f64::INFINITY, |slice| slice.value.as_secs_f64());
    if let (Some(longest_s), Some(slice)) = (longest_quantum_s(&workload.parameters), slice)
        && longest_s >= limit_s
    {
        let message = format!(
            "at this pace the longest quantum takes {}; raise `slice`, or lower `{TRANSACTIONS_PER_SLICE}`",
            dbduel_text::duration(longest_s)
        );
        report.add(&slice.span, message);
    }
}

/// Refuses servers on which a capture does not run.
pub(super) fn check_contenders(
    report: &Report<'_>,
    experiment: &Experiment,
    contenders: &[Contender],
    workload: &Workload,
    levels: &[LoadLevel],
) {
    let of_cells = levels.iter().filter_map(|level| level.cell.as_ref());
    let mut all = of_cells.map(|cell| &cell.workload).chain([workload]);
    if !all.any(|one| one.name == NAME) {
        return;
    }
    for (contender, written) in contenders.iter().zip(&experiment.contenders) {
        let meaning = ServerName::parse(&contender.server).map(|name| name.meaning);
        let message = match meaning {
            Ok(Meaning::Running(_)) => format!(
                "`{NAME}` does not run on running servers: its statements change data; name a server that dbduel starts"
            ),
            Ok(Meaning::InProcess) => {
                format!(
                    "`{NAME}` does not run on SQLite: captures are of MySQL, MariaDB and PostgreSQL"
                )
            }
            Ok(Meaning::Provided { .. }) | Err(_) => continue,
        };
        report.add(&written.server_span(), message);
    }
}

/// Refuses a suite whose tables are to be those of a dump alone, and captured workloads that its contenders cannot have side by side.
pub(super) fn check_suite(
    report: &Report<'_>,
    experiment: &Experiment,
    suite: &experiment::Suite,
    levels: &[LoadLevel],
) {
    if is_captured(&experiment.workload) {
        let message = format!(
            "[workload] of a suite names the workload whose tables the others share; put `{NAME}` into [[suite.workload]], where its \
             parameters may come from a [workload] without `name`"
        );
        report.add(&experiment.workload.name.span, message);
    }
    let cells = levels.iter().filter_map(|level| level.cell.as_ref());
    let captured = suite.workloads.iter().zip(cells);
    let captured = captured.filter(|(_, cell)| cell.workload.name == NAME);
    let mut first: Option<&SuiteWorkload> = None;
    for (written, cell) in captured {
        let (span, parameters) = (&written.name.span, &cell.workload.parameters);
        if is_trace(parameters) {
            let message = format!(
                "`{}` is a trace, which restores the tables of all workloads where it ends; make it a duel of its own, or use a mix",
                cell.name
            );
            report.add(span, message);
        }
        let Some(first) = first else {
            first = Some(cell);
            continue;
        };
        let others = &first.workload.parameters;
        let different = parameters
            .iter()
            .filter(|(name, value)| others.get(*name) != Some(value));
        let names: Vec<&str> = different.map(|(name, _)| name.as_str()).collect();
        // Parameters that were refused differ in nothing.
        if !(names.is_empty() || others.is_empty()) {
            let message = format!(
                "`{}` and `{}` differ in `{}`; a suite asks for answers and classes of one replay, so its captured workloads may differ in \
                 `clients`, `slice`, `phase` and `group` only",
                first.name,
                cell.name,
                names.join("`, `")
            );
            report.add(span, message);
        }
    }
}
