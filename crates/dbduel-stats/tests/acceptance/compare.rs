//! Designs of the running order: why random mirrored blocks, and what weaker orders do.

use dbduel_stats::compare::{BlockSlices, SliceValue, block_differences, paired_mean};
use dbduel_stats::guard::guard_length;
use dbduel_stats::random::RandomStream;
use dbduel_stats::sequential::{Decider, SequentialPlan, Unit};
use dbduel_stats::simulate::{
    Contender, DEFAULT_DESIGN, Design, Interference, Machine, NASTY, Noise, QUIET, Stalls, TYPICAL,
    mirrored_blocks, mirrored_duel, two_contenders,
};
use dbduel_stats::trend::linear_trend;

use crate::competitors::{Said, effective_size_welch, one_long_run, three_runs_welch};

fn rejections(duels: u64, units: impl Fn(u64) -> Vec<f64>) -> usize {
    let rejected = |seed: &u64| !paired_mean(&units(*seed), 0.05).unwrap().contains(0.0);
    (0..duels).filter(rejected).count()
}

/// Ten counted seconds after two of guard, without jitter, under a machine that loses 30 % for six
/// seconds in every `period`.
fn with_interference(period: usize, seed: u64) -> Machine {
    let calm = Noise {
        stalls: Stalls::NONE,
        ..QUIET
    };
    let mut machine = Machine::new(calm, seed);
    let phase = machine.random.below(period);
    machine.with_interference(Interference {
        period_s: period,
        length_s: 6,
        depth: 0.3,
        phase_s: phase,
    })
}

const RIGID: Design = Design {
    slice: 10,
    guard: 2,
    jitter: 0.0,
};

#[test]
fn mirrored_blocks_in_random_order_do_not_resonate() {
    for period in [24, 48, 120] {
        let rejected = rejections(1000, |seed| {
            let mut machine = with_interference(period, seed);
            let mut contenders = two_contenders(&QUIET, 0.0, &mut machine);
            mirrored_blocks(&mut machine, &mut contenders, RIGID, 25)
        });
        assert!(rejected <= 73, "{period}: {rejected}");
    }
}

/// Control: strict alternation locks to a period of two slices.
#[test]
fn strict_alternation_resonates() {
    let rejected = rejections(1000, |seed| {
        let mut machine = with_interference(24, seed);
        let [mut one, mut other] = two_contenders(&QUIET, 0.0, &mut machine);
        (0..50)
            .map(|_| {
                let before = one.slice(&mut machine, 2, 10).ln();
                other.slice(&mut machine, 2, 10).ln() - before
            })
            .collect()
    });
    assert!(rejected >= 700, "{rejected}");
}

/// Control: all of one contender, then all of the other, Welch's test on slice means.
#[test]
fn one_after_the_other_measures_the_machine() {
    let rejected = (0..1000)
        .filter(|seed| {
            let mut machine = Machine::new(TYPICAL, *seed);
            let contenders = two_contenders(&TYPICAL, 0.0, &mut machine);
            let [one, other] = contenders.map(|mut contender: Contender| {
                let logs: Vec<f64> = (0..50)
                    .map(|_| contender.slice(&mut machine, 2, 10).ln())
                    .collect();
                let mean = logs.iter().sum::<f64>() / 50.0;
                let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 49.0;
                (mean, variance / 50.0)
            });
            (one.0 - other.0).abs() > 1.98 * (one.1 + other.1).sqrt()
        })
        .count();
    assert!(rejected >= 500, "{rejected}");
}

