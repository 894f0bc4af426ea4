//! Garbage in: an error or a result without NaN, never a panic.

use dbduel_stats::compare::{
    MirroredBlock, SliceValue, block_differences, hodges_lehmann, log_ratio_of_totals, paired_mean,
};
use dbduel_stats::crossover::{SizeDifferences, find_crossovers};
use dbduel_stats::epochs::{EpochBoundaries, decide_epochs, restart_spread};
use dbduel_stats::guard::guard_length;
use dbduel_stats::history::{HistoryRule, find_changes, raise_alarm};
use dbduel_stats::mean::series_mean;
use dbduel_stats::order::carry_over;
use dbduel_stats::random::RandomStream;
use dbduel_stats::scaling::fit_scaling;
use dbduel_stats::sequential::{SequentialPlan, decide};
use dbduel_stats::stalls::count_stalls;
use dbduel_stats::steady::{SteadyRule, look};
use dbduel_stats::trend::linear_trend;

/// Numbers of very different kinds; `wild` ones are not even finite.
fn junk(n: usize, wild: bool, random: &mut RandomStream) -> Vec<f64> {
    let kinds = if wild { 9 } else { 7 };
    let mood = random.below(kinds + 1);
    (0..n)
        .map(|_| {
            match if mood == kinds {
                random.below(kinds)
            } else {
                mood
            } {
                0 => 0.0,
                1 => 1.0,
                2 => random.normal(),
                3 => 1e-12 * random.normal(),
                4 => 1e12 * random.normal(),
                5 => -1.0,
                6 => (random.normal()).exp(),
                7 => f64::NAN,
                _ => f64::INFINITY,
            }
        })
        .collect()
}

#[test]
fn no_input_makes_a_function_panic_or_return_nan() {
    let boundaries = EpochBoundaries::new(4, 0.05, 1).unwrap();
    for seed in 0..600 {
        let random = &mut RandomStream::new(seed, 100);
        let n = random.below(40);
        let alpha = [0.05, 1e-12, 0.999][random.below(3)];
        let series = &junk(n, seed % 4 == 0, random);

        let plan = SequentialPlan {
            paths: 499,
            ..SequentialPlan::new(20, 0.05, 0.02, seed)
        };
        if let Ok(decision) = decide(series, &plan) {
            assert!(decision.estimate.is_finite());
            let set = decision.interval;
            assert!(
                set.is_none_or(|set| set.low <= set.high),
                "{series:?} {decision:?}"
            );
        }
        for estimate in [
            paired_mean(series, alpha).ok(),
            series_mean(series, alpha)
                .ok()
                .and_then(|mean| mean.estimate),
            linear_trend(series, alpha).ok().map(|trend| trend.slope),
        ]
        .into_iter()
        .flatten()
        {
            assert!(
                estimate.low <= estimate.value && estimate.value <= estimate.high,
                "{series:?} {estimate:?}"
            );
        }
        assert!(
            hodges_lehmann(series).is_ok_and(f64::is_finite) || series.is_empty() || seed % 4 == 0
        );
        let rule = HistoryRule {
            permutations: 199,
            ..HistoryRule::offline(0.0, seed)
        };
        if let Ok(history) = find_changes(series, &rule) {
            assert!(
                history
                    .changes
                    .iter()
                    .all(|change| change.size.low <= change.size.high)
            );
        }
        let _ = raise_alarm(series, &rule);
        let _ = look(
            series,
            &SteadyRule {
                batch: 1 + random.below(3),
                ..SteadyRule::default()
            },
        );
        let decided = decide_epochs(series, &boundaries, 0.02);
        assert!(
            decided.is_ok_and(|decision| decision.estimate.is_finite())
                || series.is_empty()
                || seed % 4 == 0
        );

        let many: Vec<Vec<f64>> = (0..random.below(6))
            .map(|_| {
                let length = random.below(20);
                junk(length, seed % 4 == 0, random)
            })
            .collect();
        let _ = guard_length(&many, 2);
        let _ = restart_spread(&many);
        let _ = count_stalls(&many);
        let levels: Vec<f64> = (0..9).map(|index| 1.0 + f64::from(index)).collect();
        let sweeps: Vec<Vec<f64>> = (0..3).map(|_| junk(9, false, random)).collect();
        let _ = fit_scaling(&levels, &sweeps, alpha);
        let sizes = many
            .iter()
            .enumerate()
            .map(|(index, differences)| SizeDifferences {
                size: 1.0 + index as f64,
                differences: differences.clone(),
            });
        let _ = find_crossovers(&sizes.collect::<Vec<_>>(), alpha);

        let blocks: Vec<MirroredBlock> = (0..random.below(5))
            .map(|_| {
                let values = junk(4, seed % 4 == 0, random);
                let slices = [0, 1, 1, 0]
                    .into_iter()
                    .zip(values)
                    .map(|(contender, value)| SliceValue { contender, value });
                MirroredBlock {
                    length: 15.0,
                    slices: slices.collect(),
                }
            })
            .collect();
        let _ = carry_over(&blocks, 2, alpha);
        let _ = log_ratio_of_totals(&blocks, 2, 0, 1);
        if let Ok(differences) = block_differences(&blocks, 2, 0) {
            assert!(
                differences
                    .iter()
                    .flatten()
                    .all(|difference| difference.is_finite())
            );
        }
    }
}
