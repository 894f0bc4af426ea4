//! Verdicts of short slices, looked at after every unit: error rates, and how soon they come.

use dbduel_stats::simulate::{FINE_NASTY, FINE_QUIET, FINE_WANDERING, FineNoise};

use crate::short_slices::{MACHINES, Way, conduct};

/// Where nothing is slow, slices are long.
const FAST_NOISE: FineNoise = FineNoise {
    white: 0.1,
    flicker: 0.0,
    ..FINE_WANDERING
};

fn wrong(fine: FineNoise, way: Way, duels: u64) -> usize {
    let is_wrong = |seed: &u64| {
        let ended = conduct(fine, way, 0.0, 300.0, *seed).unwrap();
        ended.decider.has_verdict()
    };
    (0..duels).filter(is_wrong).count()
}

/// The truth of a duel with an effect is in the interval exactly where its differences less the effect get no verdict, so this
/// is also how often intervals hold it.
#[test]
fn equal_contenders_are_rarely_told_apart_by_short_slices() {
    let machines = MACHINES.map(|(_, fine)| fine);
    for fine in machines.into_iter().chain([FAST_NOISE]) {
        let wrong = wrong(fine, Way::Short, 40);
        // 99.9 % point of 40 trials at 5 %.
        assert!(wrong <= 7, "{fine:?}: {wrong} of 40");
    }
}

#[test]
fn slices_are_long_where_noise_is_fast() {
    let ended = conduct(FAST_NOISE, Way::Short, 0.0, 120.0, 1).unwrap();
    assert!(ended.slice_s >= 0.5, "{}", ended.slice_s);
}

/// Control: blocks of short slices have their signs from a contender's dips.
#[test]
fn single_short_blocks_take_a_dip_for_a_difference() {
    let wrong = wrong(FINE_NASTY, Way::Single, 40);
    assert!(wrong >= 8, "{wrong} of 40");
}

/// Median seconds until a difference of 5 % is found, where most duels find it; the plan of slices of 15 s cannot
/// decide anything within eight minutes.
#[test]
fn five_percent_are_found_within_two_minutes_on_quiet_and_wandering_machines() {
    for fine in [FINE_QUIET, FINE_WANDERING] {
        let mut seconds: Vec<f64> = (0..21)
            .map(|seed| {
                let ended = conduct(fine, Way::Short, 1.05_f64.ln(), 300.0, seed).unwrap();
                ended.seconds
            })
            .collect();
        seconds.sort_unstable_by(f64::total_cmp);
        assert!(seconds[10] <= 120.0, "{fine:?}: {seconds:?}");
    }
    let long = conduct(FINE_QUIET, Way::Long, 0.5, 1200.0, 1).unwrap();
    assert!(
        long.decider.has_verdict() && long.seconds > 400.0,
        "{}",
        long.seconds
    );
}
