//! Paired block bootstrap of the ratio of pooled quantiles, for display beside the test.

use super::{LatencyBlock, Pools};
use crate::buckets::{Buckets, rank};
use crate::error::{StatsError, at_least, open_fraction};
use crate::estimate::Estimate;
use crate::moments::{t_point, variance};
use crate::random::RandomStream;

/// Resamples behind the bootstrap interval.
const RESAMPLES: usize = 999;

/// Ratio of the pooled quantiles with a paired block-bootstrap interval (estimate ± t · deviation of the
/// resampled log ratios). For display beside the test; it is trustworthy only when each contender's
/// tail was visited in at least [`crate::quantile::EPISODES_MIN`] episodes, which callers check.
///
/// # Errors
/// Fewer than two blocks, or `q` or `alpha` outside (0, 1).
pub fn bootstrap_quantile_ratio(
    blocks: &[LatencyBlock],
    q: f64,
    alpha: f64,
    seed: u64,
) -> Result<Estimate, StatsError> {
    at_least("latency blocks", 2, blocks.len())?;
    open_fraction("q", q)?;
    open_fraction("alpha", alpha)?;
    let baseline = DenseCounts::new(blocks, |block| &block.baseline);
    let contender = DenseCounts::new(blocks, |block| &block.contender);
    let mut random = RandomStream::new(seed, 0);
    let mut log_ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let drawn: Vec<usize> = (0..blocks.len())
            .map(|_| random.below(blocks.len()))
            .collect();
        log_ratios.push((contender.quantile(&drawn, q) / baseline.quantile(&drawn, q)).ln());
    }
    let value = Pools::new(blocks).log_ratio(q);
    let half = t_point(blocks.len() as f64 - 1.0, alpha) * variance(&log_ratios).sqrt();
    let estimate = Estimate {
        value,
        low: value - half,
        high: value + half,
        n: blocks.len(),
    };
    Ok(estimate.map_increasing(f64::exp))
}

/// Counts of every block on one common grid, so that resampling is addition.
struct DenseCounts {
    values: Vec<f64>,
    blocks: Vec<Vec<u64>>,
}

impl DenseCounts {
    fn new(blocks: &[LatencyBlock], slices: impl Fn(&LatencyBlock) -> &[Buckets; 2]) -> Self {
        let merged: Vec<Buckets> = blocks
            .iter()
            .map(|block| {
                let [one, other] = slices(block);
                one.merged(other)
            })
            .collect();
        let mut values: Vec<f64> = merged
            .iter()
            .flat_map(Buckets::counts)
            .map(|(value, _)| value)
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let blocks = merged
            .iter()
            .map(|block| {
                let mut dense = vec![0; values.len()];
                for (value, count) in block.counts() {
                    dense[values.partition_point(|grid| *grid < value)] = count;
                }
                dense
            })
            .collect();
        DenseCounts { values, blocks }
    }

    fn quantile(&self, drawn: &[usize], q: f64) -> f64 {
        let mut counts = vec![0; self.values.len()];
        for block in drawn {
            for (sum, count) in counts.iter_mut().zip(&self.blocks[*block]) {
                *sum += count;
            }
        }
        let rank = rank(q, counts.iter().sum());
        let mut below = 0;
        let index = counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        self.values[index.unwrap_or(self.values.len() - 1)]
    }
}
