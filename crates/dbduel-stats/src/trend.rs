//! Drift of a sequence of differences: a least-squares line through them.
//!
//! Drift common to all contenders cancels within blocks and is harmless; drift of the *ratio* is not: then there is no
//! single ratio to report.

use crate::error::{StatsError, all_finite, at_least, open_fraction};
use crate::estimate::Estimate;
use crate::moments::{mean, t_half_width, t_p_value};

/// Significance at which a drift is reported: rarer than the verdict's own, since it only warns.
pub const DRIFT_ALPHA: f64 = 0.01;

/// The fitted line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Change per step, with its interval.
    pub slope: Estimate,
    /// Two-sided p-value of "no drift".
    pub p_value: f64,
    /// Change from the first to the last step that the line predicts.
    pub total_change: f64,
}

impl Trend {
    /// Whether the drift is significant at [`DRIFT_ALPHA`].
    #[must_use]
    pub fn is_drifting(&self) -> bool {
        self.p_value < DRIFT_ALPHA
    }
}

/// Fits a line against the position in the sequence; the slope's interval has confidence `1 − alpha`.
///
/// # Errors
/// Fewer than three values, one that is not finite, or `alpha` outside (0, 1).
pub fn linear_trend(values: &[f64], alpha: f64) -> Result<Trend, StatsError> {
    at_least("sequence", 3, values.len())?;
    all_finite("sequence", values)?;
    open_fraction("alpha", alpha)?;
    let n = values.len() as f64;
    let (level, middle) = (mean(values), 0.5 * (n - 1.0));
    let steps = || {
        values
            .iter()
            .enumerate()
            .map(|(index, value)| (index as f64 - middle, value - level))
    };
    let spread: f64 = steps().map(|(step, _)| step * step).sum();
    let slope = steps().map(|(step, value)| step * value).sum::<f64>() / spread;
    let rest: f64 = steps()
        .map(|(step, value)| (value - slope * step).powi(2))
        .sum();
    let error = (rest / (n - 2.0) / spread).sqrt();
    let half = t_half_width(n - 2.0, alpha, error);
    // A constant sequence has neither slope nor error; 0/0 must read as "no drift".
    let p_value = if slope == 0.0 {
        1.0
    } else {
        t_p_value(slope / error, n - 2.0)
    };
    Ok(Trend {
        slope: Estimate {
            value: slope,
            low: slope - half,
            high: slope + half,
            n: values.len(),
        },
        p_value,
        total_change: slope * (n - 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_recovered() {
        let trend = linear_trend(&[1.0, 3.0, 5.0, 7.0], 0.05).unwrap();
        assert_eq!((trend.slope.value, trend.total_change), (2.0, 6.0));
        assert!(trend.is_drifting());
    }

    #[test]
    fn the_p_value_matches_a_worked_regression() {
        // Slope 0.6, standard error √(2.4 / 3 / 10) = 0.2828, t = 2.1213 with 3 degrees of freedom.
        let trend = linear_trend(&[2.0, 4.0, 5.0, 4.0, 5.0], 0.05).unwrap();
        assert!((trend.slope.value - 0.6).abs() < 1e-12);
        assert!(
            (trend.p_value - 0.124_027).abs() < 1e-5,
            "{}",
            trend.p_value
        );
    }

    #[test]
    fn constants_do_not_drift_and_bad_input_is_refused() {
        assert_eq!(linear_trend(&[3.0; 10], 0.05).unwrap().p_value, 1.0);
        assert!(linear_trend(&[1.0, 2.0], 0.05).is_err());
        assert!(linear_trend(&[1.0, f64::NAN, 2.0], 0.05).is_err());
    }
}
