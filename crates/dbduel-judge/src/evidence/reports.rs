//! Counters that reach a server only when its sessions report them.
//!
//! A session of PostgreSQL reports what it did at most once a second, so that the counters of a turn may lack most of it. From version
//! 15 on clients of dbduel have their sessions report in the guard and after the turn, and count what they committed in between;
//! what the counters gained then belongs to these transactions. Before, and in records that were made without, nothing is known
//! of the counters but that they are late.

use std::collections::BTreeMap;

use dbduel_audit::Product;
use dbduel_record::Record;
use dbduel_record::event::SliceId;
use dbduel_record::rows::ALL_CLASSES;

/// Counters of the engine that PostgreSQL gathers from its sessions.
const BY_SESSIONS: &[&str] = &[
    "rows_changed_count",
    "buffer_pool_requests_count",
    "buffer_pool_reads_count",
    "data_read_bytes",
    "data_written_bytes",
    "data_syncs_count",
    "redo_syncs_count",
    "redo_waits_count",
    "full_page_images_count",
    "temporary_files_count",
    "deadlocks_count",
];

/// What dbduel's clients know of the reports of their sessions.
pub const REPORTED: &str = "reported_count";
/// Turns of a slice of which they know nothing.
pub const UNREPORTED: &str = "unreported_turns_count";

/// The slices in which sessions count for a server.
#[derive(Debug, Default)]
pub struct Reports {
    /// Transactions of the slice ÷ those that the reports are about; none where that is not known.
    shares: BTreeMap<SliceId, Option<f64>>,
    /// Names of contenders with a slice of which it is not known.
    late: Vec<String>,
}

impl Reports {
    /// Of a record, with what a source says in a slice.
    pub fn of(record: &Record, reading: impl Fn(SliceId, &str, &str) -> Option<f64>) -> Self {
        let contenders = record.plan.contenders.iter().zip(&record.contenders);
        let by_sessions = contenders.filter(|(_, files)| {
            let build = files.build.as_ref();
            build.is_some_and(|build| {
                Product::recognise(&build.version, &build.product) == Product::PostgreSql
            })
        });
        let names: Vec<&str> = by_sessions.map(|(one, _)| one.name.as_str()).collect();
        let rows = record.slices.iter().filter(|row| {
            row.class == ALL_CLASSES && names.iter().any(|name| *name == row.contender)
        });
        let mut reports = Self::default();
        for row in rows {
            let slice = row.slice();
            let is_known = reading(slice, "load", UNREPORTED).is_none();
            let reported = reading(slice, "load", REPORTED);
            let reported = reported.filter(|count| is_known && *count > 0.0);
            let mut counters = BY_SESSIONS.iter();
            let is_seen = counters.any(|metric| reading(slice, "engine", metric).is_some());
            if reported.is_none() && is_seen && !reports.late.contains(&row.contender) {
                reports.late.push(row.contender.clone());
            }
            let share = reported.map(|count| row.ok as f64 / count);
            reports.shares.insert(slice, share);
        }
        reports
    }

    /// The increase of a counter in a slice, from the increase that was seen; none where the reports are too late for
    /// it to be known. Absent for counters of another kind.
    pub fn used(
        &self,
        slice: SliceId,
        source: &str,
        metric: &str,
        seen: f64,
    ) -> Option<Option<f64>> {
        let share = self.shares.get(&slice)?;
        let is_of_sessions = source == "engine" && BY_SESSIONS.contains(&metric);
        is_of_sessions.then(|| share.map(|share| seen * share))
    }

    /// Names of the contenders with a slice of which the counters of sessions are not known.
    pub fn late(&self) -> impl Iterator<Item = &str> {
        self.late.iter().map(String::as_str)
    }

    /// Why one of these metrics has no value of a contender.
    pub fn why_late(&self, contender: &str, metrics: &[&str]) -> Option<String> {
        let is_late = self.late.iter().any(|name| name == contender)
            && metrics.iter().any(|metric| BY_SESSIONS.contains(metric));
        is_late.then(|| format!("sessions of `{contender}` report it up to a second late"))
    }
}
