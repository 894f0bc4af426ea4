//! Contests on several machines: load from hosts, and servers on hosts.
//!
//! An agent ([`service`]) runs one process for one contest at a time, and carries JSON lines between it and the orchestrator's
//! machine, where a process stands in for it: the link. For load ([`load`]) the agents of all hosts run load processes, and the
//! link is the contest's load process. For servers ([`servers`]) there is one link for each host.

mod attach;
mod desk;
pub mod load;
mod network;
pub mod servers;
pub mod service;
#[cfg(test)]
mod simulation;

use network::Network;

pub use attach::Asker;

use std::sync::mpsc::Sender;
use std::time::Duration;

use dbduel_record::facts::ServerHost;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of the protocol between links and agents: subjects, requests, orders and answers.
pub const PROTOCOL: u32 = 3;

/// The line with which a link ends its session.
const BYE: &[u8] = b"bye";
/// Interval between checks of the hosts' silence.
const POLL: Duration = Duration::from_millis(50);
/// Questions to each host about its clock; the quickest answer counts.
const CLOCK_QUESTIONS: usize = 5;
/// Longest wait for such an answer.
const CLOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Time to deliver the last line to each host.
const BYE_TIMEOUT: Duration = Duration::from_millis(500);

/// Work that an agent is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "kebab-case")]
enum HostWork {
    /// A load process.
    Load {
        /// Number of the host in the plan.
        host: u32,
        /// Load hosts of the plan.
        hosts: u32,
        /// Threads of the load process.
        threads: u32,
        /// Time that a waiting thread polls before it sleeps, microseconds.
        busy_poll_us: u32,
    },
    /// Servers.
    Servers,
}

impl HostWork {
    /// Its part of a subject.
    fn word(&self) -> &'static str {
        match self {
            HostWork::Load { .. } => "load",
            HostWork::Servers => "servers",
        }
    }

    /// Title of such a host in messages.
    fn title(&self, name: &str) -> String {
        match self {
            HostWork::Load { .. } => format!("load host `{name}`"),
            HostWork::Servers => format!("server host `{name}`"),
        }
    }

    /// Command that starts its agent.
    fn agent(&self, name: &str) -> String {
        match self {
            HostWork::Load { .. } => format!("dbduel agent --load --name {name}"),
            HostWork::Servers => format!("dbduel agent --servers ADDRESS --name {name}"),
        }
    }

    /// Verb for such work in messages.
    fn verb(&self) -> &'static str {
        match self {
            HostWork::Load { .. } => "drives load",
            HostWork::Servers => "runs servers",
        }
    }
}

/// Request of a link for the work of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AttachRequest {
    protocol: u32,
    /// Version of dbduel that asks.
    dbduel: String,
    /// Identity of the orchestrator. A later session of it replaces an earlier one.
    orchestrator: String,
    /// Name of the contest in messages.
    contest: String,
    /// Identity of the session, part of its subjects.
    session: String,
    work: HostWork,
}

/// Reply of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
enum AttachReply {
    /// The process runs and takes orders.
    Attached { host: Box<ServerHost> },
    /// The host works for another orchestrator.
    Busy {
        contest: String,
        /// Time since it heard that one last, seconds.
        silent_s: f64,
    },
    /// The agent refuses, for this reason.
    Refused { why: String },
}

/// An event in the inbox of a link whose orders are `O`.
enum Event<O> {
    Order(O),
    /// There will be no more orders.
    End,
    /// A line of a host.
    Line {
        host: usize,
        line: Vec<u8>,
    },
}

/// Why a link ends.
enum Stop {
    /// There are no more orders.
    End,
    /// A host is out of reach; the text names it.
    Unreachable(String),
    /// The answers cannot be written.
    Output(std::io::Error),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Stop::Output(error)
    }
}

/// The stop of a link that has not heard a host for `silent`, or any host because NATS is not connected.
fn out_of_reach(network: &impl Network, host: &str, silent: Duration) -> Stop {
    let silent_s = silent.as_secs_f64();
    Stop::Unreachable(match network.is_connected() {
        true => format!("{host} is out of reach for {silent_s:.1} s"),
        false => format!(
            "no host is in reach for {silent_s:.1} s: the connection to nats-server at {} is lost",
            network.url()
        ),
    })
}

/// Reads orders on a thread of its own, which ends with the input or with the process.
fn read<O: DeserializeOwned + Send + 'static>(
    input: impl std::io::BufRead + Send + 'static,
    inbox: Sender<Event<O>>,
) {
    std::thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            // Orders of another build end the link, as the end of the input does.
            let Ok(order) = serde_json::from_str(&line) else {
                break;
            };
            if inbox.send(Event::Order(order)).is_err() {
                return;
            }
        }
        let _ = inbox.send(Event::End);
    });
}

/// Writes a line of an answer.
fn write_answer(output: &mut impl std::io::Write, answer: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *output, answer)?;
    output.write_all(b"\n")?;
    output.flush()
}

/// Subject on which an agent takes [`AttachRequest`]s.
fn attach_subject(work: &str, host: &str) -> String {
    format!("dbduel.{work}.{host}.attach")
}

/// Subject on which an agent reports the identity of its session; nothing where it has none.
fn session_subject(work: &str, host: &str) -> String {
    format!("dbduel.{work}.{host}.session")
}

/// Subject on which an agent reports its monotonic clock, nanoseconds.
fn clock_subject(host: &str) -> String {
    format!("dbduel.load.{host}.clock")
}

fn orders_subject(work: &str, host: &str, session: &str) -> String {
    format!("dbduel.{work}.{host}.orders.{session}")
}

fn answers_subject(work: &str, host: &str, session: &str) -> String {
    format!("dbduel.{work}.{host}.answers.{session}")
}
