//! The reports on a sweep, beside its cells: all are derived from the cells' records and may be deleted.

use std::path::{Path, PathBuf};

use anyhow::Result;
use dbduel_judge::records::sweep::{SweepSummary, summarise_sweep};
use dbduel_record::Record;
use dbduel_record::store::PLAN;
use dbduel_record::sweep::{SweepCell, SweepPlan, cell_dir};
use dbduel_report as report;
use dbduel_report::sweep::FORMATS;

use crate::commands::{record_reports, record_set};
use crate::console;

/// The report on a sweep in the format of this name. Also writes its reports in other formats and the missing reports
/// of cells, and prints which, or why not. No cell's data are changed.
///
/// # Errors
/// When the sweep cannot be read or there is no such format.
pub fn report(dir: &Path, format: &str, is_colour_wanted: bool) -> Result<String> {
    let plan = SweepPlan::read(dir)?;
    let summary = match write_reports(dir, &plan) {
        Ok(written) => {
            console::status_line(&summary_line(dir, written.cells));
            written.summary
        }
        Err(error) => {
            let judged = judged(dir, &plan)?;
            console::status_line(&format!("not all reports could be written: {error:#}"));
            judged
        }
    };
    record_set::rendered(FORMATS, format, &summary, is_colour_wanted)
}

/// The page of a sweep as it stands now; writes nothing.
///
/// # Errors
/// When a record cannot be read.
pub fn page(dir: &Path, plan: &SweepPlan) -> Result<String> {
    record_set::rendered(FORMATS, "html", &judged(dir, plan)?, false)
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

/// The record of a cell that was begun.
pub(super) fn begun_record(dir: &Path, cell: &SweepCell) -> Option<PathBuf> {
    let record = cell_dir(dir, cell);
    record.join(PLAN).is_file().then_some(record)
}

/// Reports written for a sweep.
pub(super) struct Written {
    /// Summary that its reports show.
    pub summary: SweepSummary,
    /// Number of cells whose missing reports were written.
    cells: usize,
}

/// Status line on the reports written for the sweep in `dir`.
fn summary_line(dir: &Path, cells: usize) -> String {
    let names = FORMATS
        .iter()
        .filter_map(|format| format.file_name.map(str::to_owned));
    let names: Vec<String> = names.collect();
    let cells = match cells {
        0 => String::new(),
        1 => ", and the missing reports of 1 cell".to_owned(),
        cells => format!(", and the missing reports of {cells} cells"),
    };
    let names = report::words::joined_texts(&names);
    format!("wrote {names} in {}{cells}", dir.display())
}

/// Writes the reports on all cells beside them, and those of single cells that are missing.
pub(super) fn write_reports(dir: &Path, plan: &SweepPlan) -> Result<Written> {
    let mut cells = 0;
    for record in plan.cells.iter().filter_map(|cell| begun_record(dir, cell)) {
        cells += usize::from(record_reports::write_missing(&record)?);
    }
    let summary = judged(dir, plan)?;
    record_set::write_reports(dir, FORMATS, &summary)?;
    Ok(Written { summary, cells })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use dbduel_testkit::synthetic::write_sweep;

    #[test]
    fn reports_that_a_killed_sweep_did_not_write_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let plan = write_sweep(dir, &[1_000, 10_000], &[0.9, 1.1]);
        let names: Vec<&str> = report::FORMATS
            .iter()
            .filter_map(|format| format.file_name)
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

    #[test]
    fn what_killed_writers_left_of_a_cell_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let plan = write_sweep(dir, &[1_000, 10_000], &[0.9, 1.1]);
        let cell = cell_dir(dir, &plan.cells[0]);
        let journal = cell.join("events.jsonl");
        let torn = [fs::read(&journal).unwrap(), b"{\"at_ms\": 17".to_vec()].concat();
        fs::write(&journal, &torn).unwrap();
        // No process has such a number: Linux counts to 4194304.
        let half = cell.join(".report.html.4194305.part");
        fs::write(&half, "hal").unwrap();

        let written = write_reports(dir, &plan).unwrap();
        assert_eq!(written.cells, 2);
        assert!(cell.join("report.json").is_file());
        assert_eq!(fs::read(&journal).unwrap(), torn);
        assert!(half.is_file());
        assert_eq!(write_reports(dir, &plan).unwrap().cells, 0);
        let said = summary_line(dir, written.cells);
        assert!(
            said.starts_with("wrote report.html, ") && said.ends_with("reports of 2 cells"),
            "{said}"
        );
    }

    fn report_text(dir: &Path) -> String {
        report(dir, "terminal", false).unwrap()
    }
}
