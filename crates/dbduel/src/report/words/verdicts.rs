//! Verdicts, what they are about, and the contest in one sentence.

use super::numbers::{NEAR_ONE, latency, multiple, ratio, share};
use super::{clients, joined};
use crate::judge::Summary;
use crate::judge::summary::{Change, Comparison, Duel, Quantity, Scope, Verdict};

/// The verdict of a comparison as a phrase: `faster`, `faster, by less than the horizon`.
#[must_use]
pub fn verdict(comparison: &Comparison) -> String {
    match comparison.verdict {
        Verdict::Faster | Verdict::Slower if comparison.is_within_horizon => {
            format!("{}, by less than the horizon", comparison.verdict.word())
        }
        verdict => verdict.word().to_owned(),
    }
}

/// A sign that carries the verdict without colour.
#[must_use]
pub fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "▲",
        Verdict::Slower => "▼",
        Verdict::Equivalent => "＝",
        Verdict::Undecided => "?",
        Verdict::Void => "✕",
    }
}

/// What the verdicts are about.
#[must_use]
pub fn scope(summary: &Summary) -> String {
    match summary.scope {
        Scope::TheseInstances => {
            "these instances: one start of each server, on one machine".to_owned()
        }
        Scope::TheseServers => format!(
            "these servers: {} starts of each, on one machine; a start is one observation",
            summary.run.epochs
        ),
    }
}

/// A sign for the answer about a quantity; it carries the answer without colour.
#[must_use]
pub fn change_sign(change: Change) -> &'static str {
    match change {
        Change::Higher => "▲",
        Change::Lower => "▼",
        Change::Equivalent => "＝",
        Change::Undecided => "?",
        Change::NotCompared => "–",
    }
}

/// What the quantities beside throughput are, and how sure their intervals.
#[must_use]
pub fn quantities_note(summary: &Summary) -> String {
    let comparisons = summary.contenders.len().saturating_sub(1).max(1);
    let alpha = (1.0 - summary.rule.confidence) / (comparisons * Quantity::ALL.len()) as f64;
    format!(
        "Ratios to {} within blocks. Latency: the quantile of a typical slice. The {} quantities of a level share an \
         error probability of {} of their own ({} each), at every moment of the run at once; lower is better.",
        summary.baseline,
        comparisons * Quantity::ALL.len(),
        share(1.0 - summary.rule.confidence),
        share(alpha)
    )
}

/// How sure the table of all pairs is.
#[must_use]
pub fn pairs_note(summary: &Summary) -> String {
    let pairs = summary.duels.iter().map(|duel| duel.pairs.len());
    let pairs = pairs.max().unwrap_or(0).max(1);
    let alpha = 1.0 - summary.rule.confidence;
    format!(
        "All statements about the {pairs} pairs of a level are right together with {} confidence ({} error probability \
         each).",
        share(summary.rule.confidence),
        share(alpha / pairs as f64)
    )
}

/// Who is ahead of whom at a level as far as it is decided: `a before b and c`.
#[must_use]
pub fn ranking(duel: &Duel) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for pair in &duel.pairs {
        for name in [pair.against.as_str(), pair.contender.as_str()] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let beaten_by = |name: &str| -> Vec<&str> {
        let beaten = duel.pairs.iter().filter_map(|pair| match pair.verdict {
            Verdict::Faster if pair.contender == name => Some(pair.against.as_str()),
            Verdict::Slower if pair.against == name => Some(pair.contender.as_str()),
            _ => None,
        });
        beaten.collect()
    };
    let mut ranked: Vec<(&str, Vec<&str>)> =
        names.iter().map(|name| (*name, beaten_by(name))).collect();
    ranked.retain(|(_, beaten)| !beaten.is_empty());
    ranked.sort_by_key(|(_, beaten)| std::cmp::Reverse(beaten.len()));
    let lines = ranked
        .iter()
        .map(|(name, beaten)| format!("{name} is before {}", joined(beaten)));
    lines.collect()
}

