//! Mean of an autocorrelated series, such as the throughput of one run second by second.
//!
//! The standard error is the larger of two that fail differently: ten batch means and an
//! autoregressive fit. No interval is given for a window worth fewer than 50 independent values, since
//! none of the known methods covers there. It does not know how long one interval lasts.

use crate::autocorrelation::{
    effective_size, long_run_variance_autoregressive, long_run_variance_batches,
};
use crate::error::{StatsError, all_finite, at_least, open_fraction};
use crate::estimate::Estimate;
use crate::moments::{mean, t_point};

/// Batches behind the standard error; their t distribution has one degree of freedom less.
const BATCHES: usize = 10;

/// Least worth of the window, in independent values, for an interval.
pub const EFFECTIVE_N_MIN: f64 = 50.0;

/// A mean, and an interval when the window is long enough for one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesMean {
    /// The arithmetic mean.
    pub value: f64,
    /// The number of independent values the window is worth.
    pub effective_n: f64,
    /// The mean with its interval; `None` when `effective_n` is below [`EFFECTIVE_N_MIN`]: the window
    /// is too short to say how well the mean is known.
    pub estimate: Option<Estimate>,
}

/// Mean of a stationary series of equal intervals with its `1 − alpha` confidence interval.
///
/// A series with periodic work of its own should be cut to whole periods first. A constant series gets an
/// interval of width zero.
///
/// # Errors
/// Fewer than 20 values, a value that is not finite, or `alpha` outside (0, 1).
pub fn series_mean(series: &[f64], alpha: f64) -> Result<SeriesMean, StatsError> {
    at_least("series", 2 * BATCHES, series.len())?;
    all_finite("series", series)?;
    open_fraction("alpha", alpha)?;
    let value = mean(series);
    let effective_n = effective_size(series);
    let long_run =
        long_run_variance_batches(series, BATCHES).max(long_run_variance_autoregressive(series));
    let half = t_point(BATCHES as f64 - 1.0, alpha) * (long_run / series.len() as f64).sqrt();
    let estimate = Estimate {
        value,
        low: value - half,
        high: value + half,
        n: series.len(),
    };
    Ok(SeriesMean {
        value,
        effective_n,
        estimate: (effective_n >= EFFECTIVE_N_MIN).then_some(estimate),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_series_is_known_exactly() {
        let result = series_mean(&[7.0; 60], 0.05).unwrap();
        let estimate = result.estimate.unwrap();
        assert_eq!(
            (estimate.value, estimate.low, estimate.high),
            (7.0, 7.0, 7.0)
        );
    }

    #[test]
    fn bad_series_are_refused() {
        assert!(matches!(
            series_mean(&[1.0; 19], 0.05),
            Err(StatsError::TooFew { needed: 20, .. })
        ));
        let mut series = [1.0; 30];
        series[4] = f64::NAN;
        assert!(matches!(
            series_mean(&series, 0.05),
            Err(StatsError::NotFinite { index: 4, .. })
        ));
        assert!(series_mean(&[1.0; 30], 1.0).is_err());
    }
}
