//! The cells of a sweep: the types of its JSON.
//!
//! A number never stands without its interval or the reason why it has none.

use dbduel_record::Verdict;
use dbduel_record::sweep::Factor;
use serde::Serialize;

use crate::summary::{Bounds, Figure};

/// A sweep in numbers: everything that its report shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepSummary {
    /// Version of the summary as JSON.
    pub schema_version: u32,
    /// The judge: the version of dbduel, and after a plus sign a digest of the sources that judge and report.
    pub judged_by: String,
    /// Version of dbduel that made the plan.
    pub planned_by: String,
    /// When the plan was made, RFC 3339, UTC.
    pub created: String,
    /// Question of the experiment.
    pub question: String,
    /// Name of the baseline; absent before the first cell.
    pub baseline: Option<String>,
    /// The contenders in the order of the experiment; empty before the first cell.
    pub contenders: Vec<String>,
    /// Probability that all statements of one cell's duel are right; absent before the first cell.
    pub confidence: Option<f64>,
    /// Relative difference below which contenders are equivalent; absent before the first cell.
    pub horizon: Option<f64>,
    /// The factors that were varied.
    pub factors: Vec<Factor>,
    /// Every combination of levels, in running order.
    pub cells: Vec<SweptCell>,
    /// One per factor, combination of the other factors' levels, and load level.
    pub curves: Vec<FactorCurve>,
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweptCell {
    /// Name of its directory.
    pub name: String,
    /// Label of the cell.
    pub label: String,
    /// One index per factor, into its levels.
    pub levels: Vec<usize>,
    /// Progress of the cell.
    pub state: CellState,
    /// Its extension from the time that other cells left; absent when it was not extended.
    pub extension: Option<SweptExtension>,
    /// One duel per load level; empty before the cell began.
    pub duels: Vec<SweptDuel>,
}

/// Additional time of a cell beyond its plan, because it was undecided and other cells had left time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweptExtension {
    /// Number of extensions.
    pub count: usize,
    /// Load since the first extension, seconds: warm-ups, guards and slices.
    pub used_s: f64,
    /// Complete blocks that were begun since.
    pub blocks: usize,
}

/// Progress of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CellState {
    /// Its turn has not come.
    NotBegun,
    /// It was interrupted, failed, or is running.
    Unfinished,
    /// Decided, or its budget is spent.
    Over,
}

/// A duel of a cell, as far as a comparison of cells needs it; all of it is in the cell's own summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweptDuel {
    /// Label of the load level.
    pub label: String,
    /// One entry per contender.
    pub contenders: Vec<SweptMeasures>,
    /// One entry per contender other than the baseline.
    pub comparisons: Vec<SweptComparison>,
}

/// The figures of one contender in a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweptMeasures {
    /// Name of the contender.
    pub contender: String,
    /// Committed transactions per second.
    pub throughput_per_s: Figure,
    /// 99 % quantile of the latency, microseconds.
    pub latency_us_p99: Figure,
}

/// One contender against the baseline in a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweptComparison {
    /// Name of the contender.
    pub contender: String,
    /// Verdict on throughput.
    pub verdict: Verdict,
    /// Why it is void, or why more blocks would not help.
    pub because: Option<String>,
    /// Throughput, contender ÷ baseline, within blocks.
    pub ratio: Figure,
}

/// The cells along one factor, all else held.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorCurve {
    /// Index into the factors.
    pub factor: usize,
    /// What is held constant: levels of the other factors, and the load level when there are several.
    pub held: Vec<String>,
    /// Index of the load level.
    pub duel: usize,
    /// One index into the cells per level of the factor.
    pub cells: Vec<usize>,
    /// One entry per contender other than the baseline; empty when the factor is not a number or before
    /// the first cell.
    pub crossings: Vec<FactorCrossings>,
}

/// Where the curves of a contender and the baseline cross.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorCrossings {
    /// Name of the contender.
    pub contender: String,
    /// The crossings, or why there are none.
    pub outcome: FactorCrossing,
}

/// Crossings over the levels of a factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum FactorCrossing {
    /// These are demonstrated.
    Found {
        /// In ascending order.
        points: Vec<FactorPoint>,
    },
    /// No two levels certainly differ in opposite ways.
    NoneDemonstrated {
        /// Smallest level.
        from: f64,
        /// Largest level.
        to: f64,
    },
    /// There are too few blocks, or a cell is missing or void.
    NotKnown {
        /// Why.
        why: String,
    },
}

/// One crossing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorPoint {
    /// The level at which both are equal.
    pub at: Bounds,
    /// True when the contender is faster than the baseline above it.
    pub is_faster_above: bool,
}
