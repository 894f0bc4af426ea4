//! Statistics of an interval of a run, and each worker's share of it.

use dbduel_record::latency::new_histogram;
use hdrhistogram::Histogram;

use super::counts::Counts;

/// An interval of a run, all workers together.
#[derive(Debug, Clone)]
pub struct IntervalStats {
    /// Counters.
    pub counts: Counts,
    /// Sum of the events' latencies, nanoseconds.
    pub latency_ns_sum: u64,
    /// Smallest latency, nanoseconds; `u64::MAX` when there are none.
    pub latency_ns_min: u64,
    /// Largest latency, nanoseconds.
    pub latency_ns_max: u64,
    /// The latencies, to three significant digits.
    pub latencies: Histogram<u64>,
}

impl Default for IntervalStats {
    fn default() -> Self {
        IntervalStats {
            counts: Counts::default(),
            latency_ns_sum: 0,
            latency_ns_min: u64::MAX,
            latency_ns_max: 0,
            latencies: new_histogram(),
        }
    }
}

impl IntervalStats {
    /// Counts an event with its latency.
    #[inline]
    pub(super) fn count(&mut self, latency_ns: u64) {
        self.counts.events += 1;
        self.latency_ns_sum += latency_ns;
        self.latency_ns_min = self.latency_ns_min.min(latency_ns);
        self.latency_ns_max = self.latency_ns_max.max(latency_ns);
        self.latencies.saturating_record(latency_ns);
    }

    /// Adds another interval.
    pub fn merge(&mut self, other: &IntervalStats) {
        let IntervalStats {
            counts,
            latency_ns_sum,
            latency_ns_min,
            latency_ns_max,
            latencies,
        } = other;
        self.counts += *counts;
        self.latency_ns_sum += latency_ns_sum;
        self.latency_ns_min = self.latency_ns_min.min(*latency_ns_min);
        self.latency_ns_max = self.latency_ns_max.max(*latency_ns_max);
        self.latencies
            .add(latencies)
            .expect("all histograms of the project have the same bounds");
    }

    /// Empties the interval, keeping its memory.
    pub fn clear(&mut self) {
        self.counts = Counts::NONE;
        self.latency_ns_sum = 0;
        self.latency_ns_min = u64::MAX;
        self.latency_ns_max = 0;
        self.latencies.reset();
    }

    /// The latency that `percent` of the events do not exceed, nanoseconds; 0 without events.
    #[must_use]
    pub fn quantile_ns(&self, percent: u32) -> u64 {
        if self.latencies.is_empty() {
            return 0;
        }
        let value = self.latencies.value_at_quantile(f64::from(percent) / 100.0);
        // The ends are known exactly, and no quantile lies beyond them.
        value.clamp(self.latency_ns_min, self.latency_ns_max)
    }
}

/// Statistics of one worker since the last reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Events.
    pub events: u64,
    /// Sum of their latencies, nanoseconds.
    pub ns: u64,
    /// Smallest latency, nanoseconds.
    pub ns_min: u64,
    /// Largest latency, nanoseconds.
    pub ns_max: u64,
}

impl Share {
    pub(super) fn count(&mut self, latency_ns: u64) {
        self.ns_min = match self.events {
            0 => latency_ns,
            _ => self.ns_min.min(latency_ns),
        };
        self.events += 1;
        self.ns += latency_ns;
        self.ns_max = self.ns_max.max(latency_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_never_lie_outside_of_what_was_seen() {
        let mut interval_stats = IntervalStats::default();
        assert_eq!(interval_stats.quantile_ns(95), 0);
        for latency in [200, 300, 12_345_678] {
            interval_stats.count(latency);
        }
        assert_eq!(interval_stats.quantile_ns(100), 12_345_678);
        assert!(interval_stats.quantile_ns(0) >= 200);
    }
}
