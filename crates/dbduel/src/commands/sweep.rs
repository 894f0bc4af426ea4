//! `dbduel run` of an experiment with `[sweep]`: a record for every cell, one cell after the other, and what
//! they leave of the budget for those that are undecided.

mod rest;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use dbduel_record::event::EndReason;
use dbduel_record::store::{EXPERIMENT, PLAN};
use dbduel_record::sweep::{SWEEP, SweepCell, SweepPlan, cell_dir};
use dbduel_record::whole::{remove_half_written, write_whole};
use dbduel_record::{Plan, Record};
use serde_json::json;

use super::run::{self, Wishes};
use super::{fail_if, record_reports};
use crate::console;
use crate::exit::Exit;
use crate::judge::records::sweep::{SweepSummary, is_over, summarise_sweep};
use crate::lab::contest;
use crate::lab::expand::{expand_cell, expand_sweep};
use crate::lab::experiment::Experiment;
use crate::lab::server::Home;
use crate::report::{self, words};
use rest::Standing;

/// The page that people look at, in the sweep's directory.
const PAGE: &str = "report.html";

/// Permission of the files beside the cells.
const FILE_MODE: u32 = 0o644;

/// Share of a cell's time that the report on all cells may take when it ends.
const REPORT_SHARE: f64 = 0.02;

/// True for the directory of a sweep.
#[must_use]
pub fn is_sweep(dir: &Path) -> bool {
    dir.join(SWEEP).is_file()
}

/// The plan of a sweep, and those of its cells if each took an equal share of the budget, as JSON.
///
/// # Errors
/// All that is wrong with the experiment, with line and column.
pub fn plan(path: &Path, text: &str, experiment: &Experiment) -> Result<String> {
    let surroundings = run::surroundings();
    let sweep = expand_sweep(path, text, experiment, &surroundings)?;
    let share_s = sweep.budget_s / sweep.cells.len() as f64;
    let cells: Vec<Plan> = sweep
        .cells
        .iter()
        .map(|cell| {
            let own = expand_cell(path, text, experiment, &sweep, cell, share_s, &surroundings)?;
            Ok(own.1)
        })
        .collect::<Result<_>>()?;
    let both = json!({ "sweep": sweep, "cells": cells });
    Ok(console::json(&both)?)
}

/// Starts a new sweep below `results`.
///
/// # Errors
/// When the experiment is wrong or a contest cannot be conducted.
pub fn start(
    home: &Home,
    results: &Path,
    path: &Path,
    text: &str,
    experiment: &Experiment,
    wishes: &Wishes<'_>,
) -> Result<Exit> {
    let sweep = expand_sweep(path, text, experiment, &run::surroundings())?;
    let dir = run::new_place(results, path);
    fs::create_dir_all(results)
        // Not one that another sweep began within the same second.
        .and_then(|()| fs::create_dir(&dir))
        .and_then(|()| write_whole(&dir.join(EXPERIMENT), text.as_bytes(), FILE_MODE))
        .and_then(|()| {
            // Written last: a directory with it can be gone on with.
            let plan = serde_json::to_vec_pretty(&sweep)?;
            write_whole(&dir.join(SWEEP), &plan, FILE_MODE)
        })
        .with_context(|| format!("could not begin the sweep `{}`", dir.display()))?;
    Sweep {
        home,
        dir: &dir,
        path,
        text,
        experiment,
        plan: &sweep,
        wishes,
    }
    .go_on()
}

/// Goes on with a sweep where it stopped.
///
/// # Errors
/// When it cannot be read or a contest cannot be conducted.
pub fn resume(home: &Home, dir: &Path, wishes: &Wishes<'_>) -> Result<Exit> {
    let plan = SweepPlan::read(dir)?;
    remove_half_written(dir)
        .with_context(|| format!("could not clear half-written files of `{}`", dir.display()))?;
    let copy = dir.join(EXPERIMENT);
    let text = fs::read_to_string(&copy)
        .with_context(|| format!("could not read `{}`", copy.display()))?;
    // Relative paths in it start where it was.
    let path = Path::new(&plan.experiment);
    let experiment = Experiment::parse(path, &text)?;
    if experiment.sweep.len() != plan.factors.len() {
        bail!(
            "`{}` is not the experiment that `{SWEEP}` beside it was made of",
            copy.display()
        );
    }
    Sweep {
        home,
        dir,
        path,
        text: &text,
        experiment: &experiment,
        plan: &plan,
        wishes,
    }
    .go_on()
}

/// A sweep under way.
struct Sweep<'s> {
    home: &'s Home,
    dir: &'s Path,
    /// The experiment file, for places in messages.
    path: &'s Path,
    text: &'s str,
    experiment: &'s Experiment,
    plan: &'s SweepPlan,
    wishes: &'s Wishes<'s>,
}

