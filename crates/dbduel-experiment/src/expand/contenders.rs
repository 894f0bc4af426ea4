//! Contenders: inheritance by `like`, and a contender's own parameters of the workload.

use std::path::Path;

use dbduel_driver::{SettingError, check_setting};
use dbduel_record::plan::{Contender, LoadLevel, Parameters, Setting, Workload};
use dbduel_server::{Meaning, ServerName, runs_in_process};
use dbduel_workloads::{captured, parameters};

use super::captured::with_ddl;
use super::hosts::server_host;
use crate::experiment::document::Report;
use crate::experiment::{self, Experiment, normalised_name};

pub(super) fn complete_contender(
    report: &Report<'_>,
    path: &Path,
    experiment: &Experiment,
    written: &experiment::Contender,
) -> Contender {
    let own = experiment::resolved(&experiment.contenders, written);
    let (server, password_file) = (own.server.as_ref(), own.password_file.as_ref());
    if let Some(server) = server {
        match ServerName::parse(&server.value) {
            Ok(ServerName {
                meaning: Meaning::Running(_),
                ..
            }) => {
                if let Some(setting) = own.settings.first() {
                    let message = "settings of a running server cannot be changed from here; set them where it is configured";
                    report.add(&setting.name.span, message);
                }
            }
            Ok(name) => {
                if matches!(name.meaning, Meaning::InProcess) {
                    check_sqlite(report, &own.settings);
                }
                if let Some(file) = password_file {
                    let message = "`password_file` goes with a running server; dbduel creates accounts for the servers that it starts";
                    report.add(&file.span, message);
                }
            }
            Err(error) => report.add(&server.span, error.to_string()),
        }
    } else {
        report.add(
            &written.name.span,
            format!(
                "contender `{}` has no `server` and inherits none",
                written.name.value
            ),
        );
    }
    Contender {
        name: written.name.value.clone(),
        server: server
            .map(|server| server.value.clone())
            .unwrap_or_default(),
        settings: own
            .settings
            .iter()
            .map(|setting| Setting {
                name: setting.name.value.clone(),
                value: setting.value.value.clone(),
            })
            .collect(),
        password_file: password_file.map(|file| beside(path, &file.value)),
        tables: Parameters::new(),
        host: server_host(experiment, written),
    }
}

/// Refuses settings that SQLite does not have.
fn check_sqlite(report: &Report<'_>, settings: &[experiment::Setting]) {
    for setting in settings {
        let name = normalised_name(&setting.name.value);
        if let Err(error) = check_setting(&name, &setting.value.value) {
            let span = match error {
                SettingError::Name { .. } => &setting.name.span,
                SettingError::Value { .. } => &setting.value.span,
            };
            report.add(span, error.to_string());
        }
    }
}

/// Refuses several clients of a SQLite file that its first connection locks for itself: the others would wait for
/// `busy_timeout` and fail.
pub(super) fn check_exclusive(
    report: &Report<'_>,
    experiment: &Experiment,
    contenders: &[Contender],
    levels: &[LoadLevel],
) {
    let most = levels.iter().map(|level| level.clients).max();
    let Some(clients) = most.filter(|&clients| clients > 1) else {
        return;
    };
    for (contender, written) in contenders.iter().zip(&experiment.contenders) {
        let own = experiment::resolved(&experiment.contenders, written);
        let exclusive = own.settings.iter().find(|setting| {
            normalised_name(&setting.name.value) == "locking_mode"
                && setting.value.value.eq_ignore_ascii_case("exclusive")
        });
        if let Some(setting) = exclusive.filter(|_| runs_in_process(&contender.server)) {
            let message = format!(
                "with `locking_mode = exclusive` the first client locks the file, so {clients} clients cannot share it; use \
                 `clients = 1`, or `locking_mode = normal`"
            );
            report.add(&setting.value.span, message);
        }
    }
}

/// Adds the contender's own parameters of the workload.
pub(super) fn with_tables(
    report: &Report<'_>,
    path: &Path,
    experiment: &Experiment,
    workload: &Workload,
    contender: Contender,
    written: &experiment::Contender,
) -> Contender {
    let Ok(known) = dbduel_workloads::find(&workload.name) else {
        return contender;
    };
    let own = experiment::resolved(&experiment.contenders, written);
    let mut tables = Parameters::new();
    for (key, value) in &own.tables {
        let name = normalised_name(&key.value);
        if known.own_parameters().contains(&name.as_str()) {
            let value = match (known.name(), name.as_str()) {
                (captured::NAME, captured::DDL) => with_ddl(report, path, value),
                _ => value.value.clone(),
            };
            tables.insert(name, value);
            continue;
        }
        let names = known.own_parameters().join("`, `");
        let message = match names.as_str() {
            "" => format!(
                "contenders of `{}` cannot have [tables] of their own",
                known.name()
            ),
            names => format!(
                "`{}` would change the load, not only how tables are stored; a contender may set `{names}`",
                key.value
            ),
        };
        report.add(&key.span, message);
    }
    // Parameters that were refused say nothing about those of a contender.
    if tables.is_empty() || workload.parameters.is_empty() {
        return contender;
    }
    let complete = Contender {
        tables,
        ..contender
    };
    let mut parameters = workload.parameters.clone();
    parameters.extend(complete.tables.clone());
    match parameters::resolve(known, &parameters) {
        // The values in the parameters' own types.
        Ok(resolved) => Contender {
            tables: complete
                .tables
                .keys()
                .filter_map(|name| Some((name.clone(), resolved.get(name)?.clone())))
                .collect(),
            ..complete
        },
        Err(error) => {
            let culprit = own
                .tables
                .iter()
                .find(|(key, _)| normalised_name(&key.value) == normalised_name(&error.parameter));
            let span = culprit.map_or(&written.name.span, |(key, _)| &key.span);
            report.add(span, error.to_string());
            complete
        }
    }
}

/// The absolute path of a path in the experiment, relative to the experiment's directory.
pub(super) fn beside(experiment: &Path, file: &str) -> String {
    let path = experiment
        .parent()
        .unwrap_or_else(|| Path::new(""))
        .join(file);
    std::path::absolute(&path)
        .unwrap_or(path)
        .display()
        .to_string()
}
