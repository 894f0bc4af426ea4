//! Prints what a duel can find, beside three ways of the field that get the same machine and the same
//! time: per machine and true effect, how often each ends with which verdict, after how many minutes,
//! and how often the duel's interval misses the truth.
//!
//! `cargo run --release -p dbduel-stats --example power_table [duels] [blocks]`
//!
//! At a true effect of 0 the columns `faster` and `slower` are false claims; elsewhere `slower` is one.

#[path = "../tests/acceptance/competitors.rs"]
mod competitors;
#[path = "../tests/acceptance/simulate.rs"]
#[expect(dead_code, reason = "the acceptance suite uses the rest")]
mod simulate;

use competitors::{Said, effective_size_welch, one_long_run, three_runs_welch};
use dbduel_stats::StatsError;
use dbduel_stats::sequential::{Decider, SequentialPlan, Verdict};
use simulate::{DEFAULT_DESIGN, NASTY, Noise, QUIET, TYPICAL, mirrored_duel};

const MARGIN: f64 = 0.02;

/// How the duels of one method ended.
#[derive(Default)]
struct Tally {
    faster: usize,
    slower: usize,
    equal: usize,
    /// Intervals that do not hold the truth; absent for methods without an interval.
    missed: Option<usize>,
    minutes: Vec<f64>,
}

impl Tally {
    fn print(mut self, machine: &str, percent: f64, method: &str) {
        let duels = self.minutes.len();
        let share = |count: usize| 100.0 * count as f64 / duels as f64;
        self.minutes.sort_unstable_by(f64::total_cmp);
        let misses = self
            .missed
            .map_or("–".to_owned(), |missed| format!("{:.1} %", share(missed)));
        println!(
            "{machine:8} {percent:5.0} %  {method:26} {:5.1} % {:5.1} % {:7.1} % {:8.1} % {:8.1} {misses:>8}",
            share(self.faster),
            share(self.slower),
            share(self.equal),
            share(duels - self.faster - self.slower - self.equal),
            self.minutes[duels / 2],
        );
    }
}

/// Seconds of machine time that `blocks` mirrored blocks take, guards included.
fn seconds(blocks: usize) -> usize {
    blocks * 4 * (DEFAULT_DESIGN.slice + DEFAULT_DESIGN.guard)
}

fn duels_of_ours(
    noise: Noise,
    effect: f64,
    blocks: usize,
    duels: u64,
) -> Result<Tally, StatsError> {
    let mut tally = Tally {
        missed: Some(0),
        ..Tally::default()
    };
    for seed in 0..duels {
        let mut decider = Decider::new(SequentialPlan::new(blocks, 0.05, MARGIN, seed))?;
        for unit in mirrored_duel(noise, DEFAULT_DESIGN, blocks, effect, seed) {
            decider.push(unit)?;
            if decider.has_verdict() {
                break;
            }
        }
        let decision = decider.decision()?;
        match decision.verdict {
            Verdict::Faster => tally.faster += 1,
            Verdict::Slower => tally.slower += 1,
            Verdict::Equivalent => tally.equal += 1,
            Verdict::Undecided => {}
        }
        let covers = decision
            .interval
            .is_some_and(|set| set.low <= effect && effect <= set.high);
        tally.missed = tally.missed.map(|missed| missed + usize::from(!covers));
        tally.minutes.push(seconds(decision.n) as f64 / 60.0);
    }
    Ok(tally)
}

fn duels_of_others(duels: u64, blocks: usize, method: impl Fn(u64) -> Said) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..duels {
        match method(seed) {
            Said::Faster => tally.faster += 1,
            Said::Slower => tally.slower += 1,
            Said::Equal => tally.equal += 1,
            Said::Nothing => {}
        }
        tally.minutes.push(seconds(blocks) as f64 / 60.0);
    }
    tally
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<usize>());
    let duels = arguments.next().transpose()?.unwrap_or(200).max(1) as u64;
    let blocks = arguments.next().transpose()?.unwrap_or(56);
    println!(
        "{duels} duels each, {:.0} minutes of machine time at most, margin {MARGIN}, alpha 0.05",
        seconds(blocks) as f64 / 60.0
    );
    println!(
        "machine   effect  method                     faster  slower   equal  undecided  minutes   misses"
    );
    let time = seconds(blocks);
    for (name, noise) in [("quiet", QUIET), ("typical", TYPICAL), ("nasty", NASTY)] {
        for percent in [0.0, 2.0, 5.0, 10.0] {
            let effect = (percent / 100.0_f64).ln_1p();
            duels_of_ours(noise, effect, blocks, duels)?.print(name, percent, "dbduel");
            let long = |seed| one_long_run(noise, effect, time, MARGIN, seed);
            duels_of_others(duels, blocks, long).print(name, percent, "one long run each");
            let three = |seed| three_runs_welch(noise, effect, time, seed);
            duels_of_others(duels, blocks, three).print(name, percent, "three runs each, Welch");
            let latte = |seed| effective_size_welch(noise, effect, time, seed);
            duels_of_others(duels, blocks, latte).print(name, percent, "Welch, effective size");
        }
    }
    Ok(())
}
