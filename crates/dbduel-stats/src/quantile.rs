//! Quantile of one run's latencies, with an interval that survives stalls and autocorrelation.
//!
//! Woodruff's interval (1952): the error of the *fraction* below the quantile is that of a mean over parts of the run,
//! as [`crate::mean`] takes it, and the quantile function is read at that fraction plus and minus the error.
//! Callers pass counts and a quantile function of the merged data.

use crate::error::{StatsError, at_least, finite, open_fraction};
use crate::estimate::Estimate;
use crate::moments::as_count;
use crate::slow_movement::half_width;

/// Separate visits to the tail that are needed before an interval is given; with fewer, coverage was about 60 %.
///
/// A quantile of the bulk has no separate visits. It needs as many short intervals in which it is exceeded instead; they
/// must be a fifth of all at least, and half of the batches must have requests beyond the quantile, so that one long
/// episode does not pass for the bulk.
pub const EPISODES_MIN: usize = 20;

/// Longest run of quiet intervals inside an episode that does not end it.
const GAP_MAX: usize = 2;

/// Share of short intervals with an exceedance from which on the quantile may belong to the bulk.
const BULK_SHARE: f64 = 0.2;

/// Share of the batches that have requests beyond a quantile of the bulk, at least.
const BULK_BATCHES: f64 = 0.5;

/// Counts of one batch of time, all batches being about equally long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchCount {
    /// Requests in the batch.
    pub total: u64,
    /// Those at or below the pooled quantile.
    pub at_or_below: u64,
}

/// Why a quantile gets no interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NotCertifiable {
    /// Too few requests to reach beyond the quantile with 97.5 % probability.
    Requests {
        /// The least sufficient number.
        needed: u64,
        /// The actual number.
        got: u64,
    },
    /// Too few short intervals to distinguish one visit to the tail from several ([`EPISODES_MIN`]).
    Steps {
        /// The number of short intervals.
        got: usize,
    },
    /// The tail was visited in too few separate episodes ([`EPISODES_MIN`]), and the quantile is not in the bulk.
    Episodes {
        /// The number of episodes.
        got: usize,
    },
}

