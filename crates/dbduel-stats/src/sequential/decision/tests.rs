//! Decisions on synthetic units.

use super::*;
use crate::random::RandomStream;

fn noise(seed: u64, n: usize, centre: f64, spread: f64) -> Vec<Unit> {
    let mut random = RandomStream::new(seed, 77);
    let units: Vec<f64> = (0..n).map(|_| centre + spread * random.normal()).collect();
    Unit::of_weight_one(&units)
}

#[test]
fn a_clear_gain_is_called_faster_as_soon_as_the_coins_allow() {
    let plan = SequentialPlan::new(56.0, 0.05, 0.02, 1);
    let decision = decide(&noise(1, 12, 0.10, 0.01), &plan).unwrap();
    assert_eq!(decision.verdict, Verdict::Faster);
    assert_eq!(decision.decided_at, Some(9));
    assert_eq!(decision.method, Some(Method::WithinBudget));
    let interval = decision.interval.unwrap();
    assert!(
        0.08 < interval.low && interval.low < 0.10 && 0.10 < interval.high && interval.high < 0.12
    );
}

/// Units of which the last, in which a contender hung, moves the mean to where earlier looks exclude it.
fn with_a_hang(seed: u64) -> Vec<Unit> {
    let mut units = noise(seed, 16, 0.0, 0.01);
    units.push(Unit::new(-3.0, 1.0));
    units
}

#[test]
fn an_estimate_that_earlier_looks_exclude_is_balanced_within_the_interval() {
    let plan = SequentialPlan::new(20.0, 0.05, 0.02, 3);
    let mut balanced = 0;
    for seed in 0..20 {
        let units = with_a_hang(seed);
        let decision = decide(&units, &plan).unwrap();
        let Some(interval) = decision.interval else {
            continue;
        };
        let mean = mean_effect(&units);
        assert!(
            interval.low < decision.estimate && decision.estimate < interval.high,
            "{decision:?}"
        );
        assert_eq!(
            decision.is_balanced,
            mean <= interval.low || mean >= interval.high
        );
        if !decision.is_balanced {
            assert_eq!(decision.estimate, mean);
            continue;
        }
        balanced += 1;
        // Effects below it are nearer to a rejection by data above, and the other way round.
        let mut coins = Coins::new(plan.seed, plan.paths);
        coins.extend_to(units.len());
        let side = |shift: f64| {
            let mut test = ShiftTest::new(shift, &plan);
            for unit in &units {
                test.push(unit, &coins);
            }
            test.nearer_side()
        };
        let aside = 0.1 * (interval.high - interval.low);
        assert_eq!(
            [decision.estimate - aside, decision.estimate + aside].map(side),
            [Side::Above, Side::Below],
            "{decision:?}"
        );
    }
    assert!(balanced > 5, "{balanced}");
}

#[test]
fn the_balance_moves_and_turns_with_the_units() {
    let plan = SequentialPlan::new(20.0, 0.05, 0.0, 3);
    let balance = |units: &[Unit]| {
        let decision = decide(units, &plan).unwrap();
        let interval = decision.interval?;
        let width = interval.high - interval.low;
        decision.is_balanced.then_some((decision.estimate, width))
    };
    let mut compared = 0;
    for seed in 0..10 {
        let units = with_a_hang(seed);
        let mapped = |map: fn(f64) -> f64| -> Vec<Unit> {
            let units = units.iter();
            let mapped = units.map(|unit| Unit::new(map(unit.own_effect()), unit.weight));
            mapped.collect()
        };
        let Some((estimate, width)) = balance(&units) else {
            continue;
        };
        let (moved, _) = balance(&mapped(|effect| effect + 0.2)).unwrap();
        let (turned, _) = balance(&mapped(|effect| -effect)).unwrap();
        assert!((moved - 0.2 - estimate).abs() < 0.05 * width, "{seed}");
        assert!((turned + estimate).abs() < 0.05 * width, "{seed}");
        compared += 1;
    }
    assert!(compared > 2, "{compared}");
}

#[test]
fn an_interval_excludes_its_finite_ends() {
    let open = Interval {
        low: 0.1,
        high: f64::INFINITY,
    };
    assert!(open.excludes(0.1) && open.excludes(-1.0) && open.excludes(f64::NEG_INFINITY));
    assert!(!open.excludes(0.2) && !open.excludes(f64::INFINITY));
    let point = Interval {
        low: 0.1,
        high: 0.1,
    };
    assert!(!point.excludes(0.1));
}

#[test]
fn turning_the_sign_mirrors_the_decision() {
    let plan = SequentialPlan::new(56.0, 0.05, 0.02, 1);
    let units = noise(2, 20, 0.05, 0.02);
    let turned: Vec<Unit> = units
        .iter()
        .map(|unit| Unit::new(-unit.own_effect(), 1.0))
        .collect();
    let (one, other) = (
        decide(&units, &plan).unwrap(),
        decide(&turned, &plan).unwrap(),
    );
    assert_eq!(
        (one.verdict, other.verdict),
        (Verdict::Faster, Verdict::Slower)
    );
    let (one, other) = (one.interval.unwrap(), other.interval.unwrap());
    assert!((one.low + other.high).abs() < 1e-4 && (one.high + other.low).abs() < 1e-4);
}

