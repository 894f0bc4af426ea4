//! Prints what a duel can find, beside three ways of the field that get the same machine and the same
//! time, as two tables in Markdown: per machine and true effect, how often each ends with which verdict,
//! after how many minutes, and how often intervals miss the truth.
//!
//! `cargo run --release -p dbduel-stats --example power_table [duels] [blocks]`
//!
//! At a true effect of 0 the columns `faster` and `slower` are false claims; elsewhere `slower` is one, and `equal` where
//! the effect is beyond the margin.
//! Ends with exit code 1 when a promise is broken by more than chance allows.

#[path = "../tests/acceptance/competitors.rs"]
mod competitors;

use std::process::ExitCode;

use competitors::{Said, effective_size_welch, one_long_run, three_runs_welch};
use dbduel_stats::StatsError;
use dbduel_stats::compare::paired_mean;
use dbduel_stats::proportion::proportion;
use dbduel_stats::sequential::{Decider, SequentialPlan, Unit, Verdict};
use dbduel_stats::simulate::{DEFAULT_DESIGN, NASTY, Noise, QUIET, TYPICAL, mirrored_duel};

const MARGIN: f64 = 0.02;
const ALPHA: f64 = 0.05;
/// Probability that a promise which is kept is called broken.
const CHECK_ALPHA: f64 = 0.002;
const EFFECTS_PERCENT: [f64; 4] = [0.0, 2.0, 5.0, 10.0];
const MACHINES: [(&str, Noise); 3] = [("quiet", QUIET), ("typical", TYPICAL), ("nasty", NASTY)];

/// How the duels of dbduel ended.
#[derive(Default)]
struct Duels {
    faster: usize,
    slower: usize,
    equal: usize,
    /// Intervals at the stop, valid at every look at once, that do not hold the truth.
    missed: usize,
    /// Intervals of a number of blocks that was fixed before, all that the time allows.
    missed_fixed: usize,
    minutes: Vec<f64>,
}

/// Seconds of machine time that `blocks` mirrored blocks take, guards included.
fn seconds(blocks: usize) -> usize {
    blocks * 4 * (DEFAULT_DESIGN.slice + DEFAULT_DESIGN.guard)
}

fn minutes(blocks: usize) -> f64 {
    seconds(blocks) as f64 / 60.0
}

fn conduct(noise: Noise, effect: f64, blocks: usize, duels: u64) -> Result<Duels, StatsError> {
    let mut ended = Duels::default();
    for seed in 0..duels {
        let mut decider = Decider::new(SequentialPlan::new(blocks as f64, ALPHA, MARGIN, seed))?;
        let units = mirrored_duel(noise, DEFAULT_DESIGN, blocks, effect, seed);
        for unit in &units {
            decider.push(Unit::new(*unit, 1.0))?;
            if decider.has_verdict() {
                break;
            }
        }
        let decision = decider.decision()?;
        match decision.verdict {
            Verdict::Faster => ended.faster += 1,
            Verdict::Slower => ended.slower += 1,
            Verdict::Equivalent => ended.equal += 1,
            Verdict::Undecided => {}
        }
        let is_held = decision
            .interval
            .is_some_and(|set| set.low <= effect && effect <= set.high);
        ended.missed += usize::from(!is_held);
        ended.missed_fixed += usize::from(!paired_mean(&units, ALPHA)?.contains(effect));
        ended.minutes.push(minutes(decision.n));
    }
    ended.minutes.sort_unstable_by(f64::total_cmp);
    Ok(ended)
}

/// Shares of `duels` that one of the other ways calls faster, slower and equal, percent.
fn others(duels: u64, method: impl Fn(u64) -> Said) -> String {
    let said: Vec<Said> = (0..duels).map(method).collect();
    let share = |wanted: Said| {
        let count = said.iter().filter(|said| **said == wanted).count();
        100.0 * count as f64 / duels as f64
    };
    let (faster, slower) = (share(Said::Faster), share(Said::Slower));
    format!("{faster:.1} | {slower:.1} | {:.1}", share(Said::Equal))
}

/// True when chance does not explain that more than `promised` of the duels went wrong.
fn is_broken(wrong: usize, duels: u64, promised: f64) -> Result<bool, StatsError> {
    Ok(proportion(wrong, duels as usize, CHECK_ALPHA)?.low > promised)
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<usize>());
    let duels = arguments.next().transpose()?.unwrap_or(1000).max(1) as u64;
    let blocks = arguments.next().transpose()?.unwrap_or(56).max(2);
    let time = seconds(blocks);
    let mut broken = Vec::new();
    println!(
        "{duels} duels each, {:.0} minutes of machine time at most, margin {MARGIN}, alpha {ALPHA}\n",
        minutes(blocks)
    );
    println!(
        "| machine | effect | faster | slower | equal | undecided | median minutes | interval misses | fixed-n misses |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for (name, noise) in MACHINES {
        for percent in EFFECTS_PERCENT {
            let ended = conduct(noise, (percent / 100.0_f64).ln_1p(), blocks, duels)?;
            let share = |count: usize| format!("{:.1}", 100.0 * count as f64 / duels as f64);
            let undecided = duels as usize - ended.faster - ended.slower - ended.equal;
            println!(
                "| {name} | {percent:.0} % | {} | {} | {} | {} | {:.0} | {} | {} |",
                share(ended.faster),
                share(ended.slower),
                share(ended.equal),
                share(undecided),
                ended.minutes[ended.minutes.len() / 2],
                share(ended.missed),
                share(ended.missed_fixed),
            );
            let is_faster_false = percent == 0.0;
            let is_equal_false = percent / 100.0 > MARGIN;
            let false_claims = ended.slower
                + if is_faster_false { ended.faster } else { 0 }
                + if is_equal_false { ended.equal } else { 0 };
            for (what, count) in [
                ("false claims", false_claims),
                ("intervals that miss", ended.missed),
                ("intervals of fixed n that miss", ended.missed_fixed),
            ] {
                if is_broken(count, duels, ALPHA)? {
                    broken.push(format!("{name}, {percent:.0} %: {count} {what} of {duels}"));
                }
            }
        }
    }
    println!(
        "\nThe same machines and {:.0} minutes each time; faster, slower and equal.\n\n\
         | machine | effect | one long run each | | | three runs each, Welch | | | Welch, effective size | | |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        minutes(blocks)
    );
    for (name, noise) in MACHINES {
        for percent in EFFECTS_PERCENT {
            let effect = (percent / 100.0_f64).ln_1p();
            println!(
                "| {name} | {percent:.0} % | {} | {} | {} |",
                others(duels, |seed| one_long_run(
                    noise, effect, time, MARGIN, seed
                )),
                others(duels, |seed| three_runs_welch(noise, effect, time, seed)),
                others(duels, |seed| effective_size_welch(
                    noise, effect, time, seed
                )),
            );
        }
    }
    for promise in &broken {
        eprintln!("broken: {promise}");
    }
    Ok(match broken.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
