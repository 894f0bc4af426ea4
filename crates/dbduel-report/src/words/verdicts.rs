//! Verdicts, their scope, and the confidence of the tables beside them.

use std::collections::BTreeSet;

use dbduel_judge::Summary;
use dbduel_judge::summary::{Change, Comparison, Duel, Quantity, Scope};
use dbduel_record::Verdict;
use dbduel_text::latency;

use super::{RatioUnit, clients, joined, share};

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

/// Reservation on every verdict about a contender that is identical with the baseline.
#[must_use]
pub fn identical(summary: &Summary, contender: &str) -> Option<&'static str> {
    summary
        .is_identical_to_baseline(contender)
        .then_some("identical contenders: a difference is chance or an error of the lab")
}

/// Sign of a verdict, readable without colour.
#[must_use]
pub fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "▲",
        Verdict::Slower => "▼",
        Verdict::Equivalent => "=",
        Verdict::Undecided => "?",
        Verdict::Void => "✕",
    }
}

/// The unit of the ratios of all verdicts.
#[must_use]
pub fn verdict_unit(summary: &Summary) -> RatioUnit {
    let comparisons = summary.duels.iter().flat_map(|duel| &duel.comparisons);
    RatioUnit::of(comparisons.map(|comparison| &comparison.ratio))
}

/// Name of a contest's duels: load level or workload.
#[must_use]
pub fn level(summary: &Summary) -> &'static str {
    match summary.suite {
        Some(_) => "workload",
        None => "load level",
    }
}

/// Scope of the verdicts.
#[must_use]
pub fn scope(summary: &Summary) -> String {
    let load = match &summary.hosts {
        Some(hosts) => format!(", under load from {}", hosts.label()),
        None => String::new(),
    };
    let machines = machines(summary);
    match summary.scope {
        Scope::TheseInstances => {
            format!("these instances: one start of each server, {machines}{load}")
        }
        Scope::TheseServers => format!(
            "these servers: {} starts of each, {machines}{load}; a start is one observation",
            summary.run.epochs
        ),
    }
}

/// Machines that the servers ran on.
fn machines(summary: &Summary) -> String {
    let contenders = summary.contenders.iter();
    let placed: Vec<(&str, &str)> = contenders
        .filter_map(|one| Some((one.name.as_str(), one.host.as_deref()?)))
        .collect();
    let hosts: BTreeSet<&str> = placed.iter().map(|(_, host)| *host).collect();
    match (placed.first(), hosts.len()) {
        (None, _) => "on one machine".to_owned(),
        (Some((_, host)), 1) => format!("on one machine ({host})"),
        _ => {
            let each = placed
                .iter()
                .map(|(name, host)| format!("`{name}` on {host}"));
            let each: Vec<String> = each.collect();
            format!("on these machines ({})", each.join(", "))
        }
    }
}

/// Sign of the answer about a quantity, readable without colour.
#[must_use]
pub fn change_sign(change: Change) -> &'static str {
    match change {
        Change::Higher => "▲",
        Change::Lower => "▼",
        Change::Equivalent => "=",
        Change::Undecided => "?",
        Change::NotCompared => "–",
    }
}

/// Definitions of the quantities beside throughput and their error probability.
#[must_use]
pub fn quantities_note(summary: &Summary) -> String {
    let comparisons = summary.comparisons();
    let alpha = (1.0 - summary.rule.confidence) / (comparisons * Quantity::ALL.len()) as f64;
    format!(
        "Ratios to {} within blocks; lower is better. Latency: quantile of a typical slice. Error probability of the {} \
         quantities of a level: {} in total, {} each, however often the run was checked.",
        summary.baseline,
        comparisons * Quantity::ALL.len(),
        share(1.0 - summary.rule.confidence),
        share(alpha)
    )
}

/// Note on the confidence of the table of all pairs.
#[must_use]
pub fn pairs_note(summary: &Summary) -> String {
    let others = summary.contenders.len().saturating_sub(1);
    let pairs = (others * others.saturating_sub(1) / 2).max(1);
    let alpha = 1.0 - summary.rule.confidence;
    let quantities = Quantity::ALL.len();
    format!(
        "Ratios within blocks. Pairs with {} are the verdicts above. Throughput of the other pairs of a level ({pairs}): \
         {} joint confidence, {} error probability each; their {} latencies and costs likewise, {} each. Latency: \
         quantile of a typical slice. CPU and bytes: per transaction.",
        summary.baseline,
        share(summary.rule.confidence),
        share(alpha / pairs as f64),
        pairs * quantities,
        share(alpha / (pairs * quantities) as f64)
    )
}

/// Ranking of a level as far as it is decided: `a ranks above b and c`.
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
        .map(|(name, beaten)| format!("{name} ranks above {}", joined(beaten)));
    lines.collect()
}

/// Resolution of the lab on the machine of a run; `None` when no self-test preceded the run.
#[must_use]
pub fn own_resolution(summary: &Summary) -> Option<String> {
    let test = summary.self_test.as_ref()?;
    let reached = test.resolution.last()?;
    let null = test.null_server.as_ref().map_or_else(String::new, |null| {
        format!(
            "; load process alone: {} of CPU per transaction ({} to {})",
            latency(null.client_cpu_us_per_transaction),
            latency(null.low_us),
            latency(null.high_us)
        )
    });
    Some(format!(
        "±{} between two equal contenders after {:.1} min ({} confidence; {}, {}, {}; {}){null}",
        share(reached.half_width),
        reached.minutes,
        share(test.confidence),
        test.server,
        test.workload,
        clients(test.clients),
        test.at
    ))
}
