//! Rules about the run, its load and its verdicts.

pub mod answers;
pub mod carry_over;
pub mod contenders;
pub mod continuity;
pub mod journal;
pub mod lab;
pub mod load;
pub mod observe;
pub mod several_differences;
pub mod statements;
pub mod steady;
pub mod verdict;

use crate::evidence::Evidence;
use crate::judged::Judged;

/// Input of rules about a run.
pub struct RunEvidence<'a> {
    /// The record.
    pub evidence: &'a Evidence<'a>,
    /// The conclusions from it, with verdicts before any of them is void.
    pub judged: &'a Judged,
}
