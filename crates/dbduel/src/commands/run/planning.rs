//! From the text of an experiment to a plan, and the facts of this machine that a plan needs.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use dbduel_experiment::document::Located;
use dbduel_experiment::expand::{Surroundings, expand, expand_cell, expand_sweep};
use dbduel_experiment::{Contender, Experiment, ExperimentFile, chain};
use dbduel_inspect::planned;
use dbduel_lab::contest::NotComparable;
use dbduel_machine::host;
use dbduel_machine::random::fresh_seed;
use dbduel_record::{Plan, plan};
use dbduel_server::{Home, ServerName, install};
use dbduel_workloads::parameters::ScriptAccess;

use crate::commands::features;

/// Parses and plans an experiment that may run elsewhere; of a sweep, its first cell with an equal share of the budget.
/// `scripts` limits the access of workload scripts.
///
/// # Errors
/// All that is wrong with it, with line and column.
pub fn plan_of(path: &Path, text: &str, scripts: ScriptAccess) -> Result<(Experiment, Plan)> {
    let experiment = Experiment::parse(path, text)?;
    let surroundings = Surroundings {
        runs_here: false,
        ..surroundings(scripts)
    };
    let file = ExperimentFile {
        path,
        text,
        experiment: &experiment,
    };
    if experiment.sweep.is_empty() {
        let plan = expand(&file, &surroundings)?;
        return Ok((experiment, plan));
    }
    let (sweep, _) = expand_sweep(&file, &surroundings)?;
    let first = sweep.cells.first().context("a sweep has cells")?;
    let share_s = sweep.budget_s / sweep.cells.len() as f64;
    Ok(expand_cell(&file, &sweep, first, share_s, &surroundings)?)
}

/// Facts of this machine that a plan needs beside the experiment.
#[must_use]
pub fn surroundings(scripts: ScriptAccess) -> Surroundings {
    Surroundings {
        created: jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
        fresh_seed: fresh_seed(),
        cpus: host::cpus(),
        processors: host::processors(),
        runs_here: true,
        scripts,
    }
}

/// Refuses a plan with a server or file that is not where its file says, or with a setting or a workload that a server or
/// the lab is known to refuse. Nothing is fetched, started or asked.
///
/// # Errors
/// As [`refuse_void`], but for what only an audit shows.
pub fn refuse_in_plan(home: &Home, file: &ExperimentFile<'_>, plan: &Plan) -> Result<()> {
    refuse_missing(home, file, plan)?;
    planned::check(plan, home).map_err(|error| planned::at_its_place(error, file))
}

/// Refuses a plan with a part that this build lacks, or with a path that does not exist.
fn refuse_missing(home: &Home, file: &ExperimentFile<'_>, plan: &Plan) -> Result<()> {
    features::check(file, plan)?;
    // What hosts do not fetch is sent to them from here.
    for contender in &plan.contenders {
        let name = ServerName::parse(&contender.server)?;
        install::require_path(&name, home)
            .with_context(|| about(file, contender, |written| written.server.as_ref()))?;
        if let Some(path) = &contender.password_file {
            ensure!(
                Path::new(path).exists(),
                "{}: there is no password file `{path}`; create it, or correct `password_file`",
                about(file, contender, |written| written.password_file.as_ref())
            );
        }
    }
    Ok(())
}

/// The contender in messages, with the place of one of its values in the file.
fn about(
    file: &ExperimentFile<'_>,
    contender: &plan::Contender,
    value: impl Fn(&Contender) -> Option<&Located<String>>,
) -> String {
    let contenders = &file.experiment.contenders;
    let written = file.experiment.written(&contender.name);
    let places = written.map(|written| chain(contenders, written));
    let mut places = places.into_iter().flatten().filter_map(value);
    let place = places.next().map(|value| file.place(&value.span));
    let place = place.unwrap_or_default();
    format!("{place}contender `{}`", contender.name)
}

