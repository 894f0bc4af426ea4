//! A sweep: one experiment at several levels of factors beside the contenders, a record for every cell.
//!
//! ```text
//! DIR/experiment.toml   as given          DIR/sweep.json    before anything starts
//! DIR/cells/NAME/       an ordinary record of each cell, in the order in which they ran
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plan::FormatVersion;
use crate::record_set::{self, SetPlan};
use crate::store::RecordError;

/// The plan of a sweep, in its directory.
pub const SWEEP: &str = "sweep.json";
/// The directory that holds the records of the cells.
pub const CELLS: &str = "cells";

/// Longest budget of a sweep, seconds: ten years.
const BUDGET_S_MAX: f64 = 10.0 * 365.0 * 86_400.0;

/// The cells of a sweep and their order. The content of a cell is in its own `plan.json`, written when its turn comes:
/// cells that are decided early leave their time to those after them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepPlan {
    /// The format of the record.
    pub format: FormatVersion,
    /// Version of dbduel that wrote the plan; another one does not begin further cells.
    pub dbduel: String,
    /// When the plan was made, RFC 3339, UTC.
    pub created: String,
    /// Absolute path of the experiment file; relative paths in it start at its directory.
    pub experiment: String,
    /// The question of the experiment.
    pub question: String,
    /// Root of every random stream; each cell has a seed that follows from it.
    pub seed: u64,
    /// Time for warm-up and slices of all cells together, seconds.
    pub budget_s: f64,
    /// Factors varied beside the contenders and the load.
    pub factors: Vec<Factor>,
    /// Every combination of levels, in running order.
    pub cells: Vec<SweepCell>,
}

/// Something that is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Factor {
    /// Name as written in the experiment; that of a setting of one contender has `of` and the contender after it.
    pub name: String,
    /// Kind of setting that a level changes.
    pub kind: FactorKind,
    /// Its levels, in the order of the experiment.
    pub levels: Vec<FactorLevel>,
}

impl Factor {
    /// The sizes of all levels when they ascend from above zero, so that a curve can be drawn over them.
    #[must_use]
    pub fn sizes(&self) -> Option<Vec<f64>> {
        let sizes: Option<Vec<f64>> = self.levels.iter().map(|level| level.size).collect();
        sizes.filter(|sizes| {
            sizes.first().is_some_and(|first| *first > 0.0)
                && sizes.windows(2).all(|pair| pair[0] < pair[1])
        })
    }
}

/// Kind of setting that a factor changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FactorKind {
    /// A parameter of the workload. One that changes the data makes a dataset of its own.
    Parameter,
    /// The processors that the servers are confined to.
    ServerCores,
    /// Limit of what the servers read and write.
    ServerIo,
    /// A setting of all contenders or of one.
    Setting,
}

/// One value of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorLevel {
    /// Display name.
    pub label: String,
    /// What it sets: the value of a parameter or a setting, a list of processors, or a [`crate::plan::IoLimit`].
    pub value: serde_json::Value,
    /// The level as a number; absent when it has no natural one.
    pub size: Option<f64>,
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepCell {
    /// Name of its directory.
    pub name: String,
    /// One index per factor, into its levels.
    pub levels: Vec<usize>,
    /// Seed of the cell's plan.
    pub seed: u64,
}

impl SweepPlan {
    /// Display name of a cell: `table_size = 1000, server_cores = 2`.
    #[must_use]
    pub fn label(&self, cell: &SweepCell) -> String {
        let parts = self.factors.iter().zip(&cell.levels);
        let parts: Vec<String> = parts
            .map(|(factor, &level)| format!("{} = {}", factor.name, factor.levels[level].label))
            .collect();
        parts.join(", ")
    }

    /// The plan in `dir`.
    ///
    /// # Errors
    /// When it cannot be read or parsed, or refers to levels or directories that do not exist.
    pub fn read(dir: &Path) -> Result<Self, RecordError> {
        record_set::read_plan(dir)
    }
}

impl SetPlan for SweepPlan {
    const FILE: &'static str = SWEEP;