#[test]
fn four_equal_contenders_yield_no_claim() {
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let duels_with_a_claim = (0..200)
        .filter(|seed| {
            let mut machine = Machine::new(TYPICAL, *seed);
            let mut contenders: Vec<Contender> = (0..4)
                .map(|_| Contender::new(&TYPICAL, 0.0, &mut machine.random))
                .collect();
            let blocks: Vec<BlockSlices> = (0..40)
                .map(|_| {
                    let mut order = vec![0, 1, 2, 3];
                    machine.random.shuffle(&mut order);
                    let length = DEFAULT_DESIGN.draw_length(&mut machine.random);
                    let mirrored: Vec<usize> =
                        order.iter().chain(order.iter().rev()).copied().collect();
                    let slices = mirrored.into_iter().map(|contender| SliceValue {
                        contender,
                        value: contenders[contender].slice(&mut machine, 2, length),
                    });
                    BlockSlices {
                        length: length as f64,
                        slices: slices.collect(),
                    }
                })
                .collect();
            pairs.iter().any(|(baseline, contender)| {
                let units = block_differences(&blocks, 4, *baseline)
                    .unwrap()
                    .swap_remove(*contender);
                let plan = SequentialPlan::new(40.0, 0.05 / 6.0, 0.0, *seed);
                let mut decider = Decider::new(plan).unwrap();
                Unit::of_weight_one(&units).iter().any(|unit| {
                    decider.push(*unit).unwrap();
                    decider.has_verdict()
                })
            })
        })
        .count();
    // 99.9 % point of 200 trials at 5 %.
    assert!(duels_with_a_claim <= 21, "{duels_with_a_claim}");
}

#[test]
fn a_drifting_ratio_is_noticed_and_a_steady_one_is_not() {
    let flagged = |noise: Noise, drift: f64, duels: u64| {
        (0..duels)
            .filter(|seed| {
                let mut units = mirrored_duel(noise, DEFAULT_DESIGN, 56, 0.0, *seed);
                for (index, unit) in units.iter_mut().enumerate() {
                    *unit += drift * index as f64 / 55.0;
                }
                linear_trend(&units, 0.05).unwrap().is_drifting()
            })
            .count()
    };
    for noise in [QUIET, TYPICAL, NASTY] {
        // 99.9 % point of 300 trials at 1 %.
        assert!(flagged(noise, 0.0, 300) <= 10);
    }
    let found = flagged(TYPICAL, 0.10, 100);
    assert!(found >= 85, "{found}");
}

#[test]
fn the_guard_is_as_long_as_the_transient_after_a_switch() {
    let median = |time: f64| {
        let mut lengths: Vec<usize> = (0..41)
            .map(|seed| {
                let mut machine = Machine::new(TYPICAL, seed);
                let random = &mut RandomStream::new(seed, 30);
                let mut contender = Contender::new(&TYPICAL, 0.0, random);
                let slices: Vec<Vec<f64>> = (0..48)
                    .map(|_| {
                        let start = |second: usize| {
                            if time > 0.0 {
                                1.0 - 0.5 * (-(second as f64) / time).exp()
                            } else {
                                1.0
                            }
                        };
                        (0..20)
                            .map(|second| start(second) * contender.step(&mut machine))
                            .collect()
                    })
                    .collect();
                guard_length(&slices, 0.02).unwrap()
            })
            .collect();
        lengths.sort_unstable();
        lengths[20]
    };
    assert!(median(0.0) <= 2, "{}", median(0.0));
    // Throughput lacks 50, 18, 7 and 2 % in the first seconds; less than 7 % is lost in the scatter of 48 slices.
    assert!((2..=4).contains(&median(1.0)), "{}", median(1.0));
}

/// Control: what the field does with the same time. The drift between two runs is not visible inside
/// either, so two of the rules call identical contenders different; the third has no power left.
#[test]
fn runs_one_after_the_other_are_wrong_or_blind() {
    let claims = |method: &dyn Fn(u64) -> Said| {
        let said = (0..200).map(method);
        said.filter(|said| matches!(said, Said::Faster | Said::Slower))
            .count()
    };
    let long = claims(&|seed| one_long_run(TYPICAL, 0.0, 3600, 0.02, seed));
    let effective = claims(&|seed| effective_size_welch(TYPICAL, 0.0, 3600, seed));
    assert!(long >= 80, "one long run each: {long} of 200");
    assert!(effective >= 40, "effective size: {effective} of 200");
    let found = claims(&|seed| three_runs_welch(TYPICAL, 0.05_f64.ln_1p(), 3600, seed));
    assert!(found <= 20, "three runs each find 5 %: {found} of 200");
}
