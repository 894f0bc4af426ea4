//! Which of several settings makes a difference: designs of contenders between two, and the contrasts of their log
//! throughput that estimate effects.
//!
//! Two contenders differ in k factors, each with two levels. A run of a design is a contender that has some factors at the
//! first contender's level and the others at the second's; all runs take part in every block, in an order drawn by lot.
//!
//! **What is estimated.** The main effect of a factor is the mean of its runs at the second level less the mean of those at
//! the first. Where no more than two factors interact it is the factor's Shapley value, half of every interaction included,
//! and the main effects add up to the whole difference (Shapley 1953). The gap between their sum and the difference that
//! the two contenders themselves show is the contribution of interactions of three or more factors.
//!
//! **Designs.** All combinations up to four factors; the matrices of Plackett and Burman (1946) with their foldover (Box and
//! Wilson 1951) beyond, in which main effects are clear of all interactions of two. All designs hold the two contenders
//! themselves.
//!
//! **Why the tests are exact.** Within a block the running order is a uniformly random permutation of the runs. Every
//! contrast here has with each weight w of a run the weight −w of another, so exchanging the places of such runs is an
//! equally likely order. If a run's log throughput is its own constant plus what its place in the block does to any run, that
//! exchange turns the sign of the contrast's error and of nothing else. The errors of blocks therefore have fair signs of
//! their own, given the machine and whatever its noise is, and [`crate::sequential`] tests and inverts them as it does
//! differences of two (randomisation of contrasts: Fisher 1935; Pitman 1937).

mod plackett_burman;

use crate::error::StatsError;

/// Maximum number of factors of a design of all combinations: for four, the matrix of eight rows with its foldover has as many runs.
const FULL_MAX: usize = 4;

/// Maximum number of factors of a design.
pub const FACTORS_MAX: usize = plackett_burman::FACTORS_MAX;

/// How the runs of a design were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DesignKind {
    /// All combinations of levels.
    Full,
    /// A matrix of Plackett and Burman with its foldover.
    Foldover,
}

/// Runs of two-level factors whose main effects are clear of two-factor interactions.
///
/// ```
/// use dbduel_stats::attribution::{FactorialDesign, contrast};
///
/// # fn main() -> Result<(), dbduel_stats::StatsError> {
/// // The first of two settings is worth 10 %, the second 2 %, and together they lose 4 %.
/// let design = FactorialDesign::new(2)?;
/// let log_rate = |run: &Vec<bool>| match run[..] {
///     [false, false] => 0.0,
///     [true, false] => 0.10,
///     [false, true] => 0.02,
///     _ => 0.08,
/// };
/// let values: Vec<f64> = design.runs().iter().map(log_rate).collect();
/// assert!((contrast(&design.main_effect(0), &values) - 0.08).abs() < 1e-12);
/// assert!((contrast(&design.main_effect(1), &values) - 0.00).abs() < 1e-12);
/// assert!((contrast(&design.interactions()[0].weights, &values) + 0.04).abs() < 1e-12);
/// assert!((contrast(&design.whole(), &values) - 0.08).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorialDesign {
    runs: Vec<Vec<bool>>,
}

/// The contrast of interactions that a design confounds.
#[derive(Debug, Clone, PartialEq)]
pub struct InteractionContrast {
    /// Pairs of factors, and whether the interaction enters with a negative sign. With more than one, the contrast is
    /// their sum.
    pub pairs: Vec<([usize; 2], bool)>,
    /// False where parts of other pairs' interactions contribute too.
    pub is_clear: bool,
    /// Weight of each run: the effect of one factor at the other's second level, minus that at its first.
    pub weights: Vec<f64>,
}

impl FactorialDesign {
    /// The design for so many factors. Its first run has all of them at the first level, its second one all at the second;
    /// the others follow by the number of factors at the second level.
    ///
    /// # Errors
    /// [`StatsError::Parameter`] for none or more than [`FACTORS_MAX`].
    pub fn new(factors: usize) -> Result<Self, StatsError> {
        if !(1..=FACTORS_MAX).contains(&factors) {
            return Err(StatsError::Parameter {
                name: "factors",
                value: factors as f64,
                requirement: "at least 1 and at most 23",
            });
        }
        let mut runs = match factors {
            0..=FULL_MAX => combinations(factors),
            _ => plackett_burman::with_foldover(factors),
        };
        runs.sort_by_key(|run| {
            let changed = run.iter().filter(|is_second| **is_second).count();
            let place = match changed {
                0 => 0,
                all if all == factors => 1,
                some => some + 1,
            };
            let first_changed: Vec<bool> = run.iter().map(|is_second| !is_second).collect();
            (place, first_changed)
        });
        Self::from_runs(runs)
    }

