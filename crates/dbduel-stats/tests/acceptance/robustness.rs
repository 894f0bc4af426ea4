//! Garbage in: an error or a result without NaN, never a panic and never an endless loop. Everything that the
//! library computes from measured numbers is called here with numbers that no measurement should give.

use dbduel_stats::compare::{
    BlockSlices, SliceValue, block_differences, fewest_pairs, hodges_lehmann,
    minimum_detectable_effect, paired_mean,
};
use dbduel_stats::crossover::{SizeDifferences, find_crossovers};
use dbduel_stats::epochs::{EpochBoundaries, decide_epochs, restart_spread};
use dbduel_stats::guard::guard_length;
use dbduel_stats::history::{HistoryRule, find_changes, raise_alarm};
use dbduel_stats::mean::series_mean;
use dbduel_stats::order::carry_over;
use dbduel_stats::proportion::proportion;
use dbduel_stats::quantile::{BatchCount, quantile_estimate, requests_per_slice};
use dbduel_stats::random::RandomStream;
use dbduel_stats::scaling::{Scaling, fit_scaling};
use dbduel_stats::sequential::{SequentialPlan, Unit, decide, flip_spend, sign_e_process};
use dbduel_stats::stalls::{
    StallCount, compare_stalls, count_stalls, unseen_cost_bound, unseen_rate_bound,
};
use dbduel_stats::steady::{SteadyDetector, SteadyRule, SteadyState, halves_ratio, mser};
use dbduel_stats::trend::linear_trend;
use dbduel_stats::{Estimate, StatsError};

const ROUNDS: u64 = 600;
const ALPHAS: [f64; 6] = [0.05, 1e-12, 1e-300, 1e-320, 0.999, f64::NAN];

/// One number of a kind; kinds from [`TAME`] on are not even finite or have no square.
fn number(kind: usize, random: &mut RandomStream) -> f64 {
    match kind {
        0 => 0.0,
        1 => 1.0,
        2 => random.normal(),
        3 => 1e-12 * random.normal(),
        4 => 1e12 * random.normal(),
        5 => -1.0,
        6 => random.normal().exp(),
        7 => 1e-310,
        8 => f64::NAN,
        9 => f64::INFINITY,
        10 => -1e308,
        _ => 1e308,
    }
}

const TAME: usize = 8;
const KINDS: usize = 12;

/// Numbers that are all of one kind, or of all kinds.
fn junk(n: usize, wild: bool, random: &mut RandomStream) -> Vec<f64> {
    let kinds = if wild { KINDS } else { TAME };
    let mood = random.below(kinds + 1);
    (0..n)
        .map(|_| {
            let kind = if mood == kinds {
                random.below(kinds)
            } else {
                mood
            };
            number(kind, random)
        })
        .collect()
}

fn junk_series(count: usize, wild: bool, random: &mut RandomStream) -> Vec<Vec<f64>> {
    (0..count)
        .map(|_| {
            let length = random.below(20);
            junk(length, wild, random)
        })
        .collect()
}

#[track_caller]
fn check_estimate(estimate: &Estimate, input: &dyn std::fmt::Debug) {
    assert!(
        estimate.low <= estimate.value && estimate.value <= estimate.high,
        "{input:?} {estimate:?}"
    );
}

/// Calls `check` with series of every kind, their wildness and a probability.
fn for_all_series(check: impl Fn(&[f64], bool, f64, u64)) {
    for seed in 0..ROUNDS {
        let random = &mut RandomStream::new(seed, 100);
        let n = random.below(40);
        let alpha = ALPHAS[random.below(ALPHAS.len())];
        let wild = seed % 4 == 0;
        check(&junk(n, wild, random), wild, alpha, seed);
    }
}

#[test]
fn means_and_trends_of_anything_are_ordered_or_refused() {
    for_all_series(|series, wild, alpha, _| {
        let means = [
            paired_mean(series, alpha).ok(),
            series_mean(series, alpha).ok(),
            linear_trend(series, alpha).ok().map(|trend| trend.slope),
            halves_ratio(series, alpha).ok(),
        ];
        for estimate in means.iter().flatten() {
            check_estimate(estimate, &series);
            assert!(estimate.contains(estimate.value) && !estimate.contains(f64::NAN));
            check_estimate(&estimate.map_increasing(f64::exp), &series);
        }
        let dropped = mser(series);
        assert!(dropped.map_or(series.len() < 5, |dropped| dropped + 5 <= series.len()));
        if let Ok(trend) = linear_trend(series, alpha) {
            assert!((0.0..=1.0).contains(&trend.p_value), "{series:?} {trend:?}");
        }
        let centre = hodges_lehmann(series);
        assert!(centre.is_ok_and(f64::is_finite) || series.is_empty() || wild);
    });
}

