//! Prints how soon duels of short slices find a difference, beside slices of 15 s on the same machines, as a table in Markdown: per
//! machine and true effect the percentages that are called faster and slower, and the median seconds of load to the verdict.
//!
//! `cargo run --release -p dbduel-stats --example short_slices_table [duels] [seconds]`
//!
//! At a true effect of 0 all verdicts are false, elsewhere those that say slower. Ends with exit code 1 when more of them are
//! false than chance allows.

#[path = "../tests/acceptance/short_slices.rs"]
mod short_slices;

use std::process::ExitCode;

use dbduel_stats::StatsError;
use dbduel_stats::proportion::proportion;
use dbduel_stats::sequential::Verdict;
use dbduel_stats::simulate::FineNoise;
use short_slices::{MACHINES, Way, conduct};

/// Probability that a promise which is kept is called broken.
const CHECK_ALPHA: f64 = 0.002;
const EFFECTS_PERCENT: [f64; 6] = [0.0, 1.0, 2.0, 5.0, 20.0, 100.0];
/// Ways that keep the promise of 5 %, and the one that shows why blocks are repeated.
const WAYS: [(&str, Way); 3] = [
    ("short", Way::Short),
    ("15 s", Way::Long),
    ("not repeated", Way::Single),
];

/// How the duels of one cell ended.
struct Cell {
    faster: usize,
    slower: usize,
    /// Intervals at the stop that do not hold the truth.
    missed: usize,
    /// Seconds to the verdict, ascending; infinite without one.
    seconds: Vec<f64>,
    slices_s: Vec<f64>,
}

fn conduct_all(
    fine: FineNoise,
    way: Way,
    effect: f64,
    budget_s: f64,
    duels: u64,
) -> Result<Cell, StatsError> {
    let mut cell = Cell {
        faster: 0,
        slower: 0,
        missed: 0,
        seconds: Vec::new(),
        slices_s: Vec::new(),
    };
    for seed in 0..duels {
        let ended = conduct(fine, way, effect, budget_s, seed)?;
        let decision = ended.decider.decision()?;
        cell.faster += usize::from(decision.verdict == Verdict::Faster);
        cell.slower += usize::from(decision.verdict == Verdict::Slower);
        let is_held = decision
            .interval
            .is_some_and(|set| set.low <= effect && effect <= set.high);
        cell.missed += usize::from(!is_held);
        let is_decided = decision.verdict != Verdict::Undecided;
        cell.seconds.push(if is_decided {
            ended.seconds
        } else {
            f64::INFINITY
        });
        cell.slices_s.push(ended.slice_s);
    }
    cell.seconds.sort_unstable_by(f64::total_cmp);
    cell.slices_s.sort_unstable_by(f64::total_cmp);
    Ok(cell)
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<f64>());
    let duels = arguments.next().transpose()?.unwrap_or(200.0).max(1.0) as u64;
    let budget_s = arguments.next().transpose()?.unwrap_or(1200.0);
    println!(
        "{duels} duels each, {budget_s} seconds of load at most\n\n\
         | machine | effect | way | slices, median s | faster | slower | undecided | median seconds | interval misses |\n\
         | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    let mut broken = Vec::new();
    for (name, fine) in MACHINES {
        for percent in EFFECTS_PERCENT {
            let effect = (percent / 100.0_f64).ln_1p();
            for (way_name, way) in WAYS {
                if way == Way::Single && percent > 0.0 {
                    continue;
                }
                let cell = conduct_all(fine, way, effect, budget_s, duels)?;
                let share = |count: usize| format!("{:.1}", 100.0 * count as f64 / duels as f64);
                let median = cell.seconds[cell.seconds.len() / 2];
                println!(
                    "| {name} | {percent:.0} % | {way_name} | {:.2} | {} | {} | {} | {} | {} |",
                    cell.slices_s[cell.slices_s.len() / 2],
                    share(cell.faster),
                    share(cell.slower),
                    share(duels as usize - cell.faster - cell.slower),
                    if median.is_finite() {
                        format!("{median:.0}")
                    } else {
                        "–".to_owned()
                    },
                    share(cell.missed),
                );
                let is_faster_false = percent == 0.0;
                let wrong = cell.slower + if is_faster_false { cell.faster } else { 0 };
                for (what, count) in [("false verdicts", wrong), ("misses", cell.missed)] {
                    let low = proportion(count, duels as usize, CHECK_ALPHA)?.low;
                    if low > 0.05 && way != Way::Single {
                        broken.push(format!(
                            "{name}, {percent:.0} %, {way_name}: {count} {what} of {duels}"
                        ));
                    }
                }
            }
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
