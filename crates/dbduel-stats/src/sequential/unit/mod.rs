//! Input of a test: a paired difference, or the totals of a block, with its weight.

use super::totals::{BlockTotals, PooledBlock};
use crate::error::{MAGNITUDE_MAX, StatsError, finite};

/// One block's measurement of the effect of a pair, with its planned weight.
///
/// It is a paired difference, whose weighted mean is estimated, or it has the work and the time of two contenders, of which the
/// log ratio of total throughputs is estimated. All units of a sequence are of one sort.
///
/// Blocks of different length are units of different weight. Weights in proportion to the length make the mean of all differences
/// the most precise one where noise is fast; others cost precision and not the error rate. Totals count by the work and the time
/// that they hold; the weight of theirs spends the error probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    measure: UnitMeasure,
    /// The unit's part of the planned information, and of the error probability spent with it. Positive, and fixed by the
    /// plan or by figures that would be the same with the contenders exchanged; a weight that depends on which one was
    /// faster invalidates the error probability.
    pub weight: f64,
}

/// Measurement of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
enum UnitMeasure {
    Difference(f64),
    Totals(PooledBlock),
}

impl Unit {
    /// A difference with its weight.
    #[must_use]
    pub fn new(difference: f64, weight: f64) -> Self {
        Unit {
            measure: UnitMeasure::Difference(difference),
            weight,
        }
    }

    /// Differences of equal weight: 1 each.
    #[must_use]
    pub fn of_weight_one(differences: &[f64]) -> Vec<Unit> {
        let units = differences.iter();
        units
            .map(|difference| Unit::new(*difference, 1.0))
            .collect()
    }

    /// Units for the log ratio of total throughputs, contender ÷ reference, from the totals of blocks in the order in which they
    /// were measured, each with its planned weight.
    ///
    /// A unit knows the blocks before it, so that units of the first blocks are the first units: they can be given to a
    /// [`super::Decider`] one by one. They must not be left out, taken twice or put in another order.
    ///
    /// ```
    /// use dbduel_stats::sequential::{BlockTotals, SequentialPlan, Totals, Unit, Verdict, decide};
    ///
    /// # fn main() -> Result<(), dbduel_stats::StatsError> {
    /// // Twelve blocks of 10 s; the contender completes 6 % more in a second, and waits for a second in every third block.
    /// let blocks: Vec<(BlockTotals, f64)> = (0..12_u32)
    ///     .map(|block| {
    ///         let level = 1000.0 + f64::from(block * 7 % 5);
    ///         let stall = if block % 3 == 2 { 1.0 } else { 0.0 };
    ///         let contender = Totals { work: 10.6 * level, time: 10.0 + stall };
    ///         let reference = Totals { work: 10.0 * level, time: 10.0 };
    ///         (BlockTotals { contender, reference }, 1.0)
    ///     })
    ///     .collect();
    /// let plan = SequentialPlan::new(12.0, 0.05, 0.0, 7);
    /// let decision = decide(&Unit::of_totals(&blocks)?, &plan)?;
    /// // 4 s of 124 s are lost.
    /// assert!((decision.estimate - (1.06_f64 * 120.0 / 124.0).ln()).abs() < 1e-9);
    /// assert_eq!(decision.verdict, Verdict::Undecided);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StatsError::OutOfRange`] for work or time that cannot be computed with or negative work, [`StatsError::NotPositive`] for
    /// a time or a weight that is not above zero, or where one of the two has no work in any block.
    pub fn of_totals(blocks: &[(BlockTotals, f64)]) -> Result<Vec<Unit>, StatsError> {
        let mut so_far = BlockTotals::default();
        let mut units = Vec::with_capacity(blocks.len());
        for (index, (totals, weight)) in blocks.iter().enumerate() {
            totals.check(index)?;
            so_far = so_far.plus(*totals);
            let unit = Unit {
                measure: UnitMeasure::Totals(PooledBlock::new(*totals, &so_far)),
                weight: *weight,
            };
            unit.check(index)?;
            units.push(unit);
        }
        for (what, all) in [
            ("work of the contender in all blocks", so_far.contender),
            ("work of the reference in all blocks", so_far.reference),
        ] {
            if !blocks.is_empty() && all.work < MAGNITUDE_MAX.recip() {
                return Err(StatsError::NotPositive {
                    what,
                    index: blocks.len() - 1,
                    value: all.work,
                });
            }
        }
        Ok(units)
    }