impl Sweep<'_> {
    /// Runs every cell that is not over, gives what they leave to the undecided ones, and shows what came of
    /// all.
    fn go_on(&self) -> Result<Exit> {
        run::show_live(self.dir, self.wishes)?;
        let (mut used_s, mut took) = (0.0, 0.0);
        for (number, cell) in self.plan.cells.iter().enumerate() {
            let record = cell_dir(self.dir, cell);
            if !is_cell_over(&record)? {
                console::complain(&self.named(number));
                if !self.is_conducted(number, used_s)? {
                    return Ok(Exit::Interrupted);
                }
                // Every cell so far is judged again; where that takes long, only at the end.
                if took <= self.plan.budget_s / self.plan.cells.len() as f64 * REPORT_SHARE {
                    let begun = Instant::now();
                    write_reports(self.dir, self.plan)?;
                    took = begun.elapsed().as_secs_f64();
                }
            }
            used_s += contest::used_s(&Record::open(&record)?);
        }
        if !self.use_rest()? {
            return Ok(Exit::Interrupted);
        }
        self.show()
    }

    /// Gives what the cells have left of the budget to those that are undecided, for as long as it is of use
    /// to one. False when the user stopped it.
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
            let Some((number, seconds)) = rest::next(left_s, &cells) else {
                return Ok(true);
            };
            console::complain(&format!(
                "{} of the budget are left; undecided and going on for {}: {}",
                words::duration(left_s),
                words::duration(seconds),
                self.named(number)
            ));
            let dir = cell_dir(self.dir, &self.plan.cells[number]);
            let record = Record::open(&dir)?;
            // What the cell itself did not use is part of what is left.
            let own_s = record.plan.schedule.budget_s - cells[number].used_s;
            let extra_s = (seconds - own_s.max(0.0)).max(0.0);
            run::extend(&dir, &record, Duration::from_secs_f64(extra_s))?;
            if !self.is_conducted(number, used_s)? {
                return Ok(false);
            }
            cells[number] = standing(number)?;
        }
    }

    /// How people call a cell.
    fn named(&self, number: usize) -> String {
        let cells = &self.plan.cells;
        let label = self.plan.label(&cells[number]);
        format!("cell {} of {}: {label}", number + 1, cells.len())
    }

    /// Conducts the contest of a cell, or what is left of it, and writes its report. False when the user
    /// stopped it, which is then said.
    fn is_conducted(&self, number: usize, used_s: f64) -> Result<bool> {
        let cell = &self.plan.cells[number];
        let record = cell_dir(self.dir, cell);
        let ended = self
            .run_cell(number, cell, &record, used_s)
            .with_context(|| {
                format!(
                    "the sweep stopped at {}; `dbduel run {}` goes on with it",
                    self.plan.label(cell),
                    self.dir.display()
                )
            });
        if ended.is_err() || matches!(ended, Ok(EndReason::Interrupted)) {
            // The error is the one to report, not one of the reports.
            let _ = record_reports::write(&record, false);
            let _ = write_reports(self.dir, self.plan);
            ended?;
            console::complain(&format!(
                "interrupted; go on with `dbduel run {}`",
                self.dir.display()
            ));
            return Ok(false);
        }
        // Somebody who asks for the reports of a whole sweep may be about to write these.
        record_reports::write_missing(&record)?;
        Ok(true)
    }

    /// Conducts the contest of a cell, or what is left of it. What earlier cells left of the budget is
    /// shared by it and those after it.
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
            self.path,
            self.text,
            self.experiment,
            self.plan,
            cell,
            left_s.max(planned_s),
            &run::surroundings(),
        )?;
        let plan = if record.join(PLAN).is_file() {
            Record::open(record)?.plan
        } else {
            if self.plan.dbduel != env!("CARGO_PKG_VERSION") {
                bail!(
                    "`{}` was begun by dbduel {}, and another version may plan its cells otherwise; go on with that one, \
                     or make a new sweep",
                    self.dir.display(),
                    self.plan.dbduel
                );
            }
            // A record has its plan last; what was begun without one holds nothing that was measured.
            if record.exists() {
                fs::remove_dir_all(record)
                    .with_context(|| format!("could not clear `{}`", record.display()))?;
            }
            run::create_at(self.home, record, self.text, &fresh)?;
            fresh
        };
        run::conduct(
            self.home,
            record,
            self.path,
            &experiment,
            &plan,
            self.wishes,
        )
    }

    /// Writes and prints the report on all cells; the exit code is that of the worst cell.
    fn show(&self) -> Result<Exit> {
        let summary = write_reports(self.dir, self.plan)?;
        console::print(&rendered(
            "terminal",
            &summary,
            console::is_colour_wanted(),
        )?)?;
        console::print(&format!("\nreport: {}\n", self.dir.join(PAGE).display()))?;
        let mut worst = Exit::Done;
        for cell in &self.plan.cells {
            let record = Record::open(&cell_dir(self.dir, cell))?;
            let (judged, _) = crate::judge::summarise(&record);
            fail_if::explain(&judged, self.wishes.fail_if);
            let exit = fail_if::exit(&judged, self.wishes.fail_if);
            if weight(exit) > weight(worst) {
                worst = exit;
            }
        }
        Ok(worst)
    }
}

