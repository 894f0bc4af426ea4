//! The reports on a bisection, beside its steps: all are derived from the steps' records and may be deleted.

use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_judge::records::bisect::{BisectSummary, judge_step, summarise_bisection};
use dbduel_record::Record;
use dbduel_record::bisect::{BisectPlan, step_dir};
use dbduel_record::store::PLAN;
use dbduel_record::whole::write_whole;
use dbduel_report as report;

use super::FILE_MODE;
use crate::commands::record_reports;
use crate::console;

/// The page that people look at, in the bisection's directory.
pub(super) const PAGE: &str = "report.html";

/// The report on a bisection in the format of this name. Also writes its reports in other formats and the missing reports
/// of steps. No step's data are changed.
///
/// # Errors
/// When the bisection cannot be read or there is no such format.
pub fn report(dir: &Path, format: &str, is_colour_wanted: bool) -> Result<String> {
    let plan = BisectPlan::read(dir)?;
    let mut steps = Vec::new();
    for step in &plan.steps {
        let place = step_dir(dir, step);
        let record = match place.join(PLAN).is_file() {
            true => Some(Record::open(&place)?),
            false => None,
        };
        if record.is_some() {
            record_reports::write_missing(&place)?;
        }
        steps.push(judge_step(&plan, step, record.as_ref()));
    }
    let summary = summarise_bisection(&plan, steps);
    if let Err(error) = write_reports(dir, &summary) {
        console::status_line(&format!("not all reports could be written: {error:#}"));
    }
    rendered(format, &summary, is_colour_wanted)
}

pub(super) fn rendered(
    format: &str,
    summary: &BisectSummary,
    is_colour_wanted: bool,
) -> Result<String> {
    let options = report::Options {
        width: console::width(),
        colour: is_colour_wanted,
    };
    let format = report::bisect::FORMATS
        .iter()
        .find(|known| known.name == format)
        .with_context(|| format!("a bisection has no report as {format}; its steps have one"))?;
    Ok(format.render(summary, &options))
}

/// Writes the reports on all steps beside them.
pub(super) fn write_reports(dir: &Path, summary: &BisectSummary) -> Result<()> {
    for format in report::bisect::FORMATS {
        if let Some(name) = format.file_name {
            let path = dir.join(name);
            let text = rendered(format.name, summary, false)?;
            write_whole(&path, text.as_bytes(), FILE_MODE)
                .with_context(|| format!("could not write `{}`", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::write_bisection;

    #[test]
    fn reports_that_a_killed_bisection_did_not_write_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let plan = write_bisection(folder.path());
        let text = report(folder.path(), "terminal", false).unwrap();
        assert!(text.contains("like the good one"), "{text}");
        for format in report::bisect::FORMATS {
            let written = format.file_name.map(|name| folder.path().join(name));
            assert!(written.is_none_or(|path| path.is_file()));
        }
        assert!(step_dir(folder.path(), &plan.steps[0]).join(PAGE).is_file());
        assert!(report(folder.path(), "none", false).is_err());
    }
}
