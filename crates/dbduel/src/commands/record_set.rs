//! What sweeps and bisections have in common: a directory with the experiment, a plan, a record for each contest, and reports on
//! all of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use dbduel_experiment::EXPERIMENT_BYTES_MAX;
use dbduel_record::bisect::{BisectPlan, step_dir};
use dbduel_record::files::LocalFiles;
use dbduel_record::foreign::read_text_below;
use dbduel_record::manifest::MANIFEST;
use dbduel_record::store::{EXPERIMENT, PLAN};
use dbduel_record::sweep::{SweepPlan, cell_dir};
use dbduel_record::whole::{remove_half_written, write_whole};
use dbduel_report as report;
use dbduel_report::record_set::SetFormat;
use serde::Serialize;

use super::{bisect, sweep};
use crate::console;

/// The page that people look at, in the directory of the set.
pub const PAGE: &str = "report.html";
/// Permission of the files beside the records.
const FILE_MODE: u32 = 0o644;

/// Writes the experiment and then the plan: a directory with a plan can be resumed.
///
/// # Errors
/// When one cannot be written.
pub fn begin(dir: &Path, experiment: &str, plan_file: &str, plan: &impl Serialize) -> Result<()> {
    write_whole(&dir.join(EXPERIMENT), experiment.as_bytes(), FILE_MODE)
        .with_context(|| format!("could not begin `{}`", dir.display()))?;
    write_plan(dir, plan_file, plan)
}

/// Writes the plan whole.
///
/// # Errors
/// When it cannot be written.
pub fn write_plan(dir: &Path, plan_file: &str, plan: &impl Serialize) -> Result<()> {
    let path = dir.join(plan_file);
    let text = serde_json::to_vec_pretty(plan)?;
    write_whole(&path, &text, FILE_MODE)
        .with_context(|| format!("could not write `{}`", path.display()))
}

/// The text of the experiment in the directory of a set that is resumed, which is freed of half-written files before.
///
/// # Errors
/// When it cannot be read.
pub fn experiment_text(dir: &Path) -> Result<String> {
    remove_half_written(&LocalFiles, dir)
        .with_context(|| format!("could not clear half-written files of `{}`", dir.display()))?;
    read_text_below(dir, EXPERIMENT, EXPERIMENT_BYTES_MAX)
        .with_context(|| format!("could not read `{}`", dir.join(EXPERIMENT).display()))
}

/// The plan of a record set.
pub enum SetPlan {
    /// Of a sweep, whose contests are cells.
    Sweep(SweepPlan),
    /// Of a bisection, whose contests are steps. It grows.
    Bisection(BisectPlan),
}

impl SetPlan {
    /// The plan of the record set in a directory; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn at(dir: &Path) -> Result<Option<Self>> {
        if sweep::is_sweep(dir) {
            return Ok(Some(Self::Sweep(SweepPlan::read(dir)?)));
        }
        match bisect::is_bisection(dir) {
            true => Ok(Some(Self::Bisection(BisectPlan::read(dir)?))),
            false => Ok(None),
        }
    }

    /// Name of a contest of the set.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Sweep(_) => "cell",
            Self::Bisection(_) => "step",
        }
    }

    /// Names and records of all contests that were planned.
    #[must_use]
    pub fn contests(&self, dir: &Path) -> Vec<(String, PathBuf)> {
        match self {
            Self::Sweep(plan) => {
                let cells = plan.cells.iter();
                let cells = cells.map(|cell| (cell.name.clone(), cell_dir(dir, cell)));
                cells.collect()
            }
            Self::Bisection(plan) => {
                let steps = plan.steps.iter();
                let steps = steps.map(|step| (step.name.clone(), step_dir(dir, step)));
                steps.collect()
            }
        }
    }

    /// Those that were begun. One of which only the manifest is left is among them.
    ///
    /// # Errors
    /// When none was begun.
    pub fn begun(&self, dir: &Path) -> Result<Vec<(String, PathBuf)>> {
        let is_begun = |record: &Path| {
            [PLAN, MANIFEST, "events.jsonl", "slices.csv"]
                .iter()
                .any(|file| record.join(file).exists())
        };
        let mut begun = self.contests(dir);
        begun.retain(|(_, record)| is_begun(record));
        let verb = match self {
            Self::Sweep(_) => "run",
            Self::Bisection(_) => "bisect",
        };
        ensure!(
            !begun.is_empty(),
            "no {} of `{1}` was begun; `dbduel {verb} {1}` begins them",
            self.noun(),
            dir.display()
        );
        Ok(begun)
    }

    /// The page of the set as it stands now; writes nothing.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn page(&self, dir: &Path) -> Result<String> {
        match self {
            Self::Sweep(plan) => sweep::page(dir, plan),
            Self::Bisection(plan) => bisect::page(dir, plan),
        }
    }
}

