//! `dbduel agent`: this machine in a fleet.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use super::nats::NatsArguments;
use super::run::clear_leftovers;
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::fleet::Fleet;
use crate::fleet::agent::{Agent, plain_name};
use crate::fleet::work::Worker;
use crate::home;
use crate::interrupt::{self, Urgency};
use crate::lab::host;

/// Between two looks at signals of an agent that takes no cells.
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
    /// With --work, end when the queue has nothing left.
    #[arg(long, requires = "work")]
    until_empty: bool,
}

/// Answers questions of the fleet and works until a signal ends it.
///
/// # Errors
/// When NATS cannot be reached, the fleet is of another version, or a record cannot be delivered.
pub fn agent(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let home = home::find(home)?;
    let machine = || fs::read_to_string(HOST_NAME).unwrap_or_default();
    let name = plain_name(&arguments.name.clone().unwrap_or_else(machine));
    ensure!(
        !name.is_empty(),
        "this machine has no name; give the agent one with `--name`"
    );
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let nats = arguments.nats.connect(&format!("dbduel agent {name}"))?;
    let fleet = Fleet::open(&nats)?;
    let agent = Agent::start(&nats, &name, &host::read(home.root()), arguments.work)?;
    console::status_line(&format!(
        "agent {name} at {} ({})",
        nats.url(),
        if arguments.work {
            "takes cells"
        } else {
            "takes no cells; --work makes it"
        }
    ));
    if arguments.work {
        let worker = Worker::new(&fleet, &agent, &home)?;
        // A contest that was killed together with its agent may have left servers.
        let console = Console::new();
        clear_leftovers(&home, &console);
        console.finish();
        worker.work(arguments.until_empty)?;
    } else {
        while interrupt::urgency() == Urgency::None {
            std::thread::sleep(POLL);
        }
    }
    Ok(Exit::Done)
}