/// Which of two cells decides the exit code of their sweep.
fn weight(exit: Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        Exit::Undecided => 1,
        Exit::RuleHit => 2,
        _ => 3,
    }
}

fn is_cell_over(record: &Path) -> Result<bool> {
    Ok(record.join(PLAN).is_file() && is_over(&Record::open(record)?))
}

/// The report on a sweep in the format of this name. Reports that it links to and that are missing are made; where
/// they cannot be, that is said.
///
/// # Errors
/// When the sweep cannot be read or there is no such format.
pub fn report(dir: &Path, format: &str, is_colour_wanted: bool) -> Result<String> {
    let plan = SweepPlan::read(dir)?;
    let summary = write_reports(dir, &plan).or_else(|error| {
        let judged = judged(dir, &plan)?;
        console::complain(&format!("not all reports could be written: {error:#}"));
        anyhow::Ok(judged)
    })?;
    rendered(format, &summary, is_colour_wanted)
}

/// The page of a sweep as it stands now; writes nothing.
///
/// # Errors
/// When a record cannot be read.
pub fn page(dir: &Path, plan: &SweepPlan) -> Result<String> {
    rendered("html", &judged(dir, plan)?, false)
}

fn rendered(format: &str, summary: &SweepSummary, is_colour_wanted: bool) -> Result<String> {
    let options = report::Options {
        width: console::width(),
        colour: is_colour_wanted,
    };
    let format = report::sweep::FORMATS
        .iter()
        .find(|known| known.name == format)
        .with_context(|| format!("a sweep has no report as {format}; its cells have"))?;
    Ok(format.render(summary, &options))
}

fn judged(dir: &Path, plan: &SweepPlan) -> Result<SweepSummary> {
    let records: Vec<Option<Record>> = plan
        .cells
        .iter()
        .map(|cell| {
            let begun = begun_record(dir, cell);
            begun.map(|record| Record::open(&record)).transpose()
        })
        .collect::<Result<_, _>>()?;
    Ok(summarise_sweep(plan, &records))
}

/// The record of a cell whose turn has come.
fn begun_record(dir: &Path, cell: &SweepCell) -> Option<PathBuf> {
    let record = cell_dir(dir, cell);
    record.join(PLAN).is_file().then_some(record)
}

/// Writes the reports on all cells beside them, and those of single cells that are missing; all are derived and
/// may be deleted.
fn write_reports(dir: &Path, plan: &SweepPlan) -> Result<SweepSummary> {
    for record in plan.cells.iter().filter_map(|cell| begun_record(dir, cell)) {
        record_reports::write_missing(&record)?;
    }
    let summary = judged(dir, plan)?;
    for format in report::sweep::FORMATS {
        if let Some(name) = format.file_name {
            let path = dir.join(name);
            let text = rendered(format.name, &summary, false)?;
            write_whole(&path, text.as_bytes(), FILE_MODE)
                .with_context(|| format!("could not write `{}`", path.display()))?;
        }
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::synthetic::write_sweep;

    #[test]
    fn reports_that_a_killed_sweep_did_not_write_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let plan = write_sweep(dir, &[1_000, 10_000], &[0.9, 1.1]);
        let names: Vec<&str> = report::FORMATS
            .iter()
            .filter_map(|format| format.file_name())
            .collect();
        let complete = || {
            let folders = plan.cells.iter().map(|cell| cell_dir(dir, cell));
            let mut folders = folders.chain([dir.to_owned()]);
            folders.all(|folder| names.iter().all(|name| folder.join(name).is_file()))
        };
        assert!(!complete());
        let said = report_text(dir);
        assert!(said.contains("table_size") && complete(), "{said}");

        // One that is missing, and one that tells of less than its record has.
        let [first, second] = [0, 1].map(|number| cell_dir(dir, &plan.cells[number]));
        fs::remove_file(first.join("report.md")).unwrap();
        let stored = second.join("report.json");
        let mut old: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&stored).unwrap()).unwrap();
        let told_ms = old["summary"]["run"]["ended_ms"].clone();
        old["summary"]["run"]["ended_ms"] = 1.into();
        fs::write(&stored, old.to_string()).unwrap();
        report_text(dir);
        assert!(complete());
        let new: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&stored).unwrap()).unwrap();
        assert_eq!(new["summary"]["run"]["ended_ms"], told_ms);

        // What is complete is left alone.
        fs::write(second.join("report.html"), "kept").unwrap();
        report_text(dir);
        assert_eq!(
            fs::read_to_string(second.join("report.html")).unwrap(),
            "kept"
        );
    }

    fn report_text(dir: &Path) -> String {
        report(dir, "terminal", false).unwrap()
    }
}
