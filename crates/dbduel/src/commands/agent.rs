//! `dbduel agent`: this machine in a fleet, or as a host of load or servers.

use std::fs;
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use dbduel_fleet::Fleet;
use dbduel_fleet::agent::{Agent, Offer, plain_name};
use dbduel_fleet::hosts::service::{self, Service};
use dbduel_fleet::work::Worker;
use dbduel_machine::host;
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_server::create_folder;

use super::nats::NatsArguments;
use super::run::clear_leftovers;
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::home;

/// Interval between checks for signals in an agent that takes no cells.
const POLL: Duration = Duration::from_millis(100);
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Options of `dbduel agent`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// Name of this agent in the fleet [default: the name of the machine].
    #[arg(long, value_name = "HOST")]
    name: Option<String>,
    /// Take cells from the work queue and run them, one at a time.
    #[arg(long)]
    work: bool,
    /// Drive load for contests on other machines, which name this agent in `[hosts]`; one contest at a time.
    #[arg(long, conflicts_with = "work")]
    load: bool,
    /// Run servers for contests on other machines, which name this agent as a `host`; one contest at a time. Servers listen for
    /// clients on this address.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["work", "load"])]
    servers: Option<IpAddr>,
    /// With --servers, exchange loaded data with other hosts of a contest, and take servers from its orchestrator, through the
    /// object store of NATS. This lets all who may write that store or give this agent orders do anything that its user may do.
    #[arg(long, requires = "servers")]
    share: bool,
    /// With --work, end when the queue has nothing left.
    #[arg(long, requires = "work")]
    until_empty: bool,
}

/// Answers questions of the fleet and takes cells, drives load or runs servers until a signal ends it.
///
/// # Errors
/// When NATS cannot be reached, the fleet has another version, or a record cannot be delivered.
pub fn agent(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let home = home::find(home)?;
    let machine = || fs::read_to_string(HOST_NAME).unwrap_or_default();
    let name = plain_name(&arguments.name.clone().unwrap_or_else(machine));
    ensure!(
        !name.is_empty(),
        "this machine has no name; give the agent one with `--name`"
    );
    if let Some(address) = arguments.servers {
        check_address(address)?;
    }
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let nats = arguments.nats.connect(&format!("dbduel agent {name}"))?;
    if arguments.servers.is_some() {
        // The facts of its file system are those of the servers' data.
        create_folder(home.root())
            .with_context(|| format!("could not create `{}`", home.root().display()))?;
    }
    let facts = host::read(home.root());
    let service = match (arguments.load, arguments.servers) {
        (true, _) => Some(Service::Load),
        (_, Some(address)) => Some(Service::Servers {
            address,
            home: home.clone(),
            nats: arguments.share.then(|| arguments.nats.access()),
        }),
        _ => None,
    };
    let (offer, offered) = match (arguments.work, &service) {
        (true, _) => (Offer::Cells, "takes cells"),
        (_, Some(Service::Load)) => (Offer::Load, "drives load"),
        (_, Some(Service::Servers { .. })) => (Offer::Servers, "runs servers"),
        _ => (
            Offer::Nothing,
            "takes no cells, drives no load and runs no servers; choose with --work, --load or \
             --servers",
        ),
    };
    let start = || -> Result<Agent> {
        let agent = Agent::start(&nats, &name, &facts, offer)?;
        console::status_line(&format!("agent {name} at {} ({offered})", nats.url()));
        Ok(agent)
    };
    // A contest that was killed together with its agent may have left servers.
    let clear = || {
        let console = Console::new();
        clear_leftovers(&home, &console);
        console.finish();
    };
    if let Some(service) = service {
        if matches!(service, Service::Servers { .. }) {
            clear();
        }
        // Nothing of the queue is needed, nor JetStream.
        service::serve(&nats, &start()?, &facts, &service)?;
        return Ok(Exit::Done);
    }
    let fleet = Fleet::open(&nats)?;
    let agent = start()?;
    if arguments.work {
        let worker = Worker::new(&fleet, &agent, &home)?;
        clear();
        if let Err(error) = worker.work(arguments.until_empty) {
            // A signal is how agents are stopped, so what fails after one is not its consequence.
            console::status_line(&format!("dbduel: {error:#}"));
            return Ok(Exit::Environment);
        }
    } else {
        while interrupt::urgency() == Urgency::None {
            std::thread::sleep(POLL);
        }
    }
    Ok(Exit::Done)
}

/// Refuses an address that no server can listen on, and the unspecified one, which other machines cannot reach.
fn check_address(address: IpAddr) -> Result<()> {
    const REMEDY: &str =
        "give an address of this machine by which the load hosts and the orchestrator reach it";
    ensure!(
        !address.to_canonical().is_unspecified(),
        "`--servers {address}` means all addresses of this machine; {REMEDY}"
    );
    TcpListener::bind((address, 0))
        .with_context(|| format!("no server can listen on {address}; {REMEDY}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_listen_on_one_address_that_this_machine_has() {
        check_address("127.0.0.1".parse().unwrap()).unwrap();
        for (address, why) in [
            ("0.0.0.0", "all addresses"),
            ("::", "all addresses"),
            ("::ffff:0.0.0.0", "all addresses"),
            // Of documentation; no machine has it.
            ("192.0.2.1", "no server can listen on 192.0.2.1"),
        ] {
            let refused = check_address(address.parse().unwrap()).unwrap_err();
            let said = format!("{refused:#}");
            assert!(
                said.contains(why) && said.contains("give an address of this machine"),
                "{said}"
            );
        }
    }
}
