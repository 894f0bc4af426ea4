//! The interface between a contest and its judge. The lab measures; the referee decides what blocks show.

use std::fmt::Debug;

use dbduel_record::event::ContinuityRound;
use dbduel_record::late::LateShares;
use dbduel_record::rows::SliceRow;
use dbduel_record::{Plan, Record, Verdict};

/// Decides during a contest what to measure next.
pub trait Referee: Debug {
    /// Standing of a level by its complete blocks among `rows`.
    fn decide_level(&self, plan: &Plan, rows: &[SliceRow], level: usize) -> LevelStanding;

    /// True when the contest has to decide limits besides its verdicts.
    fn has_limits(&self) -> bool;

    /// What more blocks of a level may decide besides its verdicts: limits, classes of statements. Each is a clause without a capital
    /// letter and a full stop.
    fn open_questions(&self, record: &Record, level: usize) -> Vec<String>;

    /// What in the record does not support the verdicts that the blocks of a level decide, or puts them in doubt. Each is a
    /// clause without a capital letter and a full stop.
    fn doubts(&self, record: &Record, level: usize) -> Vec<String>;

    /// Transactions that each slice needs for its limits to be measured; 0 without a minimum.
    fn transactions_needed(&self) -> f64;

    /// The chosen variant of each contender at a level, as indices of contenders of the plan; `None` without a complete
    /// block of choosing.
    fn champions(&self, plan: &Plan, rows: &[SliceRow], level: usize) -> Option<Vec<usize>>;

    /// Share of late transactions of every slice of a record; empty without an objective.
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

/// Standing of a level: what its blocks show so far.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelStanding {
    /// Index into `Plan::levels`.
    pub level: usize,
    /// Blocks that count.
    pub blocks_complete: u32,
    /// One entry per contender other than the baseline, in the order of the experiment.
    pub comparisons: Vec<ComparisonStanding>,
    /// In a designed contest, the verdict on each factor's effect.
    pub effects: Vec<Verdict>,
    /// True when the question of the contest is answered although a comparison is open, as in a bisection.
    pub is_answered: bool,
}

/// Standing of a contender against the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonStanding {
    /// Name of the contender.
    pub contender: String,
    /// The current verdict.
    pub verdict: Verdict,
    /// Why it is void or open, where that needs an explanation.
    pub because: Option<String>,
    /// Ratio of the throughputs, contender ÷ baseline; absent where unknown.
    pub ratio: Option<f64>,
    /// The ratio's interval, valid at every moment; its upper end may be infinite.
    pub interval: Option<(f64, f64)>,
}

impl LevelStanding {
    /// True when no further block is needed: the question is answered, or every comparison is decided or void for good.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let comparisons = self.comparisons.iter().map(|comparison| comparison.verdict);
        let mut all = comparisons.chain(self.effects.iter().copied());
        self.is_answered || all.all(|verdict| verdict != Verdict::Undecided)
    }
}
