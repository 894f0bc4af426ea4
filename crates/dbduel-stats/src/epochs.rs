//! Verdicts about *servers* instead of instances: epochs, that is restarts, are the units.
//!
//! A restart alone can move a server by a percent, and no number of slices of one instance reveals it. Epoch means are
//! compared by a group-sequential t test with O'Brien–Fleming spending (O'Brien & Fleming 1979; Lan & DeMets 1983) and
//! repeated confidence intervals (Jennison & Turnbull 2000). Its error rate rests on roughly normal epoch means;
//! [`crate::sequential`] does without from about eight epochs on.

use crate::error::{StatsError, all_finite, at_least, not_negative, open_fraction};
use crate::moments::as_count;
use crate::moments::{mean, normal_cdf, normal_point, variance};
use crate::random::RandomStream;
use crate::sequential::balance::{LimitShares, balance};
use crate::sequential::{Interval, Side, Verdict};

/// Epochs before the first look.
pub const FIRST_LOOK: usize = 3;

/// Simulated duels behind the boundaries: about 1 % accuracy from the second look on.
const PATHS: usize = 400_000;

/// The balance of looks is located to this share of the interval.
const BALANCE_PRECISION: f64 = 1e-6;

/// Largest number of epochs that boundaries are made for.
const EPOCHS_LIMIT: usize = 100;

/// Boundaries of |t| for looks after 3, 4, … epochs, fixed before the first epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochBoundaries {
    boundaries: Vec<f64>,
}

impl EpochBoundaries {
    /// Simulates the boundaries for at most `epochs_max` epochs at two-sided error `alpha`. Same
    /// arguments, same boundaries. Takes a fraction of a second.
    ///
    /// # Errors
    /// [`StatsError::Parameter`] for fewer than 3 or more than 100 epochs, or `alpha` outside (0, 1).
    pub fn new(epochs_max: usize, alpha: f64, seed: u64) -> Result<Self, StatsError> {
        open_fraction("alpha", alpha)?;
        if !(FIRST_LOOK..=EPOCHS_LIMIT).contains(&epochs_max) {
            return Err(StatsError::Parameter {
                name: "epochs_max",
                value: epochs_max as f64,
                requirement: "between 3 and 100",
            });
        }
        let mut random = RandomStream::new(seed, 0);
        let mut live: Vec<(f64, f64)> = vec![(0.0, 0.0); PATHS];
        let mut spent = 0;
        let mut boundaries = Vec::new();
        for epoch in 1..=epochs_max {
            for (sum, squares) in &mut live {
                let value = random.normal();
                *sum += value;
                *squares += value * value;
            }
            if epoch < FIRST_LOOK {
                continue;
            }
            let share = epoch as f64 / epochs_max as f64;
            let spending = 2.0 - 2.0 * normal_cdf(normal_point(1.0 - 0.5 * alpha) / share.sqrt());
            let allowed = as_count((spending * PATHS as f64).floor());
            let slots = allowed.saturating_sub(spent).min(live.len() - 1);
            if slots == 0 {
                boundaries.push(f64::INFINITY);
                continue;
            }
            let descending =
                |a: &(f64, f64), b: &(f64, f64)| student(*b, epoch).total_cmp(&student(*a, epoch));
            let (_, cut, _) = live.select_nth_unstable_by(slots - 1, descending);
            boundaries.push(student(*cut, epoch));
            live.drain(..slots);
            spent += slots;
        }
        Ok(EpochBoundaries { boundaries })
    }

    /// Boundary of |t| after `epochs` epochs; infinite where no look is made.
    #[must_use]
    pub fn at(&self, epochs: usize) -> f64 {
        let look = epochs.checked_sub(FIRST_LOOK);
        look.and_then(|look| self.boundaries.get(look))
            .copied()
            .unwrap_or(f64::INFINITY)
    }
}

/// |t| of `epochs` values with the given sum and sum of squares.
fn student((sum, squares): (f64, f64), epochs: usize) -> f64 {
    let n = epochs as f64;
    let centre = sum / n;
    centre.abs() / ((squares - sum * centre).max(0.0) / (n - 1.0) / n).sqrt()
}

