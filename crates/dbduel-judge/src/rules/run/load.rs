//! Rules about transactions and the process that sends them.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_audit::Finding;
use dbduel_record::captured;
use dbduel_record::event::{Severity, SliceId};
use dbduel_record::plan::Arrival;
use dbduel_record::rows::{ALL_CLASSES, SliceRow};
use dbduel_text::{counts, percent};

use super::RunEvidence;
use crate::classes::FAILED_VOID;
use crate::summary::{Duel, Measures};

/// Share of given-up transactions that weakens a verdict.
const FAILED_DOUBT: f64 = 0.001;
/// Additional attempts per committed transaction that weaken a verdict.
const RETRIES_DOUBT: f64 = 0.05;
/// Share of due transactions that were never sent that weakens a verdict.
const SKIPPED_DOUBT: f64 = 0.001;
/// Share of the clients' time after the planned ends of turns that weakens a verdict.
const DRAINED_DOUBT: f64 = 0.02;
/// Share of its threads' time above which the load process may be the bottleneck.
const LOAD_CPU_DOUBT: f64 = 0.7;
/// Lag that is never reported, microseconds.
const LAG_US: f64 = 100.0;
/// Lag that is never reported, as a share of the median latency.
const LAG_SHARE: f64 = 0.02;
/// Share of the slices with too much lag that weakens a verdict.
const LAG_SLICES: f64 = 0.1;

fn measures<'a>(run: &'a RunEvidence<'_>) -> impl Iterator<Item = (&'a Duel, &'a Measures)> {
    run.judged
        .duels
        .iter()
        .flat_map(|duel| duel.contenders.iter().map(move |measures| (duel, measures)))
}

pub fn nothing_committed(run: &RunEvidence<'_>) -> Vec<Finding> {
    let silent =
        measures(run).filter(|(_, measures)| measures.slices > 0 && measures.outcomes.ok == 0);
    silent
        .map(|(duel, measures)| {
            let name = measures.contender.as_str();
            let claim = format!(
                "`{name}` committed no transaction at {} in {:.0} s under load.",
                duel.label, measures.active_s
            );
            let remedy = "Read errors.csv and, where the record has it, the server's log; if one transaction takes longer than a slice, \
                          use longer slices (`slice` in `[schedule]`).";
            Finding::new(Severity::Void, &[name], claim, remedy).at(duel.level)
        })
        .collect()
}

pub fn silent_slices(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        let blocks = &run.evidence.plan().blocks;
        let is_here = |row: &SliceRow| {
            let block = blocks.get(row.block as usize);
            block.is_some_and(|block| block.level == duel.level)
        };
        for measures in duel
            .contenders
            .iter()
            .filter(|measures| measures.outcomes.ok > 0)
        {
            let name = measures.contender.as_str();
            let rows = run.evidence.record.slices.iter();
            let silent = rows.filter(|row| {
                row.class == ALL_CLASSES && is_here(row) && row.contender == name && row.ok == 0
            });
            let count = silent.count();
            if count > 0 {
                // Effects are contrasts of logarithms.
                let (severity, weight) = match run.evidence.plan().design {
                    None => (Severity::Note, "their time counts in the ratio"),
                    Some(_) => (
                        Severity::Doubt,
                        "each counts as half a transaction, an arbitrary weight in the effects",
                    ),
                };
                let claim = format!(
                    "`{name}` committed nothing in {} at {}; {weight}.",
                    counts::things(count as u64, "slice"),
                    duel.label
                );
                let remedy = "Use longer slices, and read the server's log for the cause.";
                found.push(Finding::new(severity, &[name], claim, remedy).at(duel.level));
            }
        }
    }
    found
}

