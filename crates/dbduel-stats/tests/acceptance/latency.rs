//! Quantile comparisons on an open-loop queue with shared noise and shared stalls.

use crate::queue::{Stalls, bucketed, draw_stalls, serve};
use crate::simulate::autoregressive_series;
use dbduel_stats::buckets::Buckets;
use dbduel_stats::quantile_ratio::{LatencyBlock, compare_quantiles, exceedance_rejection};
use dbduel_stats::random::RandomStream;
use dbduel_stats::sequential::{SequentialPlan, flip_spend};

const BLOCKS: usize = 12;
const SLICE: f64 = 15.0;

/// A duel of mirrored blocks; the contender's service takes `slower` times as long, and its
/// latencies are multiplied by `scale` afterwards.
fn duel(slower: f64, scale: f64, stall_every: f64, seed: u64) -> Vec<LatencyBlock> {
    let mut random = RandomStream::new(seed, 40);
    let until = BLOCKS as f64 * 4.0 * SLICE;
    let stalls: Stalls = draw_stalls(stall_every, until, &mut random);
    let levels: Vec<f64> = autoregressive_series(0.9, until as usize + 1, &mut random)
        .iter()
        .map(|x| (0.1 * x).exp())
        .collect();
    (0..BLOCKS)
        .map(|block| {
            let first = random.below(2);
            let mut slices: [Vec<Buckets>; 2] = [Vec::new(), Vec::new()];
            for (position, contender) in
                [first, 1 - first, 1 - first, first].into_iter().enumerate()
            {
                let from = (4 * block + position) as f64 * SLICE;
                let own = if contender == 1 { slower } else { 1.0 };
                let requests = serve(
                    from,
                    from + SLICE,
                    250.0,
                    &stalls,
                    |t| own * levels[t as usize],
                    &mut random,
                );
                slices[contender].push(bucketed(requests.iter().map(|(_, latency)| {
                    if contender == 1 {
                        scale * latency
                    } else {
                        *latency
                    }
                })));
            }
            let [baseline, contender] =
                slices.map(|slices| <[Buckets; 2]>::try_from(slices).unwrap());
            LatencyBlock {
                baseline,
                contender,
            }
        })
        .collect()
}

fn plan(seed: u64) -> SequentialPlan {
    SequentialPlan::new(BLOCKS, 0.05, 0.0, seed)
}

/// Typical-slice quantile: differences of log quantiles.
fn slice_differences(blocks: &[LatencyBlock], q: f64) -> Vec<f64> {
    let level =
        |slices: &[Buckets; 2]| 0.5 * (slices[0].quantile(q).ln() + slices[1].quantile(q).ln());
    blocks
        .iter()
        .map(|block| level(&block.contender) - level(&block.baseline))
        .collect()
}

#[test]
fn equal_contenders_are_rarely_told_apart_at_any_quantile() {
    let quantiles = [0.5, 0.99, 0.999];
    let (mut by_slice, mut by_exceedance) = ([0; 3], [0; 3]);
    let mut by_independence = 0;
    for seed in 0..150 {
        let blocks = duel(1.0, 1.0, 60.0, seed);
        for (index, q) in quantiles.into_iter().enumerate() {
            let differences = slice_differences(&blocks, q);
            by_slice[index] +=
                usize::from(flip_spend(&differences, &plan(seed)).unwrap().is_some());
            let found = exceedance_rejection(&blocks, q, &plan(seed)).unwrap();
            by_exceedance[index] += usize::from(found.is_some());
        }
        by_independence += usize::from(independent_z(&blocks, 0.99).abs() > 1.96);
    }
    // 99.9 % point of 150 trials at 5 %.
    assert!(
        by_slice
            .iter()
            .chain(&by_exceedance)
            .all(|count| *count <= 17),
        "{by_slice:?} {by_exceedance:?}"
    );
    // Control: order-statistic intervals that take requests for independent.
    assert!(by_independence >= 75, "{by_independence}");
}

/// z of the difference of pooled quantiles as if all requests were independent.
fn independent_z(blocks: &[LatencyBlock], q: f64) -> f64 {
    let pool = |slices: fn(&LatencyBlock) -> &[Buckets; 2]| {
        let all = blocks.iter().flat_map(slices).flat_map(Buckets::counts);
        let pool = Buckets::new(all).unwrap();
        let reach = (q * (1.0 - q) / pool.total() as f64).sqrt();
        let error = 0.5 * (pool.quantile(q + reach) - pool.quantile(q - reach));
        (pool.quantile(q), error)
    };
    let (a, b) = (
        pool(|block| &block.baseline),
        pool(|block| &block.contender),
    );
    (b.0 - a.0) / (a.1 * a.1 + b.1 * b.1).sqrt()
}

#[test]
fn a_slower_service_shows_in_the_median() {
    let found = (0..40)
        .filter(|seed| {
            let blocks = duel(1.10, 1.0, 60.0, *seed);
            exceedance_rejection(&blocks, 0.5, &plan(*seed))
                .unwrap()
                .is_some()
        })
        .count();
    assert!(found >= 36, "{found}");
}

#[test]
fn the_inverted_interval_covers_a_change_of_scale() {
    for (q, ratio) in [(0.5, 1.05), (0.99, 1.2)] {
        let covered = (0..40)
            .filter(|seed| {
                let blocks = duel(1.0, ratio, 1e9, *seed);
                let found = compare_quantiles(&blocks, q, &plan(*seed)).unwrap();
                found
                    .interval
                    .is_some_and(|interval| interval.low <= ratio && ratio <= interval.high)
            })
            .count();
        // 0.1 % point of 40 trials at 95 %.
        assert!(covered >= 33, "{q}: {covered}");
    }
}