/// The decision about the servers from the epochs seen so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochDecision {
    /// The verdict.
    pub verdict: Verdict,
    /// The whole interval lies within the margin.
    pub within_margin: bool,
    /// Intersection of the repeated confidence intervals, valid at every look at once. `None` when
    /// they have nothing in common: the epochs do not share one effect.
    pub interval: Option<Interval>,
    /// Mean of the epoch means, or where the interval excludes it, the effect that is equally far from an end of some look's interval
    /// on either side (`is_balanced`).
    pub estimate: f64,
    /// Earlier looks exclude the mean of all epochs, and the estimate is the balance of the looks.
    pub is_balanced: bool,
    /// Number of epochs seen.
    pub n: usize,
    /// Number of epochs after which a verdict first stood.
    pub decided_at: Option<usize>,
}

/// The decision from the epochs' mean differences, in order. `margin` as in
/// [`crate::sequential::SequentialPlan`]. Epochs beyond the boundaries' maximum add nothing.
///
/// # Errors
/// No epoch, a mean that is not finite, or a negative margin.
pub fn decide_epochs(
    epoch_means: &[f64],
    boundaries: &EpochBoundaries,
    margin: f64,
) -> Result<EpochDecision, StatsError> {
    at_least("epoch means", 1, epoch_means.len())?;
    all_finite("epoch means", epoch_means)?;
    not_negative("margin", margin)?;
    let mut interval = Interval {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };
    let mut decided_at = None;
    // Mean and half width of each look.
    let mut looks = Vec::new();
    for epochs in FIRST_LOOK..=epoch_means.len() {
        let seen = &epoch_means[..epochs];
        let boundary = boundaries.at(epochs);
        if boundary.is_infinite() {
            continue;
        }
        let half = boundary * (variance(seen) / epochs as f64).sqrt();
        interval.low = interval.low.max(mean(seen) - half);
        interval.high = interval.high.min(mean(seen) + half);
        looks.push((mean(seen), half));
        if decided_at.is_none() && verdict(interval, margin) != Verdict::Undecided {
            decided_at = Some(epochs);
        }
    }
    let interval = (interval.low <= interval.high).then_some(interval);
    let verdict = interval.map_or(Verdict::Undecided, |interval| verdict(interval, margin));
    let centre = mean(epoch_means);
    let excluding = interval.filter(|interval| interval.excludes(centre));
    let balance = excluding.map(|interval| balance_of(&looks, interval));
    Ok(EpochDecision {
        verdict,
        within_margin: interval.is_some_and(|interval| is_within(interval, margin)),
        interval,
        estimate: balance.unwrap_or(centre),
        is_balanced: balance.is_some(),
        n: epoch_means.len(),
        decided_at: decided_at.filter(|_| verdict != Verdict::Undecided),
    })
}

/// The effect in the interval, which is finite, at which the largest |t| of a look, relative to its boundary, is the same with the
/// look's mean above and below.
fn balance_of(looks: &[(f64, f64)], interval: Interval) -> f64 {
    let precision = BALANCE_PRECISION * (interval.high - interval.low);
    balance(interval.low, interval.high, precision, |effect| {
        let mut shares = LimitShares::default();
        for (mean, half) in looks {
            let distance = mean - effect;
            shares.add(Side::of(distance), distance.abs() / half);
        }
        shares.nearer_side()
    })
}

fn is_within(interval: Interval, margin: f64) -> bool {
    -margin < interval.low && interval.high < margin
}

fn verdict(interval: Interval, margin: f64) -> Verdict {
    if interval.low > 0.0 {
        Verdict::Faster
    } else if interval.high < 0.0 {
        Verdict::Slower
    } else if is_within(interval, margin) {
        Verdict::Equivalent
    } else {
        Verdict::Undecided
    }
}

/// Scatter from restarts and scatter from blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RestartSpread {
    /// Standard deviation between restarts of the same servers, blocks' noise removed. A result in
    /// itself: "two starts differ by that much".
    pub between: f64,
    /// Standard deviation of one block within an epoch.
    pub within: f64,
}