pub fn failures(run: &RunEvidence<'_>) -> Vec<Finding> {
    let failing =
        measures(run).filter(|(_, measures)| measures.outcomes.failed_share() > FAILED_DOUBT);
    failing
        .map(|(duel, measures)| {
            let (name, outcomes) = (measures.contender.as_str(), &measures.outcomes);
            let share = outcomes.failed_share();
            let severity = if share > FAILED_VOID {
                Severity::Void
            } else {
                Severity::Doubt
            };
            let errors = commonest_errors(run, name);
            let claim = format!(
                "{} of the transactions of `{name}` failed at {} ({} of {}{errors}).",
                percent::of(share),
                duel.label,
                counts::of(outcomes.failed),
                counts::of(outcomes.ok + outcomes.failed)
            );
            Finding::new(
                severity,
                &[name],
                claim,
                &remedy_of_failures(run, duel.level),
            )
            .at(duel.level)
        })
        .collect()
}

/// What to do about failed transactions: those of a replay have causes in the capture.
fn remedy_of_failures(run: &RunEvidence<'_>, level: usize) -> String {
    let workload = run.evidence.plan().workload_of_level(level);
    if workload.name != captured::NAME {
        return "Remove the cause of the failures on all sides, or use a workload that all contenders can run.".to_owned();
    }
    let order = match captured::is_trace(&workload.parameters) {
        true => {
            "Errors of keys and locks: sessions of a trace share no order, so raise `lock_timeout`, or run quanta with fewer transactions"
        }
        false => {
            "Keys that exist (1062, 23505) and rows that are gone: a mix repeats writes when all was drawn (`load.capture-drawn`), so capture \
             for a longer time, or use `mode = \"trace\"`"
        }
    };
    format!(
        "Find the statements that fail in the table of classes and their cause in the section Answers. A refused setting or a `sql_mode` \
         of the capture: give all contenders settings under which it runs. Missing tables or rows: take the dump where the log begins. \
         {order}."
    )
}

/// The contender's commonest error over all levels, as an appendix to a sentence.
fn commonest_errors(run: &RunEvidence<'_>, contender: &str) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for row in run
        .evidence
        .record
        .errors
        .iter()
        .filter(|row| row.contender == contender)
    {
        let entry = counts
            .entry(row.code.as_str())
            .or_insert((0_u64, row.example.as_str()));
        entry.0 += row.count;
    }
    match counts.into_iter().max_by_key(|(_, (count, _))| *count) {
        Some((code, (_, example))) => {
            format!("; most common error {code}: {example}")
        }
        None => String::new(),
    }
}

pub fn retries(run: &RunEvidence<'_>) -> Vec<Finding> {
    let retrying = measures(run).filter_map(|(duel, measures)| {
        let outcomes = &measures.outcomes;
        let per_ok = outcomes.retries as f64 / (outcomes.ok as f64).max(1.0);
        (per_ok > RETRIES_DOUBT).then_some((duel, measures.contender.as_str(), per_ok))
    });
    retrying
        .map(|(duel, name, per_ok)| {
            let claim = format!(
                "`{name}` needed {:.0} retries per 100 committed transactions at {}, after deadlocks, lock timeouts or \
                 changed records.",
                100.0 * per_ok,
                duel.label
            );
            Finding::new(Severity::Doubt, &[name], claim, "Use more rows or fewer clients, or report retries as a result.").at(duel.level)
        })
        .collect()
}

pub fn skipped(run: &RunEvidence<'_>) -> Vec<Finding> {
    let skipping = measures(run).filter_map(|(duel, measures)| {
        let outcomes = &measures.outcomes;
        let share = outcomes.skipped as f64 / (outcomes.due as f64).max(1.0);
        (share > SKIPPED_DOUBT).then_some((duel, measures.contender.as_str(), share))
    });
    skipping
        .map(|(duel, name, share)| {
            let claim = format!(
                "{} of the transactions due on `{name}` at {} were never sent; the rate exceeds its capacity.",
                percent::of(share),
                duel.label
            );
            Finding::new(Severity::Doubt, &[name], claim, "Lower the rate, or use more clients.").at(duel.level)
        })
        .collect()
}

