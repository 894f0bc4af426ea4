//! The experiment that `--fix` writes: the user's own file with the settings that make its contenders
//! equal, or a new one where there was none.

mod amend;
mod compose;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use dbduel_audit::Fix;
use dbduel_audit::finding::{Finding, FindingKind, RemedySetting};
use dbduel_inspect::{Gathered, Origin};
use dbduel_record::event::Severity;
use dbduel_workloads::parameters::ScriptAccess;

use super::text::wrap;
use crate::commands::run::plan_of;

/// Writes the experiment and checks that it can be planned; `scripts` limits the access of workload scripts.
///
/// # Errors
/// When the file exists or cannot be written, or no experiment can be made of the contest.
pub fn write(path: &Path, contest: &Gathered, fix: &Fix, scripts: ScriptAccess) -> Result<()> {
    if path.exists() {
        bail!("`{}` exists; name a new file", path.display());
    }
    let text = match &contest.origin {
        Origin::Experiment { path: given, text } => {
            amend::experiment(given, text, path, contest, fix, scripts)?
        }
        Origin::Servers(addresses) => {
            let text = compose::experiment(contest, addresses, fix);
            plan_of(path, &text, scripts).context("the equalised experiment cannot be planned")?;
            text
        }
    };
    fs::write(path, text).with_context(|| format!("could not write `{}`", path.display()))
}

/// Terminal summary: the settings added, and the differences that remain.
#[must_use]
pub fn summary(path: &Path, fix: &Fix, width: usize) -> String {
    let mut text = format!(
        "\n`{}` sets {}; its audit says: {}.\n",
        path.display(),
        match fix.settings.len() {
            0 => "nothing, because no setting would make the servers more equal".to_owned(),
            1 => "1 thing".to_owned(),
            many => format!("{many} things"),
        },
        fix.after.grade.word()
    );
    for setting in &fix.settings {
        let RemedySetting {
            contender,
            name,
            value,
        } = setting;
        let _ = writeln!(text, "  {contender}: {name} = {value}");
    }
    for line in left(fix) {
        wrap(&mut text, &line, 2, width);
    }
    text
}

/// Differences that remain, one line each: no setting changes them, the contest is about them, or they are unknown.
fn left(fix: &Fix) -> Vec<String> {
    let is_left = |finding: &&Finding| {
        finding.severity > Severity::Note || finding.kind == FindingKind::Architecture
    };
    let findings = fix.after.findings.iter().filter(is_left);
    let mut left: Vec<String> = findings
        .map(|finding| format!("Unchanged: {}", finding.claim))
        .collect();
    left.extend(fix.refused.iter().map(|setting| {
        let RemedySetting {
            contender,
            name,
            value,
        } = setting;
        format!("Left out because its server does not accept it: {contender}: {name} = {value}")
    }));
    if !fix.unknown.is_empty() {
        left.push(format!(
            "Unknown without the machine: {}. Audit the running servers to compare them.",
            fix.unknown.join(", ")
        ));
    }
    left
}
