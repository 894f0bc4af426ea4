//! Mean of an autocorrelated series, such as the throughput of one run second by second.
//!
//! The standard error is the larger of two that fail differently: ten batch means and an
//! autoregressive fit (Law & Kelton; Flegal & Jones 2010). No interval is given for a window worth fewer
//! than 50 independent values, since none of the known methods covers there. What no method can see is a
//! movement slower than the window: the mean is that of its time. It does not know how long one interval lasts.
//!
//! ```
//! use dbduel_stats::mean::series_mean;
//! use dbduel_stats::random::RandomStream;
//!
//! # fn main() -> Result<(), dbduel_stats::StatsError> {
//! // Five minutes of seconds, each second half like the one before: worth a third of as many.
//! let mut random = RandomStream::new(1, 0);
//! let mut level = 0.0;
//! let throughput: Vec<f64> = (0..300)
//!     .map(|_| {
//!         level = 0.5 * level + 20.0 * random.normal();
//!         1000.0 + level
//!     })
//!     .collect();
//! let mean = series_mean(&throughput, 0.05)?;
//! assert!(mean.effective_n < 150.0);
//! assert!(mean.estimate.is_some_and(|estimate| estimate.contains(1000.0)));
//! # Ok(())
//! # }
//! ```

use crate::autocorrelation::{
    effective_size, groups, long_run_variance_autoregressive, long_run_variance_batches,
};
use crate::error::{StatsError, all_finite, at_least, open_fraction};
use crate::estimate::Estimate;
use crate::moments::{mean, t_half_width, variance};

/// Batches behind the standard error; their t distribution has one degree of freedom less.
pub(crate) const BATCHES: usize = 10;

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
    let error = (long_run / series.len() as f64).sqrt();
    let half = t_half_width(BATCHES as f64 - 1.0, alpha, error);
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

/// Mean of values in time order that are long stretches each, such as slices, with its `1 − alpha` interval.
///
/// Neighbours resemble each other where the machine moves slowly, so more than ten values are joined to ten
/// batches (Law & Kelton) and Student's interval is that of the batches. Batches help from about 30 values on;
/// with fewer they are of one or two values, and the interval in effect takes the values for independent.
/// Constant values get an interval of width zero.
///
/// # Errors
/// Fewer than two values, one that is not finite, or `alpha` outside (0, 1).
pub fn batched_mean(values: &[f64], alpha: f64) -> Result<Estimate, StatsError> {
    at_least("values", 2, values.len())?;
    all_finite("values", values)?;
    open_fraction("alpha", alpha)?;
    let value = mean(values);
    let batches = BATCHES.min(values.len()) as f64;
    let per_batch = values.len() as f64 / batches;
    // Deviations of sums and not of means: batches differ by one value in size.
    let deviations: Vec<f64> = groups(values.len(), BATCHES)
        .map(|batch| values[batch].iter().map(|x| x - value).sum::<f64>() / per_batch)
        .collect();
    let half = t_half_width(
        batches - 1.0,
        alpha,
        (variance(&deviations) / batches).sqrt(),
    );
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
    use crate::compare::paired_mean;

    #[test]
    fn batches_of_one_value_are_students_and_longer_ones_see_slow_movements() {
        let few = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0];
        let (batched, student) = (
            batched_mean(&few, 0.05).unwrap(),
            paired_mean(&few, 0.05).unwrap(),
        );
        assert!((batched.low - student.low).abs() < 1e-12 && batched.n == 7);
        let slow: Vec<f64> = (0..105).map(|x| (f64::from(x) / 15.0).sin()).collect();
        let (batched, student) = (
            batched_mean(&slow, 0.05).unwrap(),
            paired_mean(&slow, 0.05).unwrap(),
        );
        assert!(batched.high - batched.low > 2.0 * (student.high - student.low));
        assert_eq!(batched.value, student.value);
        assert!(batched_mean(&[1.0], 0.05).is_err());
        assert_eq!(batched_mean(&[2.0; 30], 0.05).unwrap().low, 2.0);
    }

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
            Err(StatsError::OutOfRange { index: 4, .. })
        ));
        assert!(series_mean(&[1.0; 30], 1.0).is_err());
    }
}
