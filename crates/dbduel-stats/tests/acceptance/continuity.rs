//! How often the check before the first block finds what switching does, and how often it finds what is not there.

use dbduel_stats::compare::paired_mean;
use dbduel_stats::continuity::Departure;
use dbduel_stats::simulate::{FINE_QUIET, FINE_TYPICAL, FINE_WANDERING, FineDuel, FineNoise};

/// Rounds of a check, and those after which it ends where a departure is excluded.
const ROUNDS: usize = 6;
const ROUNDS_ENOUGH: usize = 4;
const LIMIT: f64 = 0.05;

/// The departure of the first contender that a check ends with, when switching costs it `loss`.
fn checked(fine: FineNoise, loss: f64, seed: u64) -> Departure {
    let mut duel = FineDuel::new(fine, 0.1, seed);
    let mut pairs = [Vec::new(), Vec::new()];
    loop {
        // Four turns of 0.2 s are a stretch.
        let logs = duel.continuity_round(0.2, 0.05, 4, [loss, 0.0]);
        for (own, log) in pairs.iter_mut().zip(logs) {
            own.push(log);
        }
        let rounds = pairs[0].len();
        let departures = pairs.iter().map(|own| Departure::of(own, 0.05));
        let is_excluded =
            rounds >= ROUNDS_ENOUGH && departures.flatten().all(|one| one.is_within(LIMIT));
        if is_excluded || rounds == ROUNDS {
            return Departure::of(&pairs[0], 0.05).unwrap();
        }
    }
}

/// Share of checks that show a departure of the first contender beyond the limit when switching costs it `loss`.
fn shown(fine: FineNoise, loss: f64, checks: u64) -> f64 {
    let is_shown = |seed: &u64| checked(fine, loss, *seed).is_shown_beyond(LIMIT);
    (0..checks).filter(is_shown).count() as f64 / checks as f64
}

#[test]
fn intervals_of_checks_that_may_end_early_hold_the_departure() {
    for fine in [FINE_QUIET, FINE_TYPICAL, FINE_WANDERING] {
        for loss in [0.0, 0.04] {
            let holds = |seed: &u64| checked(fine, loss, *seed).log_ratio.contains(-loss);
            let share = (0..400).filter(holds).count() as f64 / 400.0;
            // 99.9 % point of 400 trials at 95 %.
            assert!(share >= 0.916, "{fine:?}, {loss}: {share}");
        }
    }
}

#[test]
fn what_is_not_there_is_rarely_found() {
    for fine in [FINE_QUIET, FINE_TYPICAL, FINE_WANDERING] {
        let share = shown(fine, 0.0, 200);
        // 99.9 % point of 200 trials at 5 %.
        assert!(share <= 0.105, "{fine:?}: {share}");
    }
}

#[test]
fn losses_of_these_sizes_are_found_in_nine_of_ten_checks() {
    for (fine, loss) in [
        (FINE_QUIET, 0.10),
        (FINE_TYPICAL, 0.30),
        (FINE_WANDERING, 0.30),
    ] {
        for loss in [loss, -loss] {
            let share = shown(fine, loss, 100);
            // 99.9 % point of 100 checks of which nine in ten find it.
            assert!(share >= 0.8, "{fine:?}, {loss}: {share}");
        }
    }
}

/// Share of contests whose long turns contradict: `rounds` of 8 s beside as much in turns, of which the first contender loses `loss`.
fn contradicted(fine: FineNoise, loss: f64, rounds: usize, checks: u64) -> f64 {
    let is_contradicted = |seed: &u64| {
        let mut duel = FineDuel::new(fine, 0.1, *seed);
        let round = |_| {
            let [first, second] = duel.continuity_round(0.2, 0.05, 40, [loss, 0.0]);
            second - first
        };
        let differences: Vec<f64> = (0..rounds).map(round).collect();
        let difference = paired_mean(&differences, 0.01).unwrap();
        !difference.contains(0.0) && difference.value.abs() > LIMIT
    };
    (0..checks).filter(is_contradicted).count() as f64 / checks as f64
}

#[test]
fn long_turns_between_blocks_rarely_contradict_without_cause() {
    for fine in [FINE_QUIET, FINE_TYPICAL, FINE_WANDERING] {
        for rounds in [6, 12] {
            let share = contradicted(fine, 0.0, rounds, 50);
            // 99.9 % point of 50 trials at 1 %.
            assert!(share <= 0.08, "{fine:?}, {rounds}: {share}");
        }
    }
}

#[test]
fn losses_of_these_sizes_are_contradicted_in_nine_of_ten_contests() {
    for (fine, rounds, loss) in [
        (FINE_QUIET, 6, 0.15),
        (FINE_TYPICAL, 12, 0.30),
        (FINE_WANDERING, 6, 0.40),
        (FINE_WANDERING, 12, 0.20),
    ] {
        let share = contradicted(fine, loss, rounds, 50);
        // 99.9 % point of 50 contests of which nine in ten find it.
        assert!(share >= 0.76, "{fine:?}, {rounds}, {loss}: {share}");
    }
}
