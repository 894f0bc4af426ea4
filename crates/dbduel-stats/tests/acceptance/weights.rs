//! Units of unequal weight: short blocks first, longer ones later.

use dbduel_stats::random::RandomStream;
use dbduel_stats::sequential::{Decider, SequentialPlan, Unit, decide};

/// Weights of a duel of 40 blocks that begin with slices of a tenth of the later ones.
fn growing() -> Vec<f64> {
    (0..40)
        .map(|block| (0.1 * 1.2_f64.powi(block)).min(1.0))
        .collect()
}

/// Units around `effect` whose scatter is that of blocks of this length under fast noise, with a heavy tail.
fn units(weights: &[f64], effect: f64, seed: u64) -> Vec<Unit> {
    let mut random = RandomStream::new(seed, 13);
    let mut unit = |weight: &f64| {
        let tail = (-(1.0 - random.uniform()).ln()).sqrt();
        Unit::new(effect + random.normal() / tail / weight.sqrt(), *weight)
    };
    weights.iter().map(&mut unit).collect()
}

fn plan(weights: &[f64], seed: u64) -> SequentialPlan {
    SequentialPlan::new(weights.iter().sum(), 0.05, 0.0, seed)
}

#[test]
fn the_error_rate_holds_when_blocks_grow() {
    let weights = growing();
    let wrong = |seed: &u64| {
        let mut decider = Decider::new(plan(&weights, *seed)).unwrap();
        let units = units(&weights, 0.0, *seed);
        units.iter().any(|unit| {
            decider.push(*unit).unwrap();
            decider.has_verdict()
        })
    };
    let wrong = (0..1000).filter(wrong).count();
    assert!((30..=73).contains(&wrong), "{wrong} of 1000");
}

#[test]
fn intervals_hold_the_truth_when_blocks_grow() {
    let weights = growing();
    let is_held = |seed: &u64| {
        let decision = decide(&units(&weights, 3.0, *seed), &plan(&weights, *seed)).unwrap();
        let interval = decision.interval;
        interval.is_some_and(|interval| interval.low <= 3.0 && 3.0 <= interval.high)
    };
    let held = (0..200).filter(is_held).count();
    // 95 % of 200, less the 0.1 % point of the binomial.
    assert!(held >= 180, "{held} of 200");
}

/// Control: the error probability is void when weights follow from who was faster.
#[test]
fn weights_that_look_at_the_difference_are_wrong_more_often() {
    let wrong = |seed: &u64| {
        let mut units = units(&[1.0; 40], 0.0, *seed);
        for unit in &mut units {
            let difference = unit.difference().unwrap();
            *unit = Unit::new(difference, if difference > 0.0 { 4.0 } else { 1.0 });
        }
        let plan = SequentialPlan::new(100.0, 0.05, 0.0, *seed);
        decide(&units, &plan).unwrap().decided_at.is_some()
    };
    let wrong = (0..100).filter(wrong).count();
    assert!(wrong >= 20, "{wrong} of 100");
}
