//! Number of waiting events in a run with a rate.

use std::time::Duration;

use super::gate::Gate;
use super::{Limits, nanoseconds};
use crate::schedule::{COUNTED_MAX, Schedule};

/// Counts events that have fallen due, on the same schedule as the run's. Beyond a limit the count is estimated from
/// the rate.
#[derive(Debug)]
pub struct Queue {
    schedule: Schedule,
    per_second: f64,
    arrived: u64,
}

impl Queue {
    /// The queue of a run with a rate.
    #[must_use]
    pub fn new(limits: &Limits) -> Option<Self> {
        Some(Queue {
            schedule: limits.schedule()?,
            per_second: limits.per_second?,
            arrived: 0,
        })
    }

    /// Number of events that are due `elapsed` after the start and have not begun. Arrivals after the end, or beyond
    /// the limit of events, do not count.
    pub fn length(&mut self, elapsed: Duration, gate: &Gate) -> u64 {
        let events_max = gate.events_max(elapsed).unwrap_or(u64::MAX);
        let last = gate.last_arrival();
        let elapsed_ns = nanoseconds(last.map_or(elapsed, |last| last.min(elapsed)));
        self.arrived += self.schedule.pass(elapsed_ns, COUNTED_MAX);
        let missing_ns = elapsed_ns.saturating_sub(self.schedule.next_ns());
        let missing = missing_ns as f64 / 1e9 * self.per_second;
        let due = (self.arrived + missing as u64).min(events_max);
        due.saturating_sub(gate.begun())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn arrivals_keep_their_rate_and_the_queue_knows_them() {
        let limits = Limits {
            per_second: Some(1_000.0),
            time: Some(Duration::from_secs(10)),
            ..Limits::ENDLESS
        };
        let gate = Gate::new(limits, 1);
        let start = gate.open();
        let dues: Vec<Instant> =
            std::iter::from_fn(|| gate.take(start).and_then(|ticket| ticket.due)).collect();
        assert!((9_600..10_400).contains(&dues.len()), "{}", dues.len());
        assert!(dues.is_sorted());
        let mut queue = Queue::new(&limits).unwrap();
        let due_by = |seconds| {
            let by = start + Duration::from_secs(seconds);
            dues.iter().filter(|due| **due <= by).count() as u64
        };
        assert_eq!(queue.length(Duration::from_secs(4), &gate), due_by(4));
        for _ in 0..due_by(4) {
            gate.begin();
        }
        assert_eq!(queue.length(Duration::from_secs(4), &gate), 0);
        assert_eq!(
            queue.length(Duration::from_secs(6), &gate),
            due_by(6) - due_by(4)
        );
    }

    #[test]
    fn the_queue_does_not_grow_after_the_end() {
        let rate = Limits {
            per_second: Some(1_000.0),
            ..Limits::ENDLESS
        };
        let ten_seconds = Limits {
            time: Some(Duration::from_secs(8)),
            warm_up: Duration::from_secs(2),
            ..rate
        };
        let fifty_events = Limits {
            events: Some(50),
            ..rate
        };
        for (limits, expected) in [(ten_seconds, 9_600..10_400), (fifty_events, 49..51)] {
            let gate = Gate::new(limits, 1);
            gate.open();
            let mut queue = Queue::new(&limits).unwrap();
            let [at_end, later] =
                [10, 60].map(|seconds| queue.length(Duration::from_secs(seconds), &gate));
            assert!(expected.contains(&at_end), "{limits:?}: {at_end}");
            assert_eq!(at_end, later, "{limits:?}");
        }
        let gate = Gate::new(rate, 1);
        gate.open();
        gate.close();
        let mut queue = Queue::new(&rate).unwrap();
        assert!(queue.length(Duration::from_secs(60), &gate) < 10_000);
    }

    #[test]
    fn a_huge_rate_costs_no_huge_count() {
        let limits = Limits {
            per_second: Some(2e9),
            ..Limits::ENDLESS
        };
        let gate = Gate::new(limits, 1);
        let length = Queue::new(&limits)
            .unwrap()
            .length(Duration::from_secs(60), &gate);
        assert!((length as f64 / 1.2e11 - 1.0).abs() < 0.01, "{length}");
    }
}
