//! The machine of a process: its clocks, requests to end, fresh random values, and facts about it.
//!
//! With the feature `simulated`, which is for tests, a thread may have a time and a user of its own.

pub mod clock;
pub mod host;
pub mod interrupt;
pub mod random;
