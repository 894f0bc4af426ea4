//! Turns an order into load.
//!
//! The load process obeys orders and never chooses: how many clients, which statements, when each
//! transaction is due and for how long are numbers that it is given. It starts no server and judges
//! nothing; what it brings back are counts and histograms.
//!
//! ```text
//! order ─► drive ─► load_thread ─► clients of a workload ─► server
//!            ▲                              │
//! answer ◄───┴──────────── tally ◄──────────┘
//! ```
//!
//! What a client does is in `dbduel-client`, what it is given to do in `dbduel-workloads`.

mod answer_sum;
pub mod drive;
mod heartbeat;
pub mod load_thread;
pub mod locked_memory;
pub mod monotonic;
pub mod order;
