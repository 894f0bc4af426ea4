//! From the text of an experiment to a plan, and the facts of this machine that a plan needs.

use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_experiment::expand::{Surroundings, expand, expand_cell, expand_sweep};
use dbduel_experiment::{Experiment, ExperimentFile};
use dbduel_inspect::planned;
use dbduel_lab::contest::NotComparable;
use dbduel_machine::host;
use dbduel_machine::random::fresh_seed;
use dbduel_record::Plan;
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

/// Refuses a plan with a setting or a workload that a server or the lab is known to refuse. Nothing is fetched, started or asked.
///
/// # Errors
/// The refused setting or workload, with its place.
pub fn refuse_in_plan(home: &Home, file: &ExperimentFile<'_>, plan: &Plan) -> Result<()> {
    planned::check(plan, home).map_err(|error| planned::at_its_place(error, file))
}

/// Refuses a contest whose servers are not where its file says, or that is void by its file, before anything is
/// fetched, loaded or recorded. The audit of the running servers checks the rest.
///
/// # Errors
/// [`NotComparable`], a missing server, or a value that its server does not accept, with its place.
pub fn refuse_void(home: &Home, file: &ExperimentFile<'_>, plan: &Plan) -> Result<()> {
    features::check(plan)?;
    // What hosts do not fetch is sent to them from here.
    for contender in &plan.contenders {
        let name = ServerName::parse(&contender.server)?;
        install::require_path(&name, home)
            .with_context(|| format!("contender `{}`", contender.name))?;
    }
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
