//! `[suite] scripts`: each script of a directory that has transactions is a workload of the suite.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use dbduel_record::plan::SuitePhase;
use dbduel_workloads::parameters::ScriptAccess;
use dbduel_workloads::script;

use super::contenders::beside;
use crate::experiment::document::{Located, Report};
use crate::experiment::{self, Experiment};

/// The experiment with a workload for each script of the suite's directory, in the order of their names; `None` without
/// a directory. A script that a workload of the experiment names is not added again.
pub(super) fn with_scripts(
    report: &Report<'_>,
    path: &Path,
    experiment: &Experiment,
    access: ScriptAccess,
) -> Option<Experiment> {
    let directory = experiment.suite.as_ref()?.scripts.as_ref()?;
    let mut whole = experiment.clone();
    let suite = whole.suite.as_mut()?;
    let folder = PathBuf::from(beside(path, &directory.value));
    let refuse = |message: String| report.add(&directory.span, message);
    let files = match scripts_in(&folder) {
        Ok(files) => files,
        Err(error) => {
            refuse(format!(
                "cannot read the directory `{}`: {error}",
                folder.display()
            ));
            return Some(whole);
        }
    };
    let named: Vec<PathBuf> = suite
        .workloads
        .iter()
        .filter_map(|one| script_of(&one.workload))
        .map(|script| PathBuf::from(beside(path, script)))
        .collect();
    let mut has_transactions = false;
    for file in files {
        let text = file.display().to_string();
        match script::outline(&text, access) {
            Ok(outline) => {
                has_transactions |= outline.has_event;
                if outline.has_event && !named.contains(&file) {
                    suite.workloads.push(workload(directory, &file));
                }
            }
            Err(error) => refuse(format!("`{text}`: {error}")),
        }
    }
    if !has_transactions {
        refuse(format!(
            "`{}` has no script: no file `*.lua` there has a function `event`",
            folder.display()
        ));
    }
    Some(whole)
}

/// The file of a script; `None` for another workload.
pub(super) fn script_of(workload: &experiment::Workload) -> Option<&str> {
    let mut parameters = workload.parameters.iter();
    let (_, script) = parameters.find(|(key, _)| key.value == "script")?;
    script.value.as_str()
}

/// Files that end in `.lua`, by name.
fn scripts_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        if file.extension() == Some(OsStr::new("lua")) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn workload(directory: &Located<String>, file: &Path) -> experiment::SuiteWorkload {
    let located = |value: String| Located {
        value,
        span: directory.span.clone(),
    };
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let parameter = Located {
        value: serde_json::Value::from(file.display().to_string()),
        span: directory.span.clone(),
    };
    experiment::SuiteWorkload {
        phase: Some(phase_by_name(&name)),
        name: located(name.into_owned()),
        workload: experiment::Workload {
            name: located(script::NAME.to_owned()),
            parameters: vec![(located("script".to_owned()), parameter)],
        },
        group: None,
        clients: None,
        slice: None,
    }
}

/// Phase of a script: its effect is not known in advance, so the words of its name decide, as sysbench's scripts are
/// named.
fn phase_by_name(name: &str) -> SuitePhase {
    let has = |words: &[&str]| {
        let mut own = name.split(['_', '-', '.']);
        own.any(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    if has(&["insert", "delete"]) {
        SuitePhase::Last
    } else if has(&["update", "write", "replace"]) {
        SuitePhase::Write
    } else {
        SuitePhase::Read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_scripts_name_say_when_it_runs() {
        let phases = [
            ("oltp_point_select", SuitePhase::Read),
            ("oltp_read_only", SuitePhase::Read),
            ("oltp_read_write", SuitePhase::Write),
            ("oltp_inlist_update", SuitePhase::Write),
            ("oltp_delete", SuitePhase::Last),
            ("bulk-insert", SuitePhase::Last),
            ("inserted", SuitePhase::Read),
        ];
        for (name, phase) in phases {
            assert_eq!(phase_by_name(name), phase, "{name}");
        }
    }
}