    /// The paired difference, where the unit is one.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        match self.measure {
            UnitMeasure::Difference(difference) => Some(difference),
            UnitMeasure::Totals(_) => None,
        }
    }

    /// Contribution of the unit to a sum that is centred at zero if the effect is `effect`: the weighted difference without it,
    /// or the contribution of the totals.
    pub(super) fn without(&self, effect: f64) -> f64 {
        match self.measure {
            UnitMeasure::Difference(difference) => self.weight * (difference - effect),
            UnitMeasure::Totals(block) => block.without(effect),
        }
    }

    /// Decrease of [`Unit::without`] per unit of effect.
    fn slope(&self, effect: f64) -> f64 {
        match self.measure {
            UnitMeasure::Difference(_) => self.weight,
            UnitMeasure::Totals(block) => block.slope(effect),
        }
    }

    /// The effect that the unit shows by itself, at which [`Unit::without`] is zero. Infinite where there is none.
    pub(super) fn own_effect(&self) -> f64 {
        match self.measure {
            UnitMeasure::Difference(difference) => difference,
            UnitMeasure::Totals(block) => block.own_effect(),
        }
    }

    /// Checks that the unit, at `index` of its sequence, can be computed with.
    pub(crate) fn check(&self, index: usize) -> Result<(), StatsError> {
        if let UnitMeasure::Difference(difference) = self.measure {
            finite("paired differences", index, difference)?;
        }
        finite("weights", index, self.weight)?;
        if self.weight < MAGNITUDE_MAX.recip() {
            return Err(StatsError::NotPositive {
                what: "weights",
                index,
                value: self.weight,
            });
        }
        Ok(())
    }

    /// Fails unless the unit, at `index` of its sequence, is of the same kind as the first one.
    pub(super) fn check_sort(&self, first: &Unit, index: usize) -> Result<(), StatsError> {
        if self.difference().is_some() == first.difference().is_some() {
            return Ok(());
        }
        Err(StatsError::Shape {
            what: "units",
            problem: format!("unit {index} is of a different kind than the first"),
        })
    }
}

/// Fails on the first invalid unit.
pub(super) fn check_all(units: &[Unit]) -> Result<(), StatsError> {
    for (index, unit) in units.iter().enumerate() {
        unit.check(index)?;
        unit.check_sort(&units[0], index)?;
    }
    Ok(())
}

/// The effect of all units together: the weighted mean of differences, or the log ratio of total throughputs, which is infinite
/// while one of the two has no work.
pub(super) fn mean_effect(units: &[Unit]) -> f64 {
    let mut all: Option<BlockTotals> = None;
    for unit in units {
        if let UnitMeasure::Totals(block) = unit.measure {
            all = Some(all.unwrap_or_default().plus(block.totals));
        }
    }
    if let Some(all) = all {
        return all.log_ratio();
    }
    let differences: f64 = units.iter().map(|unit| unit.without(0.0)).sum();
    differences / units.iter().map(|unit| unit.weight).sum::<f64>()
}

/// Standard error of [`mean_effect`] from the scatter of two or more units: that of the mean of independent differences, or that of
/// a linearised ratio of sums (Cochran 1977, ch. 6). In the unit of the effect; not finite where it has none.
pub(super) fn standard_error(units: &[Unit]) -> f64 {
    let n = units.len() as f64;
    let centre = mean_effect(units);
    let squares: f64 = units.iter().map(|unit| unit.without(centre).powi(2)).sum();
    let slope: f64 = units.iter().map(|unit| unit.slope(centre)).sum();
    (squares / (n - 1.0) / n).sqrt() / (slope / n)
}

#[cfg(test)]
mod tests;