/// Turns that transactions outlast: the server is stopped and resumed in the middle of them.
pub fn outlasted(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        let shares: Vec<(&str, f64)> = duel
            .contenders
            .iter()
            .filter_map(|one| Some((one.contender.as_str(), one.drained_share?)))
            .collect();
        if shares.iter().all(|(_, share)| *share <= DRAINED_DOUBT) {
            continue;
        }
        let told: Vec<String> = shares
            .iter()
            .map(|(name, share)| format!("{} for `{name}`", percent::of(*share)))
            .collect();
        let names: Vec<&str> = shares.iter().map(|(name, _)| *name).collect();
        let claim = format!(
            "Transactions outlast the turns at {}: client time after the planned ends of turns is {} (limit {}). \
             Such transactions are counted, but lock timeouts and background writes follow the clock, even while a \
             server is frozen, so they occur more often per transaction than under continuous load.",
            duel.label,
            told.join(", "),
            percent::of(DRAINED_DOUBT)
        );
        let remedy = match duel.load.arrival {
            Arrival::Closed { .. } => {
                "Use a longer budget, which allows longer turns, or set `slice` in `[schedule]` to several times the \
                 longest transaction."
            }
            Arrival::Constant { .. } | Arrival::Poisson { .. } => {
                "Lower the rate if it exceeds the capacity; otherwise use a longer budget, which allows longer turns."
            }
        };
        found.push(Finding::new(Severity::Doubt, &names, claim, remedy).at(duel.level));
    }
    found
}

/// Transactions that did not finish within the drain time after a turn.
pub fn unfinished(run: &RunEvidence<'_>) -> Vec<Finding> {
    let drain_s = run.evidence.plan().schedule.drain_s;
    let mut found = Vec::new();
    for (duel, measures) in measures(run).filter(|(_, one)| one.outcomes.unfinished > 0) {
        // Records that do not wait have some in every slice.
        if measures.drained_share.is_none() {
            continue;
        }
        let name = measures.contender.as_str();
        let slices: BTreeSet<SliceId> = counted_rows(run, duel).map(SliceRow::slice).collect();
        let rows = run.evidence.record.slices.iter().filter(|row| {
            row.contender == name && row.class != ALL_CLASSES && slices.contains(&row.slice())
        });
        let mut by_class: BTreeMap<&str, u64> = BTreeMap::new();
        for row in rows.filter(|row| row.unfinished > 0) {
            *by_class.entry(&row.class).or_default() += row.unfinished;
        }
        let classes = by_class
            .iter()
            .map(|(class, unfinished)| format!("{unfinished} of `{class}`"));
        let classes: Vec<String> = classes.collect();
        let which = match classes.is_empty() {
            true => String::new(),
            false => format!(" ({})", classes.join(", ")),
        };
        let claim = format!(
            "`{name}` did not finish {}{which} within {drain_s:.0} s after a turn at {}; their latency exceeds any \
             that is reported.",
            counts::things(measures.outcomes.unfinished, "transaction"),
            duel.label
        );
        let remedy =
            "Check the plan of the statement and the server's locks to find what it waits for.";
        found.push(Finding::new(Severity::Doubt, &[name], claim, remedy).at(duel.level));
    }
    found
}

pub fn saturated(run: &RunEvidence<'_>) -> Vec<Finding> {
    let threads = f64::from(run.evidence.plan().load.threads.max(1));
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        let worst = counted_rows(run, duel)
            .filter_map(|row| {
                let share = run.evidence.cpu_s(row.slice(), "load")? / (threads * row.measured_s);
                Some((share, row))
            })
            .max_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((share, row)) = worst.filter(|(share, _)| *share > LOAD_CPU_DOUBT) {
            let claim = format!(
                "Load process: {} of its {}{} used at {} (slice {}.{}, `{}`); above {} it may be the bottleneck.",
                percent::of(share),
                if threads > 1.0 {
                    format!("{threads:.0} threads")
                } else {
                    "thread".to_owned()
                },
                match run.evidence.plan().load.busy_poll_us {
                    0 => "",
                    _ => ", polling in vain excluded,",
                },
                duel.label,
                row.block,
                row.position,
                row.contender,
                percent::of(LOAD_CPU_DOUBT)
            );
            found.push(
                Finding::new(
                    Severity::Doubt,
                    &[],
                    claim,
                    "Give the load process more threads and cores.",
                )
                .at(duel.level),
            );
        }
    }
    found
}

