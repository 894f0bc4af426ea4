//! Contender backends: how a contest controls a contender's server, one implementation of [`Backend`] per kind of
//! server.

pub mod in_process;
pub mod remote;
pub mod running;
pub mod sandboxed;

use std::any::Any;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dbduel_driver::address::Address;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect};
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_record::Record;
use dbduel_record::event::LoadTime;
use dbduel_record::facts::FileSizes;
use dbduel_record::plan::{Contender, Injection, Limits, Plan};
use dbduel_server::{Build, DATABASE};

use super::ContestConfig;
use super::injector::InjectedTime;
use super::prepare::Content;
use crate::server_host::RemoteWatch;

pub use sandboxed::Sandboxed;

/// How long after a broken connection a killed server's process may take to end.
const END_SHOWS: Duration = Duration::from_secs(1);
const END_POLL: Duration = Duration::from_millis(10);

/// The server of a contender.
pub struct ContenderServer {
    /// Name of the contender.
    pub name: String,
    /// Protocol and kind of SQL of its server.
    pub dialect: Dialect,
    /// Database with the workload's tables.
    pub database: String,
    /// How the contest controls it.
    pub backend: Box<dyn Backend>,
}

/// Whether a server still runs.
pub enum Health {
    /// It runs, or is not ours to check.
    Alive,
    /// It ended by itself.
    Dead {
        /// Exit status and the end of its log.
        how: String,
    },
}

impl From<Option<String>> for Health {
    /// From the description of how a server ended, if it did.
    fn from(ended: Option<String>) -> Self {
        match ended {
            Some(how) => Self::Dead { how },
            None => Self::Alive,
        }
    }
}

/// Configuration and log of a server.
#[derive(Debug, Default)]
pub struct ServerTexts {
    /// Its configuration file.
    pub config: Vec<u8>,
    /// Its log.
    pub log: Vec<u8>,
    /// The part of the log that it wrote since it was started.
    pub log_since_start: String,
}

/// The server of one contender, or its substitute.
pub trait Backend: Any {
    /// Puts the contender's data in place and starts the server on them. Reuses data that an earlier start of the
    /// contest left. Returns `None` where the server runs already, with the data it has.
    ///
    /// # Errors
    /// When the data cannot be put there, or the server does not start.
    fn start_on_data(
        &mut self,
        config: &ContestConfig<'_>,
        past: &Record,
        contender: &Contender,
    ) -> Result<Option<Content>>;

    /// Snapshot key of its data; `None` where this machine keeps no snapshot of them.
    fn snapshot_key(&self, contender: &Contender, plan: &Plan) -> Option<String>;

    /// Keeps freshly loaded data as a snapshot. May stop the server and start it again.
    ///
    /// # Errors
    /// When they cannot be copied, or the server does not shut down cleanly or does not start.
    fn keep_data(
        &mut self,
        config: &ContestConfig<'_>,
        contender: &Contender,
        load: LoadTime,
    ) -> Result<()>;

    /// Address and credentials for the lab's own queries.
    ///
    /// # Errors
    /// When it does not run.
    fn endpoint(&mut self) -> Result<(Address, Credentials)>;

    /// Address that the contest's clients connect to.
    ///
    /// # Errors
    /// When it does not run.
    fn client_address(&mut self) -> Result<Address> {
        Ok(self.endpoint()?.0)
    }

    /// True when we start and stop it and keep its files.
    fn is_ours(&self) -> bool;

    /// The files of a server of ours; absent where it has none.
    fn build(&self) -> Option<&Build>;

    /// Origin of the server, for the record.
    fn origin(&self) -> String;

    /// From the start of its process to the first login, seconds.
    fn ready_after_s(&self) -> Option<f64>;

    /// Configuration and log of a server of ours; absent where it has none.
    ///
    /// # Errors
    /// When they cannot be read.
    fn texts(&mut self) -> Result<Option<ServerTexts>>;

    /// Sizes of its files, where they are ours.
    ///
    /// # Errors
    /// When they cannot be read.
    fn sizes(&mut self) -> Result<Option<FileSizes>>;

    /// Path or place of its log, for messages; `None` where it has none.
    fn log_place(&self) -> Option<String>;

    /// Its process ID on this machine, when it is ours.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// True when it is our server on another machine, whose agent observes it.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// True when it is frozen between turns.
    fn freezes(&self) -> bool {
        false
    }

    /// True when its process was started and not stopped, whether or not it still runs.
    fn is_started(&self) -> bool {
        false
    }

    /// Whether it still runs.
    fn health(&mut self) -> Health {
        Health::Alive
    }

    /// Stops all its threads where it is frozen between turns. A server that has died is no error: the result says so.
    ///
    /// # Errors
    /// When they cannot be stopped.
    fn freeze(&mut self) -> Result<Health> {
        Ok(Health::Alive)
    }

    /// Lets its threads run again. Reports a dead server as [`Backend::freeze`] does.
    ///
    /// # Errors
    /// When they cannot be resumed.
    fn thaw(&mut self) -> Result<Health> {
        Ok(Health::Alive)
    }

