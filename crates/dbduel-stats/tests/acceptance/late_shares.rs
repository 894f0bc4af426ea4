//! Whether a rate meets an objective, said of a few slices at a few looks: why the search for the highest rate allows
//! for slow movements although most rates around the limit stay unclear by it.

use dbduel_stats::Estimate;
use dbduel_stats::mean::series_mean;
use dbduel_stats::simulate::{
    DEFAULT_DESIGN, Machine, Noise, QUIET, TYPICAL, mirrored_seconds, two_contenders,
};

use crate::other_intervals::student;

/// Blocks after which a rate is looked at; one contender has two slices of each.
const LOOKS: [usize; 3] = [2, 4, 8];
/// What one look at one of sixteen rates has of 5 %.
const ALPHA: f64 = 0.05 / (16.0 * 3.0);
/// Share that may be late.
const ALLOWED: f64 = 0.01;
const SEARCHES: u64 = 300;

/// Late shares of the slices of one contender at a rate in units of its capacity: those of a queue with one worker
/// (M/M/1) in every second, and all while a backlog lasts.
fn late_shares(noise: Noise, rate: f64, seed: u64) -> Vec<f64> {
    // Limit × capacity: how many services the limit is long.
    const LIMIT: f64 = 14.0;
    let mut machine = Machine::new(noise, seed);
    let mut contenders = two_contenders(&noise, 0.0, &mut machine);
    let slices = mirrored_seconds(&mut machine, &mut contenders, DEFAULT_DESIGN, LOOKS[2]);
    let own = slices.into_iter().filter(|(contender, _)| *contender == 0);
    own.map(|(_, seconds)| {
        let mut backlog = 0.0_f64;
        let late = seconds.iter().map(|capacity| {
            let is_behind = backlog > 0.0;
            backlog = (backlog + rate - capacity).max(0.0);
            match is_behind || rate >= *capacity {
                true => 1.0,
                false => (-LIMIT * (capacity - rate)).exp(),
            }
        });
        late.sum::<f64>() / seconds.len() as f64
    })
    .collect()
}

/// Percent of the searches in which a rate is clear at the first look, is never clear, and is called what it is not.
struct Said {
    at_once: f64,
    never: f64,
    wrong: f64,
}

fn said(noise: Noise, rate: f64, interval: fn(&[f64], f64) -> Estimate) -> Said {
    let all: Vec<Vec<f64>> = (0..SEARCHES)
        .map(|seed| late_shares(noise, rate, seed))
        .collect();
    let values = all.iter().flatten();
    let truth = values.clone().sum::<f64>() / values.count() as f64;
    let mut said = Said {
        at_once: 0.0,
        never: 0.0,
        wrong: 0.0,
    };
    let one = 100.0 / SEARCHES as f64;
    for slices in &all {
        // True where it is called met, by the first look that is clear.
        let clear = LOOKS.iter().enumerate().find_map(|(look, blocks)| {
            let found = interval(&slices[..2 * blocks], ALPHA);
            let is_clear = found.high <= ALLOWED || found.low > ALLOWED;
            is_clear.then_some((look, found.high <= ALLOWED))
        });
        match clear {
            None => said.never += one,
            Some((look, is_met)) => {
                said.at_once += if look == 0 { one } else { 0.0 };
                said.wrong += if is_met == (truth > ALLOWED) {
                    one
                } else {
                    0.0
                };
            }
        }
    }
    said
}

fn ours(slices: &[f64], alpha: f64) -> Estimate {
    series_mean(slices, alpha).unwrap()
}

#[test]
fn rates_far_from_the_limit_are_clear_at_the_first_look_and_those_around_it_stay_unclear() {
    for rate in [0.2, 0.4, 1.2] {
        let found = said(QUIET, rate, ours);
        assert!(found.at_once > 90.0 && found.wrong == 0.0, "{rate}");
    }
    for rate in [0.6, 0.7, 0.8] {
        let found = said(QUIET, rate, ours);
        assert!(found.never > 90.0 && found.wrong == 0.0, "{rate}");
        // Student's interval would know more here.
        assert!(said(QUIET, rate, student).never < 40.0, "{rate}");
    }
}

/// Control: what knowing more costs where the machine moves. At this rate 1.1 % are late.
#[test]
fn slices_as_independent_call_a_rate_met_that_is_missed() {
    let (ours, student) = (said(TYPICAL, 0.4, ours), said(TYPICAL, 0.4, student));
    assert!(ours.wrong < 15.0, "{}", ours.wrong);
    assert!(student.wrong > 35.0, "{}", student.wrong);
}
