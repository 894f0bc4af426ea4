//! Comparing latency quantiles of two contenders over mirrored blocks.
//!
//! Requests are not independent, so raw latencies are never tested. The share of each slice's requests
//! above the pooled quantile is a number per slice, and its block differences go through the sign-flip
//! test: exact when both have the same distribution, for any quantile. The *typical-slice* quantile
//! needs none of this: put the slices' quantiles into [`crate::compare::block_differences`] when each
//! slice has [`requests_per_slice`] requests. It does not know units, nor which quantile matters.

use crate::buckets::{Buckets, rank};
use crate::error::{StatsError, at_least, open_fraction};
use crate::sequential::{Interval, Rejection, SequentialPlan, flip_spend_recomputed};

/// Ends of the inverted interval are located to this on the log scale; histograms round to 0.001.
const LOG_PRECISION: f64 = 1e-3;

/// Largest |ln ratio| looked at; beyond, the ratio counts as unbounded.
const LOG_RATIO_MAX: f64 = 14.0;

/// Latencies of the two slices of each contender of a pair in one mirrored block.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyBlock {
    /// The baseline's slices.
    pub baseline: [Buckets; 2],
    /// The contender's slices.
    pub contender: [Buckets; 2],
}

/// What can be said about the ratio of the pooled quantiles, contender ÷ baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileComparison {
    /// Ratio of the quantiles of all requests together.
    pub ratio: f64,
    /// When "same distribution" was rejected. [`crate::sequential::Side::Above`]: the contender has
    /// more requests beyond the pooled quantile, so it is slower.
    pub rejection: Option<Rejection>,
    /// Ratios not rejected: 0 and ∞ where unbounded. `None`: no ratio near the pooled one fits, so the
    /// contenders differ by more than a change of scale, or the ratio changed.
    pub interval: Option<Interval>,
}

/// Least number of requests per slice for a slice's own quantile `q` to mean something: ten beyond it.
pub fn requests_per_slice(q: f64) -> f64 {
    10.0 / (1.0 - q)
}

/// Sign-flip test on exceedances of the pooled quantile `q` and, by inversion, an interval of the
/// ratio under a pure change of scale. The pair alone is pooled, so third contenders have no influence.
///
/// # Errors
/// No block, `q` outside (0, 1), or a plan that could never decide.
pub fn compare_quantiles(
    blocks: &[LatencyBlock],
    q: f64,
    plan: &SequentialPlan,
) -> Result<QuantileComparison, StatsError> {
    at_least("latency blocks", 1, blocks.len())?;
    open_fraction("q", q)?;
    let pools = Pools::new(blocks);
    let log_ratio = pools.log_ratio(q);
    let rejected = |shift: f64| exceedance_test(blocks, &pools, q, shift, plan);
    let rejection = rejected(0.0)?;
    let accepted = |shift: f64| Ok::<bool, StatsError>(rejected(shift)?.is_none());
    let interval = match accepted_near(log_ratio, accepted)? {
        Some(start) => {
            let low = search_end(start, -1.0, accepted)?;
            let high = search_end(start, 1.0, accepted)?;
            Some(Interval {
                low: low.exp(),
                high: high.exp(),
            })
        }
        None => None,
    };
    Ok(QuantileComparison {
        ratio: log_ratio.exp(),
        rejection,
        interval,
    })
}

/// The sign-flip test on exceedances alone: whether and when "same distribution" was rejected.
///
/// # Errors
/// As for [`compare_quantiles`].
pub fn exceedance_rejection(
    blocks: &[LatencyBlock],
    q: f64,
    plan: &SequentialPlan,
) -> Result<Option<Rejection>, StatsError> {
    at_least("latency blocks", 1, blocks.len())?;
    open_fraction("q", q)?;
    exceedance_test(blocks, &Pools::new(blocks), q, 0.0, plan)
}

/// The pooled ratio, or the nearest of some values around it, that is not rejected. An early look can
/// have rejected the ratio that all blocks together show.
fn accepted_near(
    centre: f64,
    accepted: impl Fn(f64) -> Result<bool, StatsError>,
) -> Result<Option<f64>, StatsError> {
    for step in 0..=20 {
        for direction in [-1.0, 1.0] {
            let candidate = centre + direction * 0.02 * f64::from(step);
            if accepted(candidate)? {
                return Ok(Some(candidate));
            }
        }
    }
    Ok(None)
}

/// Walks outwards from an accepted value with doubling steps, then halves. Infinite when nothing up to
/// the largest ratio is rejected.
fn search_end(
    start: f64,
    direction: f64,
    accepted: impl Fn(f64) -> Result<bool, StatsError>,
) -> Result<f64, StatsError> {
    let (mut kept, mut step) = (start, 0.02);
    let mut outside = loop {
        let next = start + direction * step;
        if !accepted(next)? {
            break next;
        }
        if step > LOG_RATIO_MAX {
            return Ok(direction * f64::INFINITY);
        }
        kept = next;
        step *= 2.0;
    };
    while (outside - kept).abs() > LOG_PRECISION {
        let middle = 0.5 * (outside + kept);
        if accepted(middle)? {
            kept = middle;
        } else {
            outside = middle;
        }
    }
    Ok(outside)
}

