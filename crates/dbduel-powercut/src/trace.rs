//! The events of a volume, in order.

use crate::change::Change;
use crate::image::{Image, Ino};

/// A recorded event.
#[derive(Debug, Clone)]
pub enum Event {
    /// A change that no sync covers yet.
    Change(Change),
    /// A write that was durable when it returned (`O_DSYNC`, `O_SYNC`).
    DurableWrite(Change),
    /// A file or directory was synced.
    Sync {
        /// The inode.
        ino: Ino,
        /// By `fdatasync`.
        data_only: bool,
    },
}

/// An event with its time of arrival.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Arrival, nanoseconds of `CLOCK_MONOTONIC`: before the event took effect.
    pub at_ns: u64,
    /// The event.
    pub event: Event,
}

/// The durable initial state of a volume, and all later events.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The disk before the first entry.
    pub base: Image,
    /// In the order in which they took effect.
    pub entries: Vec<Entry>,
    /// When the recording ended, nanoseconds of `CLOCK_MONOTONIC`.
    pub ended_ns: u64,
    /// True when it ended early because it had become too large.
    pub is_full: bool,
}

impl Trace {
    /// When the power fails if it fails before the entry at this position.
    #[must_use]
    pub fn cut_ns(&self, position: usize) -> u64 {
        self.entries
            .get(position)
            .map_or(self.ended_ns, |entry| entry.at_ns)
    }
}
