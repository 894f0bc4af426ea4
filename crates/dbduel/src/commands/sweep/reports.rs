//! The reports on a sweep, beside its cells: all are derived from the cells' records and may be deleted.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use dbduel_record::Record;
use dbduel_record::store::PLAN;
use dbduel_record::sweep::{SweepCell, SweepPlan, cell_dir};
use dbduel_record::whole::write_whole;

use super::FILE_MODE;
use crate::commands::record_reports;
use crate::console;
use crate::judge::records::sweep::{SweepSummary, summarise_sweep};
use crate::report;

/// The page that people look at, in the sweep's directory.
pub(super) const PAGE: &str = "report.html";

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

pub(super) fn rendered(
    format: &str,
    summary: &SweepSummary,
    is_colour_wanted: bool,
) -> Result<String> {
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

/// Writes the reports on all cells beside them, and those of single cells that are missing.
pub(super) fn write_reports(dir: &Path, plan: &SweepPlan) -> Result<SweepSummary> {
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
    use std::fs;

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