#[test]
fn duels_of_anything_are_decided_or_refused() {
    let boundaries = EpochBoundaries::new(4, 0.05, 1).unwrap();
    for_all_series(|series, wild, alpha, seed| {
        let plan = SequentialPlan {
            paths: 499,
            ..SequentialPlan::new(20.0, 0.05, 0.02, seed)
        };
        let units = Unit::of_weight_one(series);
        if let Ok(decision) = decide(&units, &plan) {
            assert!(decision.estimate.is_finite());
            let set = decision.interval;
            assert!(
                set.is_none_or(|set| set.low <= set.high),
                "{series:?} {decision:?}"
            );
        }
        // Weights of every size.
        let weighted: Vec<Unit> = (0..)
            .zip(series)
            .map(|(place, value)| Unit::new(*value, [1.0, 1e-100, 1e90, 0.3][place % 4]))
            .collect();
        if let Ok(decision) = decide(&weighted, &plan) {
            assert!(decision.estimate.is_finite(), "{series:?} {decision:?}");
            let set = decision.interval;
            assert!(
                set.is_none_or(|set| set.low <= set.high),
                "{series:?} {decision:?}"
            );
        }
        let tests = [flip_spend(&units, &plan), sign_e_process(&units, alpha)];
        for rejection in tests.into_iter().flatten().flatten() {
            assert!((1..=series.len()).contains(&rejection.at));
        }
        let decided = decide_epochs(series, &boundaries, 0.02);
        assert!(
            decided.is_ok_and(|decision| decision.estimate.is_finite())
                || series.is_empty()
                || wild
        );
    });
}

#[test]
fn plans_that_cannot_be_are_refused_at_once() {
    let good = SequentialPlan::new(20.0, 0.05, 0.02, 1);
    let units = [Unit::new(0.1, 1.0); 10];
    for plan in [
        SequentialPlan {
            weight_max: 0.0,
            ..good
        },
        SequentialPlan {
            weight_max: f64::NAN,
            ..good
        },
        SequentialPlan { n_min: 0, ..good },
        SequentialPlan { paths: 3, ..good },
        SequentialPlan {
            paths: usize::MAX,
            ..good
        },
        SequentialPlan {
            alpha: f64::NAN,
            weight_max: 1e100,
            ..good
        },
        SequentialPlan { alpha: 1.5, ..good },
        SequentialPlan {
            reserve: 1.0,
            ..good
        },
        SequentialPlan {
            margin: -0.1,
            ..good
        },
        SequentialPlan {
            margin: f64::INFINITY,
            ..good
        },
    ] {
        assert!(matches!(plan.check(), Err(StatsError::Parameter { .. })));
        assert!(decide(&units, &plan).is_err());
        let _ = plan.first_possible_decision(std::iter::repeat(1.0));
    }
    let endless = SequentialPlan {
        weight_max: 1e100,
        ..good
    };
    assert!(decide(&units, &endless).is_ok());
    let first = endless.first_possible_decision(std::iter::repeat(1.0));
    assert!(first.is_some());
    let patient = HistoryRule {
        permutations: usize::MAX,
        ..HistoryRule::offline(0.0, 1)
    };
    assert!(find_changes(&[0.0; 30], &patient).is_err());
    assert!(EpochBoundaries::new(usize::MAX, 0.05, 1).is_err());
    for alpha in ALPHAS.into_iter().chain([0.0, -1.0, 2.0]) {
        assert!(fewest_pairs(alpha) >= 2);
    }
    for alpha in ALPHAS.into_iter().chain([0.0, -1.0, 2.0]) {
        assert!(minimum_detectable_effect(0.05, 0, alpha).is_infinite());
        for blocks in [1, 6, 100, usize::MAX] {
            assert!(minimum_detectable_effect(0.05, blocks, alpha) > 0.0);
        }
    }
    assert!(requests_per_slice(1.0).is_infinite());
}

#[test]
fn histories_and_warm_ups_of_anything_have_an_end() {
    for_all_series(|series, wild, _, seed| {
        let rule = HistoryRule {
            permutations: 199,
            ..HistoryRule::offline(0.0, seed)
        };
        if let Ok(history) = find_changes(series, &rule) {
            for change in &history.changes {
                check_estimate(&change.size, &series);
            }
        }
        let _ = raise_alarm(series, &rule);
        let mut detector = SteadyDetector::new(SteadyRule {
            batch: 1 + (seed % 3) as usize,
            first_look: 0,
            look_every: 1,
            hold: 0,
            period: [None, Some(0), Some(usize::MAX)][(seed % 3) as usize],
            limit: 30,
            ..SteadyRule::default()
        })
        .unwrap();
        for value in series {
            assert!(detector.push(*value).is_ok() || wild);
        }
        if let SteadyState::Steady { after, transient } = detector.state() {
            assert!(transient <= after && after <= series.len());
        }
    });
}

