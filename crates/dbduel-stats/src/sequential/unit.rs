//! What a test takes: one paired difference with its weight.

use crate::error::{MAGNITUDE_MAX, StatsError, finite};

/// One paired difference, with what the plan gives it of the whole.
///
/// Blocks of different length are units of different weight. Weights in proportion to the length make the mean of all units
/// the most precise one where noise is fast; others cost precision and not the error rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// The difference.
    pub difference: f64,
    /// What the plan gives the unit of the information that all units together shall have, and of the error probability
    /// that goes with it. Positive, and fixed by the plan or by figures that would be the same if the
    /// contenders had changed places; a weight that depends on who was faster makes the error probability void.
    pub weight: f64,
}

impl Unit {
    /// A difference with its weight.
    #[must_use]
    pub fn new(difference: f64, weight: f64) -> Self {
        Unit { difference, weight }
    }

    /// Differences of equal weight: 1 each.
    #[must_use]
    pub fn of_weight_one(differences: &[f64]) -> Vec<Unit> {
        let units = differences.iter();
        units
            .map(|difference| Unit::new(*difference, 1.0))
            .collect()
    }

    /// The weighted difference as it would be without an effect, if the effect were `effect`.
    pub(super) fn without(&self, effect: f64) -> f64 {
        self.weight * (self.difference - effect)
    }

    /// Checks that the unit, at `index` of its sequence, can be computed with.
    pub(crate) fn check(&self, index: usize) -> Result<(), StatsError> {
        finite("paired differences", index, self.difference)?;
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
}

/// Fails on the first unit that cannot be computed with.
pub(super) fn check_all(units: &[Unit]) -> Result<(), StatsError> {
    let mut numbered = units.iter().enumerate();
    numbered.try_for_each(|(index, unit)| unit.check(index))
}

/// The weighted mean of the units' differences.
pub(super) fn mean_effect(units: &[Unit]) -> f64 {
    let differences: f64 = units.iter().map(|unit| unit.without(0.0)).sum();
    differences / total_weight(units)
}

fn total_weight(units: &[Unit]) -> f64 {
    units.iter().map(|unit| unit.weight).sum()
}

/// Standard error of [`mean_effect`] from the scatter of two or more units.
pub(super) fn standard_error(units: &[Unit]) -> f64 {
    let n = units.len() as f64;
    let centre = mean_effect(units);
    let squares: f64 = units.iter().map(|unit| unit.without(centre).powi(2)).sum();
    (squares / (n - 1.0) / n).sqrt() / (total_weight(units) / n)
}
