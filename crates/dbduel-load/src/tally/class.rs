//! Counters of one transaction class.

use dbduel_record::latency::new_histogram;
use hdrhistogram::Histogram;

/// Counters of one class.
#[derive(Debug, Clone)]
pub struct ClassTally {
    /// Fell due.
    pub due: u64,
    /// Committed.
    pub ok: u64,
    /// Given up.
    pub failed: u64,
    /// Never sent.
    pub skipped: u64,
    /// Still running when the measured part ended.
    pub unfinished: u64,
    /// Additional attempts.
    pub retries: u64,
    /// Statements sent by transactions that ended in the measured part.
    pub statements: u64,
    /// Sum of the latencies of `ok`, nanoseconds.
    pub latency_ns_sum: u64,
    /// Latencies of `ok`, nanoseconds.
    pub latencies: Histogram<u64>,
}

impl ClassTally {
    pub(super) fn new() -> Self {
        ClassTally {
            due: 0,
            ok: 0,
            failed: 0,
            skipped: 0,
            unfinished: 0,
            retries: 0,
            statements: 0,
            latency_ns_sum: 0,
            latencies: new_histogram(),
        }
    }

    /// True when every transaction that fell due ended in exactly one way.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.due == self.ok + self.failed + self.skipped + self.unfinished
    }

    /// Taken apart by name, so that a new counter cannot be forgotten.
    pub(super) fn merge(&mut self, other: &ClassTally) {
        let ClassTally {
            due,
            ok,
            failed,
            skipped,
            unfinished,
            retries,
            statements,
            latency_ns_sum,
            latencies,
        } = other;
        self.due += due;
        self.ok += ok;
        self.failed += failed;
        self.skipped += skipped;
        self.unfinished += unfinished;
        self.retries += retries;
        self.statements += statements;
        self.latency_ns_sum += latency_ns_sum;
        self.latencies
            .add(latencies)
            .expect("all histograms of the project have the same bounds");
    }

    pub(super) fn clear(&mut self) {
        let ClassTally {
            due,
            ok,
            failed,
            skipped,
            unfinished,
            retries,
            statements,
            latency_ns_sum,
            latencies,
        } = self;
        let counters = [
            due,
            ok,
            failed,
            skipped,
            unfinished,
            retries,
            statements,
            latency_ns_sum,
        ];
        counters.into_iter().for_each(|counter| *counter = 0);
        latencies.reset();
    }
}
