//! Rules about the readings of samplers and their times.

use std::collections::BTreeSet;

use dbduel_audit::finding::{Finding, quoted};
use dbduel_record::event::Severity;
use dbduel_text::{counts, from_to, percent};

use super::RunEvidence;
use crate::evidence::{WINDOW_ERROR, Window};

/// Share of the slices whose counters were read over another time from which costs are doubted.
const WINDOWS_DOUBT: f64 = 0.1;

/// Share of a contender's time in waits for memory from which its figures are doubted.
const MEMORY_WAIT_MAX: f64 = 0.01;

/// Contenders that waited for memory that the operating system reclaimed while they were frozen: their pages are idle
/// then.
pub fn idle_memory(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let evidence = run.evidence;
    for duel in &run.judged.duels {
        for (index, contender) in evidence.plan().contenders.iter().enumerate() {
            let blocks = evidence.watched(duel.level).iter();
            let rows = blocks.flat_map(|block| block.slices_of(index));
            let (mut faults, mut waited_s, mut watched_s) = (0.0, 0.0, 0.0);
            for row in rows {
                let slice = row.slice();
                let of = |source, metric| evidence.reading(slice, source, metric);
                let (Some(own), Some(waits_s)) = (
                    of("server", "major_faults_count"),
                    of("host", "pressure_memory_some_s"),
                ) else {
                    continue;
                };
                faults += own;
                waited_s += waits_s;
                let share = evidence.watched_share(slice, Window::Kernel);
                watched_s += row.measured_s * share.unwrap_or(1.0);
            }
            let share = waited_s / watched_s;
            if faults < 1.0 || share.is_nan() || share <= MEMORY_WAIT_MAX {
                continue;
            }
            let name = contender.name.as_str();
            let claim = format!(
                "At {} `{name}` had {:.1} major page faults per second and spent {} of its time waiting for memory \
                 (limit {}): the operating system reclaims pages of frozen servers, which then run cold.",
                duel.label,
                faults / watched_s,
                percent::of(share),
                percent::of(MEMORY_WAIT_MAX)
            );
            let remedy = "Leave more memory free, turn off swap and proactive reclaim (DAMON, control group limits), or use longer turns.";
            found.push(Finding::new(Severity::Doubt, &[name], claim, remedy).at(duel.level));
        }
    }
    found
}

/// Slices whose counters were read over a time that differs from theirs.
pub fn window(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        let blocks = &run.evidence.levels[duel.level].complete;
        let rows: Vec<_> = blocks.iter().flat_map(|block| &block.rows).collect();
        let mut most = 0;
        let mut parts = Vec::new();
        for (window, what) in [
            (Window::Kernel, "processes, threads and devices"),
            (Window::Engine, "the engine"),
        ] {
            let shares = rows.iter();
            let shares = shares.filter_map(|row| run.evidence.watched_share(row.slice(), window));
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
                    "counters of {what} cover {} times the slice in {} of {}",
                    from_to(&format!("{low:.2}"), &format!("{high:.2}")),
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
        let remedy = "Reserve a processor for dbduel (`cores` and `server_cores` in `[load]`), or use longer slices.";
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
    let names = run.judged.contenders.iter().map(|one| one.name.as_str());
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

/// Contenders whose sessions report their counters late.
pub fn statistics_lag(run: &RunEvidence<'_>) -> Vec<Finding> {
    let names: Vec<&str> = run.evidence.reports.late().collect();
    if names.is_empty() {
        return Vec::new();
    }
    let claim = format!(
        "Sessions of {} report their counters (pg_stat_*) up to a second late, so changed rows, page reads and syncs \
         are not shown per transaction. WAL bytes, processor time and sampled waits are complete.",
        quoted(&names),
    );
    let remedy = "Use PostgreSQL 15 or newer, whose sessions report after each turn, and transactions of less than a second.";
    vec![Finding::new(Severity::Note, &names, claim, remedy)]
}
