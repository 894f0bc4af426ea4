//! `dbduel check`: which tables of which server, and what they are held against.

use std::path::PathBuf;

use clap::Args;

use super::connection::{Server, Tls};
use super::values::key_and_value;

/// `dbduel check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Which server, and how to log in.
    #[command(flatten)]
    pub server: Server,
    /// Whose conditions; `dbduel workloads` lists the names. A record given to --against names its own.
    #[arg(long, value_name = "NAME", required_unless_present = "against")]
    pub workload: Option<String>,
    /// Parameters that the tables were loaded with; a record given to --against has its own.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_and_value)]
    pub set: Vec<(String, String)>,
    /// Database with the workload's tables.
    #[arg(long, default_value = "dbduel", value_name = "NAME")]
    pub database: String,
    /// How the connection uses TLS.
    #[command(flatten)]
    pub tls: Tls,
    /// Check also what holds only before the first transaction.
    #[arg(long)]
    pub fresh: bool,
    /// Compare with what a server had acknowledged: a record, or a file that `load --commits` wrote.
    #[arg(long, value_name = "RECORD|FILE")]
    pub against: Option<PathBuf>,
    /// Whose log of the record it is, when the record has several contenders.
    #[arg(long, value_name = "NAME", requires = "against")]
    pub contender: Option<String>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}
