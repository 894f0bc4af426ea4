//! Counters of a slice: by transaction class, and of errors by code.

use dbduel_record::latency::new_histogram;
use dbduel_record::rows::TransactionCounts;
use hdrhistogram::Histogram;

/// Counters of one class.
#[derive(Debug, Clone)]
pub struct ClassTally {
    /// Transactions by outcome.
    pub counts: TransactionCounts,
    /// Sum of the latencies of the committed ones, nanoseconds.
    pub latency_ns_sum: u64,
    /// Their latencies, nanoseconds.
    pub latencies: Histogram<u64>,
}

impl ClassTally {
    pub(super) fn new() -> Self {
        ClassTally {
            counts: TransactionCounts::default(),
            latency_ns_sum: 0,
            latencies: new_histogram(),
        }
    }

    pub(super) fn merge(&mut self, other: &ClassTally) {
        let ClassTally {
            counts,
            latency_ns_sum,
            latencies,
        } = other;
        self.counts += *counts;
        self.latency_ns_sum += latency_ns_sum;
        self.latencies
            .add(latencies)
            .expect("all histograms of the project have the same bounds");
    }

    pub(super) fn clear(&mut self) {
        self.counts = TransactionCounts::default();
        self.latency_ns_sum = 0;
        self.latencies.reset();
    }
}

/// Error codes with their counts and the text of the first.
#[derive(Debug, Default)]
pub struct Errors {
    /// Few codes occur in one slice, so a list beats a map. Bounded by the number of codes.
    by_code: Vec<ErrorTally>,
}

/// One error code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorTally {
    /// The server's error number.
    pub code: u32,
    /// True for conflicts with other clients, which the load itself causes.
    pub is_conflict: bool,
    /// Number of occurrences.
    pub count: u64,
    /// Text of the first.
    pub example: String,
}

impl Errors {
    /// Adds `count` errors of a code. Allocates only for a new code.
    pub fn count(&mut self, code: u32, is_conflict: bool, count: u64, message: &str) {
        match self.by_code.iter_mut().find(|error| error.code == code) {
            Some(error) => error.count += count,
            None => self.by_code.push(ErrorTally {
                code,
                is_conflict,
                count,
                example: message.to_owned(),
            }),
        }
    }

    pub(super) fn merge(&mut self, other: &Errors) {
        for ErrorTally {
            code,
            is_conflict,
            count,
            example,
        } in &other.by_code
        {
            self.count(*code, *is_conflict, *count, example);
        }
    }

    pub(super) fn clear(&mut self) {
        self.by_code.clear();
    }

    /// The codes in the order of their first appearance.
    pub fn iter(&self) -> impl Iterator<Item = &ErrorTally> {
        self.by_code.iter()
    }
}
