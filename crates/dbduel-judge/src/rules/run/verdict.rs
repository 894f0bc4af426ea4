//! Rules about how far a verdict carries.

use dbduel_audit::Finding;
use dbduel_record::Verdict;
use dbduel_record::event::Severity;
use dbduel_text::percent;

use dbduel_stats::stalls::{PRICEABLE_MIN, compare_stalls};
use dbduel_stats::trend::{DRIFT_ALPHA, Trend, linear_trend};

use super::RunEvidence;
use super::steady::level_word;
use crate::duel::overturn::{UNSEEN_STALL_S, clearance, unseen_stall_share};
use crate::summary::{Comparison, Duel, Figure, Measures, Stalls};

/// Active time per contender below which a verdict is called short-sighted, seconds.
const ACTIVE_S: f64 = 300.0;

fn comparisons<'a>(run: &'a RunEvidence<'_>) -> impl Iterator<Item = (&'a Duel, &'a Comparison)> {
    run.judged.duels.iter().flat_map(|duel| {
        duel.comparisons
            .iter()
            .map(move |comparison| (duel, comparison))
    })
}

pub fn short_horizon(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut labels = Vec::new();
    let mut shortest_s = f64::INFINITY;
    // A contest that ends as soon as it is decided is not doubtful for being short; what it could not see is said.
    let mut severity = Severity::Note;
    for duel in &run.judged.duels {
        let active_s = duel
            .contenders
            .iter()
            .map(|measures| measures.active_s)
            .fold(f64::INFINITY, f64::min);
        let is_priced = duel.comparisons.iter().all(|comparison| {
            let is_claim = matches!(comparison.verdict, Verdict::Faster | Verdict::Slower);
            !is_claim || clearance(&comparison.ratio) >= unseen_stall_share(active_s)
        });
        if active_s > 0.0 && (active_s < ACTIVE_S || !is_priced) {
            labels.push(duel.label.as_str());
            shortest_s = shortest_s.min(active_s);
            let mut verdicts = duel.comparisons.iter().map(|comparison| comparison.verdict);
            let is_decided = verdicts.all(|verdict| verdict != Verdict::Undecided);
            if duel.turns.is_none() || !is_decided {
                severity = Severity::Doubt;
            }
        }
    }
    if labels.is_empty() {
        return Vec::new();
    }
    let claim = format!(
        "Short run at {}: with {shortest_s:.0} s of load per server, stalls rarer than one per {:.0} s can be \
         missed; undetected stalls of {UNSEEN_STALL_S:.0} s could cost up to {}.",
        labels.join(", "),
        UNSEEN_STALL_S / unseen_stall_share(shortest_s),
        percent::of(unseen_stall_share(shortest_s))
    );
    let remedy = match severity {
        Severity::Note => {
            "Decided, but rare stalls are not ruled out. To rule them out, measure for minutes: set `slice` in \
             [schedule] to 5 s or more."
                .to_owned()
        }
        Severity::Doubt | Severity::Void => format!(
            "Use a longer budget or fewer {}s.",
            level_word(run.evidence.plan())
        ),
    };
    vec![Finding::new(severity, &[], claim, &remedy)]
}

pub fn few_stalls(run: &RunEvidence<'_>) -> Vec<Finding> {
    let few = comparisons(run).filter_map(|(duel, comparison)| {
        let few = comparison.few_stalls.as_ref()?;
        let claim = format!(
            "`{}` stalled about {:.0} times at {} ({} of its time), too few to estimate the long-run cost; the interval of the ratio is \
             widened accordingly.",
            few.contender,
            few.stalls.max(1.0),
            duel.label,
            percent::of(few.share)
        );
        let remedy = "Use a longer budget.";
        let about = [comparison.contender.as_str()];
        Some(Finding::new(Severity::Doubt, &about, claim, remedy).at(duel.level))
    });
    few.collect()
}

pub fn skewed(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (duel, comparison) in comparisons(run) {
        let Figure::Estimated {
            low,
            high: Some(high),
            value,
            ..
        } = &comparison.ratio
        else {
            continue;
        };
        let others = [
            (
                "by the Hodges–Lehmann estimator, which is robust against a few blocks",
                comparison.ratio_hodges_lehmann,
            ),
            (
                "by the mean over blocks, which counts a slow block as much as a fast one",
                comparison.ratio_mean_of_blocks,
            ),
        ];
        for (how, other) in others {
            let Some(other) = other.filter(|other| !(low..=high).contains(&other)) else {
                continue;
            };
            let name = comparison.contender.as_str();
            let claim = format!(
                "At {} the ratio of `{name}` is {value:.3} by total work over total time but {other:.3} {how}, \
                 outside the interval: a few blocks determine it.",
                duel.label
            );
            found.push(
                Finding::new(
                    Severity::Doubt,
                    &[name],
                    claim,
                    "Check the ratio of every block and the stalls.",
                )
                .at(duel.level),
            );
        }
    }
    found
}

pub fn ratio_changed(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (duel, comparison) in comparisons(run) {
        let name = comparison.contender.as_str();
        let remedy = "Check the ratio of every block; use a longer warm-up.";
        if let Some(why) = no_single_ratio(comparison) {
            let claim = format!("At {} there is no verdict on `{name}`: {why}.", duel.label);
            found.push(Finding::new(Severity::Doubt, &[name], claim, remedy).at(duel.level));
            continue;
        }
        if let Some(trend) = drift(comparison) {
            let claim = format!("At {} {}.", duel.label, drift_clause(name, &trend));
            found.push(Finding::new(Severity::Doubt, &[name], claim, remedy).at(duel.level));
        }
    }
    found
}

