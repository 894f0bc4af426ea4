//! A share from counts, such as how many of forty verdicts were right.
//!
//! Trials are taken as independent and equally likely to succeed.

use statrs::distribution::{Beta, ContinuousCDF as _};

use crate::error::{StatsError, at_least, bounded, open_fraction};
use crate::estimate::Estimate;

/// Halvings of the unit interval; more do not change the result.
const HALVINGS: usize = 60;

/// The exact interval of a share after `successes` of `trials` (Clopper & Pearson 1934). It covers with
/// at least `1 − alpha`, also for few trials and for shares of zero and one.
///
/// # Errors
/// No trial, more than ten million, more successes than trials, or `alpha` outside (0, 1).
pub fn proportion(successes: usize, trials: usize, alpha: f64) -> Result<Estimate, StatsError> {
    at_least("trials", 1, trials)?;
    bounded("trials", trials)?;
    open_fraction("alpha", alpha)?;
    if successes > trials {
        return Err(StatsError::Parameter {
            name: "successes",
            value: successes as f64,
            requirement: "at most the number of trials",
        });
    }
    let (hits, misses) = (successes as f64, (trials - successes) as f64);
    let low = match successes {
        0 => 0.0,
        _ => beta_point(hits, misses + 1.0, 0.5 * alpha),
    };
    // The upper end is the lower one of the failures, where a small probability keeps its digits.
    let high = match trials - successes {
        0 => 1.0,
        _ => 1.0 - beta_point(misses, hits + 1.0, 0.5 * alpha),
    };
    Ok(Estimate {
        value: hits / trials as f64,
        low,
        high,
        n: trials,
    })
}

/// The value below which a beta variable lies with probability `p`, rounded down, by bisection.
fn beta_point(a: f64, b: f64, p: f64) -> f64 {
    let Ok(beta) = Beta::new(a, b) else {
        return 0.0;
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if beta.cdf(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_published_one() {
        // Closed forms at the ends, and the tabled interval of 4 in 20.
        let none = proportion(0, 40, 0.05).unwrap();
        assert_eq!((none.value, none.low), (0.0, 0.0));
        assert!((none.high - (1.0 - 0.025_f64.powf(1.0 / 40.0))).abs() < 1e-6);
        let all = proportion(40, 40, 0.05).unwrap();
        assert!((all.low - 0.025_f64.powf(1.0 / 40.0)).abs() < 1e-6 && all.high == 1.0);
        let some = proportion(4, 20, 0.05).unwrap();
        assert!((some.low - 0.0573).abs() < 1e-3 && (some.high - 0.4366).abs() < 1e-3);
    }

    #[test]
    fn counts_that_make_no_share_are_refused() {
        assert!(proportion(0, 0, 0.05).is_err());
        assert!(proportion(3, 2, 0.05).is_err());
        assert!(proportion(1, 2, 1.0).is_err());
    }
}
