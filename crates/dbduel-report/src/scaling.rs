//! Scaling and crossings as sentences, the same in every format.

use dbduel_record::plan::{Objective, RateSearch};

use dbduel_judge::Summary;
use dbduel_judge::summary::{
    Bounds, ContenderCrossings, ContenderObjective, ContenderScaling, Crossings, LevelObjective,
    ObjectiveState, Scaling,
};
use dbduel_text::from_to;

use super::words;

/// One sentence per contender about its scaling, then about where it crosses the baseline.
#[must_use]
pub fn sentences(summary: &Summary) -> Vec<String> {
    let scaling = summary.scaling.iter().map(scaling);
    let crossings = summary.crossings.iter().map(|one| crossing(summary, one));
    let objectives = summary
        .objective
        .iter()
        .flat_map(|objective| summary.objectives.iter().map(|one| rate(objective, one)));
    let searched = summary
        .search
        .iter()
        .map(|search| searched(summary, search));
    let ratios = summary.search.iter().flat_map(|_| rate_ratios(summary));
    scaling
        .chain(crossings)
        .chain(objectives)
        .chain(ratios)
        .chain(searched)
        .collect()
}

/// Result of a search, one headline per contender.
#[must_use]
pub fn highest_rates(summary: &Summary) -> Vec<String> {
    let number = words::number;
    let headlines = summary.objectives.iter().map(|one| {
        let name = &one.contender;
        let bracket = one.highest_rate;
        match bracket.map_or((None, None), |one| (one.met_up_to, one.missed_from)) {
            (Some(met), Some(missed)) => format!(
                "{name} meets the objective up to {} transactions/s and misses it from {} on",
                number(met),
                number(missed)
            ),
            (Some(met), None) => format!(
                "{name} meets the objective up to {} transactions/s; no higher rate is shown to miss it",
                number(met)
            ),
            (None, Some(missed)) => format!(
                "{name} misses the objective from {} transactions/s on; no lower rate is shown to meet it",
                number(missed)
            ),
            (None, None) => format!("{name}: no rate is shown to meet or miss the objective"),
        }
    });
    headlines.collect()
}

/// How the highest rates were obtained.
fn searched(summary: &Summary, search: &RateSearch) -> String {
    let looks: Vec<String> = search.looks.iter().map(u32::to_string).collect();
    format!(
        "Search for the highest rate: {} of at most {} rates tried, each chosen from those before it, run by all contenders in \
         the same blocks, checked after {} blocks; it ends when the rates around the limit differ by {} or less. {} joint \
         confidence per contender.",
        summary.duels.len(),
        search.rates_max,
        looks.join(", "),
        words::share(search.precision),
        words::share(summary.rule.confidence)
    )
}

/// The highest rate of every contender against that of the baseline, from the ends of both brackets.
fn rate_ratios(summary: &Summary) -> Vec<String> {
    let bracket = |one: &ContenderObjective| {
        let bracket = one.highest_rate?;
        Some((bracket.met_up_to?, bracket.missed_from?))
    };
    let is_baseline = |one: &&ContenderObjective| one.contender == summary.baseline;
    let Some(base) = summary
        .objectives
        .iter()
        .find(is_baseline)
        .and_then(bracket)
    else {
        return Vec::new();
    };
    let others = summary.objectives.iter().filter(|one| !is_baseline(one));
    others
        .filter_map(|one| {
            let (met, missed) = bracket(one)?;
            Some(format!(
                "The highest rate of {} is {} times that of {}.",
                one.contender,
                from_to(
                    &format!("{:.2}", met / base.1),
                    &format!("{:.2}", missed / base.0)
                ),
                summary.baseline
            ))
        })
        .collect()
}

