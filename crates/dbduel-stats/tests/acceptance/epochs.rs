//! Restarts as units: what the scope "these servers" costs and what the other scope hides.

use dbduel_stats::compare::paired_mean;
use dbduel_stats::epochs::{EpochBoundaries, decide_epochs};
use dbduel_stats::sequential::Verdict;
use dbduel_stats::simulate::{DEFAULT_DESIGN, Machine, TYPICAL, mirrored_blocks, two_contenders};

const RESTART_DEVIATION: f64 = 0.01;

/// Block differences of every epoch; each start of a server moves it by about a percent.
fn duel(epochs: usize, blocks: usize, effect: f64, seed: u64) -> Vec<Vec<f64>> {
    let mut machine = Machine::new(TYPICAL, seed);
    (0..epochs)
        .map(|_| {
            let luck = RESTART_DEVIATION * (machine.random.normal() - machine.random.normal());
            let mut contenders = two_contenders(&TYPICAL, effect + luck, &mut machine);
            mirrored_blocks(&mut machine, &mut contenders, DEFAULT_DESIGN, blocks)
        })
        .collect()
}

fn means(epochs: &[Vec<f64>]) -> Vec<f64> {
    epochs
        .iter()
        .map(|epoch| epoch.iter().sum::<f64>() / epoch.len() as f64)
        .collect()
}

#[test]
fn equal_servers_are_rarely_told_apart_when_restarts_are_the_units() {
    let boundaries = EpochBoundaries::new(8, 0.05, 1).unwrap();
    let wrong = (0..1000)
        .filter(|seed| {
            let means = means(&duel(8, 5, 0.0, *seed));
            decide_epochs(&means, &boundaries, 0.0)
                .unwrap()
                .decided_at
                .is_some()
        })
        .count();
    assert!(wrong <= 73, "{wrong}");
}

/// Control: blocks of one start of each server as units.
#[test]
fn blocks_of_one_instance_say_nothing_about_the_servers() {
    let wrong = (0..1000)
        .filter(|seed| {
            !paired_mean(&duel(1, 56, 0.0, *seed)[0], 0.05)
                .unwrap()
                .contains(0.0)
        })
        .count();
    assert!(wrong >= 300, "{wrong}");
}

#[test]
fn five_percent_are_found_over_eight_epochs() {
    let boundaries = EpochBoundaries::new(8, 0.05, 1).unwrap();
    let found = (0..200)
        .filter(|seed| {
            let means = means(&duel(8, 5, 1.05_f64.ln(), *seed));
            decide_epochs(&means, &boundaries, 0.0).unwrap().verdict == Verdict::Faster
        })
        .count();
    assert!(found >= 180, "{found}");
}
