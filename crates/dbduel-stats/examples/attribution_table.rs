//! Prints what contests of designed contenders say of the parts of a difference, as a table in Markdown: percentages of
//! contests that name a factor that does nothing, that miss the truth of an effect, an interaction or the closure at any look,
//! and that find an effect, with the median blocks it takes. A second table is about second stages, with new data and without
//! the factors that the first ones show to be within a horizon of 3 %.
//!
//! `cargo run --release -p dbduel-stats --example attribution_table [contests] [blocks]`
//!
//! Ends with exit code 1 when more of them are wrong than chance allows.

#[path = "../tests/acceptance/designed.rs"]
mod designed;

use std::process::ExitCode;

use dbduel_stats::StatsError;
use dbduel_stats::median;
use dbduel_stats::proportion::proportion;
use dbduel_stats::simulate::Noise;
use designed::{
    ALPHA, BLOCKS, Contest, LogRate, MACHINES, SecondStages, five, nothing, three_together,
};

/// Probability that a promise which is kept is called broken.
const CHECK_ALPHA: f64 = 0.002;

/// A truth to find: its name, number of factors, and log throughput of a run.
type Truth = (&'static str, usize, LogRate);

const TRUTHS: [Truth; 3] = [
    ("nothing", 5, nothing),
    ("12, 5, −3 %, two of them +6 % together; 0, 0", 5, five),
    ("10, 5, 0 %, all three +6 % together", 3, three_together),
];

#[derive(Default)]
struct Cell {
    named: usize,
    effects_missed: usize,
    interactions_missed: usize,
    closure_missed: usize,
    /// Widths of the interval of the closure, in shares.
    widths: Vec<f64>,
    /// Of each factor, the blocks until its effect was found.
    found: Vec<Vec<f64>>,
}

fn conduct(
    noise: Noise,
    (_, factors, log_rate): Truth,
    contests: u64,
    blocks: usize,
) -> Result<Cell, StatsError> {
    let mut cell = Cell {
        found: vec![Vec::new(); factors],
        ..Cell::default()
    };
    for seed in 0..contests {
        let contest = Contest::conduct(noise, factors, log_rate, blocks, seed)?;
        let mut is_named = false;
        for (factor, found) in contest.effects_found(seed)?.into_iter().enumerate() {
            let truth = contest.true_value(&contest.design.main_effect(factor));
            is_named |= found.is_some() && truth == 0.0;
            cell.found[factor].extend(found.map(|blocks| blocks as f64));
        }
        cell.named += usize::from(is_named);
        cell.effects_missed += usize::from(!contest.effects_are_held(seed)?);
        cell.interactions_missed += usize::from(!contest.interactions_are_held(seed)?);
        if let Some((is_held, width)) = contest.closure(2, seed)? {
            cell.closure_missed += usize::from(!is_held);
            cell.widths.push(width);
        }
    }
    Ok(cell)
}

fn main() -> Result<ExitCode, StatsError> {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok());
    let contests = numbers.next().unwrap_or(400);
    let blocks = numbers.next();
    let blocks = blocks.and_then(|blocks| usize::try_from(blocks).ok());
    let blocks = blocks.unwrap_or(BLOCKS);
    println!(
        "| machine | truth | names one that does nothing | misses an effect | an interaction | the share of the first two \
         (given in; median width) | finds each effect (median blocks) |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | --- |");
    let mut is_kept = true;
    for (machine, noise) in MACHINES {
        for truth in TRUTHS {
            let cell = conduct(noise, truth, contests, blocks)?;
            let trials = usize::try_from(contests).unwrap_or(usize::MAX);
            let of = |count: usize| 100.0 * count as f64 / contests as f64;
            let wrong = [
                cell.named,
                cell.effects_missed,
                cell.interactions_missed,
                cell.closure_missed,
            ];
            for count in wrong {
                is_kept &= proportion(count, trials, CHECK_ALPHA)?.low <= ALPHA;
            }
            let found = cell.found.iter().map(|blocks| {
                let share = of(blocks.len());
                median(&mut blocks.clone()).map_or(format!("{share:.1}"), |blocks| {
                    format!("{share:.1} ({blocks:.0})")
                })
            });
            let found: Vec<String> = found.collect();
            let mut widths = cell.widths.clone();
            widths.sort_unstable_by(f64::total_cmp);
            let width = widths
                .get(widths.len() / 2)
                .map_or("–".to_owned(), |width| format!("{:.0} %", 100.0 * width));
            let closure = match cell.widths.len() {
                0 => "–".to_owned(),
                given => format!("{:.1} ({:.0}; {width})", of(cell.closure_missed), of(given)),
            };
            println!(
                "| {machine} | {} | {:.1} | {:.1} | {:.1} | {closure} | {} |",
                truth.0,
                of(cell.named),
                of(cell.effects_missed),
                of(cell.interactions_missed),
                found.join(", ")
            );
        }
    }
    is_kept &= print_second_stages(contests)?;
    Ok(match is_kept {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Prints what second stages are worth; false when more of them are wrong than chance allows.
fn print_second_stages(contests: u64) -> Result<bool, StatsError> {
    println!(
        "\n| machine | truth | second stages | every interaction by itself | a factor beyond the horizon left | names one that \
         does nothing | misses an effect | an interaction |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let trials = usize::try_from(contests).unwrap_or(usize::MAX);
    let mut is_kept = true;
    for (machine, noise) in MACHINES {
        for (name, factors, log_rate) in TRUTHS {
            if factors != 5 {
                continue;
            }
            let found = SecondStages::conduct(noise, log_rate, contests)?;
            for wrong in found.errors() {
                is_kept &= proportion(wrong, trials, CHECK_ALPHA)?.low <= ALPHA;
            }
            let of = |count: usize| format!("{:.1}", 100.0 * count as f64 / contests as f64);
            println!(
                "| {machine} | {name} | {} | {} | {} |",
                of(found.conducted),
                of(found.clear),
                found.errors().map(of).join(" | ")
            );
        }
    }
    Ok(is_kept)
}
