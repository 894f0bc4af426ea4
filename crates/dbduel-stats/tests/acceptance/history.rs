//! False and true change points in histories of a hundred runs.

use dbduel_stats::history::{HistoryRule, find_changes, raise_alarm};
use dbduel_stats::random::RandomStream;

const DEVIATION: f64 = 0.02;

/// A hundred runs with a step at run 60; one run in twenty may be wild.
fn history(step: f64, wild: bool, runs: usize, seed: u64) -> Vec<f64> {
    let mut random = RandomStream::new(seed, 90);
    (0..runs)
        .map(|run| {
            let outlier = wild && random.uniform() < 0.05;
            let scale = if outlier { 5.0 * DEVIATION } else { DEVIATION };
            let level = if run >= 60 { step } else { 0.0 };
            level + scale * random.normal()
        })
        .collect()
}

#[test]
fn steady_histories_rarely_show_a_change() {
    for wild in [false, true] {
        let wrong = (0..1000)
            .filter(|seed| {
                let rule = HistoryRule::offline(0.01, *seed);
                !find_changes(&history(0.0, wild, 100, *seed), &rule)
                    .unwrap()
                    .changes
                    .is_empty()
            })
            .count();
        assert!(wrong <= 21, "{wrong}");
    }
}

#[test]
fn a_step_of_five_percent_is_found_in_its_place() {
    for (wild, least) in [(false, 291), (true, 282)] {
        let found = (0..300)
            .filter(|seed| {
                let rule = HistoryRule::offline(0.01, *seed);
                let changes = find_changes(&history(0.05, wild, 100, *seed), &rule)
                    .unwrap()
                    .changes;
                changes.iter().any(|change| change.at.abs_diff(60) <= 3)
            })
            .count();
        assert!(found >= least, "{found}");
    }
}

#[test]
fn the_same_history_gives_the_same_changes() {
    let series = history(0.05, true, 100, 7);
    let rule = HistoryRule::offline(0.01, 3);
    assert_eq!(
        find_changes(&series, &rule).unwrap(),
        find_changes(&series, &rule).unwrap()
    );
}

#[test]
fn alarms_over_eighty_appended_runs_are_rarely_false() {
    let wrong = (0..1000)
        .filter(|seed| {
            let series = history(0.0, false, 100, *seed);
            let rule = HistoryRule::alarm(0.01, *seed);
            (20..=100).any(|runs| raise_alarm(&series[..runs], &rule).unwrap().is_some())
        })
        .count();
    assert!(wrong <= 50, "{wrong}");
}

#[test]
fn appended_runs_rarely_move_an_old_change() {
    let mut moved = 0;
    for seed in 0..30 {
        let series = history(0.05, false, 100, seed);
        let rule = HistoryRule::offline(0.01, seed);
        let mut before = find_changes(&series[..80], &rule).unwrap().changes;
        for runs in 81..=100 {
            let after = find_changes(&series[..runs], &rule).unwrap().changes;
            let is_kept = |at: usize| after.iter().any(|other| other.at.abs_diff(at) <= 1);
            moved += before.iter().filter(|change| !is_kept(change.at)).count();
            before = after;
        }
    }
    // 600 appended runs.
    assert!(moved <= 12, "{moved}");
}
