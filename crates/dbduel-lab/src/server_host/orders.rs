//! Orders to the server of one contender on another machine, and the answers, as JSON.

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

/// An order for the server of one contender.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServerOrder {
    /// Index into the plan's contenders.
    pub contender: usize,
    /// The order.
    pub what: ServerTask,
}

/// A task of a server host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum ServerTask {
    /// Fetch the server if need be, create its sandbox, check its settings.
    Prepare {
        /// Name of the folder of all sandboxes of the run.
        run: String,
        /// The plan of the contest.
        plan: Box<Plan>,
        /// SHA-256 of the server's packed files, where hosts receive them from the orchestrator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<String>,
    },
    /// Put its data in place and start it.
    Start {
        /// Keep existing data, if any.
        keeps_data: bool,
    },
    /// Keep its loaded data as a snapshot; the server is stopped and started for that.
    KeepData {
        /// The load time.
        load: LoadTime,
    },
    /// Start it again on its data.
    Restart,
    /// Stop all its threads.
    Freeze,
    /// Let its threads run again.
    Thaw,
    /// Report whether it runs.
    Health,
    /// Begin to watch a turn of it.
    Watch,
    /// The measured part of the turn, relative to now.
    Measure {
        /// Seconds until it begins; negative when it has begun.
        opens_in_s: f64,
        /// Its length, seconds.
        length_s: f64,
    },
    /// End the watch and report its observations.
    EndWatch,
    /// Begin a turn with a handicap, which continues that of the previous turn.
    ResumeInjection {
        /// The handicap.
        injection: Injection,
    },
    /// Leave it awake, and report for how long it was stopped.
    PauseInjection,
    /// Report the sizes of its files.
    Sizes,
    /// Send its configuration and its log.
    Files,
    /// Shut it down.
    Stop,
    /// Remove its sandbox.
    Remove,
}

/// An answer of a host, or of the link to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ServerAnswer {
    /// The agent is attached; the link sends it before all others.
    Attached {
        /// Facts about its machine.
        host: Box<ServerHost>,
        /// Round trip to it, seconds.
        round_trip_s: f64,
    },
    /// The host is out of reach. The link ends with this answer.
    Unreachable {
        /// Why.
        why: String,
    },
    /// The host was out of reach and is in reach again. The link sends it before the next answer.
    WasSilent {
        /// Length of the outage, seconds.
        seconds: f64,
    },
    /// The server's files are neither on the host nor stored; the orchestrator must send them.
    ServerWanted,
    /// The sandbox is ready.
    Prepared {
        /// The server's build.
        build: Box<Build>,
        /// True where the host's kernel counts more than processes write.
        overcounts_writes: bool,
        /// Names of settings, and the server's remarks on them.
        notices: Vec<(String, String)>,
    },
    /// The server accepts logins.
    Started {
        /// The restored snapshot; absent where it keeps its own data, or has none.
        restored: Option<Description>,
        /// True when it kept existing data.
        kept_data: bool,
        /// Address and login of the server.
        server: StartedServer,
    },
    /// The task is done.
    Done,
    /// The server ended by itself.
    Ended {
        /// Exit status and the end of its log.
        how: String,
    },
    /// Observations of a turn.
    Observed {
        /// From the host's samplers.
        seen: HostObserved,
    },
    /// How long the server was stopped and awake in the turn.
    Injected(InjectedTime),
    /// Sizes of the server's files.
    Sizes {
        /// By folder.
        files: FileSizes,
    },
    /// Configuration and log of the server.
    Files {
        /// Its configuration file.
        config: String,
        /// Its log.
        log: String,
        /// The part of the log since this start.
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
    /// The task failed.
    Failed {
        /// The reason.
        why: String,
    },
}

/// Address and login of a started server.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct StartedServer {
    /// Its address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Account of the load.
    pub user: String,
    /// The password of the account.
    pub password: String,
    /// Time from the start of the process to the first login, seconds.
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
