//! Turns an order into load.
//!
//! The load process executes orders and makes no choices: number of clients, statements, due times and durations are
//! given. It starts no server and judges nothing; its results are counts and histograms.
//!
//! ```text
//! order ─► drive ─► load_thread ─► clients of a workload ─► server
//!            ▲                              │
//! answer ◄───┴──────────── tally ◄──────────┘
//! ```
//!
//! The clients are in `dbduel-client`, their workloads in `dbduel-workloads`.

mod answer_sum;
pub mod drive;
mod heartbeat;
pub mod load_thread;
pub mod locked_memory;
pub mod monotonic;
pub mod order;