/// A quantile, with an interval where the data allow one.
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
/// `batches` are consecutive parts of the run in time order, such as its slices. `quantile_of` is the quantile
/// function of the merged data; `maxima` are the largest latencies of the run's short intervals in order, usually
/// of its seconds, NaN where there was no request.
///
/// # Errors
/// `q` or `alpha` outside (0, 1), fewer than two batches, no request at all, a batch with more requests below than
/// in all, or a quantile that is not finite.
pub fn quantile_estimate(
    q: f64,
    alpha: f64,
    batches: &[BatchCount],
    quantile_of: impl Fn(f64) -> f64,
    maxima: &[f64],
) -> Result<QuantileEstimate, StatsError> {
    open_fraction("q", q)?;
    open_fraction("alpha", alpha)?;
    at_least("batches", 2, batches.len())?;
    if let Some(batch) = batches.iter().find(|batch| batch.at_or_below > batch.total) {
        return Err(StatsError::Shape {
            what: "batches",
            problem: format!(
                "{} of {} requests at or below",
                batch.at_or_below, batch.total
            ),
        });
    }
    let total = requests(batches);
    at_least("requests", 1, usize::try_from(total).unwrap_or(usize::MAX))?;

    let value = quantile_of(q);
    finite("quantile", 0, value)?;
    let exceeds: Vec<bool> = maxima.iter().map(|largest| *largest > value).collect();
    let episodes = episodes(&exceeds);
    let interval = match refusal(q, alpha, batches, &exceeds, episodes) {
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
    let per_batch = total as f64 / batches.len() as f64;
    let error = |batch: &BatchCount| batch.at_or_below as f64 - q * batch.total as f64;
    let errors: Vec<f64> = (batches.iter().map(|batch| error(batch) / per_batch)).collect();
    let half = half_width(&errors, alpha);
    (q - half, q + half)
}

fn refusal(
    q: f64,
    alpha: f64,
    batches: &[BatchCount],
    exceeds: &[bool],
    episodes: usize,
) -> Option<NotCertifiable> {
    let needed = as_count(((0.5 * alpha).ln() / q.ln()).ceil()) as u64;
    let got = requests(batches);
    if got < needed {
        return Some(NotCertifiable::Requests { needed, got });
    }
    if exceeds.len() < EPISODES_MIN {
        return Some(NotCertifiable::Steps { got: exceeds.len() });
    }
    let is_certifiable = episodes >= EPISODES_MIN || is_bulk(batches, exceeds);
    (!is_certifiable).then_some(NotCertifiable::Episodes { got: episodes })
}

/// True when the quantile is exceeded throughout the run, and often enough to say so.
fn is_bulk(batches: &[BatchCount], exceeds: &[bool]) -> bool {
    let steps = exceeds.iter().filter(|exceeds| **exceeds).count();
    let beyond = batches
        .iter()
        .filter(|batch| batch.at_or_below < batch.total);
    steps >= EPISODES_MIN
        && steps as f64 >= BULK_SHARE * exceeds.len() as f64
        && beyond.count() as f64 >= BULK_BATCHES * batches.len() as f64
}

fn requests(batches: &[BatchCount]) -> u64 {
    let totals = batches.iter().map(|batch| batch.total);
    totals.fold(0, u64::saturating_add)
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

    /// Maxima in which one second in `every` has a request that took longer than all others.
    fn maxima(count: usize, every: usize) -> Vec<f64> {
        let largest = |second: usize| {
            if second.is_multiple_of(every) {
                10.0
            } else {
                0.5
            }
        };
        (0..count).map(largest).collect()
    }

    #[test]
    fn rare_tails_need_twenty_episodes() {
        let few =
            quantile_estimate(0.99, 0.05, &evenly(1000, 990), |q| q, &maxima(190, 10)).unwrap();
        assert_eq!(few.interval, Err(NotCertifiable::Episodes { got: 19 }));
        let enough =
            quantile_estimate(0.99, 0.05, &evenly(1000, 990), |q| q, &maxima(200, 10)).unwrap();
        assert!(enough.interval.unwrap().contains(0.99));
    }

    #[test]
    fn one_long_episode_is_not_the_bulk() {
        // A fifth of 300 seconds exceed the quantile: in two of the slices, or all over the run.
        let long: Vec<f64> = (0..300)
            .map(|second| if second < 60 { 10.0 } else { 0.5 })
            .collect();
        let mut two_slices = evenly(1000, 1000);
        for slice in &mut two_slices[..2] {
            slice.at_or_below = 500;
        }
        let interval = |batches: &[BatchCount], maxima: &[f64]| {
            let found = quantile_estimate(0.9, 0.05, batches, |q| q, maxima);
            found.unwrap().interval
        };
        let refused = Err(NotCertifiable::Episodes { got: 1 });
        assert_eq!(interval(&two_slices, &long), refused);
        assert!(interval(&evenly(1000, 900), &maxima(300, 5)).is_ok());
        // Without a second of quiet it is one episode too.
        assert!(interval(&evenly(1000, 900), &maxima(300, 1)).is_ok());
    }

    #[test]
    fn few_steps_are_not_enough_for_any_quantile() {
        let interval = |q: f64, at_or_below, maxima: &[f64]| {
            let found = quantile_estimate(q, 0.05, &evenly(1000, at_or_below), |q| q, maxima);
            found.unwrap().interval
        };
        // Slices as steps: two of ten exceed the quantile, or all of them.
        for every in [5, 1] {
            let refused = Err(NotCertifiable::Steps { got: 10 });
            assert_eq!(interval(0.9, 900, &maxima(10, every)), refused);
        }
        // A third of thirty steps, too close to each other to be separate.
        let refused = Err(NotCertifiable::Episodes { got: 1 });
        assert_eq!(interval(0.9, 900, &maxima(30, 3)), refused);
        assert!(interval(0.5, 500, &maxima(20, 1)).is_ok());
    }

    #[test]
    fn too_few_requests_for_the_quantile_are_refused() {
        for (q, needed) in [(0.99, 368), (0.999, 3688), (0.9999, 36_887)] {
            let result =
                quantile_estimate(q, 0.05, &evenly(1, 1), |q| q, &maxima(300, 10)).unwrap();
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
        let result = quantile_estimate(0.99, 0.05, &batches, |q| q, &maxima(300, 10)).unwrap();
        assert_eq!(result.interval.unwrap().high, f64::INFINITY);
    }

    #[test]
    fn slow_moods_widen_the_interval_more_than_quick_ones() {
        // The same forty slices: twenty above the median and then twenty below it, or in turns.
        let width = |mood: fn(u64) -> bool| {
            let at_or_below = |slice| if mood(slice) { 40 } else { 60 };
            let slices: Vec<BatchCount> = (0..40)
                .map(|slice| BatchCount {
                    total: 100,
                    at_or_below: at_or_below(slice),
                })
                .collect();
            let found = quantile_estimate(0.5, 0.05, &slices, |q| q, &maxima(300, 2)).unwrap();
            let interval = found.interval.unwrap();
            interval.high - interval.low
        };
        let (slow, quick) = (width(|slice| slice < 20), width(|slice| slice % 2 == 0));
        assert!(slow > 5.0 * quick && quick > 0.0, "{slow} {quick}");
    }

    #[test]
    fn impossible_counts_are_refused() {
        let batches = evenly(10, 11);
        assert!(quantile_estimate(0.5, 0.05, &batches, |q| q, &maxima(300, 10)).is_err());
        assert!(quantile_estimate(0.5, 0.05, &evenly(0, 0), |q| q, &maxima(300, 10)).is_err());
        assert!(quantile_estimate(1.0, 0.05, &evenly(10, 5), |q| q, &maxima(300, 10)).is_err());
    }
}
