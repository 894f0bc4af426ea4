//! Prints how often intervals of the ratio of totals hold the truth where a contender stalls, and what they cost where none does, as
//! tables in Markdown.
//!
//! `cargo run --release -p dbduel-stats --example stalled_turns_table [duels]`

#[path = "../tests/acceptance/stalled_turns.rs"]
mod stalled_turns;

use dbduel_stats::StatsError;
use dbduel_stats::median;
use dbduel_stats::sequential::{Decider, SequentialPlan, Unit, Verdict, unit_length_s};
use dbduel_stats::simulate::{
    FINE_NASTY, FINE_QUIET, FINE_TYPICAL, FINE_WANDERING, FineDuel, FineNoise, Noise, QUIET,
    TYPICAL,
};
use stalled_turns::{ALPHA, ContenderLaw, Gaps, STEADY, conduct, judge};

const MACHINES: [(&str, Noise); 2] = [("quiet", QUIET), ("typical", TYPICAL)];
const EVERY_S: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 30.0, 60.0];

/// The contenders of each row: a name, and what the two do by themselves.
fn rows() -> Vec<(String, [ContenderLaw; 2])> {
    let mut rows = vec![("none".to_owned(), [STEADY; 2])];
    for (name, gaps) in [("at random", Gaps::Random), ("in equal gaps", Gaps::Equal)] {
        for every_s in EVERY_S {
            let name = format!("every {every_s:.0} s, {name}");
            rows.push((name, [ContenderLaw::stalling(every_s, gaps), STEADY]));
        }
    }
    for every_s in [4.0, 30.0] {
        let name = format!("both every {every_s:.0} s, at random");
        rows.push((name, [ContenderLaw::stalling(every_s, Gaps::Random); 2]));
    }
    let heavy = ContenderLaw {
        is_heavy: true,
        ..STEADY
    };
    rows.push(("durations of Pareto".to_owned(), [heavy, STEADY]));
    rows.push(("durations of Pareto, both".to_owned(), [heavy; 2]));
    rows
}

/// Counts of one row.
#[derive(Default)]
struct CoverageRow {
    blocks: usize,
    held: u64,
    held_by_differences: u64,
    no_interval: u64,
    too_few: u64,
    /// Intervals that hold the truth, or were judged to rest on too few stalls, or are none.
    right: u64,
    unseen: u64,
    /// The same, or no stall was seen.
    right_or_unseen: u64,
    widened: u64,
    verdicts: u64,
    widths: Vec<f64>,
}

fn coverage(
    noise: Noise,
    laws: [ContenderLaw; 2],
    [turn_s, budget_s]: [f64; 2],
    duels: u64,
) -> Result<CoverageRow, StatsError> {
    let truth = laws[0].log_throughput() - laws[1].log_throughput();
    let mut row = CoverageRow::default();
    for seed in 0..duels {
        let measured = conduct(noise, laws, turn_s, budget_s, seed);
        let judged = judge(&measured, truth, seed)?;
        let interval = judged.decision.interval;
        let is_right = judged.is_held || judged.is_too_few || interval.is_none();
        let is_unseen = laws[0].every_s.is_finite() && measured.stalls == 0;
        row.blocks = measured.blocks.len();
        row.held += u64::from(judged.is_held);
        row.held_by_differences += u64::from(judged.is_held_by_differences);
        row.no_interval += u64::from(interval.is_none());
        row.too_few += u64::from(judged.is_too_few);
        row.right += u64::from(is_right);
        row.unseen += u64::from(is_unseen);
        row.right_or_unseen += u64::from(is_right || is_unseen);
        row.widened += u64::from(judged.is_held_widened || interval.is_none() || is_unseen);
        row.verdicts += u64::from(judged.decision.verdict != Verdict::Undecided);
        row.widths
            .extend(interval.map(|set| 0.5 * (set.high - set.low)));
    }
    Ok(row)
}

