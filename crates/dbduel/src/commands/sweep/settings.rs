//! The settings of all cells of a sweep, checked before the first one begins: a mistake in the last cell must not cost the time
//! of all others.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use dbduel_experiment::ExperimentFile;
use dbduel_experiment::document::Troubles;
use dbduel_experiment::expand::expand_cell;
use dbduel_lab::contest;
use dbduel_machine::interrupt;
use dbduel_record::Plan;
use dbduel_record::sweep::{FactorKind, SweepPlan};
use dbduel_server::Home;
use dbduel_workloads::parameters::ScriptAccess;

use crate::commands::run;
use crate::console::Console;

/// Refuses a sweep with a cell that is void by its file, or with a setting that its server does not accept.
///
/// # Errors
/// As [`run::refuse_void`]; when a server cannot be fetched or refuses a setting, with the place of the setting.
pub fn check(
    home: &Home,
    file: &ExperimentFile<'_>,
    sweep: &SweepPlan,
    cells: &[Plan],
) -> Result<()> {
    let has_settings = sweep
        .factors
        .iter()
        .any(|factor| factor.kind == FactorKind::Setting);
    if !has_settings {
        // Cells differ in the workload and the machine, not in their contenders' settings.
        return cells
            .first()
            .map_or(Ok(()), |first| run::refuse_void(home, file, first));
    }
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let console = Console::new();
    run::clear_leftovers(home, &console);
    let checked = check_cells(home, file, sweep, &console);
    console.finish();
    checked
}

fn check_cells(
    home: &Home,
    file: &ExperimentFile<'_>,
    sweep: &SweepPlan,
    console: &Console,
) -> Result<()> {
    let share_s = sweep.budget_s / sweep.cells.len() as f64;
    let mut known = BTreeSet::new();
    for cell in &sweep.cells {
        let surroundings = run::surroundings(ScriptAccess::Full);
        let (experiment, plan) = expand_cell(file, sweep, cell, share_s, &surroundings)?;
        let mut fresh = Vec::new();
        for (number, contender) in plan.contenders.iter().enumerate() {
            let parts = (&contender.server, &contender.settings);
            if known.insert(serde_json::to_string(&parts)?) {
                fresh.push(number);
            }
        }
        if fresh.is_empty() {
            continue;
        }
        let own = ExperimentFile {
            experiment: &experiment,
            ..*file
        };
        run::refuse_void(home, &own, &plan).map_err(|error| match error.is::<Troubles>() {
            // It names the setting and its value.
            true => error,
            false => error.context(format!("with {}", sweep.label(cell))),
        })?;
        contest::without_record("sweep", home, &own, &plan, console, |config| {
            fresh.into_iter().try_for_each(|number| {
                interrupt::check()?;
                contest::check_settings(config, number)
            })
        })?;
    }
    Ok(())
}
