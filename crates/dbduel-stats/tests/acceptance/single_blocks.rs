//! Error rates of blocks that hold every contender once: a pair's order is as fair a coin as in mirrored blocks, whatever
//! moves the machine meanwhile, linear drift included.

use dbduel_stats::sequential::SequentialPlan;
use dbduel_stats::simulate::{
    Contender, Design, Machine, NASTY, Noise, QUIET, TYPICAL, single_blocks,
};

use crate::coverage::feed;

/// Contenders of a suite whose blocks are not mirrored.
const CONTENDERS: usize = 10;
/// Blocks that the error probability is spent over.
const BLOCKS: usize = 28;
/// Short slices, of which ten make a block of half a minute.
const SHORT: Design = Design {
    slice: 2,
    guard: 1,
    jitter: 0.3,
};
/// A machine that loses a fifth of its throughput in a minute, so that a block drifts by a tenth.
const DRIFTING: Noise = Noise {
    drift_per_hour: -13.0,
    ..QUIET
};

fn log_ratios(noise: Noise, effect: f64, seed: u64) -> Vec<f64> {
    let mut machine = Machine::new(noise, seed);
    let mut contenders: Vec<Contender> = (0..CONTENDERS)
        .map(|number| {
            let level = if number == 1 { effect } else { 0.0 };
            Contender::new(&noise, level, &mut machine.random)
        })
        .collect();
    single_blocks(&mut machine, &mut contenders, SHORT, BLOCKS)
}

/// Duels that a verdict was reached in, with a look after every block.
fn decided(noise: Noise, effect: f64, duels: u64) -> usize {
    let has_verdict = |seed: &u64| {
        let plan = SequentialPlan::new(BLOCKS as f64, 0.05, 0.0, *seed);
        feed(&log_ratios(noise, effect, *seed), plan).has_verdict()
    };
    (0..duels).filter(has_verdict).count()
}

/// Of 300 at a true 5 % more than 28 happen once in a thousand builds.
#[test]
fn equals_are_told_apart_no_more_often_than_promised_also_under_drift() {
    for noise in [QUIET, TYPICAL, NASTY, DRIFTING] {
        let wrong = decided(noise, 0.0, 300);
        assert!(wrong <= 28, "{wrong} of 300 on {noise:?}");
    }
}

#[test]
#[ignore = "nightly: 16,000 duels"]
fn equals_are_told_apart_no_more_often_than_promised_in_many_duels() {
    for noise in [QUIET, TYPICAL, NASTY, DRIFTING] {
        let wrong = decided(noise, 0.0, 4000);
        // More than 244 of 4000 at a true 5 % happen once in a thousand builds.
        assert!(wrong <= 244, "{wrong} of 4000 on {noise:?}");
    }
}

/// Control: drift is hard enough on these blocks that an order which is not drawn is taken for a difference.
#[test]
fn an_order_that_is_not_drawn_takes_drift_for_a_difference() {
    let wrong = (0..100_u64).filter(|seed| {
        let mut machine = Machine::new(DRIFTING, *seed);
        let mut one = Contender::new(&DRIFTING, 0.0, &mut machine.random);
        let mut other = Contender::new(&DRIFTING, 0.0, &mut machine.random);
        let mean = |contender: &mut Contender, machine: &mut Machine| {
            let seconds = contender.seconds(machine, SHORT.guard, CONTENDERS * SHORT.slice);
            (seconds.iter().sum::<f64>() / seconds.len() as f64).ln()
        };
        let differences: Vec<f64> = (0..BLOCKS)
            .map(|_| mean(&mut one, &mut machine) - mean(&mut other, &mut machine))
            .collect();
        let plan = SequentialPlan::new(BLOCKS as f64, 0.05, 0.0, *seed);
        feed(&differences, plan).has_verdict()
    });
    let wrong = wrong.count();
    assert!(wrong >= 90, "{wrong} of 100");
}

#[test]
fn a_large_difference_is_found() {
    let found = decided(TYPICAL, 0.3, 50);
    assert!(found >= 45, "{found} of 50");
}
