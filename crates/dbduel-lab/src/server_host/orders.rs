//! Orders to the server of one contender on another machine, and their answers, as they travel.

use std::fmt;

use dbduel_record::Plan;
use dbduel_record::event::LoadTime;
use dbduel_record::facts::{FileSizes, ServerHost};
use dbduel_record::plan::Injection;
use dbduel_server::Build;
use serde::{Deserialize, Serialize};

use super::observed::HostObserved;
use crate::contest::InjectedTime;
use crate::snapshots::Description;

/// What is to be done with the server of one contender.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServerOrder {
    /// Index into the plan's contenders.
    pub contender: usize,
    /// The order.
    pub what: ServerTask,
}

/// What a host is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum ServerTask {
    /// Fetch the server if need be, make its sandbox, check its settings.
    Prepare {
        /// Name of the folder that the sandboxes of the run share.
        run: String,
        /// The plan of the contest.
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
    KeepData {
        /// What loading them took.
        load: LoadTime,
    },
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
    Measure {
        /// Seconds until it begins; negative where it has begun.
        opens_in_s: f64,
        /// Its length, seconds.
        length_s: f64,
    },
    /// Say what was seen of the turn.
    EndWatch,
    /// Begin a turn with a handicap, which continues that of the turn before.
    ResumeInjection {
        /// The handicap.
        injection: Injection,
    },
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

/// What a host, or the link to it, answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ServerAnswer {
    /// The agent obeys from now on; by the link, before all others.
    Attached {
        /// Facts about its machine.
        host: Box<ServerHost>,
    },
    /// The host is out of reach. The link ends with this answer.
    Unreachable {
        /// Why.
        why: String,
    },
    /// The host was out of reach for so long and is in reach again. By the link, before the next answer.
    WasSilent {
        /// For how long, seconds.
        seconds: f64,
    },
    /// The files of the server are not here and were not stored; they are wanted.
    ServerWanted,
    /// The sandbox is there.
    Prepared {
        /// What runs there.
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
        /// How it is reached.
        server: StartedServer,
    },
    /// It was done.
    Done,
    /// The server ended by itself.
    Ended {
        /// How, and the end of its log.
        how: String,
    },
    /// What was seen of a turn.
    Observed {
        /// By the samplers of the host.
        seen: HostObserved,
    },
    /// How long the turn had the server stopped and awake.
    Injected(InjectedTime),
    /// How large the files of the server are.
    Sizes {
        /// Folder by folder.
        files: FileSizes,
    },
    /// The texts of the server.
    Files {
        /// Its configuration file.
        config: String,
        /// Its log.
        log: String,
        /// What of the log is of this start.
        log_since_start: String,
    },
    /// The server refuses a setting.
    RefusedSetting {
        /// Name of the setting.
        name: String,
        /// Its value, where it has one.
        value: Option<String>,
        /// What the server said.
        said: String,
    },
    /// It could not be done.
    Failed {
        /// Why.
        why: String,
    },
}

/// How a started server is reached.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct StartedServer {
    /// Its address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The account of the load.
    pub user: String,
    /// The password of the account.
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
