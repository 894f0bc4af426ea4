//! What the crates below the program do on a real PostgreSQL.

pub mod cluster;
mod connection;
mod workloads;
