//! What the crates below the program do on real servers. Their tests are here because the program fetches the servers.

pub mod anonymised;
pub mod answers;
mod capture;
pub mod captured;
mod connection;
pub mod database;
pub mod dumps;
pub mod filling;
pub mod insert_benchmark;
pub mod linkbench;
pub mod microbenchmarks;
pub mod order_entry;
pub mod plans;
pub mod script_server;
mod scripts;
pub mod server;
pub mod server_dumps;
mod stock_scripts;
mod wire;
pub mod workload;