#[test]
fn quiet_equal_contenders_are_equivalent() {
    let plan = SequentialPlan::new(56.0, 0.05, 0.02, 1);
    let decision = decide(&noise(3, 30, 0.0, 0.01), &plan).unwrap();
    assert_eq!(decision.verdict, Verdict::Equivalent);
    let interval = decision.interval.unwrap();
    assert!(-0.02 < interval.low && interval.high < 0.02);
}

/// Decisions of the version without weights, by the bits of estimate and interval: records of its time are judged
/// again.
#[test]
fn decisions_on_units_of_weight_one_never_change() {
    #[rustfmt::skip]
    let cases = [
        (1, 56.0, 12, 0.1, 0.01, Verdict::Faster, Some(9), 0x3fba_ec8c_0d47_d933, 0x3fb8_8fae_fe89_c2b0, 0x3fbd_6805_1195_a218),
        (2, 56.0, 56, 0.01, 0.05, Verdict::Undecided, None, 0x3f80_001e_7825_596e, 0xbf8c_5540_ecf2_334e, 0x3f9e_a665_b711_d092),
        (3, 40.0, 40, 0.0, 0.01, Verdict::Equivalent, Some(8), 0xbf52_996c_0bee_58d7, 0xbf72_19b5_276f_a0a2, 0x3f67_6aeb_6ec5_9190),
        (4, 20.0, 60, 0.02, 0.06, Verdict::Undecided, None, 0x3f93_ed50_c5ba_ddb4, 0xbf8d_d510_c6aa_c243, 0x3fa9_d70d_8083_befe),
        (5, 200.0, 150, 0.005, 0.03, Verdict::Faster, Some(35), 0x3f75_6f78_46d8_7c2c, 0x3f47_c7a9_6e98_29c1, 0x3f86_530a_1a59_11fb),
        (6, 14.0, 14, 0.03, 0.04, Verdict::Faster, Some(9), 0x3fa1_978c_00c5_bb77, 0x3f8d_d2eb_594f_37cf, 0x3fab_d7ee_b48f_3bb7),
    ];
    for (seed, planned, n, centre, spread, verdict, decided_at, estimate, low, high) in cases {
        let mut random = RandomStream::new(seed, 12);
        let units: Vec<Unit> = (0..n)
            .map(|_| Unit::new(centre + spread * random.normal(), 1.0))
            .collect();
        let decision = decide(&units, &SequentialPlan::new(planned, 0.05, 0.02, seed)).unwrap();
        let interval = decision.interval.unwrap();
        assert_eq!(
            (decision.verdict, decision.decided_at),
            (verdict, decided_at)
        );
        let bits = [decision.estimate, interval.low, interval.high].map(f64::to_bits);
        assert_eq!(bits, [estimate, low, high], "seed {seed}");
    }
}

#[test]
fn a_unit_of_double_weight_counts_twice_in_the_estimate() {
    let plan = SequentialPlan::new(90.0, 0.05, 0.02, 1);
    let mut units = noise(11, 60, 0.0, 0.05);
    for unit in units.iter_mut().step_by(2) {
        *unit = Unit::new(unit.own_effect(), 2.0);
    }
    let decision = decide(&units, &plan).unwrap();
    let weighted = units.iter().map(|unit| unit.weight * unit.own_effect());
    assert_eq!(decision.estimate, weighted.sum::<f64>() / 90.0);
    let interval = decision.interval.unwrap();
    assert!(interval.low < decision.estimate && decision.estimate < interval.high);
}

/// A case in which the reserve decides first: it finds equal units further from zero than units that scatter around an
/// effect near them.
#[test]
fn a_large_difference_has_an_interval_as_soon_as_it_has_a_verdict() {
    for seed in 0..20 {
        let plan = SequentialPlan::new(225.0, 0.05, 0.0, seed);
        let mut decider = Decider::new(plan).unwrap();
        for (place, unit) in noise(seed, 60, 0.7, 0.05).iter().enumerate() {
            let weight = 0.4 + 0.02 * place as f64;
            decider.push(Unit::new(unit.own_effect(), weight)).unwrap();
            if decider.has_verdict() {
                break;
            }
        }
        let decision = decider.decision().unwrap();
        assert_eq!(decision.verdict, Verdict::Faster, "{seed}: {decision:?}");
        assert!(decision.interval.unwrap().low > 0.0, "{seed}: {decision:?}");
    }
}