    /// What is wrong with its files, where no restart can help and a resumed contest replaces them.
    fn damage(&self) -> Option<String> {
        None
    }

    /// Shuts it down.
    ///
    /// # Errors
    /// When it cannot be stopped.
    fn stop(&mut self, limits: &Limits) -> Result<()>;

    /// Starts it after it was stopped or has ended; returns the seconds until it accepted a login, crash recovery
    /// included.
    ///
    /// # Errors
    /// When it does not start.
    fn restart(&mut self, limits: &Limits) -> Result<f64>;

    /// Puts the data of its snapshot in place and starts it. The server must be stopped.
    ///
    /// # Errors
    /// When it has no snapshot or does not start.
    fn restore(&mut self, config: &ContestConfig<'_>, contender: &Contender) -> Result<()> {
        let _ = config;
        bail!(
            "the tables of `{}` cannot be restored: dbduel restores those of servers that it starts on this machine",
            contender.name
        )
    }

    /// Removes its files, where they are ours. The server must be stopped.
    ///
    /// # Errors
    /// When they cannot be removed.
    fn remove(self: Box<Self>) -> Result<()>;

    /// Begins a turn with a handicap, which continues that of the previous turn. Does nothing for a server that is not
    /// ours. `seed` is that of the plan.
    ///
    /// # Errors
    /// When the server does not run, or its remote host cannot inject.
    fn resume_injection(&mut self, _injection: &Injection, _seed: u64) -> Result<()> {
        Ok(())
    }

    /// Ends the turn with a handicap and leaves the server awake. Returns how long it was stopped and awake.
    fn pause_injection(&mut self) -> InjectedTime {
        InjectedTime::default()
    }

    /// Has the server's remote host observe a turn; the error says why it does not. `None` for a server on this
    /// machine.
    fn watch(&mut self) -> Option<Result<RemoteWatch, String>> {
        None
    }

    /// Forgets that the remote host was unreachable: its clients were reconnected.
    fn forget_silence(&mut self) {}

    /// Reports that the remote host was unreachable since [`Backend::forget_silence`]. `asks`: ping it where nothing
    /// was asked of it since.
    fn silence(&mut self, _asks: bool) -> Option<String> {
        None
    }
}

impl ContenderServer {
    /// A contender whose database is ours.
    pub fn of_ours(contender: &Contender, dialect: Dialect, backend: Box<dyn Backend>) -> Self {
        Self {
            name: contender.name.clone(),
            dialect,
            database: DATABASE.to_owned(),
            backend,
        }
    }

    /// A connection for the lab's own queries.
    ///
    /// # Errors
    /// When the server refuses the connection.
    pub fn connect(&mut self, statement: Duration) -> Result<Connection> {
        let (address, credentials) = self.backend.endpoint()?;
        let options = ConnectOptions {
            dialect: self.dialect,
            database: Some(self.database.clone()),
            statement_deadline: statement,
            cancel: Cancel::when(interrupt::gives_up),
            ..ConnectOptions::default()
        };
        Connection::connect(&address, &credentials, &options)
            .with_context(|| format!("contender `{}`", self.name))
    }

    /// How a server of ours ended by itself, if it did. Waits a moment: a killed process closes its connections before
    /// its exit is visible. `None` when it runs.
    pub fn ended_by_itself(&mut self) -> Option<String> {
        self.ended_within(END_SHOWS)
    }

    /// As [`Self::ended_by_itself`] for a server that may take longer. `None` when it still runs after `timeout`.
    pub fn ended_within(&mut self, timeout: Duration) -> Option<String> {
        let end = clock::now() + timeout;
        while self.backend.is_started() {
            match self.backend.health() {
                Health::Dead { how } => return Some(how),
                Health::Alive if clock::now() < end => clock::sleep(END_POLL),
                Health::Alive => return None,
            }
        }
        None
    }

    /// Starts its server again; returns the seconds until it accepted a login.
    ///
    /// # Errors
    /// When it does not start, or is not ours.
    pub fn restart(&mut self, limits: &Limits) -> Result<f64> {
        let name = &self.name;
        let started = self.backend.restart(limits);
        started.with_context(|| format!("`{name}` did not start again"))
    }
}

/// Origin of a server of ours: the fetched packages that hold the server itself. Its libraries are in the server's own
/// description.
pub fn origin(build: &Build) -> String {
    let is_server = |name: &str| {
        ["mariadb-server", "mysql-server", "postgres"]
            .iter()
            .any(|server| name.contains(server))
    };
    let names = || {
        build
            .artifacts
            .iter()
            .map(|artifact| artifact.name.as_str())
    };
    let mut servers: Vec<&str> = names().filter(|name| is_server(name)).collect();
    if servers.is_empty() {
        servers.extend(names().next());
    }
    match servers.as_slice() {
        [] => format!("{}: {}", build.source, build.daemon.display()),
        _ => format!("{}: {}", build.source, servers.join(", ")),
    }
}