/// Removes what is at the place of a record without a plan, which holds nothing that was measured; but nothing that a link in
/// the directory of the set leads to.
///
/// # Errors
/// When it leads there, or cannot be removed.
pub fn clear(set: &Path, record: &Path) -> Result<()> {
    if record.symlink_metadata().is_err() {
        return Ok(());
    }
    let removed = || -> Result<()> {
        let real = fs::canonicalize(record)?;
        ensure!(
            fs::canonicalize(set)?.join(record.strip_prefix(set)?) == real,
            "it leads by a link to `{}`; remove the link",
            real.display()
        );
        Ok(fs::remove_dir_all(record)?)
    };
    removed().with_context(|| format!("could not clear `{}`", record.display()))
}

/// The report on a set in the format of this name.
///
/// # Errors
/// When there is no such format.
pub fn rendered<S>(
    formats: &[SetFormat<S>],
    name: &str,
    summary: &S,
    is_colour_wanted: bool,
) -> Result<String> {
    let known = formats.iter().find(|known| known.name == name);
    let format = known.with_context(|| {
        format!("there is no report as {name} on several contests; each of them has one")
    })?;
    let options = report::Options {
        width: console::width(),
        colour: is_colour_wanted,
    };
    Ok(format.render(summary, &options))
}

/// Writes the reports on a set into its directory.
///
/// # Errors
/// When one cannot be written.
pub fn write_reports<S>(dir: &Path, formats: &[SetFormat<S>], summary: &S) -> Result<()> {
    for format in formats {
        if let Some(name) = format.file_name {
            let path = dir.join(name);
            let text = rendered(formats, format.name, summary, false)?;
            write_whole(&path, text.as_bytes(), FILE_MODE)
                .with_context(|| format!("could not write `{}`", path.display()))?;
        }
    }
    Ok(())
}

/// Prints the report on a set at its end, and its place.
///
/// # Errors
/// When standard output cannot be written.
pub fn show<S>(dir: &Path, formats: &[SetFormat<S>], summary: &S) -> Result<()> {
    let text = rendered(formats, "terminal", summary, console::is_colour_wanted())?;
    console::print(&text)?;
    console::print(&format!("\nreport: {}\n", dir.join(PAGE).display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_what_is_really_in_the_set_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let [set, elsewhere] = ["set", "elsewhere"].map(|name| folder.path().join(name));
        let kept = elsewhere.join("01/kept");
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::write(&kept, "x").unwrap();
        fs::create_dir(&set).unwrap();
        symlink(&elsewhere, set.join("cells")).unwrap();
        assert!(clear(&set, &set.join("cells/01")).is_err());
        fs::remove_file(set.join("cells")).unwrap();

        fs::create_dir(set.join("cells")).unwrap();
        symlink(elsewhere.join("01"), set.join("cells/01")).unwrap();
        assert!(clear(&set, &set.join("cells/01")).is_err());
        assert!(kept.is_file());

        // The set itself may be named by a link.
        fs::create_dir(set.join("cells/02")).unwrap();
        let link = folder.path().join("link");
        symlink(&set, &link).unwrap();
        clear(&link, &link.join("cells/02")).unwrap();
        assert!(!set.join("cells/02").exists());
    }
}