/// True when [`ratio_changed`] reports this comparison.
pub fn has_changed(comparison: &Comparison) -> bool {
    no_single_ratio(comparison).is_some() || drift(comparison).is_some()
}

/// Why a comparison is not what its blocks decide, or should not be yet: a contest goes on for it.
pub fn withheld_because(comparison: &Comparison) -> Option<String> {
    if let Some(why) = undecided_because(comparison) {
        return Some(why.to_owned());
    }
    drift(comparison).map(|trend| drift_clause(&comparison.contender, &trend))
}

/// Why there is no verdict although there are blocks.
fn undecided_because(comparison: &Comparison) -> Option<&str> {
    let is_undecided = comparison.verdict == Verdict::Undecided && !comparison.blocks.is_empty();
    comparison.because.as_deref().filter(|_| is_undecided)
}

/// Why there is no interval although there are blocks.
fn no_single_ratio(comparison: &Comparison) -> Option<&str> {
    undecided_because(comparison).filter(|_| comparison.ratio.interval().is_none())
}

fn drift_clause(contender: &str, trend: &Trend) -> String {
    format!(
        "the ratio of `{contender}` drifted by {} from the first block to the last ({})",
        percent::signed(trend.total_change.exp_m1()),
        probability(trend.p_value)
    )
}

/// The trend of the ratio over the blocks, if it has one.
fn drift(comparison: &Comparison) -> Option<Trend> {
    let blocks = comparison.blocks.iter();
    let logs: Vec<f64> = blocks.map(|block| block.ratio.ln()).collect();
    (linear_trend(&logs, DRIFT_ALPHA).ok()).filter(Trend::is_drifting)
}

/// Contenders that are one server under two names.
pub fn identical(run: &RunEvidence<'_>) -> Vec<Finding> {
    let of_pair = |[one, other]: &[String; 2]| {
        let is_of_it = |name: &str| name == one || name == other;
        let is_decided = |verdict: Verdict| matches!(verdict, Verdict::Faster | Verdict::Slower);
        let duels = run.judged.duels.iter();
        let decided = duels.filter(|duel| {
            let mut verdicts = duel.comparisons.iter();
            let mut pairs = duel.pairs.iter();
            verdicts.any(|verdict| {
                is_of_it(&verdict.contender)
                    && is_of_it(&run.judged.baseline)
                    && is_decided(verdict.verdict)
            }) || pairs.any(|pair| {
                is_of_it(&pair.contender) && is_of_it(&pair.against) && is_decided(pair.verdict)
            })
        });
        let decided: Vec<&str> = decided.map(|duel| duel.label.as_str()).collect();
        let mut claim = format!(
            "`{one}` and `{other}` are identical: same server program, settings and tables. A difference between them is \
             chance or a lab error"
        );
        let severity = match decided.as_slice() {
            [] => Severity::Note,
            labels => {
                claim.push_str(&format!("; detected at {}", labels.join(", ")));
                Severity::Doubt
            }
        };
        let remedy = format!(
            "Repeat the duel: up to {} of duels between equals show a difference by chance. If it persists, find what \
             treats the two differently.",
            percent::of(1.0 - run.evidence.plan().decision.confidence)
        );
        Finding::new(severity, &[one, other], format!("{claim}."), &remedy)
    };
    run.judged.identical.iter().map(of_pair).collect()
}

pub fn uneven_stalls(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        let ledger = |name: &str| -> Option<Stalls> {
            let own = |measures: &&Measures| measures.contender == name;
            duel.contenders.iter().find(own)?.stalls
        };
        let baseline = run.judged.baseline.as_str();
        for comparison in &duel.comparisons {
            let name = comparison.contender.as_str();
            let Some((own, other)) = ledger(name).zip(ledger(baseline)) else {
                continue;
            };
            let Ok(stalls) = compare_stalls(&own.to_count(), &other.to_count()) else {
                continue;
            };
            let is_uneven = stalls.same_rate_p < 1.0 - run.evidence.plan().decision.confidence;
            if !is_uneven && !stalls.unpriced {
                continue;
            }
            let mut claim = format!(
                "At {} `{name}` stalled {} and `{baseline}` {}; {} for equal rates",
                duel.label,
                times_and_cost(own.count, own.lost_s),
                times_and_cost(other.count, other.lost_s),
                probability(stalls.same_rate_p)
            );
            claim.push_str(match stalls.unpriced {
                true => "; too few stalls to separate their cost from chance.",
                false => ".",
            });
            let remedy = format!(
                "Measure until at least {PRICEABLE_MIN} stalls occur, or find their cause in the server's log and status."
            );
            let severity = if is_uneven {
                Severity::Doubt
            } else {
                Severity::Note
            };
            found.push(Finding::new(severity, &[name, baseline], claim, &remedy).at(duel.level));
        }
    }
    found
}

fn probability(p: f64) -> String {
    if p < 0.001 {
        "p < 0.001".to_owned()
    } else {
        format!("p = {p:.3}")
    }
}

fn times_and_cost(count: u64, lost_s: f64) -> String {
    match count {
        0 => "never".to_owned(),
        1 => format!("once ({lost_s:.1} s lost)"),
        count => format!("{count} times ({lost_s:.1} s lost)"),
    }
}