/// Blocks to the verdict with differences and with totals, infinite where there is none, and verdicts that are false.
fn cost(
    fine: FineNoise,
    effect: f64,
    budget_s: f64,
    seed: u64,
) -> Result<[(f64, bool); 2], StatsError> {
    const TURN_S: f64 = 0.15;
    const GUARD_S: f64 = 0.05;
    let mut duel = FineDuel::new(fine, effect, seed);
    let order_s = 4.0 * duel.turn_s(TURN_S, GUARD_S);
    let (mut elapsed_s, mut blocks, mut differences) = (0.0, Vec::new(), Vec::new());
    while elapsed_s < budget_s {
        let repeats = (unit_length_s(elapsed_s) / order_s).ceil();
        elapsed_s += repeats * order_s;
        let block = duel.block(TURN_S, GUARD_S, repeats as u32);
        blocks.push((block.totals, repeats));
        differences.push(Unit::new(block.log_ratio, repeats));
    }
    let weight_max = blocks.iter().map(|block| block.1).sum();
    let mut ended = [(f64::INFINITY, false); 2];
    for (ended, units) in ended
        .iter_mut()
        .zip([differences, Unit::of_totals(&blocks)?])
    {
        let mut decider = Decider::new(SequentialPlan::new(weight_max, ALPHA, 0.0, seed))?;
        for unit in units {
            decider.push(unit)?;
            if decider.has_verdict() {
                let is_false = match decider.decision()?.verdict {
                    Verdict::Faster => effect <= 0.0,
                    Verdict::Slower => effect >= 0.0,
                    _ => false,
                };
                *ended = (decider.n() as f64, is_false);
                break;
            }
        }
    }
    Ok(ended)
}

fn print_coverage(duels: u64) -> Result<(), StatsError> {
    println!(
        "| machine | stalls of a second | turns | load | blocks | differences hold | holds | no interval | too few stalls | \
         any of the three | no stall seen | any of the four | widened | verdicts | half width |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for (machine, noise) in MACHINES {
        for (name, laws) in rows() {
            for size in [[0.15, 60.0], [0.15, 300.0], [1.5, 60.0], [1.5, 300.0]] {
                let duels = if laws[0].is_heavy {
                    duels.div_ceil(4)
                } else {
                    duels
                };
                let mut row = coverage(noise, laws, size, duels)?;
                let percent = |count: u64| format!("{:.0}", 100.0 * count as f64 / duels as f64);
                println!(
                    "| {machine} | {name} | {} s | {} s | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} % |",
                    size[0],
                    size[1],
                    row.blocks,
                    percent(row.held_by_differences),
                    percent(row.held),
                    percent(row.no_interval),
                    percent(row.too_few),
                    percent(row.right),
                    percent(row.unseen),
                    percent(row.right_or_unseen),
                    percent(row.widened),
                    percent(row.verdicts),
                    100.0 * median(&mut row.widths).unwrap_or(f64::NAN),
                );
            }
        }
    }
    Ok(())
}

fn print_cost(duels: u64) -> Result<(), StatsError> {
    println!(
        "\n| machine | effect | blocks to a verdict, differences | totals | verdicts, differences | totals | false, differences | totals |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for (machine, fine) in [
        ("quiet", FINE_QUIET),
        ("typical", FINE_TYPICAL),
        ("nasty", FINE_NASTY),
        ("wandering", FINE_WANDERING),
    ] {
        for percent in [0.0, 2.0, 5.0] {
            let effect = (percent / 100.0_f64).ln_1p();
            let mut blocks = [Vec::new(), Vec::new()];
            let mut wrong = [0; 2];
            for seed in 0..duels {
                for (side, (at, is_false)) in
                    cost(fine, effect, 600.0, seed)?.into_iter().enumerate()
                {
                    blocks[side].push(at);
                    wrong[side] += u64::from(is_false);
                }
            }
            let share = |count: u64| format!("{:.1}", 100.0 * count as f64 / duels as f64);
            let found = [0, 1]
                .map(|side| share(blocks[side].iter().filter(|at| at.is_finite()).count() as u64));
            let at = blocks
                .each_mut()
                .map(|blocks| median(blocks).unwrap_or(f64::NAN));
            println!(
                "| {machine} | {percent:.0} % | {} | {} | {} | {} | {} | {} |",
                at[0],
                at[1],
                found[0],
                found[1],
                share(wrong[0]),
                share(wrong[1]),
            );
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let duels = std::env::args()
        .nth(1)
        .map(|argument| argument.parse::<u64>());
    let duels = duels.transpose()?.unwrap_or(200).max(1);
    print_cost(duels)?;
    println!();
    print_coverage(duels)?;
    Ok(())
}
