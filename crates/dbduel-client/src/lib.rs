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
//! Clients take part in the slices of a contest, or in a run in sysbench's sense, whose gate and metrics are in [`run`].
//! Their random values come from [`random`] and [`distributions`].

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
    Group, Pacing, PreparationCount, Readiness, RunClock, RunContext, RunEvents, Shared, Slice,
    SliceSpec, StatementClock, Trace, WorkloadRun, preparations, start_client,
};
