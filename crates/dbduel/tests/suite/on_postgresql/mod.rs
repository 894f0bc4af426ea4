//! What the program and the crates below it do on a real PostgreSQL.

mod addresses;
mod anonymised;
mod answers;
mod captured;
pub mod cluster;
mod connection;
mod contests;
mod dumps;
mod faults;
mod linkbench;
mod microbenchmarks;
mod order_entry;
mod statement_watch;
mod sysbench;
mod sysbench_scripts;
mod workloads;
