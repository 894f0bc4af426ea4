//! `dbduel workloads`: all of them, or one with its parameters.

use clap::Args;

/// `dbduel workloads`.
#[derive(Debug, Args)]
pub struct Workloads {
    /// Show this one with its parameters.
    pub name: Option<String>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}