/// Slices in which the load process stalled, though not for so long that they were lost.
pub fn stalled(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        let stalls: Vec<(f64, &SliceRow)> = counted_rows(run, duel)
            .filter_map(|row| {
                let stalled_s = run.evidence.reading(row.slice(), "load", "stalled_s")?;
                (stalled_s > 0.0).then_some((stalled_s, row))
            })
            .collect();
        let worst = stalls
            .iter()
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        if let Some((stalled_s, row)) = worst {
            let claim = format!(
                "Load process stalled in {} at {}, for up to {stalled_s:.1} s of {:.1} s (slice {}.{}, `{}`); it \
                 sent nothing during that time, which lowers throughput.",
                counts::things(stalls.len() as u64, "slice"),
                duel.label,
                row.measured_s,
                row.block,
                row.position,
                row.contender
            );
            let remedy =
                "Give the load process its own cores, and find what stopped it or took its CPU.";
            found.push(Finding::new(Severity::Doubt, &[], claim, remedy).at(duel.level));
        }
    }
    found
}

/// Share of a contender's time that may be left out without raising a doubt.
const LEFT_OUT_SHARE_MAX: f64 = 0.05;

/// Time in which no load thread ran, which is left out of throughput.
pub fn left_out(run: &RunEvidence<'_>) -> Vec<Finding> {
    let found = run.judged.duels.iter().filter_map(|duel| {
        let mut of_each: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for row in counted_rows(run, duel) {
            let left_out_s = run.evidence.reading(row.slice(), "lab", "left_out_s");
            let own = of_each.entry(&row.contender).or_default();
            own.0 += left_out_s.unwrap_or_default();
            own.1 += row.measured_s;
        }
        let share = |(left_out_s, measured_s): &(f64, f64)| left_out_s / (left_out_s + measured_s);
        let largest = of_each.values().map(share).fold(0.0, f64::max);
        if largest <= 0.0 {
            return None;
        }
        let each = of_each
            .iter()
            .map(|(name, own)| format!("{:.1} s of `{name}`", own.0));
        let claim = format!(
            "No load thread ran for {} at {}; this time is left out of throughput.",
            each.collect::<Vec<_>>().join(", "),
            duel.label
        );
        let severity = match largest > LEFT_OUT_SHARE_MAX {
            true => Severity::Doubt,
            false => Severity::Note,
        };
        let remedy = "Find what stopped the load process, or took its processors or memory.";
        Some(Finding::new(severity, &[], claim, remedy).at(duel.level))
    });
    found.collect()
}

pub fn lag(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        // With a fixed rate, waiting for a free connection is the server's doing and looks the same.
        if !matches!(duel.load.arrival, Arrival::Closed { .. }) {
            continue;
        }
        let lags: Vec<(f64, &SliceRow)> = counted_rows(run, duel)
            .filter_map(|row| {
                Some((
                    run.evidence.reading(row.slice(), "load", "lag_us_p99")?,
                    row,
                ))
            })
            .collect();
        let late = lags
            .iter()
            .filter(|(lag_us, row)| *lag_us > LAG_US.max(LAG_SHARE * row.latency_us_p50));
        let (late, slices) = (late.count(), lags.len());
        if late as f64 > LAG_SLICES * slices as f64 {
            let worst = lags.iter().map(|(lag_us, _)| *lag_us).fold(0.0, f64::max);
            let claim = format!(
                "Load generator lag at {}: p99 up to {} µs, above the limit in {late} of {slices} slices (limit \
                 {LAG_US:.0} µs and {} of the median latency). Latencies include it.",
                duel.label,
                counts::of(worst.round() as u64),
                percent::of(LAG_SHARE)
            );
            let remedy = "Give the load process its own cores or more threads.";
            found.push(Finding::new(Severity::Doubt, &[], claim, remedy).at(duel.level));
        }
    }
    found
}

fn counted_rows<'a>(run: &'a RunEvidence<'_>, duel: &Duel) -> impl Iterator<Item = &'a SliceRow> {
    run.evidence.levels[duel.level]
        .complete
        .iter()
        .flat_map(|block| block.rows.iter().copied())
}
