//! A run as sysbench understands it: workers that take events until a limit is reached.
//!
//! An *event* is sysbench's word for what everything else in the project calls a transaction; the tests of the machine
//! ([`crate::machine`]) have events that are no transactions, so the word is kept here. A run differs from a slice of a
//! contest in what people's scripts rely on: the number of events can be limited, an event that is running when the
//! time is over is finished and counted, an error that is not on a list ends the run. The clocks, the statements and
//! the event loop are the same.
//!
//! ```text
//! gate (who may begin, and when) ─► sql (clients on event loops) ──┐
//!                                └► threads (machine tests) ───────┴─► ledger (what was counted)
//! ```
//!
//! Prints nothing and knows no option's name.

pub mod bulk_insert;
pub mod gate;
pub mod ledger;
pub mod sql;
pub mod threads;
