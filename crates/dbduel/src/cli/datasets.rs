//! `dbduel datasets`: snapshots of loaded data.

use clap::Subcommand;

/// `dbduel datasets`.
#[derive(Debug, Subcommand)]
pub enum Datasets {
    /// List the snapshots.
    List {
        /// For programs.
        #[arg(long)]
        json: bool,
    },
    /// Remove snapshots.
    Remove {
        /// Identifiers as `datasets list` shows them, or `all`.
        #[arg(required = true)]
        ids: Vec<String>,
    },
}
