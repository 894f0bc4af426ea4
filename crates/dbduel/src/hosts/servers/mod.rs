//! Servers of a contest on other machines than the orchestrator's.
//!
//! The contest prepares, starts, freezes and stops such a server by orders ([`ServerOrder`]), one at a time. They go through a
//! link ([`link`]) to the agent of the host, which runs a process that obeys them ([`serve`]) with a sandbox as a contest on one
//! machine has. Questions in SQL go to the server itself.

pub mod link;
mod observed;
pub mod permitted;
pub mod serve;
pub mod shared;

use std::fmt;

use dbduel_record::Plan;
use dbduel_record::event::LoadTime;
use dbduel_record::facts::{FileSizes, ServerHost};
use dbduel_record::plan::Injection;
use serde::{Deserialize, Serialize};

pub use observed::HostObserved;

use crate::lab::contest::InjectedTime;
use crate::lab::snapshots::Description;
use dbduel_server::Build;

/// What is to be done with the server of one contender.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServerOrder {
    /// Index into the plan's contenders.
    pub contender: usize,
    pub what: ServerTask,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum ServerTask {
    /// Fetch the server if need be, make its sandbox, check its settings.
    Prepare {
        /// Name of the folder that the sandboxes of the run share.
        run: String,
        plan: Box<Plan>,
        /// SHA-256 of the server's packed files, where hosts have them from the orchestrator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<String>,
    },
    /// Put its data in place and start it.
    Start {
        /// With the data that it has, when there are any.
        keeps_data: bool,
    },
    /// Keep its loaded data as a snapshot, for which it is stopped and started.
    KeepData { load: LoadTime },
    /// Start it again on its data.
    Restart,
    /// Stop all its threads.
    Freeze,
    /// Let them run.
    Thaw,
    /// Say whether it runs.
    Health,
    /// Begin to watch a turn of it.
    Watch,
    /// The measured part of the turn begins so many seconds from now, or began as many before, and takes so long.
    Measure { opens_in_s: f64, length_s: f64 },
    /// Say what was seen of the turn.
    EndWatch,
    /// Begin a turn with a handicap, which continues that of the turn before.
    ResumeInjection { injection: Injection },
    /// Leave it awake, and say for how long it was stopped.
    PauseInjection,
    /// Say how large its files are.
    Sizes,
    /// Send its configuration and its log.
    Files,
    /// Stop it in order.
    Stop,
    /// Remove its sandbox.
    Remove,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ServerAnswer {
    /// The agent obeys from now on; by the link, before all others.
    Attached {
        host: Box<ServerHost>,
    },
    /// The host is out of reach. The link ends with this answer.
    Unreachable {
        why: String,
    },
    /// The host was out of reach for so long and is in reach again. By the link, before the next answer.
    WasSilent {
        seconds: f64,
    },
    /// The files of the server are not here and were not stored; they are wanted.
    ServerWanted,
    /// The sandbox is there.
    Prepared {
        build: Box<Build>,
        /// The kernel of the host counts more than processes write.
        overcounts_writes: bool,
        /// Names of settings, and what the server says of them.
        notices: Vec<(String, String)>,
    },
    /// The server answers.
    Started {
        /// What was restored; absent where it has its own data, or none.
        restored: Option<Description>,
        /// Whether it has the data that it had.
        kept_data: bool,
        server: StartedServer,
    },
    /// It was done.
    Done,
    /// The server ended by itself.
    Ended {
        how: String,
    },
    Observed {
        seen: HostObserved,
    },
    /// How long the turn had the server stopped and awake.
    Injected(InjectedTime),
    Sizes {
        files: FileSizes,
    },
    Files {
        config: String,
        log: String,
        /// What of the log is of this start.
        log_since_start: String,
    },
    /// The server refuses a setting.
    RefusedSetting {
        name: String,
        value: Option<String>,
        said: String,
    },
    /// It could not be done.
    Failed {
        why: String,
    },
}

/// How a started server is reached.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct StartedServer {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    /// From the start of the process to the first login, seconds.
    pub ready_after_s: f64,
}

impl fmt::Debug for StartedServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StartedServer")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("ready_after_s", &self.ready_after_s)
            .finish_non_exhaustive()
    }
}
