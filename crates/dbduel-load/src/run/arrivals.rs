//! When the events of a run with a rate fall due, and how many of them wait.

use std::time::Duration;

use dbduel_record::seed::named_seed;

use super::Limits;
use super::gate::Gate;
use crate::random::Random;

/// The most arrivals that are counted one by one for a queue length; beyond that the rate tells it well enough.
const COUNTED_ARRIVALS_MAX: u64 = 1_000_000;

/// How many events have fallen due, told from the same random stream as their instants.
#[derive(Debug)]
pub struct Queue {
    arrivals: Arrivals,
    arrived: u64,
    next: Duration,
}

impl Queue {
    /// The queue of a run with a rate.
    #[must_use]
    pub fn new(limits: &Limits) -> Option<Self> {
        let mut arrivals = Arrivals::new(limits.per_second?, limits.seed);
        let next = arrivals.next();
        Some(Queue {
            arrivals,
            arrived: 0,
            next,
        })
    }

    /// Events that are due `elapsed` after the start and have not been begun. What falls due after the end is no event of
    /// the run, nor what exceeds their number.
    pub fn length(&mut self, elapsed: Duration, gate: &Gate) -> u64 {
        let events_max = gate.events_max(elapsed).unwrap_or(u64::MAX);
        let elapsed = gate
            .last_arrival()
            .map_or(elapsed, |last| last.min(elapsed));
        let mut counted = 0;
        while self.next <= elapsed && counted < COUNTED_ARRIVALS_MAX {
            self.arrived += 1;
            counted += 1;
            self.next = self.arrivals.next();
        }
        let missing = elapsed.saturating_sub(self.next).as_secs_f64() * self.arrivals.per_second;
        let due = (self.arrived + missing as u64).min(events_max);
        due.saturating_sub(gate.begun())
    }
}

/// The instants of a Poisson process, as times since the start.
#[derive(Debug)]
pub(super) struct Arrivals {
    random: Random,
    per_second: f64,
    at_s: f64,
}

impl Arrivals {
    pub(super) fn new(per_second: f64, seed: u64) -> Self {
        Arrivals {
            random: Random::new(named_seed(seed, "arrivals")),
            per_second,
            at_s: 0.0,
        }
    }

    pub(super) fn next(&mut self) -> Duration {
        self.at_s += self.random.exponential() / self.per_second;
        Duration::try_from_secs_f64(self.at_s).unwrap_or(Duration::MAX)
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
