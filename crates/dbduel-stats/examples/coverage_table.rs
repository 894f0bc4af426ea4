//! Prints how often each kind of interval holds the truth on the simulated machines, as two tables in
//! Markdown. Percent of the intervals; 95 are promised.
//!
//! `cargo run --release -p dbduel-stats --example coverage_table [duels]`

#[path = "../tests/acceptance/coverage.rs"]
#[expect(clippy::unwrap_used, reason = "simulated data are never refused")]
mod coverage;

use coverage::{
    Coverage, MACHINES, MARGIN, QUANTILES, TRUE_RATIO, of_figures, of_ratio, shared_alone,
};

/// Planned blocks: a quarter of an hour, half an hour and an hour of machine time, about.
const BLOCKS: [usize; 3] = [14, 28, 56];

fn main() -> Result<(), std::num::ParseIntError> {
    let duels = std::env::args().nth(1).map(|duels| duels.parse());
    let duels: u64 = duels.transpose()?.unwrap_or(1000).max(1);
    println!(
        "{duels} duels each. The ratio of two contenders, {TRUE_RATIO} in truth, with a horizon of {:.0} %:\n\n\
         | machine | of their own | blocks | at every look | at the stop | sign flips, one look | Student, one look |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: |",
        100.0 * MARGIN
    );
    for (name, noise) in MACHINES {
        for (own, noise) in [("yes", noise), ("no", shared_alone(noise))] {
            for blocks in BLOCKS {
                let found = of_ratio(noise, blocks, duels);
                println!(
                    "| {name} | {own} | {blocks} | {:.1} | {:.1} | {:.1} | {:.1} |",
                    found.at_every_look.percent(),
                    found.at_the_stop.percent(),
                    found.sign_flip_once.percent(),
                    found.student_once.percent(),
                );
            }
        }
    }
    let quantiles = QUANTILES.map(|q| format!("p{:.0}", 100.0 * q)).join(" | ");
    println!(
        "\nOne contender's own figures; in brackets the share of the duels that get an interval:\n\n\
         | machine | blocks | throughput, from ticks | throughput, from slices | the same, slices as independent | latency {quantiles} |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    let cell = |coverage: Coverage| {
        let given = 100.0 * coverage.given as f64 / duels as f64;
        match coverage.given as u64 == duels {
            true => format!("{:.1}", coverage.percent()),
            false => format!("{:.1} ({given:.0})", coverage.percent()),
        }
    };
    for (name, noise) in MACHINES {
        for blocks in BLOCKS {
            let found = of_figures(noise, blocks, duels);
            println!(
                "| {name} | {blocks} | {} | {} | {} | {} |",
                cell(found.mean_of_seconds),
                cell(found.mean_of_slices),
                cell(found.slices_as_independent),
                found.quantiles.map(cell).join(" | "),
            );
        }
    }
    Ok(())
}
