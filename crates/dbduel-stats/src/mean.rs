//! Mean of one contender's values, stretch by stretch, on a machine with slow drift.
//!
//! It estimates the mean of all runs of the same length on the same machine, and not of this one run alone, so
//! the interval allows for movements that shift the whole run (after Müller and Watson 2016: three hypotheses on how
//! much the machine moves slowly, weighed by the slowest waves of the series). The promise is kept on average over
//! these three. Where the values are only noise, intervals at 95 % hold the truth in 98 to 100 % of the cases, and
//! where they are only a movement that is forgotten after eight of them, in 76, 83, 88 and 90 % for 14, 28, 56 and 112
//! values. No method can see a movement that takes much longer than the run.
//!
//! ```
//! use dbduel_stats::mean::series_mean;
//! use dbduel_stats::random::RandomStream;
//!
//! # fn main() -> Result<(), dbduel_stats::StatsError> {
//! // Fifty-six slices, on a machine whose level forgets half of itself from one to the next but one.
//! let mut random = RandomStream::new(1, 0);
//! let mut level = 0.0;
//! let throughput: Vec<f64> = (0..56)
//!     .map(|_| {
//!         level = 0.7 * level + 20.0 * random.normal();
//!         1000.0 + level
//!     })
//!     .collect();
//! let mean = series_mean(&throughput, 0.05)?;
//! assert!(mean.contains(1000.0) && mean.high - mean.low > 20.0);
//! # Ok(())
//! # }
//! ```

use crate::error::{StatsError, all_finite, at_least, open_fraction};
use crate::estimate::Estimate;
use crate::moments::mean;
use crate::slow_movement::half_width;

/// Mean of values in time order that are long stretches each, such as slices, with its `1 − alpha` interval.
///
/// Series of short intervals, such as seconds, are joined to stretches first: what neighbouring seconds share
/// lasts for many of them, and more than a memory of a few values is not expected here. Constant values get an
/// interval of width zero.
///
/// # Errors
/// Fewer than two values, one that is not finite, or `alpha` outside (0, 1).
pub fn series_mean(values: &[f64], alpha: f64) -> Result<Estimate, StatsError> {
    at_least("values", 2, values.len())?;
    all_finite("values", values)?;
    open_fraction("alpha", alpha)?;
    let (value, half) = (mean(values), half_width(values, alpha));
    Ok(Estimate {
        value,
        low: value - half,
        high: value + half,
        n: values.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_series_is_known_exactly() {
        let estimate = series_mean(&[7.0; 60], 0.05).unwrap();
        assert_eq!(
            (estimate.value, estimate.low, estimate.high, estimate.n),
            (7.0, 7.0, 7.0, 60)
        );
    }

    #[test]
    fn a_series_in_another_unit_has_the_same_interval_in_that_unit() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0];
        let scaled = values.map(|value| 1e-6 * value);
        let (one, other) = (
            series_mean(&values, 0.05).unwrap(),
            series_mean(&scaled, 0.05).unwrap(),
        );
        for (one, other) in [(one.low, other.low), (one.high, other.high)] {
            assert!((one * 1e-6 - other).abs() < 1e-12, "{one} {other}");
        }
    }

    #[test]
    fn bad_series_are_refused() {
        assert!(matches!(
            series_mean(&[1.0], 0.05),
            Err(StatsError::TooFew { needed: 2, .. })
        ));
        let mut series = [1.0; 30];
        series[4] = f64::NAN;
        assert!(matches!(
            series_mean(&series, 0.05),
            Err(StatsError::OutOfRange { index: 4, .. })
        ));
        assert!(series_mean(&[1.0; 30], 1.0).is_err());
    }
}
