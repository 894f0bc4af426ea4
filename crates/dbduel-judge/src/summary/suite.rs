//! Results of a suite as a whole.

use dbduel_record::plan::BlockForm;
use serde::Serialize;

use super::Figure;

/// A suite: its cells are the duels of the summary, one for each workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuiteSummary {
    /// Whether a block is a permutation of the contenders and its reverse; else it holds each once.
    pub mirrored: bool,
    /// Why blocks have this form.
    pub block_form: BlockForm,
    /// Time without load that each server got before the reads that follow writes, seconds.
    pub settle_s: f64,
    /// Comparisons with the baseline, all workloads together.
    pub comparisons: u32,
    /// Upper bound on the mean number of workloads with a wrong verdict in a suite of equal contenders.
    pub wrong_workloads_max: f64,
    /// The groups in the order of their first workloads, then all workloads together where there are several groups.
    pub groups: Vec<SuiteGroup>,
}

/// Several workloads of a suite, summed up.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuiteGroup {
    /// Name of the group; absent for all workloads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many workloads it has.
    pub workloads: u32,
    /// Each contender against the baseline.
    pub against_baseline: Vec<GroupComparison>,
    /// Each contender against the one before it in the experiment; empty for two contenders, where it is the same.
    pub against_predecessor: Vec<GroupComparison>,
}

/// Two contenders over the workloads of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupComparison {
    /// Name of the contender whose ratio it is.
    pub contender: String,
    /// Name of the contender that it is compared with.
    pub against: String,
    /// Geometric mean of the workloads' ratios.
    pub geometric_mean: Figure,
    /// The workloads' ratios in order; absent where none has blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Number of workloads by verdict.
    pub verdicts: VerdictCounts,
}

/// Smallest and largest ratio of a group and its quartiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// First quartile.
    pub q1: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub q3: f64,
    /// Largest.
    pub max: f64,
}

/// Workloads by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerdictCounts {
    /// Faster.
    pub faster: u32,
    /// Slower.
    pub slower: u32,
    /// Equivalent.
    pub equivalent: u32,
    /// Undecided.
    pub undecided: u32,
    /// Void.
    pub void: u32,
}
