//! Quantile of one run's latencies, with an interval that survives stalls and autocorrelation.
//!
//! Woodruff's interval (1952): the error of the *fraction* below the quantile is measured over ten batches
//! of time, and the quantile function is read at that fraction plus and minus the error. It does not
//! know histograms: callers pass counts and a quantile function of the merged data.

use crate::autocorrelation::{effective_size, groups};
use crate::error::{StatsError, at_least, finite, open_fraction};
use crate::estimate::Estimate;
use crate::mean::{BATCHES, EFFECTIVE_N_MIN};
use crate::moments::{t_half_width, variance};

/// Tail episodes needed before an interval is published; with fewer, coverage was about 60 %.
pub const EPISODES_MIN: usize = 20;

/// Quiet intervals inside an episode that do not end it.
const GAP_MAX: usize = 2;

/// Above this share of intervals with an exceedance, the quantile belongs to the bulk.
const BULK_SHARE: f64 = 0.2;

/// Counts of one batch of time, all batches being about equally long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchCount {
    /// Requests in the batch.
    pub total: u64,
    /// Those at or below the pooled quantile.
    pub at_or_below: u64,
}

/// One short interval of the same run, usually a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalLatency {
    /// Mean latency of the interval's requests; NaN when it had none.
    pub mean: f64,
    /// Largest latency of the interval's requests; NaN when it had none.
    pub max: f64,
}

/// Why a quantile gets no interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NotCertifiable {
    /// Too few requests to reach beyond the quantile with 97.5 % probability.
    Requests {
        /// The least number that would do.
        needed: u64,
        /// The number there was.
        got: u64,
    },
    /// The tail was visited in too few separate episodes ([`EPISODES_MIN`]).
    Episodes {
        /// Episodes seen.
        got: usize,
    },
    /// The window is worth too few independent values ([`EFFECTIVE_N_MIN`]).
    EffectiveSize {
        /// What it is worth.
        got: f64,
    },
}

/// A quantile, with an interval where the data can carry one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileEstimate {
    /// The quantile of the merged data.
    pub value: f64,
    /// Separate visits to the tail beyond it.
    pub episodes: usize,
    /// The interval, or the reason why there is none. An upper end of `+∞` means "at least `low`".
    pub interval: Result<Estimate, NotCertifiable>,
}

/// Interval of the quantile `q` of the merged data at confidence `1 − alpha`.
///
/// `batches` are consecutive parts of the run in time order, such as its slices. Neighbours resemble each
/// other where the machine moves slowly, so more than ten are joined to ten. `quantile_of` is the
/// quantile function of the merged data; `intervals` are the run's short intervals in order.
///
/// # Errors
/// `q` or `alpha` outside (0, 1), fewer than two batches, fewer than ten intervals, no request at all,
/// a batch with more requests below than in all, or a quantile that is not finite.
pub fn quantile_estimate(
    q: f64,
    alpha: f64,
    batches: &[BatchCount],
    quantile_of: impl Fn(f64) -> f64,
    intervals: &[IntervalLatency],
) -> Result<QuantileEstimate, StatsError> {
    open_fraction("q", q)?;
    open_fraction("alpha", alpha)?;
    at_least("batches", 2, batches.len())?;
    at_least("intervals", 10, intervals.len())?;
    if let Some(batch) = batches.iter().find(|batch| batch.at_or_below > batch.total) {
        return Err(StatsError::Shape {
            what: "batches",
            problem: format!(
                "{} of {} requests at or below",
                batch.at_or_below, batch.total
            ),
        });
    }
    let totals = batches.iter().map(|batch| batch.total);
    let total = totals.fold(0, u64::saturating_add);
    at_least("requests", 1, usize::try_from(total).unwrap_or(usize::MAX))?;

    let value = quantile_of(q);
    finite("quantile", 0, value)?;
    let exceeds: Vec<bool> = intervals
        .iter()
        .map(|interval| interval.max > value)
        .collect();
    let episodes = episodes(&exceeds);
    let interval = match refusal(q, alpha, total, &exceeds, episodes, intervals) {
        Some(reason) => Err(reason),
        None => {
            let (low, high) = fractions(q, alpha, batches, total);
            Ok(Estimate {
                value,
                low: quantile_of(low.max(0.0)),
                high: if high >= 1.0 {
                    f64::INFINITY
                } else {
                    quantile_of(high)
                },
                n: usize::try_from(total).unwrap_or(usize::MAX),
            })
        }
    };
    Ok(QuantileEstimate {
        value,
        episodes,
        interval,
    })
}

/// The fractions at which the quantile function is read for the two ends.
fn fractions(q: f64, alpha: f64, batches: &[BatchCount], total: u64) -> (f64, f64) {
    let count = BATCHES.min(batches.len()) as f64;
    let per_batch = total as f64 / count;
    let error = |batch: &BatchCount| batch.at_or_below as f64 - q * batch.total as f64;
    let errors: Vec<f64> = groups(batches.len(), BATCHES)
        .map(|joined| batches[joined].iter().map(error).sum::<f64>() / per_batch)
        .collect();
    let half = t_half_width(count - 1.0, alpha, (variance(&errors) / count).sqrt());
    (q - half, q + half)
}

