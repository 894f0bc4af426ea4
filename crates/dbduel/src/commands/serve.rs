//! `dbduel serve`: the process on a host that runs servers for a contest of another machine.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use dbduel_fleet::hosts::servers::serve;
use dbduel_load::drive::take_standard_input;
use dbduel_machine::interrupt;

use super::nats::OptionalNatsArguments;
use super::run::clear_leftovers;
use crate::console::Console;
use crate::exit::Exit;
use crate::home;

/// Options of `dbduel serve`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Address on which servers listen for clients.
    #[arg(long)]
    address: IpAddr,
    /// Where hosts share data and servers, if they do.
    #[command(flatten)]
    nats: OptionalNatsArguments,
}

/// Executes orders until standard input ends or a signal arrives, then ends the servers.
///
/// # Errors
/// When the answers cannot be written.
pub fn serve(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let home = home::find(home)?;
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let input = take_standard_input().context("could not reserve standard input for orders")?;
    // A process of an earlier contest that was killed may have left servers.
    let console = Console::new();
    clear_leftovers(&home, &console);
    console.finish();
    let input = std::io::BufReader::new(input);
    let (address, nats) = (arguments.address, arguments.nats.access()?);
    serve::serve(&home, address, nats, input, std::io::stdout())?;
    Ok(Exit::Done)
}