    /// A design from existing runs.
    ///
    /// # Errors
    /// [`StatsError::Shape`] for runs in which main effects are confounded with each other or with two-factor
    /// interactions.
    pub fn from_runs(runs: Vec<Vec<bool>>) -> Result<Self, StatsError> {
        let wrong = |problem: &str| {
            Err(StatsError::Shape {
                what: "design",
                problem: problem.to_owned(),
            })
        };
        let factors = runs.first().map_or(0, Vec::len);
        if !(1..=FACTORS_MAX).contains(&factors) || runs.iter().any(|run| run.len() != factors) {
            return wrong("its runs do not have one level for each of 1 to 23 factors");
        }
        let mut sorted = runs.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let complement = |run: &Vec<bool>| run.iter().map(|is_second| !is_second).collect();
        let is_present = |run: &Vec<bool>| sorted.binary_search(run).is_ok();
        if sorted.len() != runs.len() || !runs.iter().map(complement).all(|run| is_present(&run)) {
            return wrong("a run is repeated, or its foldover is missing");
        }
        if !is_present(&vec![false; factors]) {
            return wrong("the contenders whose difference is divided are not among its runs");
        }
        let design = Self { runs };
        let columns: Vec<Vec<f64>> = (0..factors).map(|factor| design.column(factor)).collect();
        let is_orthogonal =
            |one: usize| (0..one).all(|other| dot(&columns[one], &columns[other]) == 0.0);
        if !(0..factors).all(is_orthogonal) {
            return wrong("two factors change together, so their effects are confounded");
        }
        Ok(design)
    }

    /// Runs in their order: for each factor whether it is at its second level.
    #[must_use]
    pub fn runs(&self) -> &[Vec<bool>] {
        &self.runs
    }

    /// Number of factors.
    #[must_use]
    pub fn factors(&self) -> usize {
        self.runs[0].len()
    }

    /// How the runs were chosen.
    #[must_use]
    pub fn kind(&self) -> DesignKind {
        match u32::try_from(self.factors()).is_ok_and(|factors| self.runs.len() == 1 << factors) {
            true => DesignKind::Full,
            false => DesignKind::Foldover,
        }
    }

    /// Weights of the main effect of a factor; all zero for an unknown factor.
    #[must_use]
    pub fn main_effect(&self, factor: usize) -> Vec<f64> {
        let scale = 2.0 / self.runs.len() as f64;
        self.column(factor)
            .iter()
            .map(|sign| scale * sign)
            .collect()
    }

    /// Contrasts of all two-factor interactions; confounded ones share one.
    #[must_use]
    pub fn interactions(&self) -> Vec<InteractionContrast> {
        let columns: Vec<Vec<f64>> = (0..self.factors())
            .map(|factor| self.column(factor))
            .collect();
        // Their weights are signs until all are found.
        let mut found: Vec<InteractionContrast> = Vec::new();
        for one in 0..columns.len() {
            for other in one + 1..columns.len() {
                let product = columns[one].iter().zip(&columns[other]);
                let product: Vec<f64> = product.map(|(a, b)| a * b).collect();
                let all = product.len() as f64;
                let known = found.iter_mut().find_map(|contrast| {
                    let alike = dot(&contrast.weights, &product);
                    (alike.abs() == all).then_some((contrast, alike < 0.0))
                });
                match known {
                    Some((known, is_negative)) => known.pairs.push(([one, other], is_negative)),
                    None => found.push(InteractionContrast {
                        pairs: vec![([one, other], false)],
                        is_clear: true,
                        weights: product,
                    }),
                }
            }
        }
        let is_clear = |own: &InteractionContrast| {
            let is_apart = |other: &InteractionContrast| {
                own == other || dot(&own.weights, &other.weights) == 0.0
            };
            found.iter().all(is_apart)
        };
        let clear: Vec<bool> = found.iter().map(is_clear).collect();
        let scale = 4.0 / self.runs.len() as f64;
        for (contrast, is_clear) in found.iter_mut().zip(clear) {
            contrast.is_clear = is_clear;
            contrast
                .weights
                .iter_mut()
                .for_each(|weight| *weight *= scale);
        }
        found
    }

    /// Weights of the whole difference: the run with all factors at the second level, minus the run with none.
    #[must_use]
    pub fn whole(&self) -> Vec<f64> {
        let weight = |run: &Vec<bool>| match (run.contains(&true), run.contains(&false)) {
            (true, false) => 1.0,
            (false, true) => -1.0,
            _ => 0.0,
        };
        self.runs.iter().map(weight).collect()
    }

    /// Weights of the sum of the main effects of these factors.
    #[must_use]
    pub fn sum_of(&self, factors: impl IntoIterator<Item = usize>) -> Vec<f64> {
        let mut sum = vec![0.0; self.runs.len()];
        for factor in factors {
            for (sum, weight) in sum.iter_mut().zip(self.main_effect(factor)) {
                *sum += weight;
            }
        }
        sum
    }

    /// Weights of the remainder of the whole difference after the main effects; `None` with fewer than three factors,
    /// where it is always zero.
    #[must_use]
    pub fn gap(&self) -> Option<Vec<f64>> {
        let factors = self.factors();
        let sum = self.sum_of(0..factors);
        let gap = self
            .whole()
            .iter()
            .zip(sum)
            .map(|(whole, sum)| whole - sum)
            .collect();
        (factors > 2).then_some(gap)
    }

    /// −1 for runs with the factor at its first level, 1 for the others.
    fn column(&self, factor: usize) -> Vec<f64> {
        let sign = |run: &Vec<bool>| match run.get(factor) {
            Some(true) => 1.0,
            Some(false) => -1.0,
            None => 0.0,
        };
        self.runs.iter().map(sign).collect()
    }
}

/// The value of a contrast: weights times values, one for each run.
#[must_use]
pub fn contrast(weights: &[f64], values: &[f64]) -> f64 {
    dot(weights, values)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// All combinations of levels.
fn combinations(factors: usize) -> Vec<Vec<bool>> {
    let run = |number: usize| {
        (0..factors)
            .map(|factor| number >> factor & 1 == 1)
            .collect()
    };
    (0..1 << factors).map(run).collect()
}

#[cfg(test)]
mod tests;
