//! The workload's parameters, and whether it has work for the clients that are asked for.

use std::ops::Range;
use std::path::Path;

use dbduel_load::workloads::completion::{self, CompletionError};
use dbduel_load::workloads::parameters::ScriptAccess;
use dbduel_load::workloads::{self, script};
use dbduel_record::plan::{LoadLevel, Parameters, Workload};

use super::super::experiment::document::Report;
use super::super::experiment::{self, normalised_name};
use super::contenders::beside;

/// What a configuration of the workload's own asks for beside its parameters.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) clients: Option<u32>,
    pub(super) rate_each: Option<f64>,
}

/// `clients` are the most that it runs with.
pub(super) fn complete_workload(
    report: &Report<'_>,
    path: &Path,
    written: &experiment::Workload,
    clients: u32,
    access: ScriptAccess,
) -> (Workload, Asked) {
    let name = written.name.value.clone();
    let workload = match workloads::find(&name) {
        Ok(workload) => workload,
        Err(error) => {
            report.add(
                &written.name.span,
                format!("{error}; `dbduel workloads` lists them"),
            );
            let parameters = Parameters::new();
            return (Workload { name, parameters }, Asked::default());
        }
    };
    let mut given: Parameters = written
        .parameters
        .iter()
        .map(|(key, value)| (key.value.clone(), value.value.clone()))
        .collect();
    if workload.name() == script::NAME {
        complete_script(path, clients, &mut given);
    }
    let directory = path.parent().unwrap_or_else(|| Path::new(""));
    let (parameters, asked) = match completion::complete(workload, &given, directory, access) {
        Ok(completed) => (
            completed.parameters,
            Asked {
                clients: completed.clients,
                rate_each: completed.rate_each,
            },
        ),
        Err(error) => {
            let (culprit, hint) = match &error {
                CompletionError::Parameter(error) => (
                    error.parameter.as_str(),
                    format!("; `dbduel workloads {name}` lists what it takes"),
                ),
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

/// A script is a file beside the experiment, unless it is one that is installed; its tables are made for the largest
/// number of clients.
fn complete_script(path: &Path, clients: u32, given: &mut Parameters) {
    if let Some(serde_json::Value::String(script)) = given.get_mut("script") {
        let file = beside(path, script);
        if Path::new(&file).is_file() {
            *script = file;
        }
    }
    given
        .entry("threads".to_owned())
        .or_insert_with(|| clients.into());
}

/// Refuses more clients, which are written at `span`, than the workload's data have work for.
pub(super) fn check_clients(
    report: &Report<'_>,
    span: &Range<usize>,
    workload: &Workload,
    levels: &[LoadLevel],
) {
    let Ok(known) = workloads::find(&workload.name) else {
        return;
    };
    // Parameters that were refused say nothing about clients.
    if workload.parameters.is_empty() {
        return;
    }
    let most = levels
        .iter()
        .map(|level| u64::from(level.clients))
        .max()
        .unwrap_or(0);
    if let Some(limit) = known.clients_max(&workload.parameters)
        && most > limit
    {
        let message = format!(
            "`{}` has work for at most {limit} clients with these parameters, found {most}",
            workload.name
        );
        report.add(span, message);
    }
}
