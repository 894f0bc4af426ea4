//! `dbduel drive`: the load process.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use dbduel_client::share::HostShare;
use dbduel_load::drive::{Threads, take_standard_input};
use dbduel_load::locked_memory::keep_in_memory;

use crate::exit::Exit;

/// Options of `dbduel drive`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Threads that drive clients.
    #[arg(long)]
    pub threads: u32,
    /// Microseconds that a waiting thread polls before it sleeps.
    #[arg(long, default_value_t = 0)]
    pub busy_poll_us: u32,
    /// Processors to run on, separated by commas.
    #[arg(long, value_delimiter = ',', num_args = 0..)]
    pub cores: Vec<String>,
    /// Number of this load host, from 0.
    #[arg(long, default_value_t = 0)]
    pub host: u32,
    /// Number of load hosts.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub hosts: u32,
}

/// Executes orders until standard input ends.
///
/// # Errors
/// When the load cannot be driven at all.
pub fn drive(arguments: &Arguments) -> Result<Exit> {
    let cores = arguments
        .cores
        .iter()
        .filter(|core| !core.is_empty())
        .map(|core| {
            core.parse()
                .with_context(|| format!("`{core}` is not a processor number"))
        })
        .collect::<Result<Vec<u32>>>()?;
    keep_in_memory();
    let input = take_standard_input().context("could not reserve standard input for orders")?;
    let input = std::io::BufReader::new(input);
    let threads = Threads {
        count: arguments.threads,
        busy_poll: Duration::from_micros(arguments.busy_poll_us.into()),
        share: HostShare {
            host: arguments.host,
            hosts: arguments.hosts,
        },
    };
    dbduel_load::drive::drive(input, std::io::stdout(), threads, &cores)?;
    Ok(Exit::Done)
}
