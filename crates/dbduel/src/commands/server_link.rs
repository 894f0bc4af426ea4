//! `dbduel server-link`: the link of a contest to a host of its servers.

use anyhow::{Context as _, Result};
use clap::Args;
use dbduel_fleet::hosts::Asker;
use dbduel_fleet::hosts::servers::link;
use dbduel_load::drive::take_standard_input;

use super::nats::{NATS_TIMEOUT, NatsArguments};
use crate::exit::Exit;

/// Options of `dbduel server-link`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// Name of the agent.
    #[arg(long)]
    host: String,
    /// Name of the contest in messages.
    #[arg(long)]
    contest: String,
    /// Identity of the orchestrating process.
    #[arg(long)]
    orchestrator: String,
}

/// Passes orders on until standard input ends.
///
/// # Errors
/// When the answers cannot be written.
pub fn server_link(arguments: &Arguments) -> Result<Exit> {
    let input = take_standard_input().context("could not reserve standard input for orders")?;
    let name = format!("dbduel run, servers of {}", arguments.contest);
    let nats = match arguments.nats.connect_within(&name, NATS_TIMEOUT) {
        Ok(nats) => nats,
        Err(error) => {
            link::refuse(std::io::stdout(), format!("{error:#}"))?;
            return Ok(Exit::Done);
        }
    };
    let asker = Asker {
        contest: arguments.contest.clone(),
        orchestrator: arguments.orchestrator.clone(),
    };
    let input = std::io::BufReader::new(input);
    link::run(&nats, &arguments.host, &asker, input, std::io::stdout())?;
    Ok(Exit::Done)
}