fn refusal(
    q: f64,
    alpha: f64,
    total: u64,
    exceeds: &[bool],
    episodes: usize,
    intervals: &[IntervalLatency],
) -> Option<NotCertifiable> {
    let needed = ((0.5 * alpha).ln() / q.ln()).ceil() as u64;
    if total < needed {
        return Some(NotCertifiable::Requests { needed, got: total });
    }
    let exceeding = exceeds.iter().filter(|exceeds| **exceeds).count();
    if exceeding as f64 >= BULK_SHARE * exceeds.len() as f64 {
        let means: Vec<f64> = intervals
            .iter()
            .map(|interval| interval.mean)
            .filter(|mean| mean.is_finite())
            .collect();
        let got = if means.len() < 10 {
            0.0
        } else {
            effective_size(&means)
        };
        return (got < EFFECTIVE_N_MIN).then_some(NotCertifiable::EffectiveSize { got });
    }
    (episodes < EPISODES_MIN).then_some(NotCertifiable::Episodes { got: episodes })
}

/// Least number of requests in a slice for the slice's own quantile `q` to mean something: ten beyond it,
/// `10 / (1 − q)`. Such quantiles may be compared like rates, by [`crate::compare::block_differences`].
/// Infinite for `q` = 1.
///
/// ```
/// assert_eq!(dbduel_stats::quantile::requests_per_slice(0.75), 40.0);
/// ```
#[must_use]
pub fn requests_per_slice(q: f64) -> f64 {
    10.0 / (1.0 - q)
}

/// Runs of exceeding intervals, those at most two quiet intervals apart counted as one.
fn episodes(exceeds: &[bool]) -> usize {
    let mut count = 0;
    let mut quiet = GAP_MAX + 1;
    for exceeding in exceeds {
        if *exceeding {
            count += usize::from(quiet > GAP_MAX);
            quiet = 0;
        } else {
            quiet += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn episodes_merge_over_short_gaps() {
        let pattern = |text: &str| text.chars().map(|c| c == 'x').collect::<Vec<_>>();
        assert_eq!(episodes(&pattern("..x.x..x...x....")), 2);
        assert_eq!(episodes(&pattern("xxxx")), 1);
        assert_eq!(episodes(&pattern("....")), 0);
    }

    fn evenly(total: u64, at_or_below: u64) -> Vec<BatchCount> {
        vec![BatchCount { total, at_or_below }; 10]
    }

    fn intervals(count: usize, every: usize) -> Vec<IntervalLatency> {
        let max = |index: usize| {
            if index.is_multiple_of(every) {
                10.0
            } else {
                0.5
            }
        };
        (0..count)
            .map(|index| IntervalLatency {
                mean: (index * 7919 % 101) as f64,
                max: max(index),
            })
            .collect()
    }

    #[test]
    fn rare_tails_need_twenty_episodes() {
        let few =
            quantile_estimate(0.99, 0.05, &evenly(1000, 990), |q| q, &intervals(190, 10)).unwrap();
        assert_eq!(few.interval, Err(NotCertifiable::Episodes { got: 19 }));
        let enough =
            quantile_estimate(0.99, 0.05, &evenly(1000, 990), |q| q, &intervals(200, 10)).unwrap();
        assert!(enough.interval.unwrap().contains(0.99));
    }

    #[test]
    fn too_few_requests_for_the_quantile_are_refused() {
        for (q, needed) in [(0.99, 368), (0.999, 3688), (0.9999, 36_887)] {
            let result =
                quantile_estimate(q, 0.05, &evenly(1, 1), |q| q, &intervals(300, 10)).unwrap();
            assert_eq!(
                result.interval,
                Err(NotCertifiable::Requests { needed, got: 10 })
            );
        }
    }

    #[test]
    fn an_unbounded_tail_has_no_upper_end() {
        let mut batches = evenly(1000, 1000);
        batches[3].at_or_below = 900;
        let result = quantile_estimate(0.99, 0.05, &batches, |q| q, &intervals(300, 10)).unwrap();
        assert_eq!(result.interval.unwrap().high, f64::INFINITY);
    }

    #[test]
    fn more_than_ten_batches_are_joined_to_ten() {
        // Twelve slices above the median, then twelve below it, and so on: a slow mood.
        let slices: Vec<BatchCount> = (0..120)
            .map(|slice| BatchCount {
                total: 100,
                at_or_below: if slice / 12 % 2 == 0 { 40 } else { 60 },
            })
            .collect();
        let joined: Vec<BatchCount> = (0..10)
            .map(|batch| BatchCount {
                total: 1200,
                at_or_below: if batch % 2 == 0 { 480 } else { 720 },
            })
            .collect();
        let of = |batches: &[BatchCount]| {
            let found = quantile_estimate(0.5, 0.05, batches, |q| q, &intervals(300, 2)).unwrap();
            found.interval.unwrap()
        };
        let (one, other) = (of(&slices), of(&joined));
        assert!((one.low - other.low).abs() < 1e-12 && (one.high - other.high).abs() < 1e-12);
        assert!(one.high - one.low > 0.14, "{one:?}");
    }

    #[test]
    fn impossible_counts_are_refused() {
        let batches = evenly(10, 11);
        assert!(quantile_estimate(0.5, 0.05, &batches, |q| q, &intervals(300, 10)).is_err());
        assert!(quantile_estimate(0.5, 0.05, &evenly(0, 0), |q| q, &intervals(300, 10)).is_err());
        assert!(quantile_estimate(1.0, 0.05, &evenly(10, 5), |q| q, &intervals(300, 10)).is_err());
    }
}