/// The contest in one sentence per contender.
#[must_use]
pub fn headlines(summary: &Summary) -> Vec<String> {
    if summary.search.is_some() {
        return crate::report::scaling::highest_rates(summary);
    }
    let others = summary
        .contenders
        .iter()
        .filter(|contender| contender.name != summary.baseline);
    others
        .map(|contender| headline(summary, &contender.name))
        .collect()
}

fn headline(summary: &Summary, contender: &str) -> String {
    let comparisons: Vec<(&Duel, &Comparison)> = summary
        .duels
        .iter()
        .filter_map(|duel| {
            Some((
                duel,
                duel.comparisons
                    .iter()
                    .find(|one| one.contender == contender)?,
            ))
        })
        .collect();
    let verdicts = [
        Verdict::Faster,
        Verdict::Slower,
        Verdict::Equivalent,
        Verdict::Undecided,
        Verdict::Void,
    ];
    let mut parts = Vec::new();
    for verdict in verdicts {
        let of_it: Vec<&(&Duel, &Comparison)> = comparisons
            .iter()
            .filter(|(_, comparison)| comparison.verdict == verdict)
            .collect();
        if of_it.is_empty() {
            continue;
        }
        let labels: Vec<&str> = of_it.iter().map(|(duel, _)| duel.label.as_str()).collect();
        let place = if labels.len() == comparisons.len() && comparisons.len() > 1 {
            "at every load level".to_owned()
        } else {
            format!("at {}", listed(&labels))
        };
        let by = if matches!(verdict, Verdict::Faster | Verdict::Slower) {
            span(&of_it)
        } else {
            String::new()
        };
        parts.push(format!("{}{by} {place}", verdict.word()));
    }
    if parts.is_empty() {
        return format!("{contender} was not compared");
    }
    format!("{contender} is {}", parts.join(", "))
}

/// How much, from the smallest to the largest point estimate: ` by 3.4 %`, ` (2.41×)`.
fn span(comparisons: &[&(&Duel, &Comparison)]) -> String {
    let mut values: Vec<f64> = comparisons
        .iter()
        .filter_map(|(_, comparison)| comparison.ratio.value())
        .collect();
    values.sort_by(|one, other| one.ln().abs().total_cmp(&other.ln().abs()));
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return String::new();
    };
    if !values.iter().all(|value| NEAR_ONE.contains(value)) {
        let (first, last) = (multiple(*first), multiple(*last));
        return if first == last {
            format!(" ({first})")
        } else {
            format!(" ({first} to {last})")
        };
    }
    let unsigned = |value: f64| ratio(value).trim_start_matches(['+', '−']).to_owned();
    let (first, last) = (unsigned(*first), unsigned(*last));
    if first == last {
        format!(" by {first}")
    } else {
        format!(" by {first} to {last}")
    }
}

/// `1 client, 16 and 64 clients` would repeat itself: a unit that all share is said once.
fn listed(labels: &[&str]) -> String {
    if let [_, .., last] = labels
        && let Some((_, unit)) = last.split_once(' ')
        && let Some(numbers) = labels
            .iter()
            .map(|label| label.strip_suffix(unit))
            .collect::<Option<Vec<_>>>()
    {
        let numbers: Vec<&str> = numbers.into_iter().map(str::trim_end).collect();
        return format!("{} {unit}", joined(&numbers));
    }
    joined(labels)
}

/// What the lab can tell apart on the machine of a run, in one sentence without its end; `None` when
/// that was not known before the run.
#[must_use]
pub fn own_resolution(summary: &Summary) -> Option<String> {
    let test = summary.self_test.as_ref()?;
    let reached = test.resolution.last()?;
    let null = test.null_server.as_ref().map_or_else(String::new, |null| {
        format!(
            "; the load process alone takes {} of CPU per transaction ({} to {})",
            latency(null.client_cpu_us_per_transaction),
            latency(null.low_us),
            latency(null.high_us)
        )
    });
    Some(format!(
        "two equal contenders are told apart from a difference of ±{} after {:.1} min ({} confidence; {}, {}, {}; {}){null}",
        share(reached.half_width),
        reached.minutes,
        share(test.confidence),
        test.server,
        test.workload,
        clients(test.clients),
        test.at
    ))
}
