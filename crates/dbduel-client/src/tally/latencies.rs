//! The latencies of one tick, or of one class of statements: coarse, small, and mergeable over threads.

use dbduel_record::latency::{HIGHEST_NS, LOWEST_NS};
use hdrhistogram::Histogram;

/// Significant decimal digits: enough for display while the load runs.
const DIGITS: u8 = 2;

/// Gathers the latencies of the current tick or slice. Recording neither fails nor allocates.
#[derive(Debug)]
pub(super) struct Gatherer {
    histogram: Histogram<u64>,
}

/// The latencies of a finished tick, as counts of distinguishable values in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TickLatencies {
    counts: Vec<(u64, u64)>,
}

impl Gatherer {
    pub(super) fn new() -> Self {
        Gatherer {
            histogram: Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS)
                .expect("the bounds are those of every histogram of the project"),
        }
    }

    #[inline]
    pub(super) fn record(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns);
    }

    /// Returns the latencies gathered and resets. One allocation per tick, none when it is empty.
    pub(super) fn take(&mut self) -> TickLatencies {
        let gathered = self.gathered();
        self.clear();
        gathered
    }

    /// The latencies gathered. One allocation, none when there are none.
    pub(super) fn gathered(&self) -> TickLatencies {
        if self.histogram.is_empty() {
            return TickLatencies::default();
        }
        let counts = self
            .histogram
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
            .collect();
        TickLatencies { counts }
    }

    /// Adds what another one gathered.
    pub(super) fn merge(&mut self, other: &Gatherer) {
        if !other.histogram.is_empty() {
            self.histogram
                .add(&other.histogram)
                .expect("all gatherers have the same bounds");
        }
    }

    pub(super) fn clear(&mut self) {
        if !self.histogram.is_empty() {
            self.histogram.reset();
        }
    }
}

impl TickLatencies {
    /// The smallest latency, nanoseconds, that a share `q` of the transactions does not exceed, to two
    /// significant digits; 0 when there are none.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let total: u64 = self.counts.iter().map(|(_, count)| count).sum();
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut passed = 0;
        for &(value, count) in &self.counts {
            passed += count;
            if passed >= rank {
                return value;
            }
        }
        0
    }

    /// The distinguishable latencies in ascending order, nanoseconds, with their numbers.
    #[must_use]
    pub fn counts(&self) -> &[(u64, u64)] {
        &self.counts
    }

    /// Adds the same tick of another thread.
    pub(super) fn merge(&mut self, other: &TickLatencies) {
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
            return;
        }
        self.counts.extend_from_slice(&other.counts);
        self.counts.sort_unstable_by_key(|(value, _)| *value);
        self.counts.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1 += later.1;
            }
            is_same
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(latencies: impl IntoIterator<Item = u64>) -> TickLatencies {
        let mut gatherer = Gatherer::new();
        latencies.into_iter().for_each(|ns| gatherer.record(ns));
        gatherer.take()
    }

    #[test]
    fn quantiles_are_right_to_two_digits() {
        let latencies = gathered((1..=1000).map(|ms| ms * 1_000_000));
        for (q, expected_ms) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found_ms = latencies.quantile_ns(q) as f64 / 1e6;
            assert!(
                (found_ms / expected_ms - 1.0).abs() < 0.01,
                "{q}: {found_ms} ms"
            );
        }
        assert_eq!(gathered([]).quantile_ns(0.5), 0);
        assert!(gathered([0, u64::MAX]).quantile_ns(1.0) >= HIGHEST_NS);
    }

    #[test]
    fn merging_is_the_same_as_recording_together() {
        let (even, odd) = (
            (0..500).map(|n| n * 20_000),
            (0..500).map(|n| n * 20_000 + 3_000_000),
        );
        let mut merged = gathered(even.clone());
        merged.merge(&gathered(odd.clone()));
        assert_eq!(merged, gathered(even.chain(odd)));
        let mut empty = TickLatencies::default();
        empty.merge(&merged);
        empty.merge(&TickLatencies::default());
        assert_eq!(empty, merged);
    }

    #[test]
    fn a_gatherer_begins_anew() {
        let mut gatherer = Gatherer::new();
        gatherer.record(5_000_000);
        assert_ne!(gatherer.take(), TickLatencies::default());
        assert_eq!(gatherer.take(), TickLatencies::default());
        gatherer.record(5_000_000);
        gatherer.clear();
        assert_eq!(gatherer.take(), TickLatencies::default());
    }
}