/// Which levels meet the latency objective, and where the highest rate lies.
fn rate(objective: &Objective, one: &ContenderObjective) -> String {
    let name = &one.contender;
    let goal = format!(
        "{} of the transactions done within {} of being due",
        words::share(objective.share),
        words::latency(objective.latency_us)
    );
    let levels: Vec<String> = one.levels.iter().map(level).collect();
    let number = words::number;
    let highest = one.highest_rate.map(|bracket| {
        let place = match (bracket.met_up_to, bracket.missed_from) {
            (Some(met), Some(missed)) => {
                format!(
                    "lies between {} and {} transactions/s",
                    number(met),
                    number(missed)
                )
            }
            (Some(met), None) => format!(
                "is at least {} transactions/s; no higher rate is shown to miss it",
                number(met)
            ),
            (None, Some(missed)) => format!(
                "is below {} transactions/s; no lower rate is shown to meet it",
                number(missed)
            ),
            (None, None) => "is unknown".to_owned(),
        };
        format!(". The highest rate that meets it {place}")
    });
    format!(
        "{name}, {goal}: {}{}.",
        levels.join("; "),
        highest.unwrap_or_default()
    )
}

fn level(level: &LevelObjective) -> String {
    let state = match level.state {
        ObjectiveState::Met => "met",
        ObjectiveState::Missed => "missed",
        ObjectiveState::Unclear => "unclear",
    };
    let late = level.late.map_or_else(
        || "no interval".to_owned(),
        |late| {
            format!(
                "{} late, {} to {}",
                words::share(late.value),
                words::share(late.low),
                words::share(late.high)
            )
        },
    );
    format!("{} {state} ({late})", level.label)
}

fn scaling(one: &ContenderScaling) -> String {
    let ContenderScaling {
        contender,
        rounds,
        outcome,
    } = one;
    match outcome {
        Scaling::Described {
            per_client_per_s,
            contention,
            crosstalk,
            peak_clients,
            lack_of_fit_p,
        } => {
            let coefficient = |name: &str, found: &Option<Bounds>| match found {
                Some(found) => format!("{name} {}", with_interval(found)),
                None => format!("no {name}"),
            };
            let peak = match peak_clients {
                Some(peak) => format!("highest throughput at {} clients", with_interval(peak)),
                None => "no peak within 1.5 times the range".to_owned(),
            };
            format!(
                "{contender} follows the Universal Scalability Law over {rounds} rounds (lack of fit p = \
                 {lack_of_fit_p:.2}): {} transactions/s with one client, {}, {}, {peak}.",
                with_interval(per_client_per_s),
                coefficient("contention", contention),
                coefficient("crosstalk", crosstalk)
            )
        }
        Scaling::NotDescribed {
            lack_of_fit_p,
            worst_clients,
        } => format!(
            "{contender} does not follow the Universal Scalability Law over {rounds} rounds (lack of fit p = \
             {lack_of_fit_p:.4}, worst at {}); no coefficients.",
            words::clients(*worst_clients)
        ),
        Scaling::NotFitted { why } => format!("Scaling of {contender} unknown: {why}."),
    }
}

/// Sides of a crossing on which a contender is faster and slower.
pub(super) fn sides(is_faster_above: bool) -> &'static str {
    if is_faster_above {
        "faster above, slower below"
    } else {
        "slower above, faster below"
    }
}

fn crossing(summary: &Summary, one: &ContenderCrossings) -> String {
    let (contender, baseline) = (&one.contender, &summary.baseline);
    match &one.outcome {
        Crossings::Found { points } => {
            let points: Vec<String> = points
                .iter()
                .map(|point| {
                    let side = sides(point.is_faster_above);
                    format!(
                        "at {} clients ({contender} is {side})",
                        with_interval(&point.clients)
                    )
                })
                .collect();
            format!("{contender} and {baseline} cross {}.", points.join(" and "))
        }
        Crossings::NoneDemonstrated {
            from_clients,
            to_clients,
        } => format!(
            "No crossing of {contender} and {baseline} is demonstrated between {from_clients} and {to_clients} clients."
        ),
        Crossings::NotKnown { why } => {
            format!("Crossing of {contender} and {baseline} unknown: {why}.")
        }
    }
}

fn with_interval(bounds: &Bounds) -> String {
    format!(
        "{} ({} to {})",
        words::number(bounds.value),
        words::number(bounds.low),
        words::number(bounds.high)
    )
}
