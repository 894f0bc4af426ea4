//! Single statements of a slice, by class of statements.

use dbduel_driver::{ErrorClass, ServerError};
use dbduel_record::statement_classes::StatementCounts;

use super::TickLatencies;
use super::latencies::Gatherer;

/// A statement that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementDone {
    /// Its class, as an index into the workload's list of classes of statements.
    pub class: u32,
    /// Time from the previous answer to its own, without the time for which its server was frozen, nanoseconds.
    pub latency_ns: u64,
    /// How it was answered.
    pub answer: StatementAnswer,
}

/// The answer to a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementAnswer {
    /// Without an error.
    Ok {
        /// Rows returned.
        returned: u64,
        /// Rows changed; `None` for a statement that is not meant to change any.
        changed: Option<u64>,
    },
    /// With an error.
    Failed {
        /// The server's error number, as in [`ServerError::code`].
        code: u32,
        /// Whether the key exists.
        key_exists: bool,
    },
}

impl StatementAnswer {
    /// The answer that is an error.
    #[must_use]
    pub fn failed(error: &ServerError) -> Self {
        StatementAnswer::Failed {
            code: error.code,
            key_exists: error.class == ErrorClass::DuplicateKey,
        }
    }
}

/// Counters of the statements of one class.
#[derive(Debug)]
pub struct StatementTally {
    /// Statements by outcome, and their rows.
    pub counts: StatementCounts,
    /// Sum of the latencies of those without an error, nanoseconds.
    pub latency_ns_sum: u64,
    /// Sum of the latencies of those with an error, nanoseconds.
    pub failed_ns_sum: u64,
    /// Error codes with their numbers of occurrences. Few occur in one class, so a list beats a map.
    pub errors: Vec<(u32, u64)>,
    /// Latencies of those without an error.
    latencies: Gatherer,
}

impl StatementTally {
    pub(super) fn new() -> Self {
        StatementTally {
            counts: StatementCounts::default(),
            latency_ns_sum: 0,
            failed_ns_sum: 0,
            errors: Vec::new(),
            latencies: Gatherer::new(),
        }
    }

    #[inline]
    pub(super) fn count(&mut self, done: &StatementDone) {
        match done.answer {
            StatementAnswer::Ok { returned, changed } => {
                self.counts.ok += 1;
                self.counts.rows_returned += returned;
                self.counts.rows_changed += changed.unwrap_or(0);
                self.counts.unchanged += u64::from(changed == Some(0));
                self.latency_ns_sum += done.latency_ns;
                self.latencies.record(done.latency_ns);
            }
            StatementAnswer::Failed { code, key_exists } => {
                self.counts.failed += 1;
                self.counts.key_exists += u64::from(key_exists);
                self.failed_ns_sum += done.latency_ns;
                self.count_errors(code, 1);
            }
        }
    }

    fn count_errors(&mut self, code: u32, count: u64) {
        match self.errors.iter_mut().find(|(own, _)| *own == code) {
            Some((_, own)) => *own += count,
            None => self.errors.push((code, count)),
        }
    }

    pub(super) fn merge(&mut self, other: &StatementTally) {
        let StatementTally {
            counts,
            latency_ns_sum,
            failed_ns_sum,
            errors,
            latencies,
        } = other;
        self.counts += *counts;
        self.latency_ns_sum += latency_ns_sum;
        self.failed_ns_sum += failed_ns_sum;
        for (code, count) in errors {
            self.count_errors(*code, *count);
        }
        self.latencies.merge(latencies);
    }

    /// Empties the counters; memory that was not used is not touched.
    pub(super) fn clear(&mut self) {
        self.counts = StatementCounts::default();
        self.latency_ns_sum = 0;
        self.failed_ns_sum = 0;
        self.errors.clear();
        self.latencies.clear();
    }

    /// True when no statement of the class was answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.ok + self.counts.failed == 0
    }

    /// Latencies of the statements without an error, to two significant digits.
    #[must_use]
    pub fn latencies(&self) -> TickLatencies {
        self.latencies.gathered()
    }
}
