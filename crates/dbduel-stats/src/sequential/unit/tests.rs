//! Totals as units: their contributions, and decisions on them.

use super::*;
use crate::random::RandomStream;
use crate::sequential::{Interval, SequentialPlan, Totals, Verdict, decide, share_of_whole};

/// Blocks of a duel at this log ratio; each contender's rate scatters by `spread`, and the machine's by 20 %.
fn blocks(seed: u64, n: usize, effect: f64, spread: f64) -> Vec<(BlockTotals, f64)> {
    let mut random = RandomStream::new(seed, 90);
    let block = |_| {
        let level = 0.2 * random.normal();
        let mut totals = |effect: f64| Totals {
            work: 1e4 * (level + effect + spread * random.normal()).exp(),
            time: 10.0,
        };
        let (contender, reference) = (totals(effect), totals(0.0));
        let block = BlockTotals {
            contender,
            reference,
        };
        (block, 1.0)
    };
    (0..n).map(block).collect()
}

fn plan(n: usize) -> SequentialPlan {
    SequentialPlan::new(n as f64, 0.05, 0.0, 3)
}

fn interval(blocks: &[(BlockTotals, f64)], n: usize) -> Interval {
    let decision = decide(&Unit::of_totals(blocks).unwrap(), &plan(n)).unwrap();
    decision.interval.unwrap()
}

/// The block with the contenders exchanged, where the effect is `effect`.
fn exchanged(block: BlockTotals, effect: f64) -> BlockTotals {
    let scaled = |of: Totals, by: f64| Totals {
        work: of.work * by.exp(),
        time: of.time,
    };
    BlockTotals {
        contender: scaled(block.reference, effect),
        reference: scaled(block.contender, -effect),
    }
}

#[test]
fn exchanging_a_block_flips_its_sign_and_nothing_else() {
    for effect in [-3.0, 0.0, 0.4] {
        let as_measured = blocks(1, 12, 0.3, 0.2);
        let units = Unit::of_totals(&as_measured).unwrap();
        for turned in 0..12 {
            let mut other = as_measured.clone();
            other[turned].0 = exchanged(other[turned].0, effect);
            let other = Unit::of_totals(&other).unwrap();
            for (number, (one, other)) in units.iter().zip(&other).enumerate() {
                let sign = if number == turned { -1.0 } else { 1.0 };
                let (one, other) = (one.without(effect), sign * other.without(effect));
                assert!((one - other).abs() < 1e-9, "{effect} {turned} {number}");
            }
        }
    }
}

#[test]
fn contributions_cancel_near_the_log_ratio_of_all_work_and_fall_with_the_effect() {
    for effect in [0.0, 0.3, 2.0] {
        let units = Unit::of_totals(&blocks(2, 40, effect, 0.05)).unwrap();
        let sum = |effect: f64| units.iter().map(|unit| unit.without(effect)).sum::<f64>();
        let centre = mean_effect(&units);
        let slope: f64 = units.iter().map(|unit| unit.slope(centre)).sum();
        assert!((sum(centre) / slope).abs() < 0.1 * standard_error(&units));
        let step = 1e-4;
        let fall = (sum(centre - step) - sum(centre + step)) / (2.0 * step);
        assert!((fall / slope - 1.0).abs() < 1e-6, "{fall} {slope}");
        for unit in &units {
            let own = unit.own_effect();
            assert!(unit.without(own).abs() < 1e-9 && unit.without(own + 0.1) < 0.0);
        }
    }
}

#[test]
fn units_of_work_and_time_do_not_matter() {
    let as_measured = blocks(3, 30, 0.1, 0.05);
    let one = interval(&as_measured, 30);
    let scaled = |of: Totals| Totals {
        work: 1e-3 * of.work,
        time: 1e6 * of.time,
    };
    let other: Vec<(BlockTotals, f64)> = (as_measured.iter())
        .map(|(block, weight)| {
            let block = BlockTotals {
                contender: scaled(block.contender),
                reference: scaled(block.reference),
            };
            (block, *weight)
        })
        .collect();
    let other = interval(&other, 30);
    assert!((one.low - other.low).abs() < 1e-9 && (one.high - other.high).abs() < 1e-9);
}

#[test]
fn exchanging_the_contenders_mirrors_the_interval() {
    let as_measured = blocks(4, 30, 0.5, 0.1);
    let mirrored = as_measured.iter().map(|(block, weight)| {
        let block = BlockTotals {
            contender: block.reference,
            reference: block.contender,
        };
        (block, *weight)
    });
    let mirrored: Vec<(BlockTotals, f64)> = mirrored.collect();
    let (one, other) = (interval(&as_measured, 30), interval(&mirrored, 30));
    assert!((one.low + other.high).abs() < 1e-3 && (one.high + other.low).abs() < 1e-3);
}

