//! Counters of a run, and the meter that one worker counts with.

use std::ops::{AddAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters. Those that a test does not have stay 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that were done.
    pub events: u64,
    /// Statements that returned rows; reads of a file.
    pub reads: u64,
    /// Statements that changed rows; writes of a file.
    pub writes: u64,
    /// Statements that did neither; a file's syncs.
    pub others: u64,
    /// Errors after which an event was retried.
    pub errors: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl Counts {
    /// Nothing counted.
    pub const NONE: Counts = Counts {
        events: 0,
        reads: 0,
        writes: 0,
        others: 0,
        errors: 0,
        reconnects: 0,
        bytes_read: 0,
        bytes_written: 0,
    };

    /// Combines both, counter by counter. Destructured by name, so that a new counter cannot be forgotten.
    fn zip(self, other: Counts, with: impl Fn(u64, u64) -> u64) -> Counts {
        let Counts {
            events,
            reads,
            writes,
            others,
            errors,
            reconnects,
            bytes_read,
            bytes_written,
        } = other;
        Counts {
            events: with(self.events, events),
            reads: with(self.reads, reads),
            writes: with(self.writes, writes),
            others: with(self.others, others),
            errors: with(self.errors, errors),
            reconnects: with(self.reconnects, reconnects),
            bytes_read: with(self.bytes_read, bytes_read),
            bytes_written: with(self.bytes_written, bytes_written),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        *self = self.zip(other, |a, b| a + b);
    }
}

impl Sub for Counts {
    type Output = Counts;

    /// Difference to an earlier reading.
    fn sub(self, earlier: Counts) -> Counts {
        self.zip(earlier, u64::saturating_sub)
    }
}

/// The counters of one worker: written by its thread alone, read by any.
#[derive(Debug, Default)]
pub struct Meter {
    events: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    others: AtomicU64,
    errors: AtomicU64,
    reconnects: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl Meter {
    /// Adds to the counters.
    #[inline]
    pub fn add(&self, counts: Counts) {
        let Counts {
            events,
            reads,
            writes,
            others,
            errors,
            reconnects,
            bytes_read,
            bytes_written,
        } = counts;
        // There is one writer, so a sum needs no locked instruction.
        let add = |cell: &AtomicU64, count: u64| {
            if count > 0 {
                cell.store(cell.load(Relaxed) + count, Relaxed);
            }
        };
        add(&self.events, events);
        add(&self.reads, reads);
        add(&self.writes, writes);
        add(&self.others, others);
        add(&self.errors, errors);
        add(&self.reconnects, reconnects);
        add(&self.bytes_read, bytes_read);
        add(&self.bytes_written, bytes_written);
    }

    /// Current counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            events: self.events.load(Relaxed),
            reads: self.reads.load(Relaxed),
            writes: self.writes.load(Relaxed),
            others: self.others.load(Relaxed),
            errors: self.errors.load(Relaxed),
            reconnects: self.reconnects.load(Relaxed),
            bytes_read: self.bytes_read.load(Relaxed),
            bytes_written: self.bytes_written.load(Relaxed),
        }
    }
}
