//! The workload `captured`: its capture and its dump, and the contests that it cannot have.

use std::path::Path;

use dbduel_record::captured::{MODE, NAME, TRACE, is_trace};
use dbduel_record::plan::{Contender, Parameters, Workload};
use dbduel_replay::{
    CAPTURE, DRAW, LOCK_TIMEOUT, PACE, SPEED, TRANSACTIONS_PER_SLICE, longest_quantum_s,
};
use dbduel_server::{Meaning, ServerName};
use dbduel_workloads::captured::DUMP;
use serde_json::Value;

use super::contenders::beside;
use crate::experiment::document::{Located, Report};
use crate::experiment::{self, ArrivalKind, DataSource, Experiment, normalised_name, quantity};

fn is_captured(written: &experiment::Workload) -> bool {
    written.name.value == NAME
}

/// The workload with the dump of `[data]` among its parameters; `None` for a workload that has none. The dump of a server is empty until
/// it was taken. Refuses a dump that is missing, or that no workload uses.
pub(super) fn with_dump(
    report: &Report<'_>,
    experiment: &Experiment,
) -> Option<experiment::Workload> {
    let written = &experiment.workload;
    let data = experiment.data.as_ref();
    if !is_captured(written) {
        if let Some(data) = data {
            let message = format!(
                "[data] goes with the workload `{NAME}`; `{}` makes its tables itself: remove [data]",
                written.name.value
            );
            report.add(&data.span, message);
        }
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
    let Some(data) = data else {
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
        if normalised_name(&key.value) != LOCK_TIMEOUT {
            continue;
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
) {
    if workload.name != NAME {
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

/// Refuses a suite with captured statements or with `[data]`.
pub(super) fn check_suite(report: &Report<'_>, experiment: &Experiment, suite: &experiment::Suite) {
    let of_suite = suite.workloads.iter().map(|one| &one.workload);
    let mut all = of_suite.chain([&experiment.workload]);
    if let Some(captured) = all.find(|workload| is_captured(workload)) {
        let message = format!("a suite cannot have the workload `{NAME}`; make a duel of it");
        report.add(&captured.name.span, message);
    }
    if let Some(data) = &experiment.data {
        report.add(&data.span, "a suite has no [data]; remove it");
    }
}