/// Splits the scatter of the differences of several epochs, each with its blocks' differences.
///
/// # Errors
/// Fewer than two epochs, an epoch with fewer than two blocks, or a value that is not finite.
pub fn restart_spread(epochs: &[Vec<f64>]) -> Result<RestartSpread, StatsError> {
    at_least("epochs", 2, epochs.len())?;
    for epoch in epochs {
        at_least("blocks of an epoch", 2, epoch.len())?;
        all_finite("blocks of an epoch", epoch)?;
    }
    let means: Vec<f64> = epochs.iter().map(|epoch| mean(epoch)).collect();
    let within = mean(
        &epochs
            .iter()
            .map(|epoch| variance(epoch))
            .collect::<Vec<_>>(),
    );
    let inverse_sizes: Vec<f64> = epochs
        .iter()
        .map(|epoch| 1.0 / epoch.len() as f64)
        .collect();
    let between = (variance(&means) - within * mean(&inverse_sizes)).max(0.0);
    Ok(RestartSpread {
        between: between.sqrt(),
        within: within.sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_match_the_published_table() {
        let table: [(usize, &[f64]); 2] = [
            (6, &[5.39, 3.67, 2.96]),
            (12, &[15.28, 7.26, 5.02, 4.03, 3.46, 3.10, 2.85, 2.66, 2.52]),
        ];
        for (epochs_max, expected) in table {
            let boundaries = EpochBoundaries::new(epochs_max, 0.05, 1).unwrap();
            for (look, expected) in expected.iter().enumerate() {
                let value = boundaries.at(look + 4);
                assert!(
                    (value / expected - 1.0).abs() < 0.03,
                    "{epochs_max} {look}: {value} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_interval_only_shrinks_and_the_verdict_follows_it() {
        let boundaries = EpochBoundaries::new(8, 0.05, 1).unwrap();
        let means = [0.10, 0.11, 0.09, 0.10, 0.105, 0.10];
        let decision = decide_epochs(&means, &boundaries, 0.02).unwrap();
        assert_eq!(decision.verdict, Verdict::Faster);
        assert!(decision.decided_at.is_some_and(|at| at <= 5));
        let early = decide_epochs(&means[..2], &boundaries, 0.02).unwrap();
        assert_eq!(
            (early.verdict, early.decided_at),
            (Verdict::Undecided, None)
        );
        assert_eq!(
            decide_epochs(&[0.001; 5], &boundaries, 0.02)
                .unwrap()
                .verdict,
            Verdict::Faster
        );
        assert_eq!(
            decide_epochs(&[0.0; 5], &boundaries, 0.02).unwrap().verdict,
            Verdict::Equivalent
        );
    }

    #[test]
    fn an_estimate_that_earlier_looks_exclude_is_balanced() {
        let boundaries = EpochBoundaries::new(8, 0.05, 1).unwrap();
        // The seventh start hung.
        let means = [0.10, 0.1001, 0.0999, 0.10, 0.10, 0.1001, -2.0];
        let decision = decide_epochs(&means, &boundaries, 0.02).unwrap();
        let interval = decision.interval.unwrap();
        assert!(mean(&means) < interval.low && decision.is_balanced);
        assert!(
            interval.low < decision.estimate && decision.estimate < interval.high,
            "{decision:?}"
        );
        let calm = decide_epochs(&means[..6], &boundaries, 0.02).unwrap();
        assert!(!calm.is_balanced);
        assert_eq!(calm.estimate, mean(&means[..6]));
    }

    #[test]
    fn bad_epochs_are_refused() {
        let boundaries = EpochBoundaries::new(3, 0.05, 1).unwrap();
        assert!(decide_epochs(&[], &boundaries, 0.02).is_err());
        assert!(decide_epochs(&[f64::INFINITY], &boundaries, 0.02).is_err());
        assert!(decide_epochs(&[0.1], &boundaries, f64::NAN).is_err());
        assert!(EpochBoundaries::new(2, 0.05, 1).is_err());
        assert!(restart_spread(&[vec![1.0, 2.0]]).is_err());
    }

    #[test]
    fn scatter_is_split_into_restarts_and_blocks() {
        let mut random = RandomStream::new(3, 0);
        let epochs: Vec<Vec<f64>> = (0..400)
            .map(|_| {
                let restart = 0.03 * random.normal();
                (0..5).map(|_| restart + 0.05 * random.normal()).collect()
            })
            .collect();
        let spread = restart_spread(&epochs).unwrap();
        assert!((spread.within / 0.05 - 1.0).abs() < 0.05, "{spread:?}");
        assert!((spread.between / 0.03 - 1.0).abs() < 0.12, "{spread:?}");
    }
}