    /// Checks what every user of a plan relies on: a budget that can be added up, existing levels, and for every cell
    /// its own directory among the cells. Such a directory may be cleared, so it must be no other.
    fn check(&self) -> Result<(), String> {
        if !(self.budget_s > 0.0 && self.budget_s <= BUDGET_S_MAX) {
            return Err(format!(
                "its budget is {} s; it must be above 0 s and at most {BUDGET_S_MAX} s",
                self.budget_s
            ));
        }
        record_set::check_names("cell", self.cells.iter().map(|cell| &cell.name))?;
        for SweepCell { name, levels, .. } in &self.cells {
            let mut known = levels.iter().zip(&self.factors);
            if levels.len() != self.factors.len()
                || !known.all(|(&level, factor)| level < factor.levels.len())
            {
                return Err(format!(
                    "cell {name:?} does not have one existing level per factor"
                ));
            }
        }
        Ok(())
    }
}

/// The directory of a cell's record.
#[must_use]
pub fn cell_dir(sweep: &Path, cell: &SweepCell) -> PathBuf {
    sweep.join(CELLS).join(&cell.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> SweepPlan {
        let level = |size: f64| FactorLevel {
            label: size.to_string(),
            value: size.into(),
            size: Some(size),
        };
        SweepPlan {
            format: FormatVersion::CURRENT,
            dbduel: "0.0.0".to_owned(),
            created: "2026-01-01T00:00:00Z".to_owned(),
            experiment: "/lab/x.toml".to_owned(),
            question: "?".to_owned(),
            seed: 1,
            budget_s: 60.0,
            factors: vec![Factor {
                name: "table_size".to_owned(),
                kind: FactorKind::Parameter,
                levels: vec![level(100.0), level(200.0)],
            }],
            cells: vec![SweepCell {
                name: "01".to_owned(),
                levels: vec![1],
                seed: 2,
            }],
        }
    }

    #[test]
    fn a_plan_that_was_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let text = serde_json::to_string_pretty(&plan()).unwrap();
        std::fs::write(dir.path().join(SWEEP), text).unwrap();
        let read = SweepPlan::read(dir.path()).unwrap();
        assert_eq!(read, plan());
        assert_eq!(read.label(&read.cells[0]), "table_size = 200");
    }

    #[test]
    fn a_plan_that_refers_to_nothing_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(
            SweepPlan::read(dir.path()),
            Err(RecordError::File { .. })
        ));
        let mut beyond = plan();
        beyond.cells[0].levels = vec![2];
        let mut short = plan();
        short.cells[0].levels = vec![];
        let mut twice = plan();
        twice.cells.push(twice.cells[0].clone());
        let mut broken_plans = vec![beyond, short, twice];
        for name in [
            "/", "//", "", ".", "..", ".x", "a/", "a/.", "/a", "a/b", "../a",
        ] {
            let mut elsewhere = plan();
            elsewhere.cells[0].name = name.to_owned();
            broken_plans.push(elsewhere);
        }
        for budget_s in [-1.0, 0.0, 1e30] {
            broken_plans.push(SweepPlan { budget_s, ..plan() });
        }
        for broken in broken_plans {
            std::fs::write(
                dir.path().join(SWEEP),
                serde_json::to_string(&broken).unwrap(),
            )
            .unwrap();
            let refused = SweepPlan::read(dir.path());
            assert!(
                matches!(refused, Err(RecordError::Malformed { .. })),
                "{broken:?}: {refused:?}"
            );
        }
        std::fs::write(dir.path().join(SWEEP), "{").unwrap();
        assert!(matches!(
            SweepPlan::read(dir.path()),
            Err(RecordError::Malformed { .. })
        ));
    }

    #[test]
    fn only_levels_that_ascend_from_above_zero_make_an_axis() {
        let mut factor = plan().factors.remove(0);
        assert_eq!(factor.sizes(), Some(vec![100.0, 200.0]));
        factor.levels.reverse();
        assert_eq!(factor.sizes(), None);
        factor.levels[1].size = None;
        assert_eq!(factor.sizes(), None);
    }
}
