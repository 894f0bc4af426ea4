//! Whether frequent switches change a contender's performance: its own rates in turns and without a switch, next to
//! each other.
//!
//! A duel of short turns is exact about servers that are stopped and continued several times a second. Whether results
//! hold for uninterrupted servers is measured: stretches of turns and of load without a switch follow each other in
//! drawn order, and each pair gives one log ratio of the same contender. Contenders are not compared, so the result is
//! independent of which one is faster.

use crate::compare::paired_mean;
use crate::error::StatsError;
use crate::estimate::Estimate;
use crate::moments::t_point;

/// A contender's rate in turns ÷ its rate without a switch, as a logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departure {
    /// The mean over the pairs, with its interval.
    pub log_ratio: Estimate,
    /// Size of the log ratio that such pairs would have detected in nine of ten checks.
    pub detectable: f64,
}

impl Departure {
    /// From the log ratios of pairs in time order, in turns ÷ without a switch, at error probability `alpha`.
    ///
    /// # Errors
    /// Those of [`paired_mean`].
    pub fn of(log_ratios: &[f64], alpha: f64) -> Result<Self, StatsError> {
        let log_ratio = paired_mean(log_ratios, alpha)?;
        let half = log_ratio.high - log_ratio.value;
        let degrees = (log_ratios.len() - 1) as f64;
        // Half an interval is so many standard errors; to exceed zero in nine of ten takes the point of one tail of a tenth more.
        let more = t_point(degrees, 2.0 * MISSED) / t_point(degrees, alpha);
        Ok(Self {
            log_ratio,
            detectable: half * (1.0 + more),
        })
    }

    /// True when the interval excludes equality, and the estimate lies beyond `limit` in either direction.
    #[must_use]
    pub fn is_shown_beyond(&self, limit: f64) -> bool {
        !self.log_ratio.contains(0.0) && self.log_ratio.value.abs() > limit
    }

    /// True when the whole interval lies within `limit` to either side of no departure.
    #[must_use]
    pub fn is_within(&self, limit: f64) -> bool {
        -limit < self.log_ratio.low && self.log_ratio.high < limit
    }
}

/// Probability that a departure of the detectable size is missed.
const MISSED: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_departure_is_shown_in_either_direction_where_pairs_agree() {
        let slower = [-0.40, -0.42, -0.39, -0.41, -0.40, -0.38];
        let faster = slower.map(|one| -one);
        for (pairs, sign) in [(slower, -1.0), (faster, 1.0)] {
            let departure = Departure::of(&pairs, 0.05).unwrap();
            assert!(departure.is_shown_beyond(0.05), "{departure:?}");
            assert!((departure.log_ratio.value - sign * 0.4).abs() < 1e-9);
            assert!(departure.detectable < 0.05, "{departure:?}");
        }
    }

    #[test]
    fn scatter_is_no_departure_and_a_small_one_is_within_the_limit() {
        let scatter = [-0.2, 0.1, 0.15, -0.1, 0.08, -0.05];
        let departure = Departure::of(&scatter, 0.05).unwrap();
        assert!(!departure.is_shown_beyond(0.0), "{departure:?}");
        assert!(departure.detectable > 0.1, "{departure:?}");
        let small = [-0.020, -0.021, -0.019, -0.020, -0.022, -0.018];
        let departure = Departure::of(&small, 0.05).unwrap();
        assert!(departure.is_shown_beyond(0.01) && !departure.is_shown_beyond(0.05));
        assert!(departure.is_within(0.03) && !departure.is_within(0.021));
        assert!(Departure::of(&[0.1], 0.05).is_err());
    }
}
