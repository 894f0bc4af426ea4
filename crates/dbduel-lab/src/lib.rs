//! The lab: runs contests and writes records, from an experiment to servers under load.

pub mod busy_poll;
pub mod combinations;
pub mod contest;
pub mod coverage;
#[cfg(feature = "crash-test")]
pub mod crash;
pub mod dataset;
pub mod drive;
pub mod forecast;
pub mod interpreted;
pub mod line_process;
pub mod load_processes;
pub mod observe;
pub mod outage;
pub mod server_host;
pub mod snapshots;
mod status_output;

pub use status_output::StatusOutput;
