//! Comparing latency quantiles: the slices' own quantiles as values of mirrored blocks, on an open-loop
//! queue with shared noise and shared stalls.

use dbduel_stats::compare::{BlockSlices, SliceValue, block_differences};
use dbduel_stats::random::RandomStream;
use dbduel_stats::sequential::{SequentialPlan, Side, Unit, flip_spend};
use dbduel_stats::simulate::autoregressive_series;

use crate::queue::{Latencies, Stalls, draw_stalls, serve};

const BLOCKS: usize = 12;
const SLICE: f64 = 15.0;

/// A duel of mirrored blocks: contender and latencies of every slice, four slices to a block. The second
/// contender's service takes `slower` times as long.
fn duel(slower: f64, seed: u64) -> Vec<(usize, Latencies)> {
    let mut random = RandomStream::new(seed, 40);
    let until = BLOCKS as f64 * 4.0 * SLICE;
    let stalls: Stalls = draw_stalls(60.0, until, &mut random);
    let levels: Vec<f64> = autoregressive_series(0.9, until as usize + 1, &mut random)
        .iter()
        .map(|x| (0.1 * x).exp())
        .collect();
    let mut slices = Vec::with_capacity(4 * BLOCKS);
    for _ in 0..BLOCKS {
        let first = random.below(2);
        for contender in [first, 1 - first, 1 - first, first] {
            let from = slices.len() as f64 * SLICE;
            let own = if contender == 1 { slower } else { 1.0 };
            let requests = serve(
                from,
                from + SLICE,
                250.0,
                &stalls,
                |t| own * levels[t as usize],
                &mut random,
            );
            let latencies = requests.iter().map(|(_, latency)| *latency);
            slices.push((contender, Latencies::new(latencies)));
        }
    }
    slices
}

/// Log ratios of the slices' quantiles, one per block.
fn differences(slices: &[(usize, Latencies)], q: f64) -> Vec<f64> {
    let value = |(contender, latencies): &(usize, Latencies)| SliceValue {
        contender: *contender,
        value: latencies.quantile(q),
    };
    let blocks: Vec<BlockSlices> = slices
        .chunks_exact(4)
        .map(|block| BlockSlices {
            length: SLICE,
            slices: block.iter().map(value).collect(),
        })
        .collect();
    block_differences(&blocks, 2, 0).unwrap().swap_remove(1)
}

fn plan(seed: u64) -> SequentialPlan {
    SequentialPlan::new(BLOCKS as f64, 0.05, 0.0, seed)
}

#[test]
fn equal_contenders_are_rarely_told_apart_at_any_quantile() {
    let quantiles = [0.5, 0.99, 0.999];
    let mut by_slice = [0; 3];
    let mut by_independence = 0;
    for seed in 0..150 {
        let slices = duel(1.0, seed);
        for (count, q) in by_slice.iter_mut().zip(quantiles) {
            let differences = differences(&slices, q);
            *count += usize::from(
                flip_spend(&Unit::of_weight_one(&differences), &plan(seed))
                    .unwrap()
                    .is_some(),
            );
        }
        by_independence += usize::from(independent_z(&slices, 0.99).abs() > 1.96);
    }
    // 99.9 % point of 150 trials at 5 %.
    assert!(by_slice.iter().all(|count| *count <= 17), "{by_slice:?}");
    // Control: order-statistic intervals that take requests for independent.
    assert!(by_independence >= 75, "{by_independence}");
}

/// z of the difference of pooled quantiles as if all requests were independent.
fn independent_z(slices: &[(usize, Latencies)], q: f64) -> f64 {
    let pool = |who: usize| {
        let mut pool = Latencies::new([]);
        for (_, latencies) in slices.iter().filter(|(contender, _)| *contender == who) {
            pool.merge(latencies);
        }
        let reach = (q * (1.0 - q) / pool.total() as f64).sqrt();
        let error = 0.5 * (pool.quantile(q + reach) - pool.quantile(q - reach));
        (pool.quantile(q), error)
    };
    let (a, b) = (pool(0), pool(1));
    (b.0 - a.0) / (a.1 * a.1 + b.1 * b.1).sqrt()
}

#[test]
fn a_slower_service_shows_in_the_median() {
    let found = (0..40)
        .filter(|seed| {
            let differences = differences(&duel(1.10, *seed), 0.5);
            let rejection = flip_spend(&Unit::of_weight_one(&differences), &plan(*seed)).unwrap();
            rejection.is_some_and(|rejection| rejection.side == Side::Above)
        })
        .count();
    assert!(found >= 36, "{found}");
}
