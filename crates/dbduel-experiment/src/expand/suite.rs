//! The workloads of a suite: their parameters, shared tables, and phases.

use std::path::Path;

use dbduel_driver::Dialect;
use dbduel_record::plan::{Arrival, LoadLevel, Parameters, SuitePhase, SuiteWorkload, Workload};
use dbduel_workloads::parameters::ScriptAccess;
use dbduel_workloads::{Effect, script};

use super::captured::{check_suite, is_captured, with_dump};
use super::levels::{CLIENTS, LEVELS_MAX, think_ms};
use super::suite_scripts::script_of;
use super::workload::{check_clients, complete_workload, script_file};
use crate::experiment::document::{Located, Report};
use crate::experiment::{self, Experiment, normalised_name};

/// The workload that fills the tables, and a load level for each workload of the suite.
pub(super) fn complete_suite(
    report: &Report<'_>,
    path: &Path,
    experiment: &Experiment,
    suite: &experiment::Suite,
    access: ScriptAccess,
) -> (Workload, Vec<LoadLevel>) {
    let most = suite.workloads.iter().map(|one| clients(experiment, one));
    let most = most.max().unwrap_or(CLIENTS);
    let filling = filling(path, access, experiment, suite);
    let filling = filling.map(|filling| complete_workload(report, path, &filling, most, access).0);
    check_shared(report, path, access, experiment, suite);
    if suite.workloads.len() > LEVELS_MAX {
        let message = format!(
            "the suite has {} workloads, at most {LEVELS_MAX} can be in one contest",
            suite.workloads.len()
        );
        report.add(&suite.span, message);
    }
    let complete = |written: &experiment::SuiteWorkload| {
        let clients = clients(experiment, written);
        let shared = &experiment.workload;
        let whole = with_shared(path, access, shared, &written.workload);
        let with_dump = with_dump(report, experiment, &whole);
        let whole = with_dump.unwrap_or(whole);
        let (workload, _) = complete_workload(report, path, &whole, clients, access);
        if let Some(data) = &filling {
            check_tables(report, written, &workload, data);
        }
        let level = LoadLevel {
            clients,
            arrival: Arrival::Closed {
                think_ms: think_ms(&experiment.load),
            },
            cell: None,
        };
        check_clients(
            report,
            &written.name.span,
            &workload,
            std::slice::from_ref(&level),
        );
        let phase = phase(report, written, &workload);
        let by_phase = match phase {
            SuitePhase::Fresh | SuitePhase::Read => "read",
            SuitePhase::Write | SuitePhase::Last => "write",
        };
        LoadLevel {
            cell: Some(SuiteWorkload {
                name: written.name.value.clone(),
                group: written.group.clone().unwrap_or_else(|| by_phase.to_owned()),
                phase,
                slice_s: written.slice.map(|slice| slice.as_secs_f64()),
                workload,
            }),
            ..level
        }
    };
    let written = suite.workloads.iter().take(LEVELS_MAX);
    let levels: Vec<LoadLevel> = written.map(complete).collect();
    check_suite(report, experiment, suite, &levels);
    let of_first = || Some(levels.first()?.cell.as_ref()?.workload.clone());
    let data = filling.or_else(of_first).unwrap_or_else(|| Workload {
        name: String::new(),
        parameters: Parameters::new(),
    });
    (data, levels)
}

fn clients(experiment: &Experiment, written: &experiment::SuiteWorkload) -> u32 {
    let of_all = experiment.load.clients.as_ref();
    let of_all = of_all.and_then(|clients| clients.value.first().copied());
    written.clients.or(of_all).unwrap_or(CLIENTS)
}

/// The workload that fills the tables: the one of `[workload]`, or the first of the suite with only the shared
/// parameters. A script fills them with the options of its first workload. `None` where all workloads are captured: their dump has all
/// tables.
fn filling(
    path: &Path,
    access: ScriptAccess,
    experiment: &Experiment,
    suite: &experiment::Suite,
) -> Option<experiment::Workload> {
    let shared = &experiment.workload;
    if !(shared.name.value.is_empty() || is_captured(shared)) {
        return Some(shared.clone());
    }
    let all = suite.workloads.iter().map(|written| &written.workload);
    let mut all = all.filter(|one| !is_captured(one));
    let native = all.clone().find(|one| one.name.value != script::NAME);
    match (native, all.next()) {
        (Some(native), _) => {
            let without_own = experiment::Workload {
                name: native.name.clone(),
                parameters: Vec::new(),
            };
            Some(with_shared(path, access, shared, &without_own))
        }
        (None, Some(script)) => Some(with_shared(path, access, shared, script)),
        (None, None) => None,
    }
}

