//! Detects when a warming-up system has reached its steady state, from a growing series of equal intervals.
//!
//! MSER-5 (White 1997; White, Cobb & Spratt 2000) proposes where the transient ends; the rest must then be long enough
//! to hold several maintenance cycles, and its halves must be *shown* to agree. Noise cannot pass this gate by being
//! noisy, so "not certified" is a normal outcome.

use crate::autocorrelation::{
    autocovariances, batch_means, long_run_variance_lugsail, root_length,
};
use crate::error::{MAGNITUDE_MAX, StatsError, all_finite, at_least, finite, open_fraction};
use crate::estimate::Estimate;
use crate::moments::{mean, root_of_squares, t_half_width};

/// Two one-sided tests of the halves at half of this. Student's t instead of the normal point keeps
/// short retained parts, with their few batches, from passing by luck.
const EQUIVALENCE_ALPHA: f64 = 0.09;

/// Least number of values for batches in both halves.
pub const HALVES_MIN: usize = 8;

/// Least autocorrelation that counts as a period.
const PERIOD_CORRELATION_MIN: f64 = 0.2;

/// Criteria of a steady state. Lengths are numbers of intervals; the defaults suit intervals of a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRule {
    /// Intervals averaged into one batch.
    pub batch: usize,
    /// Intervals before the first look.
    pub first_look: usize,
    /// Intervals between looks.
    pub look_every: usize,
    /// Least length of the retained part.
    pub hold: usize,
    /// Maintenance cycles the retained part must hold, so that a fast start before the first checkpoint is not taken for the steady state.
    pub hold_cycles: usize,
    /// Length of a maintenance cycle, when known; otherwise it is looked for in the series.
    pub period: Option<usize>,
    /// Cycle length assumed when none is known or found.
    pub period_fallback: usize,
    /// Relative difference of the halves that must be excluded.
    pub tolerance: f64,
    /// Length after which the search is given up.
    pub limit: usize,
}

impl Default for SteadyRule {
    fn default() -> Self {
        SteadyRule {
            batch: 5,
            first_look: 60,
            look_every: 10,
            hold: 120,
            hold_cycles: 3,
            period: None,
            period_fallback: 45,
            tolerance: 0.05,
            limit: 1800,
        }
    }
}

/// State of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SteadyState {
    /// Keep warming up.
    NotYet,
    /// Certified after `after` intervals; the transient is the first `transient` of them.
    Steady {
        /// Intervals seen when it was certified.
        after: usize,
        /// Intervals to drop from the start.
        transient: usize,
    },
    /// The limit was reached without evidence of a steady state. Continue to measure, and report it.
    NotCertified,
}

/// The search over a growing series. The outcome, once reached, is final.
#[derive(Debug, Clone)]
pub struct SteadyDetector {
    rule: SteadyRule,
    series: Vec<f64>,
    state: SteadyState,
}

impl SteadyDetector {
    /// Starts a search.
    ///
    /// # Errors
    /// [`StatsError::Parameter`] for a batch or look distance of 0 or a tolerance that is not positive.
    pub fn new(rule: SteadyRule) -> Result<Self, StatsError> {
        for (name, value) in [("batch", rule.batch), ("look_every", rule.look_every)] {
            if value == 0 {
                return Err(StatsError::Parameter {
                    name,
                    value: 0.0,
                    requirement: "at least 1",
                });
            }
        }
        if !(rule.tolerance > 0.0 && rule.tolerance.is_finite()) {
            return Err(StatsError::Parameter {
                name: "tolerance",
                value: rule.tolerance,
                requirement: "positive and finite",
            });
        }
        Ok(SteadyDetector {
            rule,
            series: Vec::new(),
            state: SteadyState::NotYet,
        })
    }

    /// Adds the next interval's value and looks when a look is due.
    ///
    /// # Errors
    /// [`StatsError::OutOfRange`] for a NaN, an infinity or a number too large to compute with; the state is then
    /// unchanged.
    pub fn push(&mut self, value: f64) -> Result<SteadyState, StatsError> {
        finite("series", self.series.len(), value)?;
        if self.state != SteadyState::NotYet {
            return Ok(self.state);
        }
        self.series.push(value);
        let length = self.series.len();
        let due = length >= self.rule.first_look && length.is_multiple_of(self.rule.look_every);
        if let Some(transient) = due.then(|| settled(&self.series, &self.rule)).flatten() {
            self.state = SteadyState::Steady {
                after: length,
                transient,
            };
        } else if length >= self.rule.limit {
            self.state = SteadyState::NotCertified;
        }
        Ok(self.state)
    }

