//! Where a contender's server is, and what a contest does with it: one implementation of [`Backend`] for each kind.

pub mod in_process;
pub mod remote;
pub mod running;
pub mod sandboxed;

use std::any::Any;
use std::time::Duration;

use anyhow::{Context as _, Result};
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

/// Time from a broken connection until the server's process, if it was killed, has ended.
const END_SHOWS: Duration = Duration::from_secs(1);
const END_POLL: Duration = Duration::from_millis(10);

/// A contender in its place.
pub struct ContenderServer {
    /// Name of the contender.
    pub name: String,
    /// What its server speaks.
    pub dialect: Dialect,
    /// Database with the workload's tables.
    pub database: String,
    /// Where its server is.
    pub backend: Box<dyn Backend>,
}

/// Whether a server still runs.
pub enum Health {
    /// It runs, or it is not ours to know.
    Alive,
    /// It ended by itself.
    Dead {
        /// How, and the end of its log.
        how: String,
    },
}

impl From<Option<String>> for Health {
    /// Of how a server ended, if it did.
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

/// The server of one contender, or what stands for it.
pub trait Backend: Any {
    /// Puts the contender's data in place and starts the server on them; on those that an earlier start of the contest left where
    /// there are any. Nothing where the server runs already, with what it has.
    ///
    /// # Errors
    /// When the data cannot be put there, or the server does not start.
    fn start_on_data(
        &mut self,
        config: &ContestConfig<'_>,
        past: &Record,
        contender: &Contender,
    ) -> Result<Option<Content>>;

    /// What loading its data depends on, as a name; absent where no snapshot of them is kept on this machine.
    fn snapshot_key(&self, contender: &Contender, plan: &Plan) -> Option<String>;

    /// Keeps data that were just loaded as a snapshot, for which the server may be stopped and started again.
    ///
    /// # Errors
    /// When they cannot be copied, or the server does not stop in order or does not start.
    fn keep_data(
        &mut self,
        config: &ContestConfig<'_>,
        contender: &Contender,
        load: LoadTime,
    ) -> Result<()>;

    /// Where the server listens for questions of ours, and what to log in with.
    ///
    /// # Errors
    /// When it does not run.
    fn endpoint(&mut self) -> Result<(Address, Credentials)>;

    /// Where the clients of the contest find it.
    ///
    /// # Errors
    /// When it does not run.
    fn client_address(&mut self) -> Result<Address> {
        Ok(self.endpoint()?.0)
    }

    /// True when it is started and stopped, and its files are kept, by us.
    fn is_ours(&self) -> bool;

    /// The files of a server of ours; absent where it has none.
    fn build(&self) -> Option<&Build>;

    /// Where the server came from.
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

    /// Where its log is, for messages.
    fn log_place(&self) -> String;

    /// Number of its process on this machine, when it is ours.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// True when it is a server of ours on another machine, whose agent watches it.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// True when it is frozen between turns.
    fn freezes(&self) -> bool {
        false
    }

    /// True when its process was started and not stopped, however it is now.
    fn is_started(&self) -> bool {
        false
    }

    /// Whether it still runs.
    fn health(&mut self) -> Health {
        Health::Alive
    }

    /// Stops all its threads where it is frozen between turns. That it has died, before or meanwhile, is no error: it is said.
    ///
    /// # Errors
    /// When they cannot be stopped.
    fn freeze(&mut self) -> Result<Health> {
        Ok(Health::Alive)
    }

    /// Lets its threads run again. That it has died is said, as by [`Backend::freeze`].
    ///
    /// # Errors
    /// When they cannot.
    fn thaw(&mut self) -> Result<Health> {
        Ok(Health::Alive)
    }

    /// Stops it in order.
    ///
    /// # Errors
    /// When it cannot be stopped.
    fn stop(&mut self, limits: &Limits) -> Result<()>;

    /// Starts it after it was stopped or has ended; returns the seconds until it answered, crash recovery included.
    ///
    /// # Errors
    /// When it does not come up.
    fn restart(&mut self, limits: &Limits) -> Result<f64>;

    /// Removes its files, where they are ours, after it was stopped.
    ///
    /// # Errors
    /// When they cannot be removed.
    fn remove(self: Box<Self>) -> Result<()>;

    /// Begins a turn with a handicap, which continues that of the turn before; nothing for a server that is not ours to stop.
    /// `seed` is that of the plan.
    ///
    /// # Errors
    /// When the server does not run, or its host, which is another machine, does not do it.
    fn resume_injection(&mut self, _injection: &Injection, _seed: u64) -> Result<()> {
        Ok(())
    }

    /// Ends the turn with a handicap and leaves the server awake. Returns for how long it was stopped and awake.
    fn pause_injection(&mut self) -> InjectedTime {
        InjectedTime::default()
    }

    /// Has the machine of the server, where that is another one, watch a turn; why it does not, where it does not.
    fn watch(&mut self) -> Option<Result<RemoteWatch, String>> {
        None
    }

    /// Forgets that the machine of the server was out of reach.
    fn forget_silence(&self) {}

    /// That the machine of the server, where that is another one, was out of reach since that was forgotten. Where nothing was
    /// asked of it since, `asks`.
    fn silence(&mut self, _asks: bool) -> Option<String> {
        None
    }
}

impl ContenderServer {
    /// One whose database is ours.
    pub fn of_ours(contender: &Contender, dialect: Dialect, backend: Box<dyn Backend>) -> Self {
        Self {
            name: contender.name.clone(),
            dialect,
            database: DATABASE.to_owned(),
            backend,
        }
    }

    /// A connection for questions.
    ///
    /// # Errors
    /// When the server does not let us in.
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

    /// How a server of ours ended that was not stopped, which is waited for a moment: a killed process closes its
    /// connections before its end shows. `None` when it runs.
    pub fn ended_by_itself(&mut self) -> Option<String> {
        self.ended_within(END_SHOWS)
    }

    /// The same of a server that may take longer. `None` when it still runs after `timeout`.
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

    /// Starts its server again; returns the seconds until it answered.
    ///
    /// # Errors
    /// When it does not come up, or is not ours.
    pub fn restart(&mut self, limits: &Limits) -> Result<f64> {
        let name = &self.name;
        let started = self.backend.restart(limits);
        started.with_context(|| format!("`{name}` did not come up again"))
    }
}

/// Where a server of ours came from: of the fetched packages those that hold the server itself. The
/// libraries that came along are in the server's own description.
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
