//! Effects of frequent switches on each contender, and contradictions between long turns and a verdict.

use dbduel_record::Verdict;
use serde::Serialize;

use super::{Figure, supports};

/// The continuity check of a level: load in turns beside load without a switch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Continuity {
    /// Which rounds it rests on.
    pub stage: ContinuityStage,
    /// Middle of the measured part of the turns, seconds.
    pub turn_s: f64,
    /// Mean length of the load without a switch, seconds.
    pub unswitched_s: f64,
    /// One entry per contender that was checked, in the order of the experiment.
    pub contenders: Vec<InTurns>,
}

/// When the rounds of a continuity check ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ContinuityStage {
    /// Before the first block, beside rehearsed turns.
    BeforeBlocks,
    /// Between blocks, beside their slices.
    BetweenBlocks,
}

/// One contender in turns ÷ the same without a switch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InTurns {
    /// Name of the contender.
    pub contender: String,
    /// Committed transactions per second.
    pub throughput: Figure,
    /// True when throughput is shown to depart by more than 5 %.
    pub is_shown: bool,
    /// The relative departure that the check finds nine times out of ten at this scatter.
    pub detectable: f64,
    /// 99 % quantile of the latencies of a stretch; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p99: Option<Figure>,
    /// Processor time of the server per transaction; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_per_transaction: Option<Figure>,
    /// Bytes that the server wrote per transaction; absent where they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_per_transaction: Option<Figure>,
    /// Flushes of the disk's cache per transaction; absent where they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes_per_transaction: Option<Figure>,
}

/// Long turns give another ratio than those that the verdict rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contradiction {
    /// Middle of the measured part of the turns of the verdict, seconds.
    pub turn_s: f64,
    /// Length of the long turns, seconds.
    pub unswitched_s: f64,
    /// Throughput in them, contender ÷ baseline.
    pub ratio: Figure,
    /// Ratio in turns ÷ ratio in long turns.
    pub departure: Figure,
}

impl Contradiction {
    /// Whether the long turns support the answer of the verdict, if not its size.
    #[must_use]
    pub fn supports(&self, verdict: Verdict, horizon: f64) -> bool {
        let interval = self.ratio.interval();
        interval.is_some_and(|interval| supports(interval, verdict, horizon))
    }
}
