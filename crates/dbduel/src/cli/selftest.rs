//! `dbduel selftest`: two equal contenders, and the difference that is put between them.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::lab::experiment::quantity::{duration, share};

/// `dbduel selftest`.
#[derive(Debug, Args)]
pub struct Selftest {
    /// The server [default: the installed one, or mariadb-10.11].
    #[arg(long, value_name = "SERVER")]
    pub server: Option<String>,
    /// What the clients do.
    #[arg(long, default_value = "oltp-point-select", value_name = "NAME")]
    pub workload: String,
    /// Connections.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub clients: u32,
    /// Time for warm-up and slices of one duel; 40 s or more.
    #[arg(long, default_value = "3 min", value_name = "TIME", value_parser = duration)]
    pub budget: Duration,
    /// Conduct so many duels and count the right verdicts, in place of one for the resolution.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub duels: Option<u32>,
    /// Stop the second server for this share of its slices, a difference that is known: `10 %`.
    #[arg(long, value_name = "SHARE", value_parser = injected, requires = "duels")]
    pub inject: Option<f64>,
    /// Within this the two are called equivalent in a series.
    #[arg(long, default_value = "5 %", value_name = "SHARE", value_parser = share)]
    pub horizon: f64,
    /// Directory that gets the records' directories.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

fn injected(text: &str) -> Result<f64, String> {
    share(text).and_then(|share| match (0.001..=0.9).contains(&share) {
        true => Ok(share),
        false => Err(format!("expected from 0.1 % to 90 %, found `{text}`")),
    })
}
