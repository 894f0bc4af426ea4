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
mod limits;
mod metrics;

pub use arrivals::Queue;
pub use counts::{Counts, Meter};
pub(crate) use entry::{Entry, pause};
pub use gate::{Gate, Ticket};
pub use ignored::IgnoredErrors;
pub use interval_stats::{IntervalStats, Share};
pub use limits::Limits;
pub use metrics::RunMetrics;