/// With steady levels and equal times a block's contribution is its log ratio times half of its time.
#[test]
fn small_scatter_and_equal_times_give_the_interval_of_differences() {
    for seed in 0..10 {
        let mut random = RandomStream::new(seed, 91);
        let as_measured: Vec<(BlockTotals, f64)> = (0..24)
            .map(|_| {
                let mut totals = |effect: f64| Totals {
                    work: (effect + 0.01 * random.normal()).exp(),
                    time: 1.0,
                };
                let (contender, reference) = (totals(0.03), totals(0.0));
                let block = BlockTotals {
                    contender,
                    reference,
                };
                (block, 1.0)
            })
            .collect();
        let differences: Vec<f64> = as_measured
            .iter()
            .map(|block| block.0.log_ratio())
            .collect();
        let differences = Unit::of_weight_one(&differences);
        let one = interval(&as_measured, 24);
        let other = decide(&differences, &plan(24)).unwrap().interval.unwrap();
        let slack = 0.15 * standard_error(&differences);
        assert!(
            (one.low - other.low).abs() < slack && (one.high - other.high).abs() < slack,
            "{seed}: {one:?} {other:?}"
        );
    }
}

#[test]
fn large_ratios_have_intervals_around_them() {
    for factor in [8.0_f64, 100.0, 1e6] {
        for effect in [factor.ln(), -factor.ln()] {
            for n in [10, 40] {
                let Interval { low, high } = interval(&blocks(5, n, effect, 0.1), n);
                assert!(
                    low < effect && effect < high && high - low < 0.5,
                    "{factor} {n}: {low} {high}"
                );
            }
        }
    }
}

#[test]
fn far_outside_every_effect_has_the_same_outcome() {
    for n in [8, 14, 30] {
        let mut as_measured = blocks(6, n, 0.2, 0.1);
        // One block in which the contender completed nothing for half a minute.
        as_measured[3].0.contender = Totals {
            work: 0.0,
            time: 30.0,
        };
        let units = Unit::of_totals(&as_measured).unwrap();
        let is_decided = |effect: f64| {
            let shifted = as_measured.iter().map(|(block, weight)| {
                let mut block = *block;
                block.contender.work *= (-effect).exp();
                (block, *weight)
            });
            let shifted = Unit::of_totals(&shifted.collect::<Vec<_>>()).unwrap();
            let decision = decide(&shifted, &plan(n)).unwrap();
            decision.verdict != Verdict::Undecided
        };
        for side in [-1.0, 1.0] {
            let outcomes = [8.0, 16.0, 50.0, 100.0].map(|effect| is_decided(side * effect));
            assert!(
                outcomes.iter().all(|outcome| *outcome == outcomes[0]),
                "{n} {side}: {outcomes:?}"
            );
        }
        for effect in [-1e300, -1e4, 1e4, 1e300] {
            assert!(units.iter().all(|unit| unit.without(effect).is_finite()));
        }
    }
}

#[test]
fn blocks_without_work_are_valid_and_a_contender_without_any_is_not() {
    let mut as_measured = blocks(7, 30, 0.0, 0.05);
    as_measured[0].0.contender.work = 0.0;
    as_measured[9].0.reference.work = 0.0;
    as_measured[9].0.contender.work = 0.0;
    let units = Unit::of_totals(&as_measured).unwrap();
    for n in 1..=30 {
        let decision = decide(&units[..n], &plan(30)).unwrap();
        assert!(n == 1 || decision.estimate.is_finite(), "{n}: {decision:?}");
        assert!(decision.interval.is_none_or(|set| set.low <= set.high));
    }
    for block in &mut as_measured {
        block.0.contender.work = 0.0;
    }
    assert!(matches!(
        Unit::of_totals(&as_measured),
        Err(StatsError::NotPositive { .. })
    ));
    assert_eq!(Unit::of_totals(&[]), Ok(Vec::new()));
}

#[test]
fn totals_that_cannot_be_computed_with_are_refused() {
    let good = Totals {
        work: 1.0,
        time: 1.0,
    };
    let refused = |contender: Totals, weight: f64| {
        let block = BlockTotals {
            contender,
            reference: good,
        };
        Unit::of_totals(&[(block, weight)]).is_err()
    };
    assert!(!refused(good, 1.0));
    assert!(refused(good, 0.0) && refused(good, f64::NAN));
    for (work, time) in [
        (-1.0, 1.0),
        (f64::NAN, 1.0),
        (f64::INFINITY, 1.0),
        (1.0, 0.0),
        (1.0, -1.0),
        (1.0, f64::NAN),
    ] {
        assert!(refused(Totals { work, time }, 1.0), "{work} {time}");
    }
}

#[test]
fn units_of_two_sorts_do_not_mix() {
    let totals = Unit::of_totals(&blocks(8, 3, 0.0, 0.1)).unwrap();
    let mixed = [totals[0], totals[1], Unit::new(0.1, 1.0)];
    assert!(matches!(
        decide(&mixed, &plan(10)),
        Err(StatsError::Shape { .. })
    ));
    assert!(matches!(
        crate::sequential::flip_spend(&mixed, &plan(10)),
        Err(StatsError::Shape { .. })
    ));
    assert!(matches!(
        share_of_whole(&totals, &totals, &plan(10)),
        Err(StatsError::Shape { .. })
    ));
}
