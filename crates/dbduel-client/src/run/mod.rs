//! A run in sysbench's sense: permission to begin events, metrics, and the end of the run.
//!
//! An *event* is sysbench's word for a transaction; the tests of the machine (`dbduel-sysbench`) have events that are not
//! transactions, so the word is kept here. A run differs from a slice of a contest in behaviour that users' scripts rely
//! on: the number of events can be limited, an event in progress when the time is over is finished and counted, and an
//! error that is not on a list ends the run.
//!
//! ```text
//! schedule ─► gate ─► a worker's events ─► metrics
//! ```
//!
//! Events themselves and the threads of the workers are in `dbduel-sysbench`.

pub mod advice;
mod counts;
mod gate;
mod ignored;
mod interval_stats;
mod metrics;
mod queue;

use std::time::Duration;

use dbduel_record::plan::Arrival;

use crate::schedule::Schedule;
pub use counts::{Counts, Meter};
pub use gate::{Gate, Ticket};
pub use ignored::IgnoredErrors;
pub use interval_stats::{IntervalStats, Share};
pub use metrics::RunMetrics;
pub use queue::Queue;

/// Limits of a run, and the arrival of its events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Events of all workers; `None` for no limit.
    pub events: Option<u64>,
    /// Time after the warm-up; `None` for no limit. An event in progress then is finished.
    pub time: Option<Duration>,
    /// Poisson arrival rate, events per second; `None` for a closed loop.
    pub per_second: Option<f64>,
    /// Time in which events do not count towards the limit.
    pub warm_up: Duration,
    /// Root of the random stream of the arrivals.
    pub seed: u64,
}

impl Limits {
    /// Due instants of all workers' events; `None` for a closed loop.
    fn schedule(&self) -> Option<Schedule> {
        let end = self.time.map_or(Duration::MAX, |time| self.warm_up + time);
        let arrival = Arrival::Poisson {
            per_second: self.per_second?,
        };
        let schedule = Schedule::new(
            arrival,
            crate::share::Share::WHOLE,
            nanoseconds(end),
            self.seed,
        );
        Some(schedule)
    }
}

/// A duration in nanoseconds; saturates at 584 years.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
impl Limits {
    /// Limits of a run that ends on request.
    pub(crate) const ENDLESS: Limits = Limits {
        events: None,
        time: None,
        per_second: None,
        warm_up: Duration::ZERO,
        seed: 1,
    };
}
