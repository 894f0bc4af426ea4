//! Types of the JSON of `dbduel pool`: a duel on several machines.

use serde::Serialize;

use crate::summary::Figure;

/// A duel on several machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pool {
    /// Question of the experiment.
    pub question: String,
    /// Name of the baseline.
    pub baseline: String,
    /// Relative difference below which two contenders are equivalent.
    pub horizon: f64,
    /// The machines, in the order of their first records.
    pub machines: Vec<PooledMachine>,
    /// One per load level and contender other than the baseline.
    pub comparisons: Vec<PooledComparison>,
    /// Why conclusions are limited; absent when there are enough machines.
    pub too_few: Option<String>,
    /// Records and comparisons that do not count, each with the reason.
    pub left_out: Vec<String>,
}

/// A machine with its records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PooledMachine {
    /// Its identity, or what is known of it where its records have none.
    pub name: String,
    /// Its processors.
    pub processors: String,
    /// Its memory, where that is known.
    pub memory_bytes: Option<u64>,
    /// Directories of its records.
    pub records: Vec<String>,
}

/// One contender at one load level, on all machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PooledComparison {
    /// Name of the contender.
    pub contender: String,
    /// Label of the level.
    pub level: String,
    /// Throughput, then latency and cost.
    pub quantities: Vec<PooledQuantity>,
}

/// A ratio to the baseline on all machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PooledQuantity {
    /// The quantity that is compared.
    pub quantity: String,
    /// Verdict on machines like these.
    pub answer: &'static str,
    /// Contender ÷ baseline: mean of machines like these.
    pub ratio: Figure,
    /// Standard deviation of the log ratio between machines (τ); absent below two machines.
    pub between_sd: Option<f64>,
    /// Share of the scatter that is between machines (I²).
    pub between_share: Option<f64>,
    /// Interval for one more machine like these; absent below three.
    pub next_machine: Option<[f64; 2]>,
    /// The ratio on each machine.
    pub machines: Vec<MachineRatio>,
    /// On which machines the answers contradict each other; absent when they do not.
    pub disagreement: Option<String>,
}

/// The ratio on one machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineRatio {
    /// Index into the machines.
    pub machine: usize,
    /// That of its record's report, or of its records together.
    pub ratio: Figure,
    /// Records behind it.
    pub records: usize,
}