/// Refuses a contest whose servers are not where its file says, or that is void by its file, before anything is
/// fetched, loaded or recorded. The audit of the running servers checks the rest.
///
/// # Errors
/// [`NotComparable`], a missing server, or a value that its server does not accept, with its place.
pub fn refuse_void(home: &Home, file: &ExperimentFile<'_>, plan: &Plan) -> Result<()> {
    refuse_missing(home, file, plan)?;
    let foreseen = planned::foreseen(plan, home);
    if let Some(case) = foreseen.map_err(|error| planned::at_its_place(error, file))? {
        let command = format!("dbduel audit {} --dry", file.path.display());
        NotComparable::refuse(
            plan,
            &case,
            &dbduel_audit::audit(&case),
            &command,
            file.path,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `run --plan` and `run` say of an experiment before anything starts.
    fn refusals(text: &str) -> [String; 2] {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let path = Path::new("duel.toml");
        let (experiment, plan) = plan_of(path, text, ScriptAccess::Confined).unwrap();
        let file = ExperimentFile {
            path,
            text,
            experiment: &experiment,
        };
        [refuse_in_plan, refuse_void]
            .map(|refuse| format!("{:#}", refuse(&home, &file, &plan).unwrap_err()))
    }

    #[test]
    fn a_plan_is_refused_for_what_its_contest_is_refused_for() {
        let duel = |contenders: &str, workload: &str| {
            format!("{contenders}\n[workload]\n{workload}\n[load]\nclients = 1\n")
        };
        let points = "name = \"oltp-point-select\"";
        let pair = "[contenders.a]\nserver = \"postgresql-17\"\n[contenders.b]\nlike = \"a\"";
        for (text, part) in [
            (
                duel(
                    "[contenders.b]\nserver = \"mariadb-10.11\"\n[contenders.a]\nserver = \"path:/nonexistent/x\"",
                    points,
                ),
                "duel.toml:4:10: contender `a`: there is no server at `/nonexistent/x`; put one there",
            ),
            (
                duel(
                    "[contenders.a]\nserver = \"tcp://u@one\"\npassword_file = \"/nonexistent/p\"\n\
                     [contenders.b]\nserver = \"tcp://u@two\"",
                    points,
                ),
                "duel.toml:3:17: contender `a`: there is no password file `/nonexistent/p`",
            ),
            (
                duel(
                    &format!("{pair}\nsettings = {{ restart_after_crash = false }}"),
                    points,
                ),
                "duel.toml:5:14: contender `b`: `restart_after_crash` cannot be set",
            ),
            (
                duel(
                    &format!(
                        "{pair}\nvariants = {{ work_mem = [1024, 2048], archive_command = [\"a\", \"b\"] }}"
                    ),
                    points,
                ),
                "`archive_command` cannot be set: it refers to files",
            ),
            (
                duel(
                    "[contenders.a]\nserver = \"sqlite\"\n[contenders.b]\nlike = \"a\"",
                    "name = \"linkbench\"",
                ),
                "`linkbench` does not support SQLite",
            ),
        ] {
            for refused in refusals(&text) {
                assert!(refused.contains(part), "{refused}");
            }
        }
    }

    #[test]
    #[cfg(not(feature = "fleet"))]
    fn a_build_without_fleet_refuses_other_machines_by_name() {
        let duel = |hosts: &str, host: &str| {
            format!(
                "{hosts}\n[contenders.a]\nserver = \"mariadb-10.11\"\n{host}\n[contenders.b]\nlike = \"a\"\n[workload]\n\
                 name = \"oltp-point-select\"\n[load]\nclients = 2\n"
            )
        };
        let load = "[hosts]\nservers = \"10.0.0.1\"\nload = [\"load1\", \"load2\"]";
        for (text, part) in [
            (
                duel(load, ""),
                "duel.toml:1:1: `[hosts]` runs parts of a contest on other machines: this program was built without `fleet`",
            ),
            (
                duel("", "host = \"db2\""),
                "duel.toml:4:8: `host` runs contender `a` on another machine: this program was built without `fleet`",
            ),
        ] {
            for refused in refusals(&text) {
                assert!(refused.contains(part), "{refused}");
                let remedy = "; `cargo build --release --features fleet` builds one with it, and packages have it";
                assert!(refused.contains(remedy), "{refused}");
            }
        }
    }
}
