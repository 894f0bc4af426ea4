//! Runs the cells of a sweep: their order, the time of each, and the report on all.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use dbduel_experiment::ExperimentFile;
use dbduel_experiment::expand::expand_cell;
use dbduel_judge as judge;
use dbduel_record::Record;
use dbduel_record::event::EndReason;
use dbduel_record::store::PLAN;
use dbduel_record::sweep::{SweepCell, SweepPlan, cell_dir};
use dbduel_report::sweep::FORMATS;
use dbduel_report::words;
use dbduel_server::Home;
use dbduel_workloads::parameters::ScriptAccess;

use super::leftover_budget::{self, Standing};
use super::reports::{begun_record, write_reports};
use crate::commands::fail_if::FailIf;
use crate::commands::run::{self, RunOptions};
use crate::commands::{fail_if, record_reports, record_set};
use crate::console;
use crate::exit::Exit;

/// Share of a cell's time that the report on all cells may take when it ends.
const REPORT_SHARE: f64 = 0.02;

/// A sweep under way.
pub(super) struct Sweep<'s> {
    pub home: &'s Home,
    pub dir: &'s Path,
    pub file: ExperimentFile<'s>,
    pub plan: &'s SweepPlan,
    pub options: &'s RunOptions<'s>,
}

impl Sweep<'_> {
    /// Runs every unfinished cell, extends undecided ones by the leftover budget, and shows the report on all.
    pub(super) fn resume(&self) -> Result<Exit> {
        run::show_live(self.dir, self.options)?;
        let (mut used_s, mut took) = (0.0, 0.0);
        for (number, cell) in self.plan.cells.iter().enumerate() {
            let record = cell_dir(self.dir, cell);
            if !is_cell_over(&record)? {
                let named = self.named(number);
                console::status_line(&match record.join(PLAN).is_file() {
                    true => format!("resuming {named}"),
                    false => named,
                });
                if !self.is_conducted(number, used_s)? {
                    return Ok(Exit::Interrupted);
                }
                // Every cell so far is judged again; where that takes long, only at the end.
                if took <= self.plan.budget_s / self.plan.cells.len() as f64 * REPORT_SHARE {
                    let begun = Instant::now();
                    write_reports(self.dir, self.plan)?;
                    took = begun.elapsed().as_secs_f64();
                }
            } else {
                run::seal_ended(&record)?;
            }
            used_s += Record::open(&record)?.used_s();
        }
        if !self.use_rest()? {
            return Ok(Exit::Interrupted);
        }
        self.show()
    }

    /// Extends undecided cells by the leftover budget for as long as one can use it. False when the user stopped it.
    fn use_rest(&self) -> Result<bool> {
        let standing = |number: usize| -> Result<Standing> {
            let record = Record::open(&cell_dir(self.dir, &self.plan.cells[number]))?;
            Ok(Standing::of(&record))
        };
        let mut cells = (0..self.plan.cells.len())
            .map(standing)
            .collect::<Result<Vec<Standing>>>()?;
        loop {
            let used_s: f64 = cells.iter().map(|cell| cell.used_s).sum();
            let left_s = self.plan.budget_s - used_s;
            let Some((number, seconds)) = leftover_budget::next(left_s, &cells) else {
                if let Some(said) = leftover_budget::left_over(left_s, &cells) {
                    console::status_line(&said);
                }
                return Ok(true);
            };
            console::status_line(&format!(
                "{} of the budget left; undecided, extended by {}: {}",
                words::duration(left_s),
                words::duration(seconds),
                self.named(number)
            ));
            // What the cell itself did not use is part of what is left.
            let extra_s = (seconds - cells[number].own_s).max(0.0);
            let dir = cell_dir(self.dir, &self.plan.cells[number]);
            run::extend(&dir, extra_s)?;
            if !self.is_conducted(number, used_s)? {
                return Ok(false);
            }
            cells[number] = standing(number)?;
        }
    }

    /// Name of a cell in messages.
    fn named(&self, number: usize) -> String {
        let cells = &self.plan.cells;
        let label = self.plan.label(&cells[number]);
        format!("cell {} of {}: {label}", number + 1, cells.len())
    }

    /// Conducts the contest of a cell, or the rest of it, and writes its report. False when the user stopped it; prints
    /// how to resume.
    fn is_conducted(&self, number: usize, used_s: f64) -> Result<bool> {
        let cell = &self.plan.cells[number];
        let record = cell_dir(self.dir, cell);
        let ended = self
            .run_cell(number, cell, &record, used_s)
            .with_context(|| {
                format!(
                    "the sweep stopped at {}; resume with `dbduel run {}`",
                    self.plan.label(cell),
                    self.dir.display()
                )
            });
        if ended.is_err() || matches!(ended, Ok(EndReason::Interrupted)) {
            // The error is the one to report, not one of the reports.
            let _ = record_reports::write(&record, None);
            let _ = write_reports(self.dir, self.plan);
            ended?;
            console::status_line(&format!(
                "interrupted; resume with `dbduel run {}`",
                self.dir.display()
            ));
            return Ok(false);
        }
        // Another process may be about to write these as reports of the whole sweep.
        record_reports::write_missing(&record)?;
        Ok(true)
    }

    /// Conducts the contest of a cell, or the rest of it. It shares the leftover budget of earlier cells with those
    /// after it.
    fn run_cell(
        &self,
        number: usize,
        cell: &SweepCell,
        record: &Path,
        used_s: f64,
    ) -> Result<EndReason> {
        let cells = self.plan.cells.len();
        let planned_s = self.plan.budget_s / cells as f64;
        let left_s = (self.plan.budget_s - used_s) / (cells - number) as f64;
        let (experiment, fresh) = expand_cell(
            &self.file,
            self.plan,
            cell,
            left_s.max(planned_s),
            &run::surroundings(ScriptAccess::Full),
        )?;
        let plan = if record.join(PLAN).is_file() {
            Record::open(record)?.plan
        } else {
            if self.plan.dbduel != env!("CARGO_PKG_VERSION") {
                bail!(
                    "`{}` was begun by dbduel {}, and another version may plan its cells \
                     differently; resume with that version, or make a new sweep",
                    self.dir.display(),
                    self.plan.dbduel
                );
            }
            // A record has its plan last; what was begun without one holds nothing that was measured.
            record_set::clear(self.dir, record)?;
            run::create_at(self.home, record, self.file.text, &fresh)?;
            fresh
        };
        let file = ExperimentFile {
            experiment: &experiment,
            ..self.file
        };
        run::run_on_console(self.home, record, &file, &plan, self.options)
    }

    /// Writes and prints the report on all cells; the exit code is that of the worst cell.
    fn show(&self) -> Result<Exit> {
        let summary = write_reports(self.dir, self.plan)?.summary;
        record_set::show(self.dir, FORMATS, &summary)?;
        worst_exit(self.dir, self.plan, self.options.fail_if)
    }
}

/// Prints which rules match in which cells; the exit code is that of the worst cell. A cell that was not begun counts
/// as undecided.
///
/// # Errors
/// When a record cannot be read.
pub(super) fn worst_exit(dir: &Path, plan: &SweepPlan, rules: &[FailIf]) -> Result<Exit> {
    let mut worst = Exit::Done;
    for cell in &plan.cells {
        let exit = match begun_record(dir, cell) {
            Some(record) => {
                let (judged, _) = judge::summarise(&Record::open(&record)?);
                fail_if::explain(&judged, rules);
                fail_if::exit(&judged, rules)
            }
            None => Exit::Undecided,
        };
        if weight(exit) > weight(worst) {
            worst = exit;
        }
    }
    Ok(worst)
}

/// Rank of an exit code: the highest of the cells is that of their sweep.
fn weight(exit: Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        Exit::Undecided => 1,
        Exit::RuleHit => 2,
        Exit::Environment
        | Exit::Usage
        | Exit::Void
        | Exit::Interrupted
        | Exit::Sysbench(_)
        | Exit::GitBisect(_) => 3,
    }
}

fn is_cell_over(record: &Path) -> Result<bool> {
    Ok(record.join(PLAN).is_file() && Record::open(record)?.is_over())
}
