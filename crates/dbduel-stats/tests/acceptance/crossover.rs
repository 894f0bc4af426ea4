//! Crossings that exist and crossings that noise pretends.

use dbduel_stats::crossover::{Crossovers, SizeDifferences, find_crossovers};
use dbduel_stats::random::RandomStream;

/// Eleven sizes, 24 blocks each with a deviation of 5 %.
fn measure(curve: impl Fn(f64) -> f64, seed: u64) -> Crossovers {
    let mut random = RandomStream::new(seed, 70);
    let sizes: Vec<SizeDifferences> = (0..11)
        .map(|index| SizeDifferences {
            size: 2_f64.powi(index),
            differences: (0..24)
                .map(|_| curve(f64::from(index)) + 0.05 * random.normal())
                .collect(),
        })
        .collect();
    find_crossovers(&sizes, 0.05).unwrap()
}

#[test]
fn equal_and_parallel_curves_do_not_cross() {
    for level in [0.0, 0.03] {
        let claims = (0..1000)
            .filter(|seed| !measure(|_| level, *seed).crossings.is_empty())
            .count();
        assert!(claims <= 10, "{level}: {claims}");
    }
}

#[test]
fn a_linear_crossing_is_claimed_and_covered() {
    let curve = |index: f64| 0.08 * (index - 5.3) / 5.0;
    let (mut claimed, mut covered) = (0, 0);
    for seed in 0..1000 {
        if let [crossing] = measure(curve, seed).crossings[..] {
            claimed += 1;
            covered += usize::from(crossing.at.contains(2_f64.powf(5.3)));
        }
    }
    assert!(
        claimed >= 990 && covered * 1000 >= 927 * claimed,
        "{claimed} {covered}"
    );
}

#[test]
fn a_cache_edge_is_not_placed_finer_than_the_grid() {
    let curve = |index: f64| 0.10 * (4.0 * (index - 5.3)).tanh();
    let mut covered = 0;
    for seed in 0..1000 {
        let crossings = measure(curve, seed).crossings;
        assert!(
            crossings
                .iter()
                .all(|crossing| crossing.at.high / crossing.at.low > 1.99)
        );
        covered += usize::from(
            crossings
                .iter()
                .any(|crossing| crossing.at.contains(2_f64.powf(5.3))),
        );
    }
    assert!(covered >= 927, "{covered}");
}

#[test]
fn two_crossings_are_both_reported() {
    let curve = |index: f64| {
        0.10 * if (2.5..7.5).contains(&index) {
            -1.0
        } else {
            1.0
        }
    };
    let both = (0..300)
        .filter(|seed| {
            let crossings = measure(curve, *seed).crossings;
            crossings.len() == 2
                && crossings[0].at.contains(2_f64.powf(2.5))
                && crossings[1].at.contains(2_f64.powf(7.5))
        })
        .count();
    assert!(both >= 270, "{both}");
}
