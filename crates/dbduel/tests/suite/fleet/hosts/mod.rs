//! Contests with load from other machines: each host is a network namespace with an address of its own.

mod contests;
mod faults;
mod machines;
mod servers;

use self::machines::{Machines, SERVERS};
use crate::suite::lab::{short_experiment, with_budget};

const SERVER: &str = "mariadb-10.11";
/// Time for a break of some seconds, which counts as used. The contest ends with its verdict.
const BUDGET: &str = "20 s";
/// Longer than a contest bears the silence of a host, which counts as used. It ends with its verdict.
const LONG_BUDGET: &str = "90 s";
const HOSTS: [&str; 2] = ["load1", "load2"];

const HANDICAP: &str = "[injection]\ncontender = \"second\"\nstopped = \"50 %\"\n";

/// A duel with a known answer: the second server is stopped half of the time.
fn experiment(extra: &str) -> String {
    let extra = format!("{HANDICAP}[limits]\nserver_start = \"60 s\"\n{extra}");
    short_experiment([SERVER, SERVER], &extra)
}

/// That duel with load from [`HOSTS`].
fn hosts_experiment() -> String {
    with_budget(&experiment(&hosts_section()), BUDGET)
}

/// What has an experiment take its load from [`HOSTS`].
fn hosts_section() -> String {
    let [first, second] = HOSTS;
    format!("[hosts]\nservers = \"{SERVERS}\"\nload = [\"{first}\", \"{second}\"]\n")
}

/// Load hosts without agents, and as `duel.toml` a short contest for them. `None`, and the test counts as ignored, where that is
/// not possible.
fn without_agents() -> Option<Machines> {
    Machines::start(&HOSTS, &hosts_experiment())
}

/// As [`two_hosts`], with time for an outage of a minute.
fn two_hosts_for_long() -> Option<Machines> {
    let text = with_budget(&experiment(&hosts_section()), LONG_BUDGET);
    Machines::start(&HOSTS, &text).map(with_agents)
}

/// As [`without_agents`], with their agents.
fn two_hosts() -> Option<Machines> {
    without_agents().map(with_agents)
}

/// As [`two_hosts`], over TLS and with credentials.
fn two_secured_hosts() -> Option<Machines> {
    Machines::start_secured(&HOSTS, &hosts_experiment()).map(with_agents)
}

fn with_agents(mut machines: Machines) -> Machines {
    for name in HOSTS {
        machines.start_agent(name);
    }
    machines
}
