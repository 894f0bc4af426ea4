//! The verbs of the command line: each reads its arguments, calls the half of the house that does
//! the work, and prints.

pub mod audit;
pub mod check;
pub mod datasets;
pub mod drive;
pub mod export;
pub mod fail_if;
pub mod history;
pub mod http;
pub mod load;
mod login;
mod metrics;
pub mod quickstart;
mod record_reports;
pub mod report;
pub mod run;
pub mod selftest;
pub mod servers;
pub mod sweep;
pub mod sysbench;
pub mod verify;
pub mod watch;
pub mod workloads;
