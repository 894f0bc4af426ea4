//! What is fixed before the first unit is measured.

use crate::error::{StatsError, bounded, not_negative, open_fraction};

/// Share of α that is kept for extensions after the declared budget, unless the plan says otherwise.
pub const DEFAULT_RESERVE: f64 = 0.2;

/// Simulated sign paths unless the plan says otherwise: Monte-Carlo error of α = 0.05 is then 0.3 %.
pub const DEFAULT_PATHS: usize = 4999;

/// Units before the first look. No fair coin can reject at α ≤ 0.05 with fewer.
pub const DEFAULT_N_MIN: usize = 6;

/// What is fixed before the first unit is measured. The same plan and units give the same decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SequentialPlan {
    /// Largest number of units the budget pays for.
    pub n_max: usize,
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
    /// Share of `alpha` that is kept for extensions after `n_max` units.
    pub reserve: f64,
}

impl SequentialPlan {
    /// A plan with the default number of paths and first look.
    #[must_use]
    pub fn new(n_max: usize, alpha: f64, margin: f64, seed: u64) -> Self {
        SequentialPlan {
            n_max,
            n_min: DEFAULT_N_MIN,
            alpha,
            margin,
            seed,
            paths: DEFAULT_PATHS,
            reserve: DEFAULT_RESERVE,
        }
    }

    /// Number of units before which the budgeted test cannot reject, since all signs must agree there: the smallest n
    /// with 2 · 2⁻ⁿ ≤ (1 − reserve) α · n / n_max. `None`: the budget is too short for any verdict within it.
    #[must_use]
    pub fn first_possible_decision(&self) -> Option<usize> {
        if open_fraction("alpha", self.alpha_within_budget()).is_err() {
            return None;
        }
        (self.n_min..=self.n_max).find(|n| {
            let one_sided = 0.5_f64.powi(i32::try_from(*n).unwrap_or(i32::MAX));
            2.0 * one_sided <= self.alpha_within_budget() * *n as f64 / self.n_max as f64
        })
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
        for (name, value) in [("n_max", self.n_max), ("n_min", self.n_min)] {
            if value == 0 {
                return Err(StatsError::Parameter {
                    name,
                    value: 0.0,
                    requirement: "at least 1",
                });
            }
        }
        not_negative("margin", self.margin)?;
        bounded("paths", self.paths)?;
        if self.alpha_within_budget() * ((self.paths + 1) as f64) < 1.0 {
            return Err(StatsError::Parameter {
                name: "paths",
                value: self.paths as f64,
                requirement: "at least 1 / ((1 - reserve) alpha), or no path could ever be given up",
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
            (5, None),
            (6, Some(6)),
            (17, Some(7)),
            (40, Some(8)),
            (92, Some(9)),
            (204, Some(10)),
        ] {
            let plan = SequentialPlan::new(n_max, 0.05, 0.02, 1);
            assert_eq!(plan.first_possible_decision(), first, "{n_max}");
        }
    }
}
