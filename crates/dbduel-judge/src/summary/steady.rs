//! Whether a cell was in a steady state while it was measured. Types of the published JSON.

use serde::Serialize;

use super::figure::Figure;

/// One contender at one load level over the course of its slices; where all servers were started several times,
/// `transient`, `change` and `own_change` are of the longest run of blocks between two starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellCourse {
    /// Conclusion about the steady state.
    pub state: SteadyState,
    /// The transient that the slices began with; absent when there was none.
    #[serde(default)]
    pub transient: Option<Transient>,
    /// Throughput of the second half of the slices after the transient ÷ that of the first half.
    pub change: Figure,
    /// The same of throughput ÷ that of the other contenders in the same block: the part of the change that is not
    /// common to all.
    pub own_change: Figure,
    /// Throughput of the first slice in a block ÷ that of the mirrored one, where the contender was under
    /// another load level before; absent for a single load level.
    #[serde(default)]
    pub entered: Option<Figure>,
}

impl CellCourse {
    /// Relative difference within which two parts of a cell agree; the gate of a warm-up has the same.
    pub const TOLERANCE: f64 = 0.05;
}

/// Conclusion about a cell's course.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SteadyState {
    /// The halves are shown to agree within the tolerance.
    Steady,
    /// The halves are shown to differ by more than the tolerance: it never settled.
    NeverSettled,
    /// Neither is shown.
    NotShown,
}

/// Slices at the beginning that lie apart from the rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transient {
    /// How many.
    pub slices: u32,
    /// Their mean throughput ÷ that of the rest.
    pub ratio: f64,
    /// Half of the ratio's interval, which holds for all places where a transient could have ended jointly.
    pub margin: f64,
}
