//! Stalls: how often contenders stood still, and how much unseen stalls could still cost.
//!
//! This is the limit of every verdict: stalls rarer than the measured time are invisible to it. The counts cover the
//! stalls seen, a test shows whether two contenders stall equally often, and a bound limits the unseen ones.
//! [`stall_chance`] shows whether enough were seen.

mod chance;

pub use chance::{EFFECTIVE_STALLS_MIN, RatioStalls, StallChance, stall_chance};

use crate::error::{StatsError, all_finite, at_least, bounded, not_negative, open_fraction};
use crate::moments::median;
use statrs::distribution::{Binomial, Discrete};

/// Below this share of the slice's median an interval belongs to a stall.
const STALL_SHARE: f64 = 0.5;

/// Stalls below which their cost cannot be distinguished from chance.
pub const PRICEABLE_MIN: u64 = 10;

/// Stalls of one contender.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StallCount {
    /// Separate stalls: runs of intervals below half of the slice's median.
    pub stalls: u64,
    /// Work lost in them, in intervals at the median rate.
    pub lost: f64,
    /// Intervals the contender was active.
    pub active: u64,
}

/// Counts the stalls in a contender's slices; each slice is a series of equal intervals.
///
/// A slice whose median is zero stood still as a whole: one stall as long as the slice. Negative values count
/// as zero.
///
/// # Errors
/// [`StatsError::OutOfRange`] for a NaN, an infinity or a number too large to compute with.
pub fn count_stalls(slices: &[Vec<f64>]) -> Result<StallCount, StatsError> {
    let mut count = StallCount::default();
    for slice in slices.iter().filter(|slice| !slice.is_empty()) {
        all_finite("slice", slice)?;
        count.active += slice.len() as u64;
        let typical = median(&mut slice.clone()).unwrap_or(0.0);
        if typical <= 0.0 {
            count.stalls += 1;
            count.lost += slice.len() as f64;
            continue;
        }
        let mut stalled = false;
        for value in slice {
            let below = *value < STALL_SHARE * typical;
            count.stalls += u64::from(below && !stalled);
            count.lost += if below {
                1.0 - value.max(0.0) / typical
            } else {
                0.0
            };
            stalled = below;
        }
    }
    Ok(count)
}

/// Two contenders' stalls compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StallComparison {
    /// Exact two-sided p-value of "same rate of stalls per active interval".
    pub same_rate_p: f64,
    /// Only one side stalled, fewer than [`PRICEABLE_MIN`] times: not enough to price its stalls.
    pub unpriced: bool,
}

/// Tests whether two contenders stall equally often per active interval.
///
/// Given the total, the count of one side is binomial with its share of the active time (Przyborowski
/// & Wilenski 1940). Without any stall the p-value is 1.
///
/// # Errors
/// [`StatsError::TooFew`] when a contender was never active, [`StatsError::Parameter`] for more than ten
/// million stalls.
pub fn compare_stalls(one: &StallCount, other: &StallCount) -> Result<StallComparison, StatsError> {
    at_least("active intervals", 1, count(one.active.min(other.active)))?;
    let share = one.active as f64 / (one.active as f64 + other.active as f64);
    let total = one.stalls.saturating_add(other.stalls);
    bounded("stalls", count(total))?;
    let same_rate_p = match Binomial::new(share, total) {
        Ok(binomial) => {
            // The relative slack admits outcomes that are equally likely up to rounding.
            let bar = binomial.pmf(one.stalls) * (1.0 + 1e-7);
            let tail = (0..=total)
                .map(|count| binomial.pmf(count))
                .filter(|p| *p <= bar);
            tail.sum::<f64>().min(1.0)
        }
        Err(_) => 1.0,
    };
    let (few, many) = (one.stalls.min(other.stalls), one.stalls.max(other.stalls));
    Ok(StallComparison {
        same_rate_p,
        unpriced: few == 0 && (1..PRICEABLE_MIN).contains(&many),
    })
}

/// Largest rate of an event that `1 − alpha` confidence allows when none was seen in `active`
/// intervals: `−ln α / T`, which is the rule of three for α = 0.05.
///
/// # Errors
/// [`StatsError::TooFew`] without active time, [`StatsError::Parameter`] for `alpha` outside (0, 1).
pub fn unseen_rate_bound(active: u64, alpha: f64) -> Result<f64, StatsError> {
    at_least("active intervals", 1, count(active))?;
    open_fraction("alpha", alpha)?;
    Ok(-alpha.ln() / active as f64)
}

/// Share of the throughput that unseen stalls of `length` intervals could still cost. A difference
/// whose interval comes closer to zero than this rests on a short horizon.
///
/// # Errors
/// As for [`unseen_rate_bound`], and [`StatsError::Parameter`] for a length that is negative or not finite.
pub fn unseen_cost_bound(length: f64, active: u64, alpha: f64) -> Result<f64, StatsError> {
    not_negative("length", length)?;
    Ok(length * unseen_rate_bound(active, alpha)?)
}

fn count(of: u64) -> usize {
    usize::try_from(of).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_below_half_the_median_are_counted_once() {
        let slice = vec![100.0, 100.0, 20.0, 0.0, 100.0, 49.0, 51.0, 100.0, 100.0];
        let count = count_stalls(&[slice, vec![0.0; 4], Vec::new()]).unwrap();
        assert_eq!((count.stalls, count.active), (3, 13));
        assert!((count.lost - (0.8 + 1.0 + 0.51 + 4.0)).abs() < 1e-12);
        assert!(count_stalls(&[vec![f64::NAN]]).is_err());
    }

    fn ledger(stalls: u64, active: u64) -> StallCount {
        StallCount {
            stalls,
            lost: 0.0,
            active,
        }
    }

    #[test]
    fn the_conditional_test_is_exact() {
        // 5 against 0 with equal time: 2 · 2^-5.
        let five = compare_stalls(&ledger(5, 100), &ledger(0, 100)).unwrap();
        assert!((five.same_rate_p - 0.0625).abs() < 1e-9);
        assert!(five.unpriced);
        // 3 against 1 with three times the time is exactly what equal rates predict.
        let fair = compare_stalls(&ledger(3, 300), &ledger(1, 100)).unwrap();
        assert!((fair.same_rate_p - 1.0).abs() < 1e-9 && !fair.unpriced);
        let none = compare_stalls(&ledger(0, 100), &ledger(0, 100)).unwrap();
        assert_eq!((none.same_rate_p, none.unpriced), (1.0, false));
        assert!(compare_stalls(&ledger(0, 0), &ledger(0, 1)).is_err());
    }

    #[test]
    fn the_rule_of_three() {
        assert!((unseen_rate_bound(300, 0.05).unwrap() * 300.0 - 2.9957).abs() < 1e-4);
        assert!((unseen_cost_bound(5.0, 300, 0.05).unwrap() - 0.04993).abs() < 1e-5);
        assert!(unseen_rate_bound(0, 0.05).is_err());
    }
}
