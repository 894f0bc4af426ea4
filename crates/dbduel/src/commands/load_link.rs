//! `dbduel load-link`: the load process of a contest with load hosts.

use anyhow::{Context as _, Result};
use clap::Args;
use dbduel_fleet::hosts::Asker;
use dbduel_fleet::hosts::load::{self, LinkConfig};
use dbduel_load::drive::take_standard_input;

use super::nats::{NATS_TIMEOUT, NatsArguments};
use crate::exit::Exit;

/// Options of `dbduel load-link`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// Name of the agent of a load host; once for each.
    #[arg(long = "host", required = true)]
    hosts: Vec<String>,
    /// Threads of each load process.
    #[arg(long)]
    threads: u32,
    /// Microseconds that a waiting thread polls before it sleeps.
    #[arg(long, default_value_t = 0)]
    busy_poll_us: u32,
    /// Name of the contest in messages.
    #[arg(long)]
    contest: String,
    /// Identity of the orchestrating process.
    #[arg(long)]
    orchestrator: String,
}

/// Executes orders until standard input ends.
///
/// # Errors
/// When the answers cannot be written.
pub fn load_link(arguments: &Arguments) -> Result<Exit> {
    let input = take_standard_input().context("could not reserve standard input for orders")?;
    let name = format!("dbduel run, load of {}", arguments.contest);
    let nats = match arguments.nats.connect_within(&name, NATS_TIMEOUT) {
        Ok(nats) => nats,
        Err(error) => {
            load::refuse(std::io::stdout(), format!("{error:#}"))?;
            return Ok(Exit::Done);
        }
    };
    let config = LinkConfig {
        hosts: arguments.hosts.clone(),
        asker: Asker {
            contest: arguments.contest.clone(),
            orchestrator: arguments.orchestrator.clone(),
        },
        threads: arguments.threads,
        busy_poll_us: arguments.busy_poll_us,
    };
    let input = std::io::BufReader::new(input);
    load::run(&nats, &config, input, std::io::stdout())?;
    Ok(Exit::Done)
}
