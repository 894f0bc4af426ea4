//! Prints how often searches for one change among revisions find it on the simulated machines, as a table in Markdown.
//!
//! `cargo run --release -p dbduel-stats --example bisection_table [searches]`

#[path = "../tests/acceptance/bisection.rs"]
mod bisection;

use std::error::Error;

use bisection::{Searched, search};
use dbduel_stats::simulate::{NASTY, QUIET, TYPICAL};

fn main() -> Result<(), Box<dyn Error>> {
    let searches = std::env::args().nth(1).map(|searches| searches.parse());
    let searches: u64 = searches.transpose()?.unwrap_or(1000).max(1);
    println!(
        "{searches} searches each, promised at most {:.0} % wrong.\n\n\
         | machine | effect | revisions | right | wrong | none found | ends undecided | steps | minutes |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        100.0 * bisection::ALPHA
    );
    for (name, noise) in [("quiet", QUIET), ("typical", TYPICAL), ("nasty", NASTY)] {
        for effect in [-0.02, -0.05, -0.2, 0.0] {
            for last in [16, 128, 1024] {
                let all: Vec<Option<Searched>> = (0..searches)
                    .map(|seed| search(noise, last, effect, seed))
                    .collect::<Result<_, _>>()?;
                let begun: Vec<Searched> = all.iter().copied().flatten().collect();
                let share = |count: usize| 100.0 * count as f64 / searches as f64;
                let ended = |is_right| begun.iter().filter(|one| one.is_right == is_right).count();
                let mean = |of: fn(&Searched) -> f64| {
                    begun.iter().map(of).sum::<f64>() / begun.len().max(1) as f64
                };
                println!(
                    "| {name} | {:.0} % | {last} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.1} | {:.0} |",
                    100.0 * effect,
                    share(ended(Some(true))),
                    share(ended(Some(false))),
                    share(ended(None)),
                    share(all.len() - begun.len()),
                    mean(|one| one.steps as f64),
                    mean(|one| one.seconds) / 60.0,
                );
            }
        }
    }
    Ok(())
}