/// A workload with the shared parameters that it has and does not set itself.
fn with_shared(
    path: &Path,
    access: ScriptAccess,
    shared: &experiment::Workload,
    own: &experiment::Workload,
) -> experiment::Workload {
    let known = Known::of(path, access, own);
    let mut whole = own.clone();
    for (key, value) in &shared.parameters {
        let name = normalised_name(&key.value);
        let is_own = |(own, _): &experiment::WrittenParameter| normalised_name(&own.value) == name;
        if known.has(key) && !own.parameters.iter().any(is_own) {
            whole.parameters.push((key.clone(), value.clone()));
        }
    }
    whole
}

/// The parameters of a workload, including options of a script.
struct Known {
    names: Vec<&'static str>,
    /// Options that the script declares; `None` where it accepts any, or reports itself why it cannot be used.
    options: Option<Vec<String>>,
    is_script: bool,
}

impl Known {
    fn of(path: &Path, access: ScriptAccess, workload: &experiment::Workload) -> Self {
        let known = dbduel_workloads::find(&workload.name.value).ok();
        let specs = known.map_or_else(Vec::new, dbduel_workloads::Workload::parameters);
        let is_script = known.is_some_and(|known| known.name() == script::NAME);
        let file = script_of(workload).filter(|_| is_script);
        let outline = file.and_then(|file| script::outline(&script_file(path, file), access).ok());
        Self {
            names: specs.iter().map(|spec| spec.name).collect(),
            options: outline.and_then(|outline| outline.options),
            is_script,
        }
    }

    fn has(&self, key: &Located<String>) -> bool {
        let name = normalised_name(&key.value);
        match (key.value.strip_prefix(script::OPTION), &self.options) {
            (Some(option), Some(options)) if self.is_script => {
                options.contains(&option.replace('-', "_"))
            }
            (Some(_), None) if self.is_script => true,
            _ => self.names.contains(&name.as_str()),
        }
    }
}

/// Refuses shared parameters that no workload has.
fn check_shared(
    report: &Report<'_>,
    path: &Path,
    access: ScriptAccess,
    experiment: &Experiment,
    suite: &experiment::Suite,
) {
    // What the workload in [workload] has, it says itself.
    if !experiment.workload.name.value.is_empty() {
        return;
    }
    let all = suite.workloads.iter();
    let all: Vec<Known> = all
        .map(|one| Known::of(path, access, &one.workload))
        .collect();
    for (key, _) in &experiment.workload.parameters {
        if !all.iter().any(|known| known.has(key)) {
            let message = format!(
                "no workload of the suite has a parameter `{}`; `dbduel workloads NAME` lists what each takes",
                key.value
            );
            report.add(&key.span, message);
        }
    }
}

/// Refuses a workload whose tables are not among the filled ones, or have more rows.
fn check_tables(
    report: &Report<'_>,
    written: &experiment::SuiteWorkload,
    workload: &Workload,
    data: &Workload,
) {
    let (Ok(known), Ok(filling)) = (
        dbduel_workloads::find(&workload.name),
        dbduel_workloads::find(&data.name),
    ) else {
        return;
    };
    // Which tables a script uses is unknown. Parameters that were refused say nothing of tables.
    let is_unknown = known.own_data().is_some() || filling.own_data().is_some();
    if is_unknown || workload.parameters.is_empty() || data.parameters.is_empty() {
        return;
    }
    let filled = filling.tables(Dialect::MySql, &data.parameters);
    for table in known.tables(Dialect::MySql, &workload.parameters) {
        let message = match filled.iter().find(|one| one.name == table.name) {
            None => format!("there is no table `{}`", table.name),
            Some(one) if one.create != table.create || one.finish != table.finish => {
                format!("`{}` has a different definition", table.name)
            }
            Some(one) if one.rows < table.rows => format!(
                "`{}` has {} rows, but needs {}",
                table.name, one.rows, table.rows
            ),
            Some(_) => continue,
        };
        report.add(
            &written.name.span,
            format!(
                "`{}` cannot share tables: {message}; workloads of a suite use the tables of `{}` with the parameters in \
                 [workload]",
                written.name.value, data.name
            ),
        );
        return;
    }
}

/// The phase of a workload: as written, or by its effect on the tables.
fn phase(
    report: &Report<'_>,
    written: &experiment::SuiteWorkload,
    workload: &Workload,
) -> SuitePhase {
    if let Some(phase) = written.phase {
        return phase;
    }
    // Parameters that were refused say nothing of the effect.
    if workload.parameters.is_empty() {
        return SuitePhase::Write;
    }
    let known = dbduel_workloads::find(&workload.name);
    match known.map(|known| known.effect(&workload.parameters)) {
        Ok(Effect::Reads) => SuitePhase::Read,
        Ok(Effect::Changes) | Err(_) => SuitePhase::Write,
        Ok(Effect::ChangesRowCount) => SuitePhase::Last,
        Ok(Effect::Unknown) => {
            let message = format!(
                "the effect of `{}` on the tables is unknown; set `phase = \"read\"`, \"write\", \"fresh\" or \"last\"",
                written.name.value
            );
            report.add(&written.name.span, message);
            SuitePhase::Write
        }
    }
}