/// Sums of weights are rounded; the last unit of the plan still belongs to it, and the next does not.
#[test]
fn the_budget_ends_with_its_last_unit_whatever_the_scale_of_weights() {
    for scale in [1.0, 0.1, 1.0 / 3.0, 7.7] {
        let plan = SequentialPlan::new(20.0 * scale, 0.05, 0.02, 1);
        let scaled = |units: Vec<Unit>| -> Vec<Unit> {
            let scaled = units.iter().map(|unit| Unit::new(unit.own_effect(), scale));
            scaled.collect()
        };
        let mut units = scaled(noise(6, 20, 0.0, 1.0));
        units.extend(scaled(noise(7, 60, 1.0, 1.0)));
        let decision = decide(&units, &plan).unwrap();
        assert_eq!(
            (decision.decided_at, decision.method),
            (Some(44), Some(Method::Reserve)),
            "{scale}"
        );
    }
}

#[test]
fn few_units_are_undecided_with_an_unbounded_interval() {
    let plan = SequentialPlan::new(56.0, 0.05, 0.02, 1);
    let decision = decide(&[Unit::new(0.3, 1.0); 2], &plan).unwrap();
    assert_eq!(decision.verdict, Verdict::Undecided);
    let unbounded = Interval {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };
    assert_eq!(decision.interval, Some(unbounded));
    assert_eq!(decision.decided_at, None);
}

#[test]
fn bad_input_is_refused_by_name() {
    let plan = SequentialPlan::new(56.0, 0.05, 0.02, 1);
    assert!(matches!(decide(&[], &plan), Err(StatsError::TooFew { .. })));
    assert!(matches!(
        decide(&Unit::of_weight_one(&[0.1, f64::NEG_INFINITY]), &plan),
        Err(StatsError::OutOfRange { index: 1, .. })
    ));
    for weight in [0.0, -1.0] {
        assert!(matches!(
            decide(&[Unit::new(0.1, 1.0), Unit::new(0.1, weight)], &plan),
            Err(StatsError::NotPositive { index: 1, .. })
        ));
    }
    for bad in [
        SequentialPlan { alpha: 0.0, ..plan },
        SequentialPlan {
            alpha: f64::NAN,
            ..plan
        },
        SequentialPlan {
            weight_max: 0.0,
            ..plan
        },
        SequentialPlan {
            margin: -0.1,
            ..plan
        },
        SequentialPlan { paths: 10, ..plan },
    ] {
        assert!(
            matches!(
                decide(&[Unit::new(0.1, 1.0)], &bad),
                Err(StatsError::Parameter { .. })
            ),
            "{bad:?}"
        );
    }
}

#[test]
fn equal_units_collapse_the_interval_onto_their_value() {
    let plan = SequentialPlan::new(56.0, 0.05, 0.02, 1);
    let decision = decide(&[Unit::new(0.01, 1.0); 20], &plan).unwrap();
    assert_eq!(decision.verdict, Verdict::Faster);
    assert!(decision.within_margin);
    let interval = decision.interval.unwrap();
    assert!(
        (interval.low - 0.01).abs() < 1e-6 && (interval.high - 0.01).abs() < 1e-6,
        "{interval:?}"
    );
    assert_eq!(
        decide(&[Unit::new(0.0, 1.0); 20], &plan).unwrap().verdict,
        Verdict::Equivalent
    );
}

#[test]
fn a_ratio_that_jumps_leaves_no_constant_effect() {
    let plan = SequentialPlan::new(56.0, 0.05, 0.02, 1);
    let mut units = noise(4, 20, 0.10, 0.005);
    units.extend(noise(5, 36, -0.10, 0.005));
    let decision = decide(&units, &plan).unwrap();
    assert_eq!(
        (decision.verdict, decision.interval),
        (Verdict::Undecided, None)
    );
}

#[test]
fn only_the_reserve_decides_after_the_budget() {
    let plan = SequentialPlan::new(20.0, 0.05, 0.0, 1);
    let mut units = noise(6, 20, 0.0, 1.0);
    assert_eq!(decide(&units, &plan).unwrap().verdict, Verdict::Undecided);
    units.extend(noise(7, 60, 1.0, 1.0));
    let decision = decide(&units, &plan).unwrap();
    assert_eq!(
        (decision.verdict, decision.method),
        (Verdict::Faster, Some(Method::Reserve))
    );
}

#[test]
fn the_interval_never_grows_while_units_arrive() {
    let plan = SequentialPlan::new(40.0, 0.05, 0.02, 9);
    let mut decider = Decider::new(plan).unwrap();
    let mut before = Interval {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };
    for unit in noise(8, 40, 0.01, 0.05) {
        // A tenth of a standard error: the resolution that 4999 paths give to an end.
        let slack = 0.1 * 0.05 / (decider.n() as f64 + 1.0).sqrt();
        decider.push(unit).unwrap();
        let now = decider.decision().unwrap().interval.unwrap();
        assert!(
            now.low >= before.low - slack && now.high <= before.high + slack,
            "{now:?} {before:?}"
        );
        before = now;
    }
}

#[test]
fn feeding_one_by_one_equals_replaying() {
    let plan = SequentialPlan::new(40.0, 0.05, 0.02, 9);
    let units = noise(10, 25, 0.02, 0.03);
    let mut decider = Decider::new(plan).unwrap();
    for unit in &units {
        decider.push(*unit).unwrap();
    }
    assert_eq!(decider.decision().unwrap(), decide(&units, &plan).unwrap());
}
