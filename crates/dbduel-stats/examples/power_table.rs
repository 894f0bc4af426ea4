//! Prints what a duel can find: per machine and true effect, how many duels end with which
//! verdict, after how many mirrored blocks, and how often the interval holds the truth.
//!
//! `cargo run --release -p dbduel-stats --example power_table [duels] [blocks]`

#[path = "../tests/acceptance/simulate.rs"]
#[expect(dead_code, reason = "the acceptance suite uses the rest")]
mod simulate;

use dbduel_stats::StatsError;
use dbduel_stats::sequential::{Decider, SequentialPlan, Verdict};
use simulate::{DEFAULT_DESIGN, NASTY, Noise, QUIET, TYPICAL, mirrored_duel};

const MARGIN: f64 = 0.02;

#[derive(Default)]
struct Tally {
    faster: usize,
    slower: usize,
    equivalent: usize,
    missed: usize,
    stops: Vec<usize>,
}

fn tally(noise: Noise, effect: f64, blocks: usize, duels: u64) -> Result<Tally, StatsError> {
    let mut tally = Tally::default();
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
            Verdict::Equivalent => tally.equivalent += 1,
            Verdict::Undecided => {}
        }
        let covers = decision
            .interval
            .is_some_and(|set| set.low <= effect && effect <= set.high);
        tally.missed += usize::from(!covers);
        tally.stops.push(decision.n);
    }
    tally.stops.sort_unstable();
    Ok(tally)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<usize>());
    let duels = arguments.next().transpose()?.unwrap_or(200) as u64;
    let blocks = arguments.next().transpose()?.unwrap_or(56);
    println!("{duels} duels of at most {blocks} blocks, margin {MARGIN}, alpha 0.05");
    println!(
        "machine   effect  faster  slower  equivalent  undecided  median blocks  interval misses"
    );
    for (name, noise) in [("quiet", QUIET), ("typical", TYPICAL), ("nasty", NASTY)] {
        for percent in [0.0, 1.0, 2.0, 5.0, 10.0] {
            let found = tally(noise, (percent / 100.0_f64).ln_1p(), blocks, duels)?;
            let share = |count: usize| 100.0 * count as f64 / duels as f64;
            let decided = found.faster + found.slower + found.equivalent;
            println!(
                "{name:8} {percent:5.0} % {:5.1} % {:5.1} % {:9.1} % {:8.1} % {:14} {:14.1} %",
                share(found.faster),
                share(found.slower),
                share(found.equivalent),
                share(duels as usize - decided),
                found.stops[found.stops.len() / 2],
                share(found.missed),
            );
        }
    }
    Ok(())
}
