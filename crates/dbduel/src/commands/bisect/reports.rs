//! The reports on a bisection, beside its steps: all are derived from the steps' records and may be deleted.

use std::path::Path;

use anyhow::Result;
use dbduel_judge::records::bisect::{BisectSummary, judge_step, summarise_bisection};
use dbduel_record::Record;
use dbduel_record::bisect::{BisectPlan, step_dir};
use dbduel_record::store::PLAN;
use dbduel_report::bisect::FORMATS;

use crate::commands::{record_reports, record_set};
use crate::console;

/// The report on a bisection in the format of this name. Also writes its reports in other formats and the missing reports
/// of steps. No step's data are changed.
///
/// # Errors
/// When the bisection cannot be read or there is no such format.
pub fn report(dir: &Path, format: &str, is_colour_wanted: bool) -> Result<String> {
    let plan = BisectPlan::read(dir)?;
    for step in &plan.steps {
        let place = step_dir(dir, step);
        if place.join(PLAN).is_file() {
            record_reports::write_missing(&place)?;
        }
    }
    let summary = judged(dir, &plan)?;
    if let Err(error) = record_set::write_reports(dir, FORMATS, &summary) {
        console::status_line(&format!("not all reports could be written: {error:#}"));
    }
    record_set::rendered(FORMATS, format, &summary, is_colour_wanted)
}

/// The page of a bisection as it stands now; writes nothing.
///
/// # Errors
/// When a record cannot be read.
pub fn page(dir: &Path, plan: &BisectPlan) -> Result<String> {
    record_set::rendered(FORMATS, "html", &judged(dir, plan)?, false)
}

/// The report for programs as it stands now; writes nothing.
///
/// # Errors
/// When a record cannot be read.
pub fn document(dir: &Path, plan: &BisectPlan) -> Result<String> {
    record_set::rendered(FORMATS, "json", &judged(dir, plan)?, false)
}

fn judged(dir: &Path, plan: &BisectPlan) -> Result<BisectSummary> {
    let steps = plan.steps.iter().map(|step| {
        let place = step_dir(dir, step);
        let record = match place.join(PLAN).is_file() {
            true => Some(Record::open(&place)?),
            false => None,
        };
        Ok(judge_step(plan, step, record.as_ref()))
    });
    Ok(summarise_bisection(plan, steps.collect::<Result<_>>()?))
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
        for format in FORMATS {
            let written = format.file_name.map(|name| folder.path().join(name));
            assert!(written.is_none_or(|path| path.is_file()));
        }
        assert!(
            step_dir(folder.path(), &plan.steps[0])
                .join(record_set::PAGE)
                .is_file()
        );
        assert!(report(folder.path(), "none", false).is_err());
    }
}
