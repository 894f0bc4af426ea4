//! Prints how often each kind of interval holds the truth on the simulated machines, as three tables
//! in Markdown. Percent of the intervals; 95 are promised.
//!
//! `cargo run --release -p dbduel-stats --example coverage_table [duels]`

#[path = "../tests/acceptance/coverage.rs"]
#[expect(clippy::unwrap_used, reason = "simulated data are never refused")]
mod coverage;
#[path = "../tests/acceptance/other_intervals.rs"]
#[expect(clippy::unwrap_used, reason = "simulated data are never refused")]
mod other_intervals;

use coverage::{
    Coverage, MACHINES, MARGIN, QUANTILES, TRUE_RATIO, of_figures, of_ratio, shared_alone,
    twice_as_slow,
};
use other_intervals::RIVALS;

/// Planned blocks: a quarter of an hour, half an hour and an hour of machine time, about.
const BLOCKS: [usize; 3] = [14, 28, 56];

/// One contender's figures are looked at after eight minutes too, which are short for them.
const BLOCKS_OF_FIGURES: [usize; 4] = [7, 14, 28, 56];

/// So many times more duels are simulated for the ratio, which its verdicts rest on and which costs less to simulate.
const FOR_THE_RATIO: u64 = 4;

fn main() -> Result<(), std::num::ParseIntError> {
    let duels = std::env::args().nth(1).map(|duels| duels.parse());
    let duels: u64 = duels.transpose()?.unwrap_or(1000).max(1);
    println!(
        "{} duels each. The ratio of two contenders, {TRUE_RATIO} in truth, with a horizon of {:.0} %; in \
         brackets the mean half width in percent of it:\n\n\
         | machine | of their own | blocks | at every look | at the stop | sign flips, one look | mean, one look | Student |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        FOR_THE_RATIO * duels,
        100.0 * MARGIN
    );
    for (name, noise) in MACHINES {
        for (own, noise) in [("yes", noise), ("no", shared_alone(noise))] {
            for blocks in BLOCKS {
                let found = of_ratio(noise, blocks, FOR_THE_RATIO * duels);
                println!(
                    "| {name} | {own} | {blocks} | {:.1} | {:.1} | {:.1} | {} | {} |",
                    found.at_every_look.percent(),
                    found.at_the_stop.percent(),
                    found.sign_flip_once.percent(),
                    wide(found.mean_once, 2),
                    wide(found.student_once, 2),
                );
            }
        }
    }
    let quantiles = QUANTILES.map(|q| format!("p{:.0}", 100.0 * q)).join(" | ");
    println!(
        "\n{duels} duels each. One contender's own figures; in brackets the share of the duels that get an interval:\n\n\
         | machine | blocks | throughput | latency {quantiles} |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |"
    );
    let given = |coverage: Coverage| {
        let share = 100.0 * coverage.given as f64 / duels as f64;
        match coverage.given as u64 {
            all if all == duels => format!("{:.1}", coverage.percent()),
            _ if share < 5.0 => "hardly any".to_owned(),
            _ => format!("{:.1} ({share:.0})", coverage.percent()),
        }
    };
    let mut rivals = Vec::new();
    for (name, noise) in MACHINES {
        for blocks in BLOCKS_OF_FIGURES {
            let found = of_figures(noise, blocks, duels);
            println!(
                "| {name} | {blocks} | {} | {} |",
                given(found.mean),
                found.quantiles.map(given).join(" | "),
            );
            rivals.push((name, blocks, found));
        }
    }
    for (name, noise) in MACHINES {
        for blocks in BLOCKS_OF_FIGURES {
            let found = of_figures(twice_as_slow(noise), blocks, duels);
            println!(
                "| {name}, twice as slow | {blocks} | {} | {} |",
                given(found.mean),
                found.quantiles.map(given).join(" | "),
            );
        }
    }
    println!(
        "\nThe throughput in other ways; in brackets the mean half width in percent of it:\n\n\
         | machine | blocks | dbduel | {} |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        RIVALS.map(|(name, _)| name).join(" | ")
    );
    for (name, blocks, found) in rivals {
        println!(
            "| {name} | {blocks} | {} | {} |",
            wide(found.mean, 1),
            found.rivals.map(|rival| wide(rival, 1)).join(" | "),
        );
    }
    Ok(())
}

/// How many hold, and the mean half width in percent with so many decimals.
fn wide(coverage: Coverage, decimals: usize) -> String {
    let half = coverage.half_width_percent();
    format!("{:.1} ({half:.decimals$})", coverage.percent())
}
