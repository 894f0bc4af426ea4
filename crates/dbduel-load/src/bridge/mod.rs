//! Carries the workers of a run: threads for the tests of the machine, event loops for clients of workloads and of
//! scripts.
//!
//! ```text
//! run (who may begin, what was counted)
//!   ├── threads ────────────────► machine
//!   └── load_threads ─┬ workload ► worker ► driver
//!                     └ script ──► lua ───► driver
//! ```
//!
//! The clocks, the statements and the event loop are those of contests. Prints nothing and knows no option's name.

pub mod bulk_insert;
mod load_threads;
pub mod script;
pub mod threads;
pub mod workload;

pub use load_threads::LoadThreads;
