//! Turns an order into load.
//!
//! The load process obeys orders and never chooses: how many clients, which statements, when each
//! transaction is due and for how long are numbers that it is given. It starts no server and judges
//! nothing; what it brings back are counts and histograms.
//!
//! ```text
//! order ─► drive ─► load_thread ─► executor ─► worker ─► workloads ─► driver ─► server
//!            ▲                                   │  ▲
//! answer ◄───┴────────────── tally ◄─────────────┘  └── schedule
//! ```
//!
//! A run as sysbench understands it has [`bridge`] for the load threads, and its gate and its metrics ([`run`]) for the schedule
//! and the tally of a slice; the clients in [`worker`] are the same.

mod answer_sum;
pub mod bridge;
pub mod drive;
pub mod fill;
mod heartbeat;
pub mod load_thread;
pub mod locked_memory;
pub mod lua;
pub mod machine;
pub mod monotonic;
pub mod order;
pub mod workloads;
