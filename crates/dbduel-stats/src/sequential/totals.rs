//! The work and the time of two contenders in a block, as what a test of the ratio of their totals takes.
//!
//! Under the hypothesis that the log ratio of throughput is δ, the work of the contender is scaled by e^(−δ/2) and that of the
//! reference by e^(δ/2). Each of the two then has an excess of work over what its time x would have brought, with x the pooled
//! rate of both over the blocks so far, and the block contributes the difference of the two excesses, divided by x, in units of
//! time:
//!
//! (W꜀e^(−δ/2) − Wᵣe^(δ/2)) / x − (T꜀ − Tᵣ)
//!
//! The pooled rate is the same whichever of the two is called the contender, so exchanging the labels of a block flips the sign
//! of its contribution and leaves its size: sign flips test every δ exactly. The sum vanishes where the scaled throughputs of
//! all blocks together are equal, apart from what the pooled rate changes meanwhile. It is the linearised ratio of sums
//! (Cochran 1977, ch. 6), with which a block counts by what it holds. Its mean is zero at the ratio of long-run throughputs,
//! since work over time of turns that end with a transaction has this ratio in the mean of sums (Wald 1944), and the mean of the
//! blocks' own ratios has not.

use crate::error::{MAGNITUDE_MAX, StatsError, finite};

/// Work and time of one contender in a block.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// Transactions counted, or work in any other unit. Zero is a valid value: the contender completed nothing.
    pub work: f64,
    /// Time spent on this work and on waiting for it, in any unit that is the same for both; positive.
    pub time: f64,
}

impl Totals {
    fn plus(self, other: Totals) -> Totals {
        Totals {
            work: self.work + other.work,
            time: self.time + other.time,
        }
    }

    fn check(self, index: usize) -> Result<(), StatsError> {
        finite("work of blocks", index, self.work)?;
        finite("time of blocks", index, self.time)?;
        let not_positive = |what, value| Err(StatsError::NotPositive { what, index, value });
        if self.work < 0.0 {
            return Err(StatsError::OutOfRange {
                what: "work of blocks",
                index,
                value: self.work,
            });
        }
        if self.time < MAGNITUDE_MAX.recip() {
            return not_positive("time of blocks", self.time);
        }
        Ok(())
    }
}

/// Totals of two contenders in one block.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BlockTotals {
    /// Totals of the contender whose throughput is the numerator of the ratio.
    pub contender: Totals,
    /// Totals of the contender whose throughput is the denominator.
    pub reference: Totals,
}

impl BlockTotals {
    /// The sum of both blocks.
    #[must_use]
    pub fn plus(self, other: BlockTotals) -> BlockTotals {
        BlockTotals {
            contender: self.contender.plus(other.contender),
            reference: self.reference.plus(other.reference),
        }
    }

    /// Logarithm of the ratio of throughputs, contender ÷ reference. Infinite where one of the two completed nothing, NaN where
    /// both did.
    #[must_use]
    pub fn log_ratio(&self) -> f64 {
        self.log_odds() - (self.contender.time / self.reference.time).ln()
    }

    /// Logarithm of the ratio of the work.
    fn log_odds(&self) -> f64 {
        self.contender.work.ln() - self.reference.work.ln()
    }

    fn time(&self) -> f64 {
        self.contender.time + self.reference.time
    }

    /// Checks that the block, at `index` of its sequence, can be computed with.
    pub(super) fn check(&self, index: usize) -> Result<(), StatsError> {
        self.contender.check(index)?;
        self.reference.check(index)
    }
}

/// A block among those before it: what its contribution is under any hypothesis.
///
/// With the share p of the contender in the scaled work of all blocks so far, the contribution is
/// p · contender − (1 − p) · reference − delay, where `contender` is the time of all blocks so far times the share of this block
/// in the contender's work, and `reference` likewise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PooledBlock {
    pub(super) totals: BlockTotals,
    contender: f64,
    reference: f64,
    /// Time of the contender minus that of the reference.
    delay: f64,
    /// Logarithm of the ratio of the work of all blocks so far.
    log_odds: f64,
}

impl PooledBlock {
    /// A block, with the sums of all blocks up to it.
    pub(super) fn new(totals: BlockTotals, so_far: &BlockTotals) -> Self {
        let own_time = |own: Totals, all: Totals| match all.work > 0.0 {
            true => so_far.time() * (own.work / all.work),
            false => 0.0,
        };
        PooledBlock {
            totals,
            contender: own_time(totals.contender, so_far.contender),
            reference: own_time(totals.reference, so_far.reference),
            delay: totals.contender.time - totals.reference.time,
            log_odds: so_far.log_odds(),
        }
    }

    /// The contender's share in the scaled work so far, if the effect were `effect`. Where there is no work yet, nothing counts
    /// but the time, and any share will do.
    fn share(&self, effect: f64) -> f64 {
        if self.log_odds.is_nan() {
            return 0.5;
        }
        1.0 / (1.0 + (effect - self.log_odds).exp())
    }

    /// The contribution if the effect were `effect`, in units of time. It falls as the effect rises.
    pub(super) fn without(&self, effect: f64) -> f64 {
        let share = self.share(effect);
        share * self.contender - (1.0 - share) * self.reference - self.delay
    }

    /// Decrease of the contribution per unit of effect.
    pub(super) fn slope(&self, effect: f64) -> f64 {
        let share = self.share(effect);
        share * (1.0 - share) * (self.contender + self.reference)
    }

    /// The effect at which the block's contribution is zero. Infinite where its sign is the same under every effect.
    pub(super) fn own_effect(&self) -> f64 {
        let share = (self.delay + self.reference) / (self.contender + self.reference);
        if self.log_odds.is_finite() && share.is_finite() {
            self.log_odds - (share.clamp(0.0, 1.0) / (1.0 - share.clamp(0.0, 1.0))).ln()
        } else {
            f64::INFINITY
        }
    }
}
