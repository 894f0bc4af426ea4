//! Rules about what samplers saw, and when.

use std::collections::BTreeSet;

use dbduel_record::event::Severity;

use super::RunEvidence;
use crate::judge::audit::Product;
use crate::judge::evidence::{WINDOW_ERROR, Window, slice_of};
use crate::judge::finding::{Finding, quoted};
use crate::{counts, percent};

/// Share of the slices whose counters were read over another time from which costs are doubted.
const WINDOWS_DOUBT: f64 = 0.1;

/// Slices whose counters were read over a time that differs from theirs.
pub fn window(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for duel in &run.summary.duels {
        let blocks = &run.evidence.levels[duel.level].complete;
        let rows: Vec<_> = blocks.iter().flat_map(|block| &block.rows).collect();
        let mut most = 0;
        let mut parts = Vec::new();
        for (window, what) in [
            (Window::Kernel, "processes, threads and devices"),
            (Window::Engine, "the engine"),
        ] {
            let shares = rows.iter();
            let shares = shares.filter_map(|row| run.evidence.watched_share(slice_of(row), window));
            let off: Vec<f64> = shares
                .filter(|share| (share - 1.0).abs() > WINDOW_ERROR)
                .collect();
            let (low, high) = off
                .iter()
                .fold((f64::INFINITY, 0.0_f64), |(low, high), share| {
                    (low.min(*share), high.max(*share))
                });
            if !off.is_empty() {
                most = most.max(off.len());
                parts.push(format!(
                    "counters of {what} cover {low:.2} to {high:.2} times the slice in {} of {}",
                    off.len(),
                    counts::things(rows.len() as u64, "slice"),
                ));
            }
        }
        if parts.is_empty() {
            continue;
        }
        let severity = match most as f64 > WINDOWS_DOUBT * rows.len() as f64 {
            true => Severity::Doubt,
            false => Severity::Note,
        };
        let claim = format!(
            "At {} {}; costs per transaction assume a constant rate in such a slice.",
            duel.label,
            parts.join(", and ")
        );
        let remedy = "Leave dbduel a processor (`cores` and `server_cores` in `[load]`), or use longer slices.";
        found.push(Finding::new(severity, &[], claim, remedy).at(duel.level));
    }
    found
}

/// Waits that are known of some contenders and not of others.
pub fn waits_one_sided(run: &RunEvidence<'_>) -> Vec<Finding> {
    let readings = run.evidence.record.readings.iter();
    let counting: BTreeSet<&str> = readings
        .filter(|reading| reading.source == "waits")
        .map(|reading| reading.contender.as_str())
        .collect();
    let names = run.summary.contenders.iter().map(|one| one.name.as_str());
    let (on, off): (Vec<&str>, Vec<&str>) = names.partition(|name| counting.contains(name));
    if on.is_empty() || off.is_empty() {
        return Vec::new();
    }
    let claim = format!(
        "Waits of {} are counted and those of {} are not, so waits are not compared.",
        quoted(&on),
        quoted(&off)
    );
    let remedy = "Set performance_schema equally for all MySQL and MariaDB servers: ON to explain waits, OFF to save its cost. Waits of \
                  PostgreSQL are sampled and need no setting.";
    vec![Finding::new(Severity::Note, &on, claim, remedy)]
}

/// Longest time in which a session of PostgreSQL keeps its counters to itself, seconds (`PGSTAT_MIN_INTERVAL`). The flush that
/// a session can force since 15 is one of its own, and the load's sessions have none to spare for it.
const REPORTED_WITHIN_S: f64 = 1.0;

/// Contenders whose sessions report their counters late.
pub fn statistics_lag(run: &RunEvidence<'_>) -> Vec<Finding> {
    let record = run.evidence.record;
    let is_counted = |name: &str| {
        let mut readings = record.readings.iter();
        readings.any(|row| row.source == "engine" && row.contender == name)
    };
    let names = record.plan.contenders.iter().zip(&record.contenders);
    let names = names.filter_map(|(contender, files)| {
        let build = files.build.as_ref()?;
        let product = Product::recognise(&build.version, &build.product);
        let is_late = product == Product::PostgreSql && is_counted(&contender.name);
        is_late.then_some(contender.name.as_str())
    });
    let names: Vec<&str> = names.collect();
    let rows = record.slices.iter();
    let longest_s = rows.fold(0.0_f64, |longest, row| longest.max(row.measured_s));
    if names.is_empty() || longest_s <= 0.0 {
        return Vec::new();
    }
    let share = (REPORTED_WITHIN_S / longest_s).min(1.0);
    let claim = format!(
        "Sessions of {} report their counters (pg_stat_*) once a second, and what they report after a slice is not counted: up to {} of \
         each slice is missing from these. WAL bytes, processor time and sampled waits are whole.",
        quoted(&names),
        percent::of(share),
    );
    let remedy = "Use slices of many seconds where these counters matter.";
    vec![Finding::new(Severity::Note, &names, claim, remedy)]
}
