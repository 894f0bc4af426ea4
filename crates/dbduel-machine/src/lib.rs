//! Services of the machine: clocks, interrupts, fresh random values, and facts about it.
//!
//! With the feature `simulated`, which is for tests, a thread can have its own time and user.

pub mod clock;
pub mod host;
pub mod interrupt;
pub mod random;
