//! Share of late transactions per slice, where a plan has a latency objective.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::event::SliceId;
use crate::plan::Objective;
use crate::rows::SliceRow;

/// Late transactions of a slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Late {
    /// Share of late transactions among those whose lateness is known.
    pub share: f64,
    /// Number of transactions whose lateness is known.
    pub known: f64,
}

/// Late transactions by slice.
pub type LateShares = BTreeMap<SliceId, Late>;

/// The late share of one slice; transactions never sent, or not done when the slice ended, count as late too.
///
/// All that fell due are waited for, longer than any limit. In older records, transactions that fell due less than the
/// limit before the end may have been in time, so among those without an end as many as can have been so young, in
/// proportion to the time, are left out.
#[must_use]
pub fn late_share(objective: &Objective, row: &SliceRow, latencies: &Histogram<u64>) -> Late {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a limit beyond all latencies saturates"
    )]
    let limit_ns = (1e3 * objective.latency_us) as u64;
    let in_time = latencies.count_between(0, limit_ns) as f64;
    let due = row.due as f64;
    let too_young = match row.drained_s {
        Some(_) => 0.0,
        None => due * (1e-6 * objective.latency_us / row.measured_s).clamp(0.0, 1.0),
    };
    let unknown = ((row.unfinished + row.skipped) as f64).min(too_young);
    let known = (due - unknown).max(0.0);
    Late {
        share: match known > 0.0 {
            true => (1.0 - in_time / known).max(0.0),
            false => 0.0,
        },
        known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_due_just_before_the_end_of_a_slice_is_not_called_late() {
        let objective = Objective {
            share: 0.9,
            latency_us: 100_000.0,
        };
        let mut latencies = crate::latency::new_histogram();
        latencies.record_n(5_000_000, 90).unwrap();
        let share = |unfinished: u64, measured_s: f64, drained_s: Option<f64>| {
            let row = SliceRow {
                due: 90 + unfinished,
                ok: 90,
                unfinished,
                measured_s,
                drained_s,
                ..SliceRow::default()
            };
            late_share(&objective, &row, &latencies).share
        };
        // A tenth of a second of a second: ten of a hundred can have been too young.
        assert_eq!(share(10, 1.0, None), 0.0);
        // Of a slice of ten seconds it is one of a hundred.
        assert!((share(10, 10.0, None) - 9.0 / 99.0).abs() < 1e-9);
        // A backlog is late whatever was due last.
        assert!(share(910, 1.0, None) > 0.89);
        // What was waited for and did not end is late.
        assert!((share(10, 1.0, Some(0.0)) - 0.1).abs() < 1e-9);
    }
}
