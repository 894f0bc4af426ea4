//! `dbduel watch`: which record or sweep, and where its page is served.

use std::path::PathBuf;

use clap::Args;

/// `dbduel watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// The directory of a record, or of a sweep
    pub record: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}
