//! The engine of a run as sysbench understands it: who may begin an event and when, what was counted, and when it is over.
//!
//! An *event* is sysbench's word for what everything else in the project calls a transaction; the tests of the machine
//! ([`crate::machine`]) have events that are no transactions, so the word is kept here. A run differs from a slice of a
//! contest in what people's scripts rely on: the number of events can be limited, an event that is running when the
//! time is over is finished and counted, an error that is not on a list ends the run.
//!
//! ```text
//! arrivals ─► gate ─► entry (clients of event loops) ─► a worker's events ─► metrics
//! ```
//!
//! Knows neither what an event is nor who carries the workers: that is [`crate::bridge`].

mod arrivals;
mod counts;
mod entry;
mod gate;
mod ignored;
mod interval_stats;
mod metrics;

use std::time::Duration;

pub use arrivals::Queue;
pub use counts::{Counts, Meter};
pub(crate) use entry::{Entry, pause};
pub use gate::{Gate, Ticket};
pub use ignored::IgnoredErrors;
pub use interval_stats::{IntervalStats, Share};
pub use metrics::RunMetrics;

/// When a run is over, and how its events come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Events of all workers; none for no limit.
    pub events: Option<u64>,
    /// Time after the warm-up; none for no limit. An event that is running then is finished.
    pub time: Option<Duration>,
    /// Events that fall due per second in a Poisson process; none when each worker takes the next one at once.
    pub per_second: Option<f64>,
    /// Time in which events are not counted towards the limit.
    pub warm_up: Duration,
    /// Root of the random stream that the arrivals come from.
    pub seed: u64,
}

#[cfg(test)]
impl Limits {
    /// Of a run that ends when it is told to.
    pub(crate) const ENDLESS: Limits = Limits {
        events: None,
        time: None,
        per_second: None,
        warm_up: Duration::ZERO,
        seed: 1,
    };
}
