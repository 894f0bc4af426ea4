//! The workload's parameters, and whether it has enough work for the clients.

use std::ops::Range;
use std::path::Path;

use dbduel_record::plan::{LoadLevel, Parameters, Workload};
use dbduel_workloads::completion::{self, CompletionError};
use dbduel_workloads::parameters::{self, ParameterSpec, ScriptAccess};
use dbduel_workloads::{captured, script};

use super::captured::complete_captured;
use super::contenders::beside;
use crate::experiment::document::Report;
use crate::experiment::{self, Experiment, home_of, normalised_name};

/// Load settings from the workload's own configuration.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) clients: Option<u32>,
    pub(super) rate_each: Option<f64>,
}

/// `clients` is its largest number of clients.
pub(super) fn complete_workload(
    report: &Report<'_>,
    path: &Path,
    written: &experiment::Workload,
    clients: u32,
    access: ScriptAccess,
) -> (Workload, Asked) {
    let name = written.name.value.clone();
    let workload = match dbduel_workloads::find(&name) {
        Ok(workload) => workload,
        Err(error) => {
            report.add(&written.name.span, error.to_string());
            let parameters = Parameters::new();
            return (Workload { name, parameters }, Asked::default());
        }
    };
    let mut given: Parameters = written
        .parameters
        .iter()
        .map(|(key, value)| (key.value.clone(), value.value.clone()))
        .collect();
    match workload.name() {
        script::NAME => complete_script(path, clients, &mut given),
        captured::NAME => complete_captured(report, path, written, &mut given),
        _ => {}
    }
    let directory = path.parent().unwrap_or_else(|| Path::new(""));
    let (parameters, asked) = match completion::complete(workload, &given, directory, access) {
        Ok(completed) => {
            let suggested = workload.clients_suggested(&completed.parameters);
            let suggested = suggested.and_then(|clients| u32::try_from(clients).ok());
            let asked = Asked {
                clients: completed.clients.or(suggested),
                rate_each: completed.rate_each,
            };
            (completed.parameters, asked)
        }
        Err(error) => {
            let (culprit, hint) = match &error {
                CompletionError::Parameter(error) => {
                    let culprit = error.parameter.as_str();
                    let own = workload.parameters();
                    let is_own = |spec: &ParameterSpec| spec.name == normalised_name(culprit);
                    let home = match own.iter().any(is_own) {
                        true => None,
                        false => home_of(culprit),
                    };
                    let hint = match home {
                        Some(home) => format!("; a key `{culprit}` belongs {home}"),
                        None => format!("; `dbduel workloads {name}` lists its parameters"),
                    };
                    (culprit, hint)
                }
                CompletionError::Option { .. } => (completion::OPTIONS, String::new()),
                _ => (completion::CONFIG, String::new()),
            };
            let culprit = written
                .parameters
                .iter()
                .find(|(key, _)| normalised_name(&key.value) == normalised_name(culprit));
            let span = culprit.map_or(&written.name.span, |(key, _)| &key.span);
            report.add(span, format!("{error}{hint}"));
            (Parameters::new(), Asked::default())
        }
    };
    let name = workload.name().to_owned();
    (Workload { name, parameters }, asked)
}

/// Resolves a script: a file beside the experiment, unless it is an installed one; its tables are made for the largest
/// number of clients.
fn complete_script(path: &Path, clients: u32, given: &mut Parameters) {
    if let Some(serde_json::Value::String(script)) = given.get_mut("script") {
        *script = script_file(path, script);
    }
    given
        .entry("threads".to_owned())
        .or_insert_with(|| clients.into());
}

/// Path of a script beside the experiment, or the name of an installed one.
pub(super) fn script_file(path: &Path, script: &str) -> String {
    let file = beside(path, script);
    match Path::new(&file).is_file() {
        true => file,
        false => script.to_owned(),
    }
}

/// Refuses more clients, written at `span`, than the workload's data have work for.
pub(super) fn check_clients(
    report: &Report<'_>,
    span: &Range<usize>,
    workload: &Workload,
    levels: &[LoadLevel],
) {
    let Ok(known) = dbduel_workloads::find(&workload.name) else {
        return;
    };
    // Parameters that were refused say nothing about clients.
    if workload.parameters.is_empty() {
        return;
    }
    let mut checks = levels
        .iter()
        .map(|level| parameters::check_clients(known, &workload.parameters, level.clients));
    if let Some(Err(error)) = checks.find(Result::is_err) {
        report.add(span, error.to_string());
    }
}

/// True when all contenders have to do the same work from the start. Refuses a schedule that a workload of fixed work
/// cannot have.
pub(super) fn check_work(
    report: &Report<'_>,
    experiment: &Experiment,
    workload: &Workload,
) -> bool {
    let Ok(known) = dbduel_workloads::find(&workload.name) else {
        return false;
    };
    if workload.parameters.is_empty() || !known.has_fixed_work(&workload.parameters) {
        return known.depends_on_past_work(&workload.parameters);
    }
    if experiment.schedule.slice.is_none() {
        let message = format!(
            "slices of `{}` end when its work is done; set their time limit with `slice` in [schedule]",
            workload.name
        );
        report.add(&experiment.workload.name.span, message);
    }
    if let Some(guard) = experiment
        .schedule
        .guard
        .as_ref()
        .filter(|guard| !guard.value.is_zero())
    {
        let message = "all work of a slice counts, so it has no guard; remove `guard`";
        report.add(&guard.span, message);
    }
    known.depends_on_past_work(&workload.parameters)
}
