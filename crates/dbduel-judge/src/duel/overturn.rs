//! What would overturn each verdict, or is needed to reach one, as sentences with numbers.

use dbduel_record::Verdict;
use dbduel_stats::stalls::unseen_cost_bound;
use dbduel_text::percent;

use crate::summary::{Comparison, Duel, Figure, Measures, Scope};

/// Length of the unseen stalls that a verdict is priced against, seconds.
pub const UNSEEN_STALL_S: f64 = 5.0;

/// Probability that the bound on unseen stalls is wrong.
const UNSEEN_ALPHA: f64 = 0.05;

/// Fills in `overturned_by` of every comparison.
pub fn explain(duels: &mut [Duel], horizon: f64, scope: Scope) {
    for duel in duels {
        let sentences: Vec<Vec<String>> = duel
            .comparisons
            .iter()
            .map(|comparison| sentences(comparison, duel, horizon, scope))
            .collect();
        for (comparison, sentences) in duel.comparisons.iter_mut().zip(sentences) {
            comparison.overturned_by = sentences;
        }
    }
}

/// Share of throughput that stalls too rare to be seen could cost, given the active time (95 %).
#[must_use]
pub fn unseen_stall_share(active_s: f64) -> f64 {
    unseen_cost_bound(UNSEEN_STALL_S, active_s as u64, UNSEEN_ALPHA)
        .unwrap_or(1.0)
        .min(1.0)
}

/// Distance of the ratio's interval from 1, relative; 0 when it holds 1.
#[must_use]
pub fn clearance(ratio: &Figure) -> f64 {
    match ratio.interval() {
        Some((low, _)) if low > 1.0 => low - 1.0,
        Some((_, high)) if high < 1.0 => 1.0 - high,
        _ => 0.0,
    }
}

fn sentences(comparison: &Comparison, duel: &Duel, horizon: f64, scope: Scope) -> Vec<String> {
    let active_s = shortest_active_s(comparison, duel);
    match comparison.verdict {
        Verdict::Faster | Verdict::Slower => {
            let clearance = clearance(&comparison.ratio);
            let mut sentences = match scope {
                Scope::TheseServers => Vec::new(),
                Scope::TheseInstances => vec![format!(
                    "other instances of the same servers: a restart that shifts the ratio by more than {} (this \
                     run has one set of instances)",
                    percent::of(clearance)
                )],
            };
            if let Some(active_s) = active_s.filter(|&active_s| unseen_stall_share(active_s) > clearance) {
                sentences.push(format!(
                    "stalls of {UNSEEN_STALL_S:.0} s too rare to show in {active_s:.0} s under load, which could cost \
                     up to {}",
                    percent::of(unseen_stall_share(active_s))
                ));
            }
            sentences
        }
        Verdict::Equivalent if scope == Scope::TheseServers => Vec::new(),
        Verdict::Equivalent => {
            let slack = comparison.ratio.interval().map_or(0.0, |(low, high)| {
                (horizon.ln_1p() - high.ln().abs().max(low.ln().abs())).max(0.0)
            });
            vec![format!(
                "other instances of the same servers: a restart that shifts the ratio by more than {}",
                percent::of(slack)
            )]
        }
        Verdict::Undecided => comparison
            .detectable_difference
            .map(|detectable| {
                format!(
                    "at this noise the planned number of blocks detects {} four times out of five; to detect a \
                     smaller one, give more time or use a quieter machine",
                    difference(detectable)
                )
            })
            .into_iter()
            .collect(),
        Verdict::Void => Vec::new(),
    }
}

/// A relative difference; beyond 100 % as a ratio.
fn difference(relative: f64) -> String {
    match relative {
        ..=1.0 => format!("a difference of {}", percent::of(relative)),
        _ => format!("a ratio of {:.1}×", 1.0 + relative),
    }
}

fn shortest_active_s(comparison: &Comparison, duel: &Duel) -> Option<f64> {
    let own = |measures: &&Measures| measures.contender == comparison.contender;
    duel.contenders
        .iter()
        .find(own)
        .map(|measures| measures.active_s)
        .filter(|&active_s| active_s > 0.0)
}
