//! `dbduel verify`: which record.

use std::path::PathBuf;

use clap::Args;

/// `dbduel verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// The directory of a record.
    pub record: PathBuf,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}
