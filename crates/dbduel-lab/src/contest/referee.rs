//! What a contest asks of those who judge it. The lab measures; what blocks show is for others to say.

use std::fmt::Debug;

use dbduel_record::event::ContinuityRound;
use dbduel_record::late::LateShares;
use dbduel_record::rows::SliceRow;
use dbduel_record::{Plan, Record, Verdict};

/// Decides while a contest runs what it measures next.
pub trait Referee: Debug {
    /// What the complete blocks of a level among `rows` show.
    fn decide_level(&self, plan: &Plan, rows: &[SliceRow], level: usize) -> LevelStanding;

    /// True when the contest is to decide limits besides its verdicts.
    fn has_limits(&self) -> bool;

    /// Names of the limits that more blocks of a level may decide.
    fn open_limits(&self, record: &Record, level: usize) -> Vec<&'static str>;

    /// Transactions that each slice must have for its limits to be measured; 0 where any do.
    fn transactions_needed(&self) -> f64;

    /// The chosen variant of each contender at a level, as contenders of the plan; `None` without a complete block of choosing.
    fn champions(&self, plan: &Plan, rows: &[SliceRow], level: usize) -> Option<Vec<usize>>;

    /// How late the transactions of all slices of a record were; empty without an objective.
    fn late_shares(&self, record: &Record) -> LateShares;

    /// True when a search needs no further block at a rate.
    fn is_rate_settled(
        &self,
        plan: &Plan,
        rows: &[SliceRow],
        late: &LateShares,
        level: usize,
    ) -> bool;

    /// The rate that a search tries next; `None` where it ends.
    fn next_rate(&self, plan: &Plan, rows: &[SliceRow], late: &LateShares) -> Option<f64>;

    /// What rehearsed rounds show of a contender's throughput in turns ÷ without a switch.
    fn departure(&self, rounds: &[ContinuityRound], contender: &str) -> DepartureStanding;
}

/// What rehearsed rounds show of a contender's throughput in turns ÷ without a switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DepartureStanding {
    /// A departure that matters is shown: the logarithm of the ratio.
    Shown(f64),
    /// Departures that matter are excluded.
    Excluded,
    /// Neither.
    Open,
}

/// What the blocks of a level show by now.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelStanding {
    /// Index into `Plan::levels`.
    pub level: usize,
    /// Blocks that count.
    pub blocks_complete: u32,
    /// One entry per contender other than the baseline, in the order of the experiment.
    pub comparisons: Vec<ComparisonStanding>,
    /// Of a designed contest, the verdict on what each factor contributes.
    pub effects: Vec<Verdict>,
}

/// What the blocks show of a contender against the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonStanding {
    /// Name of the contender.
    pub contender: String,
    /// The verdict by now.
    pub verdict: Verdict,
    /// Why it is void or open, where that needs to be said.
    pub because: Option<String>,
    /// Ratio of the throughputs; absent where it is not known.
    pub ratio: Option<f64>,
    /// The ratio's interval, which holds at every moment; its upper end may be infinite.
    pub interval: Option<(f64, f64)>,
}

impl LevelStanding {
    /// True when no further block is needed: every comparison is decided or cannot be saved.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let comparisons = self.comparisons.iter().map(|comparison| comparison.verdict);
        comparisons
            .chain(self.effects.iter().copied())
            .all(|verdict| verdict != Verdict::Undecided)
    }
}
