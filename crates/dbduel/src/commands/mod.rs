//! The verbs of the command line: each reads its arguments, calls the half of the house that does
//! the work, and prints.

pub mod audit;
pub mod check;
pub mod datasets;
pub mod drive;
pub mod export;
pub mod load;
pub mod quickstart;
pub mod report;
pub mod run;
pub mod servers;
pub mod watch;
pub mod workloads;
