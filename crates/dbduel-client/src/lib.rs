//! The clients of a load: each is one connection and its stream of transactions.
//!
//! ```text
//! Clients (what a workload gives each client to do)
//!    │
//!    ▼
//! worker ── executor of dbduel-driver ──► connection ──► server
//!  ▲   └──► tally, commit_log
//!  └── schedule, share (when a transaction is due, and whose it is)
//! ```
//!
//! Clients take part in the slices of a contest, or in a run as sysbench understands it, whose gate and metrics are in [`run`].
//! What is random about them comes from [`random`] and [`distributions`]. Knows no workload, no table and no order.

pub mod commit_log;
pub mod distributions;
pub mod random;
pub mod run;
pub mod schedule;
pub mod share;
pub mod tally;
mod worker;

pub use worker::{
    Begin, Client, ClientConfig, ClientContext, ClientEnd, ClientTask, ClientWaits, Clients, Duty,
    Group, Pacing, Readiness, RunClock, RunContext, RunEvents, Shared, Slice, SliceSpec, Trace,
    WorkloadRun, start_client,
};
