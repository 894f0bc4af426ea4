//! Prints how often searches for one change among revisions find it on the simulated machines, as a table in Markdown.
//!
//! `cargo run --release -p dbduel-stats --example bisection_table [searches] [machine] [percent] [restarts]`: with `restarts`, the
//! standard deviation of a server's throughput between its starts in percent, each row is there twice: without and with its estimate.

#[path = "../tests/acceptance/bisection.rs"]
mod bisection;

use std::error::Error;

use bisection::{FoundPlace, MachineNoise, NO_RESTART_NOISE, RestartNoise, Searched, search};
use dbduel_stats::StatsError;
use dbduel_stats::simulate::{FINE_WANDERING, NASTY, QUIET, TYPICAL};

fn main() -> Result<(), Box<dyn Error>> {
    let searches = std::env::args().nth(1).map(|searches| searches.parse());
    let searches: u64 = searches.transpose()?.unwrap_or(1000).max(1);
    let wanted = std::env::args().nth(2);
    let wanted_percent = std::env::args().nth(3).map(|percent| percent.parse());
    let wanted_percent: Option<f64> = wanted_percent.transpose()?;
    let deviation = std::env::args().nth(4).map(|percent| percent.parse());
    let deviation: Option<f64> = deviation.transpose()?;
    let all_restarts = match deviation {
        None => vec![NO_RESTART_NOISE],
        Some(percent) => [false, true]
            .map(|is_estimated| RestartNoise {
                deviation: percent / 100.0,
                is_estimated,
            })
            .to_vec(),
    };
    println!(
        "{searches} searches each, promised at most {:.0} % wrong.\n\n\
         | machine | effect | revisions | right | range | wrong | none found | ends undecided | steps | minutes |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        100.0 * bisection::ALPHA
    );
    let machines = [
        ("quiet", MachineNoise::Seconds(QUIET)),
        ("typical", MachineNoise::Seconds(TYPICAL)),
        ("nasty", MachineNoise::Seconds(NASTY)),
        ("wandering", MachineNoise::Ticks(FINE_WANDERING)),
    ];
    let machines = machines
        .into_iter()
        .filter(|(name, _)| wanted.as_deref().is_none_or(|wanted| wanted == *name));
    for (name, noise) in machines {
        // Without a change the contest of the ends decides, whatever the number of revisions.
        let effects = [-0.2, -0.05, -0.02].into_iter();
        let changed = effects.flat_map(|effect| [16, 128, 1024].map(|last| (effect, last)));
        let all = changed.chain([(0.0, 128)]);
        let is_wanted = |effect: f64| {
            wanted_percent.is_none_or(|percent| (-100.0 * effect - percent).abs() < 0.5)
        };
        for (effect, last) in all.filter(|(effect, _)| is_wanted(*effect)) {
            for &restarts in &all_restarts {
                println!(
                    "| {name} | {}",
                    row(noise, restarts, effect, last, searches)?
                );
            }
        }
    }
    Ok(())
}

/// What searches found of an effect among revisions 0 to `last`.
fn row(
    noise: MachineNoise,
    restarts: RestartNoise,
    effect: f64,
    last: usize,
    searches: u64,
) -> Result<String, StatsError> {
    let all: Vec<Option<Searched>> = (0..searches)
        .map(|seed| search(noise, restarts, last, effect, seed))
        .collect::<Result<_, _>>()?;
    let begun: Vec<Searched> = all.iter().copied().flatten().collect();
    let share = |count: usize| 100.0 * count as f64 / searches as f64;
    let ended = |found| begun.iter().filter(|one| one.found == found).count();
    let mean = |of: fn(&Searched) -> f64, decimals: usize| match begun.len() {
        0 => "none begun".to_owned(),
        count => {
            let mean = begun.iter().map(of).sum::<f64>() / count as f64;
            format!("{mean:.decimals$}")
        }
    };
    Ok(format!(
        "{:.0} % | {last} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {} | {} |",
        100.0 * effect,
        share(ended(FoundPlace::Right)),
        share(ended(FoundPlace::Range)),
        share(ended(FoundPlace::Wrong)),
        share(ended(FoundPlace::Nothing)),
        share(all.len() - begun.len()),
        mean(|one| one.steps as f64, 1),
        mean(|one| one.seconds / 60.0, 0),
    ))
}
