//! `dbduel run` of an experiment with `[sweep]`: a record for every cell, one cell after the other; undecided cells get
//! the leftover budget.

mod cells;
mod leftover_budget;
mod reports;
mod settings;

use std::path::Path;

use anyhow::{Result, bail};
use dbduel_experiment::expand::expand_sweep;
use dbduel_experiment::{Experiment, ExperimentFile};
use dbduel_lab::busy_poll;
use dbduel_record::Plan;
use dbduel_record::store::EXPERIMENT;
use dbduel_record::sweep::{SWEEP, SweepPlan};
use dbduel_server::Home;
use dbduel_workloads::parameters::ScriptAccess;

use super::fail_if::FailIf;
use super::record_set;
use super::run::{self, RunOptions};
use crate::console;
use crate::exit::Exit;
use cells::Sweep;
pub use reports::{page, report};

/// True for the directory of a sweep.
#[must_use]
pub fn is_sweep(dir: &Path) -> bool {
    dir.join(SWEEP).is_file()
}

/// The plan of a sweep, and those of its cells if each took an equal share of the budget. Busy polling that leaves a
/// server no processor is reported for the first such cell.
///
/// # Errors
/// All that is wrong with the experiment, with line and column.
pub fn planned(file: &ExperimentFile<'_>, scripts: ScriptAccess) -> Result<(SweepPlan, Vec<Plan>)> {
    let (sweep, cells) = expand_sweep(file, &run::surroundings(scripts))?;
    let doubts = cells.iter().map(busy_poll::doubt);
    if let Some((cell, finding)) =
        (sweep.cells.iter().zip(doubts)).find_map(|(cell, doubt)| Some((cell, doubt?)))
    {
        console::status_line(&format!(
            "With {}: {} {}",
            sweep.label(cell),
            finding.claim,
            finding.remedy
        ));
    }
    Ok((sweep, cells))
}

/// Starts a new sweep below `results`.
///
/// # Errors
/// When the experiment is wrong or a contest cannot be conducted.
pub fn start(
    home: &Home,
    results: &Path,
    file: &ExperimentFile<'_>,
    options: &RunOptions<'_>,
) -> Result<Exit> {
    let (sweep, cells) = planned(file, ScriptAccess::Full)?;
    settings::check(home, file, &sweep, &cells)?;
    let dir = run::new_place(results, file.path)?;
    record_set::begin(&dir, file.text, SWEEP, &sweep)?;
    Sweep {
        home,
        dir: &dir,
        file: *file,
        plan: &sweep,
        options,
    }
    .resume()
}

/// Prints which rules match in which cells of a sweep; the exit code is that of the worst cell.
///
/// # Errors
/// When the sweep or a record cannot be read.
pub fn exit(dir: &Path, rules: &[FailIf]) -> Result<Exit> {
    cells::worst_exit(dir, &SweepPlan::read(dir)?, rules)
}

/// Resumes a sweep where it stopped.
///
/// # Errors
/// When it cannot be read or a contest cannot be conducted.
pub fn resume(home: &Home, dir: &Path, options: &RunOptions<'_>) -> Result<Exit> {
    let plan = SweepPlan::read(dir)?;
    let text = record_set::experiment_text(dir)?;
    // Relative paths in it start where it was.
    let path = Path::new(&plan.experiment);
    let experiment = Experiment::parse(path, &text)?;
    if experiment.sweep.len() != plan.factors.len() {
        bail!(
            "`{}` is not the experiment that `{SWEEP}` beside it was planned from",
            dir.join(EXPERIMENT).display()
        );
    }
    Sweep {
        home,
        dir,
        file: ExperimentFile {
            path,
            text: &text,
            experiment: &experiment,
        },
        plan: &plan,
        options,
    }
    .resume()
}