#[test]
fn curves_through_anything_are_stated_or_refused() {
    for seed in 0..ROUNDS {
        let random = &mut RandomStream::new(seed, 101);
        let alpha = ALPHAS[random.below(ALPHAS.len())];
        let count = random.below(6);
        let many = junk_series(count, seed % 4 == 0, random);
        let _ = guard_length(&many, 0.05);
        if let Ok(spread) = restart_spread(&many) {
            assert!(spread.between >= 0.0 && spread.within >= 0.0);
        }
        if let Ok(count) = count_stalls(&many) {
            assert!(count.lost.is_finite() && count.stalls <= count.active);
        }
        let steps = [1.0, 2.0, 1e3, 1e308, f64::NAN];
        let step = steps[random.below(steps.len())];
        let levels: Vec<f64> = (0..9).map(|index| 1.0 + step * f64::from(index)).collect();
        let sweeps: Vec<Vec<f64>> = (0..3).map(|_| junk(9, seed % 4 == 0, random)).collect();
        if let Ok(Scaling::Described { fit, .. }) = fit_scaling(&levels, &sweeps, alpha) {
            let estimates = [Some(fit.lambda), fit.sigma, fit.kappa, fit.peak];
            for estimate in estimates.iter().flatten() {
                check_estimate(estimate, &sweeps);
            }
        }
        let size = |(index, differences): (usize, Vec<f64>)| SizeDifferences {
            size: 1.0 + step * index as f64,
            differences,
        };
        let sizes: Vec<SizeDifferences> = many.into_iter().enumerate().map(size).collect();
        if let Ok(found) = find_crossovers(&sizes, alpha) {
            for estimate in &found.curve {
                check_estimate(estimate, &sizes);
            }
            for crossing in &found.crossings {
                check_estimate(&crossing.at, &sizes);
            }
        }
    }
}

#[test]
fn blocks_of_anything_are_compared_or_refused() {
    for seed in 0..ROUNDS {
        let random = &mut RandomStream::new(seed, 102);
        let alpha = ALPHAS[random.below(ALPHAS.len())];
        let orders = [[0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 1, 1], [0, 7, 7, 0]];
        let blocks: Vec<BlockSlices> = (0..random.below(5))
            .map(|_| {
                let wild = seed % 4 == 0;
                let order = orders[if wild {
                    random.below(4)
                } else {
                    random.below(2)
                }];
                let values = junk(4, wild, random);
                let slices = order
                    .into_iter()
                    .zip(values)
                    .map(|(contender, value)| SliceValue { contender, value });
                let lengths = [15.0, 1e-300, 1e308, f64::NAN];
                BlockSlices {
                    length: lengths[if wild { random.below(4) } else { 0 }],
                    slices: slices.collect(),
                }
            })
            .collect();
        if let Ok(carried) = carry_over(&blocks, 2, alpha) {
            for estimate in carried.iter().flatten() {
                check_estimate(estimate, &blocks);
            }
        }
        if let Ok(differences) = block_differences(&blocks, 2, 0) {
            let mut all = differences.iter().flatten();
            assert!(all.all(|difference| difference.is_finite()));
        }
        assert!(blocks.is_empty() || block_differences(&blocks, usize::MAX, 0).is_err());
    }
}

#[test]
fn counts_of_anything_are_priced_or_refused() {
    let counts = [0, 1, 5, 1000, 1 << 40, u64::MAX];
    for seed in 0..ROUNDS {
        let random = &mut RandomStream::new(seed, 103);
        let alpha = ALPHAS[random.below(ALPHAS.len())];
        let mut count = || counts[random.below(counts.len())];
        let mut stalls = || StallCount {
            stalls: count(),
            lost: 0.0,
            active: count(),
        };
        let (one, other) = (stalls(), stalls());
        if let Ok(compared) = compare_stalls(&one, &other) {
            let p = compared.same_rate_p;
            assert!((0.0..=1.0).contains(&p), "{one:?} {other:?} {p}");
        }
        let (active, successes, trials) = (count(), count() as usize, count() as usize);
        if let Ok(share) = proportion(successes, trials, alpha) {
            check_estimate(&share, &(successes, trials, alpha));
        }
        let length = number(random.below(KINDS), random);
        for bound in [
            unseen_rate_bound(active, alpha),
            unseen_cost_bound(length, active, alpha),
        ] {
            assert!(
                bound.is_ok_and(|bound| bound >= 0.0) || bound_is_refused(active, alpha, length)
            );
        }
        let batches: Vec<BatchCount> = (0..random.below(30))
            .map(|_| BatchCount {
                total: counts[random.below(counts.len())],
                at_or_below: counts[random.below(3)],
            })
            .collect();
        let maxima: Vec<f64> = (0..random.below(90))
            .map(|_| number(random.below(KINDS), random))
            .collect();
        let quantiles = [0.5, 0.99, 1e-300, 1.0, f64::NAN];
        let q = quantiles[random.below(quantiles.len())];
        let shape = random.below(3);
        let quantile_of = |q: f64| [q, 7.0, f64::NAN][shape];
        if let Ok(found) = quantile_estimate(q, alpha, &batches, quantile_of, &maxima) {
            assert!(found.value.is_finite());
            if let Ok(estimate) = found.interval {
                check_estimate(&estimate, &batches);
            }
        }
    }
}

fn bound_is_refused(active: u64, alpha: f64, length: f64) -> bool {
    active == 0 || alpha.is_nan() || !(0.0..1e101).contains(&length)
}
