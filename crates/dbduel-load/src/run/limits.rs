//! What was asked of a run: how long, how many events, and how often.

use std::time::Duration;

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
