//! What happened to a volume, in order.

use crate::change::Change;
use crate::image::{Image, Ino};

/// Something that was recorded.
#[derive(Debug, Clone)]
pub enum Event {
    /// A change that no sync covers yet.
    Change(Change),
    /// A write that was durable when it returned (`O_DSYNC`, `O_SYNC`).
    DurableWrite(Change),
    /// A file or directory was synced.
    Sync {
        /// Which.
        ino: Ino,
        /// By `fdatasync`.
        data_only: bool,
    },
}

/// An event and when it arrived.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Arrival, nanoseconds of `CLOCK_MONOTONIC`: before the event took effect.
    pub at_ns: u64,
    /// What arrived.
    pub event: Event,
}

/// The durable beginning of a volume, and everything that followed.
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
