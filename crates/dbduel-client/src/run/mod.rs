//! A run as sysbench understands it: who may begin an event and when, what was counted, and when it is over.
//!
//! An *event* is sysbench's word for what everything else in the project calls a transaction; the tests of the machine
//! (`dbduel-sysbench`) have events that are no transactions, so the word is kept here. A run differs from a slice of a
//! contest in what people's scripts rely on: the number of events can be limited, an event that is running when the
//! time is over is finished and counted, an error that is not on a list ends the run.
//!
//! ```text
//! schedule ─► gate ─► a worker's events ─► metrics
//! ```
//!
//! Knows neither what an event is nor which threads carry the workers: that is in `dbduel-sysbench`.

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

impl Limits {
    /// When the events of all workers fall due; none when each worker takes the next one at once.
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

/// In nanoseconds; of more than 584 years as many as fit.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
impl Limits {
    /// Of a run that ends on request.
    pub(crate) const ENDLESS: Limits = Limits {
        events: None,
        time: None,
        per_second: None,
        warm_up: Duration::ZERO,
        seed: 1,
    };
}
