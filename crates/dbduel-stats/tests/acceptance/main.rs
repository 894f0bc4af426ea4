//! The acceptance suite: every method against synthetic machines whose truth is known.
//!
//! Thresholds are binomial: of 1000 trials at a true 5 %, more than 73 happen once in a thousand
//! builds, and the seeds are fixed, so a failure is a change of behaviour. Negative controls show that
//! the machines are hard enough: a weaker method must fail on them.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; a refusal here is a failed test"
)]

mod attribution;
mod bisection;
mod compare;
mod competitors;
mod continuity;
mod coverage;
mod crossover;
mod epochs;
mod history;
mod late_shares;
mod latency;
mod other_intervals;
mod queue;
mod robustness;
mod scaling;
mod sequential;
mod series;
mod short_duels;
mod short_slices;
mod single_blocks;
mod slices;
mod stalled_turns;
mod steady;
mod totals;
mod weights;
