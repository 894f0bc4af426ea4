//! Parameters that are fixed before the first unit is measured.

use crate::error::{MAGNITUDE_MAX, StatsError, bounded, not_negative, open_fraction};

/// Share of α that is kept for extensions after the declared budget, unless the plan says otherwise.
pub const DEFAULT_RESERVE: f64 = 0.2;

/// Simulated sign paths unless the plan says otherwise: Monte-Carlo error of α = 0.05 is then 0.3 %.
pub const DEFAULT_PATHS: usize = 4999;

/// Units before the first look. No fair coin can reject at α ≤ 0.05 with fewer.
pub const DEFAULT_N_MIN: usize = 6;

/// Parameters that are fixed before the first unit is measured. The same plan and units give the same decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SequentialPlan {
    /// Total weight of the units within the budget; their largest number, where all weights are 1.
    pub weight_max: f64,
    /// Units before the first look.
    pub n_min: usize,
    /// Probability that any claim about this pair and metric is wrong, two-sided, over the whole duel.
    pub alpha: f64,
    /// Half-width of the equivalence zone in the units of the differences: ln 1.02 for 2 % of a log
    /// ratio. Zero means that equivalence is never claimed.
    pub margin: f64,
    /// Seed of the simulated coins. It depends neither on the measurements nor on the seed that drew
    /// the running order.
    pub seed: u64,
    /// Number of simulated sign paths.
    pub paths: usize,
    /// Share of `alpha` that is kept for extensions after `weight_max`.
    pub reserve: f64,
}

impl SequentialPlan {
    /// A plan with the default number of paths and first look.
    #[must_use]
    pub fn new(weight_max: f64, alpha: f64, margin: f64, seed: u64) -> Self {
        SequentialPlan {
            weight_max,
            n_min: DEFAULT_N_MIN,
            alpha,
            margin,
            seed,
            paths: DEFAULT_PATHS,
            reserve: DEFAULT_RESERVE,
        }
    }

    /// Number of units before which the budgeted test cannot reject, since all signs must agree there: the smallest n
    /// with 2 · 2⁻ⁿ ≤ (1 − reserve) α · the share of the first n planned `weights` in all. `None`: the budget, or as
    /// many weights as were given, are too short for any verdict within them.
    #[must_use]
    pub fn first_possible_decision(&self, weights: impl IntoIterator<Item = f64>) -> Option<usize> {
        if open_fraction("alpha", self.alpha_within_budget()).is_err() {
            return None;
        }
        let mut weight = 0.0;
        let mut two_sided = 2.0;
        for (n, next) in (1..).zip(weights) {
            if self.is_spent(weight) {
                return None;
            }
            weight += next;
            two_sided *= 0.5;
            if n >= self.n_min && two_sided <= self.alpha_within_budget() * self.share(weight) {
                return Some(n);
            }
        }
        None
    }

    /// The share of the planned information in units of this total weight.
    pub(super) fn share(&self, weight: f64) -> f64 {
        (weight / self.weight_max).min(1.0)
    }

    /// Whether units of this total weight exhaust the budget, up to rounding of their sum.
    pub(super) fn is_spent(&self, weight: f64) -> bool {
        weight >= self.weight_max * (1.0 - 1e-9)
    }

    pub(super) fn alpha_within_budget(&self) -> f64 {
        (1.0 - self.reserve) * self.alpha
    }

    pub(super) fn alpha_reserve(&self) -> f64 {
        self.reserve * self.alpha
    }

    /// Checks that the plan can lead to a decision at all.
    ///
    /// # Errors
    /// [`StatsError::Parameter`] names the number to change.
    pub fn check(&self) -> Result<(), StatsError> {
        open_fraction("alpha", self.alpha)?;
        open_fraction("reserve", self.reserve)?;
        if self.n_min == 0 {
            return Err(StatsError::Parameter {
                name: "n_min",
                value: 0.0,
                requirement: "at least 1",
            });
        }
        if !(MAGNITUDE_MAX.recip()..=MAGNITUDE_MAX).contains(&self.weight_max) {
            return Err(StatsError::Parameter {
                name: "weight_max",
                value: self.weight_max,
                requirement: "positive and finite",
            });
        }
        not_negative("margin", self.margin)?;
        bounded("paths", self.paths)?;
        if self.alpha_within_budget() * ((self.paths + 1) as f64) < 1.0 {
            return Err(StatsError::Parameter {
                name: "paths",
                value: self.paths as f64,
                requirement: "at least 1 / ((1 - reserve) alpha), or no path could ever be rejected",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_possible_decision_follows_from_the_coins() {
        for (n_max, first) in [
            (5.0, None),
            (6.0, Some(6)),
            (17.0, Some(7)),
            (40.0, Some(8)),
            (92.0, Some(9)),
            (204.0, Some(10)),
        ] {
            let plan = SequentialPlan::new(n_max, 0.05, 0.02, 1);
            let equal = std::iter::repeat(1.0);
            assert_eq!(plan.first_possible_decision(equal), first, "{n_max}");
        }
    }

    #[test]
    fn short_units_before_long_ones_put_the_first_decision_off() {
        let plan = SequentialPlan::new(40.0, 0.05, 0.02, 1);
        let first = |short: f64| {
            let weights = std::iter::repeat_n(short, 10).chain(std::iter::repeat(1.0));
            plan.first_possible_decision(weights)
        };
        // 2 · 2⁻¹⁰ ≤ 0.04 · 1.96 / 40, and 2 · 2⁻¹¹ ≤ 0.04 · 1.1 / 40, but 2 · 2⁻¹⁰ > 0.04 · 0.1 / 40.
        assert_eq!(first(1.0), Some(8));
        assert_eq!(first(0.196), Some(10));
        assert_eq!(first(0.01), Some(11));
        assert_eq!(plan.first_possible_decision([1.0; 7]), None);
        assert_eq!(plan.first_possible_decision([6.0; 7]), Some(6));
    }
}