    /// State of the search.
    #[must_use]
    pub fn state(&self) -> SteadyState {
        self.state
    }
}

/// One look at a series: how many intervals to drop from its start when the rest is steady. `None` otherwise,
/// also when the series is too short to judge or its mean is not positive, as of a server that completed nothing.
fn settled(series: &[f64], rule: &SteadyRule) -> Option<usize> {
    let batches = batch_means(series, rule.batch);
    let dropped = mser(&batches)?;
    let kept = &batches[dropped..];
    if kept.len() < HALVES_MIN || mean(kept) <= 0.0 {
        return None;
    }
    let period = rule
        .period
        .or_else(|| find_period(kept, rule.batch, series.len() / 4))
        .unwrap_or(rule.period_fallback);
    let hold = rule.hold.max(rule.hold_cycles.saturating_mul(period));
    // A half without completions is as far from the other as can be.
    let difference_bound = halves_ratio(kept, EQUIVALENCE_ALPHA).map_or(f64::INFINITY, |ratio| {
        (ratio.high - 1.0).max(1.0 - ratio.low)
    });
    let is_steady = 2 * dropped <= batches.len()
        && kept.len() * rule.batch >= hold
        && difference_bound < rule.tolerance;
    is_steady.then_some(dropped * rule.batch)
}

/// The number of values to drop from the start so that the mean of the rest has the smallest estimated
/// error (marginal standard error rule). At least five are kept; `None` for shorter series.
#[must_use]
pub fn mser(values: &[f64]) -> Option<usize> {
    let longest = values.len().checked_sub(5)?;
    let (mut sum, mut squares) = (0.0, 0.0);
    // Deviations from the overall mean keep the running sums of squares free of cancellation.
    let centre = mean(values);
    let mut best = (f64::INFINITY, 0);
    for dropped in (0..values.len()).rev() {
        let value = values[dropped] - centre;
        sum += value;
        squares += value * value;
        let count = (values.len() - dropped) as f64;
        let score = (squares - sum * sum / count).max(0.0) / (count * count);
        // "Not larger" prefers keeping more when scores tie, as they do for a constant series.
        if dropped <= longest && score <= best.0 {
            best = (score, dropped);
        }
    }
    Some(best.1)
}

/// Mean of the second half ÷ mean of the first half of a series in the order of time.
///
/// Batches of about √n within each half, with the lugsail correction (Vats & Flegal 2022), carry the
/// autocorrelation; the interval is Student's with the batches' degrees of freedom and the error of a ratio to
/// first order, (v₂ + r²·v₁) ÷ m₁² for variances v of the means m. An interval within a tolerance shows a steady series (two one-sided tests, Schuirmann 1987), one beyond it a series
/// that is on its way; what straddles it shows neither.
///
/// # Errors
/// Fewer than [`HALVES_MIN`] values, one that is not finite, `alpha` outside (0, 1), or a half whose mean
/// is not positive.
pub fn halves_ratio(values: &[f64], alpha: f64) -> Result<Estimate, StatsError> {
    at_least("series", HALVES_MIN, values.len())?;
    all_finite("series", values)?;
    open_fraction("alpha", alpha)?;
    let (first, second) = values.split_at(values.len() / 2);
    for half in [mean(first), mean(second)] {
        if half < MAGNITUDE_MAX.recip() {
            return Err(StatsError::Parameter {
                name: "mean of a half",
                value: half,
                requirement: "positive and at least 1e-100",
            });
        }
    }
    let error = |half: &[f64]| (long_run_variance_lugsail(half) / half.len() as f64).sqrt();
    let degrees = |half: &[f64]| (half.len() / root_length(half.len())) as f64 - 1.0;
    let value = mean(second) / mean(first);
    // Delta method.
    let ratio_error = root_of_squares(error(second), value * error(first)) / mean(first);
    let margin = t_half_width(degrees(first) + degrees(second), alpha, ratio_error);
    Ok(Estimate {
        value,
        low: value - margin,
        high: value + margin,
        n: values.len(),
    })
}

