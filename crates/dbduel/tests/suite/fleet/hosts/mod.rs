//! Contests with load from other machines: each host is a network namespace with an address of its own.

mod contests;
mod faults;
mod machines;
mod servers;

use std::sync::MutexGuard;

use self::machines::{Machines, SERVERS};
use crate::suite::lab::{short_experiment, with_servers};

const SERVER: &str = "mariadb-10.11";
const HOSTS: [&str; 2] = ["load1", "load2"];

/// A duel with a known answer: the second server is stopped half of the time.
fn experiment(extra: &str) -> String {
    let extra = format!(
        "[injection]\ncontender = \"second\"\nstopped = \"50 %\"\n[limits]\nserver_start = \"60 s\"\n{extra}"
    );
    short_experiment([SERVER, SERVER], &extra)
}

/// That duel with load from [`HOSTS`].
fn hosts_experiment() -> String {
    experiment(&hosts_section())
}

/// What has an experiment take its load from [`HOSTS`].
fn hosts_section() -> String {
    let [first, second] = HOSTS;
    format!("[hosts]\nservers = \"{SERVERS}\"\nload = [\"{first}\", \"{second}\"]\n")
}

/// The turn to run contests, and machines for them.
type Prepared = (MutexGuard<'static, ()>, Machines);

/// Waits for the turn to run contests; load hosts without agents, and as `duel.toml` a short contest for them. `None`, and the
/// test counts as ignored, where that is not possible.
fn without_agents() -> Option<Prepared> {
    made_by(Machines::start)
}

/// As [`without_agents`], with their agents.
fn two_hosts() -> Option<Prepared> {
    without_agents().map(with_agents)
}

/// As [`two_hosts`], over TLS and with credentials.
fn two_secured_hosts() -> Option<Prepared> {
    made_by(Machines::start_secured).map(with_agents)
}

fn made_by(start: fn(&[&str], &str) -> Option<Machines>) -> Option<Prepared> {
    let turn = with_servers("load hosts", &[SERVER])?;
    // Enough for all blocks that a plan must have.
    let short = hosts_experiment().replacen("26 s", "20 s", 1);
    Some((turn, start(&HOSTS, &short)?))
}

fn with_agents((turn, mut machines): Prepared) -> Prepared {
    for name in HOSTS {
        machines.start_agent(name);
    }
    (turn, machines)
}