/// Everything both contenders did up to each block, merged once for all hypotheses.
struct Pools {
    baseline: Vec<Buckets>,
    contender: Vec<Buckets>,
}

impl Pools {
    fn new(blocks: &[LatencyBlock]) -> Self {
        let growing = |slices: fn(&LatencyBlock) -> &[Buckets; 2]| {
            let mut pools: Vec<Buckets> = Vec::with_capacity(blocks.len());
            for block in blocks {
                let [one, other] = slices(block);
                let both = one.merged(other);
                let grown = pools
                    .last()
                    .map_or_else(|| both.clone(), |pool| pool.merged(&both));
                pools.push(grown);
            }
            pools
        };
        Pools {
            baseline: growing(|block| &block.baseline),
            contender: growing(|block| &block.contender),
        }
    }

    fn log_ratio(&self, q: f64) -> f64 {
        match (self.contender.last(), self.baseline.last()) {
            (Some(contender), Some(baseline)) => {
                (contender.quantile(q) / baseline.quantile(q)).ln()
            }
            _ => 0.0,
        }
    }

    /// Quantile of both pools after `n` blocks, with the baseline's values multiplied by `stretch` and
    /// the contender's divided by it.
    fn quantile(&self, n: usize, q: f64, stretch: f64) -> f64 {
        let (baseline, contender) = (&self.baseline[n - 1], &self.contender[n - 1]);
        let rank = rank(q, baseline.total() + contender.total());
        let (a, b) = (
            baseline.quantile(q) * stretch,
            contender.quantile(q) / stretch,
        );
        // The pooled quantile lies between the two; bisection to well below a histogram's resolution.
        let (mut low, mut high) = (a.min(b) * (1.0 - 1e-6), a.max(b) * (1.0 + 1e-6));
        while high - low > 1e-5 * high {
            let middle = 0.5 * (low + high);
            if baseline.at_or_below(middle / stretch) + contender.at_or_below(middle * stretch)
                >= rank
            {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}

/// The test of "contender = baseline · exp(shift)", half of the shift undone on either side.
fn exceedance_test(
    blocks: &[LatencyBlock],
    pools: &Pools,
    q: f64,
    shift: f64,
    plan: &SequentialPlan,
) -> Result<Option<Rejection>, StatsError> {
    let stretch = (0.5 * shift).exp();
    flip_spend_recomputed(blocks.len(), plan, |n| {
        let bar = pools.quantile(n, q, stretch);
        let share = |slices: &[Buckets; 2], bar: f64| {
            0.5 * (slices[0].share_above(bar) + slices[1].share_above(bar))
        };
        blocks[..n]
            .iter()
            .map(|block| {
                share(&block.contender, bar * stretch) - share(&block.baseline, bar / stretch)
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;
    use crate::sequential::Side;

    /// Blocks of log-normal latencies rounded to 0.1 %, the contender's scaled by `ratio`.
    fn blocks(count: usize, ratio: f64, seed: u64) -> Vec<LatencyBlock> {
        let mut random = RandomStream::new(seed, 0);
        let mut slice = |scale: f64, level: f64| {
            let values = (0..400).map(|_| {
                let log = 0.8 * random.normal() + level + scale;
                (((log * 1000.0).round() / 1000.0).exp(), 1)
            });
            Buckets::new(values.collect::<Vec<_>>()).unwrap()
        };
        let mut levels = RandomStream::new(seed, 1);
        (0..count)
            .map(|_| {
                let level = 0.1 * levels.normal();
                LatencyBlock {
                    baseline: [slice(0.0, level), slice(0.0, level)],
                    contender: [slice(ratio.ln(), level), slice(ratio.ln(), level)],
                }
            })
            .collect()
    }

    #[test]
    fn a_change_of_scale_is_found_with_its_size() {
        let plan = SequentialPlan::new(20, 0.05, 0.0, 1);
        for q in [0.5, 0.99] {
            let found = compare_quantiles(&blocks(20, 1.3, 5), q, &plan).unwrap();
            assert_eq!(
                found.rejection.map(|rejection| rejection.side),
                Some(Side::Above)
            );
            let interval = found.interval.unwrap();
            assert!(
                interval.low < 1.3 && 1.3 < interval.high && interval.low > 1.0,
                "{found:?}"
            );
        }
    }

    #[test]
    fn few_blocks_leave_the_ratio_unbounded() {
        let plan = SequentialPlan::new(20, 0.05, 0.0, 1);
        let found = compare_quantiles(&blocks(3, 2.0, 3), 0.5, &plan).unwrap();
        assert_eq!(found.rejection, None);
        assert_eq!(
            found.interval,
            Some(Interval {
                low: 0.0,
                high: f64::INFINITY
            })
        );
        assert!(compare_quantiles(&[], 0.5, &plan).is_err());
        assert!(compare_quantiles(&blocks(1, 1.0, 3), 1.0, &plan).is_err());
    }
}