/// The lag, in intervals, of the highest local maximum of the batches' autocorrelation between two
/// batches and `longest` intervals.
fn find_period(batches: &[f64], batch: usize, longest: usize) -> Option<usize> {
    let covariances = autocovariances(batches, longest / batch + 1);
    let threshold = PERIOD_CORRELATION_MIN * covariances[0];
    (2..covariances.len().saturating_sub(1))
        .filter(|lag| {
            let here = covariances[*lag];
            here > threshold && here > covariances[lag - 1] && here >= covariances[lag + 1]
        })
        .max_by(|a, b| covariances[*a].total_cmp(&covariances[*b]))
        .map(|lag| lag * batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_of(series: impl IntoIterator<Item = f64>) -> SteadyState {
        let mut detector = SteadyDetector::new(SteadyRule::default()).unwrap();
        for value in series {
            detector.push(value).unwrap();
        }
        detector.state()
    }

    #[test]
    fn a_constant_series_is_steady_as_soon_as_the_hold_is_over() {
        // The hold is three assumed cycles of 45 intervals, and looks come every 10.
        assert_eq!(
            state_of([100.0; 200]),
            SteadyState::Steady {
                after: 140,
                transient: 0
            }
        );
    }

    #[test]
    fn a_dead_server_is_never_certified() {
        assert_eq!(state_of([0.0; 1800]), SteadyState::NotCertified);
    }

    #[test]
    fn a_step_is_cut_off() {
        let series = (0..300).map(|second| if second < 50 { 60.0 } else { 100.0 });
        let SteadyState::Steady { transient, .. } = state_of(series) else {
            panic!("not certified");
        };
        assert_eq!(transient, 50);
    }

    #[test]
    fn the_ratio_of_the_halves_is_that_of_their_means() {
        let series: Vec<f64> = (0..16)
            .map(|index| if index < 8 { 90.0 } else { 99.0 } + f64::from(index % 2))
            .collect();
        let ratio = halves_ratio(&series, 0.05).unwrap();
        assert!((ratio.value - 99.5 / 90.5).abs() < 1e-12);
        assert!(ratio.low > 1.05 && ratio.high < 1.15, "{ratio:?}");
        // Turned in time, the ratio is turned, and to first order its interval is scaled by the same square.
        let turned: Vec<f64> = series.iter().rev().copied().collect();
        let back = halves_ratio(&turned, 0.05).unwrap();
        let scaled = (ratio.high - ratio.value) / ratio.value.powi(2);
        assert!(((back.high - back.value) / scaled - 1.0).abs() < 1e-9);
        assert!(halves_ratio(&series[..7], 0.05).is_err());
        assert!(halves_ratio(&[0.0; 16], 0.05).is_err());
    }

    #[test]
    fn mser_needs_five_values_and_keeps_five() {
        assert_eq!(mser(&[1.0; 4]), None);
        assert_eq!(mser(&[1.0; 5]), Some(0));
        assert_eq!(mser(&[9.0, 1.0, 1.0, 1.0, 1.0, 1.0]), Some(1));
    }

    #[test]
    fn a_period_is_found_in_the_batches() {
        let batches: Vec<f64> = (0..60).map(|index| f64::from(index % 12 == 0)).collect();
        assert_eq!(find_period(&batches, 5, 150), Some(60));
    }

    #[test]
    fn rules_that_cannot_work_are_refused() {
        for rule in [
            SteadyRule {
                batch: 0,
                ..SteadyRule::default()
            },
            SteadyRule {
                look_every: 0,
                ..SteadyRule::default()
            },
            SteadyRule {
                tolerance: f64::NAN,
                ..SteadyRule::default()
            },
        ] {
            assert!(SteadyDetector::new(rule).is_err());
        }
        let mut detector = SteadyDetector::new(SteadyRule::default()).unwrap();
        assert!(detector.push(f64::NAN).is_err());
    }
}
