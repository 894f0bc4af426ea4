//! The arena: every contender's server, of which at most one is awake.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dbduel_load::address::Address;
use dbduel_load::driver::{ConnectOptions, Connection, Credentials, Dialect, TlsMode};
use dbduel_load::order::{OpenOrder, SliceOrder};
use dbduel_load::session::Session;
use dbduel_record::Plan;
use dbduel_record::plan::Injection;
use dbduel_record::statements::StatementExample;

use super::ContestConfig;
use super::injector::{InjectedTime, SlowdownInjector};
use crate::lab::clock;
use crate::lab::load_processes::LoadProcesses;
use crate::lab::server::{DatabaseFile, RunningServer, Sandbox};
use crate::lab::server_host::{RemoteServer, ServerHostMissing};

/// Time from a broken connection until the server's process, if it was killed, has ended.
const END_SHOWS: Duration = Duration::from_secs(1);
const END_POLL: Duration = Duration::from_millis(10);

/// A contender in its place.
pub struct ContenderServer {
    pub name: String,
    /// What its server speaks.
    pub dialect: Dialect,
    /// Database with the workload's tables.
    pub database: String,
    /// Where its server is.
    pub place: Place,
}

/// Where a contender's server is.
pub enum Place {
    /// In a sandbox of ours.
    Sandboxed(Box<Sandboxed>),
    /// In a sandbox of ours on another machine.
    Remote(Box<RemoteServer>),
    /// In its load process: a file of ours, and nothing that could be started or frozen.
    InProcess(Box<DatabaseFile>),
    /// Somewhere else: not started, frozen or stopped by us.
    Running {
        address: Address,
        /// What to log in with.
        credentials: Credentials,
    },
}

/// A sandbox and the server in it.
pub struct Sandboxed {
    /// Its handicap, from its first turn with one on. Dropped before the server.
    injector: Option<SlowdownInjector>,
    pub sandbox: Sandbox,
    /// The server, when it runs.
    pub server: Option<RunningServer>,
}

impl Sandboxed {
    /// A sandbox and its server, if it runs.
    pub fn new(sandbox: Sandbox, server: Option<RunningServer>) -> Self {
        Self {
            injector: None,
            sandbox,
            server,
        }
    }

    fn running(&mut self) -> Result<&mut RunningServer> {
        self.server.as_mut().context("the server does not run")
    }

    /// As [`RunningServer::freeze`]. A turn with a handicap ends before, since its end wakes the server.
    ///
    /// # Errors
    /// As there, and when it does not run.
    pub fn freeze(&mut self) -> Result<()> {
        if let Some(injector) = &mut self.injector {
            injector.pause();
        }
        self.running()?.freeze()
    }

    /// Begins a turn with a handicap, which continues that of the turn before. `seed` is that of the plan.
    ///
    /// # Errors
    /// When the server does not run.
    pub fn resume_injection(&mut self, injection: &Injection, seed: u64) -> Result<()> {
        let group = self.running()?.pid();
        self.injector
            .get_or_insert_with(|| SlowdownInjector::new(injection, seed))
            .resume(group);
        Ok(())
    }

    /// Ends the turn with a handicap and leaves the server awake.
    pub fn pause_injection(&mut self) -> InjectedTime {
        let injector = self.injector.as_mut();
        injector.map_or_else(InjectedTime::default, SlowdownInjector::end_turn)
    }

    /// As [`RunningServer::thaw`].
    ///
    /// # Errors
    /// As there, and when it does not run.
    pub fn thaw(&mut self) -> Result<()> {
        self.running()?.thaw()
    }

    /// Whether the server still runs.
    pub fn health(&mut self) -> Health {
        let Some(server) = &mut self.server else {
            return Health::Dead {
                how: "it was stopped".to_owned(),
            };
        };
        match server.ended() {
            Ok(None) => Health::Alive,
            Ok(Some(status)) => {
                let log = server.log_since_start();
                let words: Vec<&str> = log.lines().rev().take(3).collect();
                let words: Vec<&str> = words.into_iter().rev().collect();
                Health::Dead {
                    how: format!("{status}; its log ends: {}", words.join(" / ")),
                }
            }
            Err(error) => Health::Dead {
                how: format!("{error:#}"),
            },
        }
    }
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

impl ContenderServer {
    /// A connection for questions.
    ///
    /// # Errors
    /// When the server does not let us in.
    pub fn connect(&mut self, statement: Duration) -> Result<Connection> {
        let (address, credentials) = self.endpoint()?;
        let options = ConnectOptions {
            dialect: self.dialect,
            database: Some(self.database.clone()),
            statement_deadline: statement,
            ..ConnectOptions::default()
        };
        Connection::connect(&address, &credentials, &options)
            .with_context(|| format!("contender `{}`", self.name))
    }

    /// Address and credentials for clients.
    ///
    /// # Errors
    /// When the server does not run.
    pub fn endpoint(&mut self) -> Result<(Address, Credentials)> {
        match &mut self.place {
            Place::Sandboxed(own) => {
                let server = own.running()?;
                Ok((server.address(), server.credentials()))
            }
            Place::Remote(server) => server.endpoint(),
            Place::InProcess(file) => Ok((file.address(), Credentials::default())),
            Place::Running {
                address,
                credentials,
            } => Ok((address.clone(), credentials.clone())),
        }
    }

    /// Where the clients of the contest find the server.
    ///
    /// # Errors
    /// When the server does not run.
    fn client_address(&mut self) -> Result<Address> {
        match &mut self.place {
            Place::Sandboxed(own) => Ok(own.running()?.client_address()),
            Place::Remote(_) | Place::InProcess(_) | Place::Running { .. } => {
                Ok(self.endpoint()?.0)
            }
        }
    }

    /// Whether the server still runs.
    pub fn health(&mut self) -> Health {
        match &mut self.place {
            Place::Sandboxed(own) => own.health(),
            Place::Remote(server) => server.health(),
            Place::InProcess(_) | Place::Running { .. } => Health::Alive,
        }
    }

    /// True when its server is frozen between turns.
    pub fn freezes(&self) -> bool {
        match &self.place {
            Place::Sandboxed(_) | Place::Remote(_) => true,
            Place::InProcess(_) | Place::Running { .. } => false,
        }
    }

    /// Begins a turn with a handicap, which continues that of the turn before; nothing for a server that is not ours to stop.
    /// `seed` is that of the plan.
    ///
    /// # Errors
    /// When the server does not run, or its host, which is another machine, does not do it.
    pub fn resume_injection(&mut self, injection: &Injection, seed: u64) -> Result<()> {
        match &mut self.place {
            Place::Sandboxed(own) => own.resume_injection(injection, seed),
            Place::Remote(server) => server.resume_injection(injection),
            Place::InProcess(_) | Place::Running { .. } => Ok(()),
        }
    }

    /// Ends the turn with a handicap and leaves the server awake. Returns for how long it was stopped and awake.
    pub fn pause_injection(&mut self) -> InjectedTime {
        match &mut self.place {
            Place::Sandboxed(own) => own.pause_injection(),
            Place::Remote(server) => server.pause_injection(),
            Place::InProcess(_) | Place::Running { .. } => InjectedTime::default(),
        }
    }

    /// Forgets that the machine of its server was out of reach.
    pub fn forget_silence(&self) {
        if let Place::Remote(server) = &self.place {
            server.forget_silence();
        }
    }

    /// That the machine of its server, where that is another one, was out of reach since that was forgotten. Where nothing was
    /// asked of it since, `asks`.
    pub fn silence(&mut self, asks: bool) -> Option<String> {
        let Place::Remote(server) = &mut self.place else {
            return None;
        };
        if asks {
            // One that has ended is found when its clients are.
            server.health();
        }
        server.silence()
    }

    /// How a server of ours ended that was not stopped, which is waited for a moment: a killed process closes its
    /// connections before its end shows. `None` when it runs.
    pub fn ended_by_itself(&mut self) -> Option<String> {
        self.ended_within(END_SHOWS)
    }

    /// The same of a server that may take longer. `None` when it still runs after `timeout`.
    pub fn ended_within(&mut self, timeout: Duration) -> Option<String> {
        let end = clock::now() + timeout;
        loop {
            let is_started = match &self.place {
                Place::Sandboxed(own) => own.server.is_some(),
                Place::Remote(server) => server.is_started(),
                Place::InProcess(_) | Place::Running { .. } => false,
            };
            match self.health() {
                Health::Dead { how } if is_started => return Some(how),
                Health::Alive if is_started && clock::now() < end => {
                    clock::sleep(END_POLL);
                }
                _ => return None,
            }
        }
    }

    fn freeze(&mut self) -> Result<()> {
        match &mut self.place {
            Place::Sandboxed(own) => own.freeze(),
            Place::Remote(server) => server.freeze(),
            Place::InProcess(_) | Place::Running { .. } => Ok(()),
        }
    }

    fn thaw(&mut self) -> Result<()> {
        match &mut self.place {
            Place::Sandboxed(own) => own.thaw(),
            Place::Remote(server) => server.thaw(),
            Place::InProcess(_) | Place::Running { .. } => Ok(()),
        }
    }

    /// Thaws the server.
    ///
    /// # Errors
    /// When it cannot be thawed.
    pub fn wake(&mut self) -> Result<()> {
        self.unless_dead(Self::thaw)
    }

    /// Does something with the server. One that has died, before or meanwhile, is no error here: it is found when its
    /// slice is lost, or at the end.
    fn unless_dead(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        // Its host looks at that itself, for one round trip in the place of three.
        if matches!(self.place, Place::Remote(_)) {
            return act(self);
        }
        if matches!(self.health(), Health::Dead { .. }) {
            return Ok(());
        }
        let outcome = act(self);
        match self.health() {
            Health::Dead { .. } => Ok(()),
            Health::Alive => outcome,
        }
    }
}

/// All contenders, in the plan's order.
pub struct Arena {
    residents: Vec<ContenderServer>,
    awake: Option<usize>,
    /// The level of the plan whose clients each contender has, by index. Levels of one workload share their clients.
    connected_at: Vec<usize>,
}

impl Arena {
    /// An arena without contenders.
    pub fn empty() -> Self {
        Self {
            residents: Vec::new(),
            awake: None,
            connected_at: Vec::new(),
        }
    }

    /// Adds a contender whose server runs, and freezes it.
    ///
    /// # Errors
    /// When the server cannot be frozen.
    pub fn add(&mut self, mut resident: ContenderServer) -> Result<()> {
        resident.freeze()?;
        self.residents.push(resident);
        self.connected_at.push(0);
        Ok(())
    }

    /// Wakes one contender and freezes the one that was awake.
    ///
    /// # Errors
    /// When a server cannot be frozen or thawed.
    pub fn activate(&mut self, contender: usize) -> Result<()> {
        if self.awake == Some(contender) {
            return Ok(());
        }
        self.freeze_active()?;
        self.residents[contender].wake()?;
        self.awake = Some(contender);
        Ok(())
    }

    /// Freezes the contender that is awake, so that none gains from a pause between slices.
    ///
    /// # Errors
    /// When the server cannot be frozen.
    pub fn freeze_active(&mut self) -> Result<()> {
        match self.awake.take() {
            Some(awake) => self.residents[awake].unless_dead(ContenderServer::freeze),
            None => Ok(()),
        }
    }

    /// Whether the contender's server still runs.
    pub fn health(&mut self, contender: usize) -> Health {
        self.residents[contender].health()
    }

    /// Stops a server in order, starts it again and freezes it.
    ///
    /// # Errors
    /// When it cannot be stopped, does not come up, or is not ours.
    pub fn start_anew(&mut self, contender: usize, plan: &Plan) -> Result<()> {
        if self.awake == Some(contender) {
            self.awake = None;
        }
        self.residents[contender].wake()?;
        match &mut self.residents[contender].place {
            Place::Sandboxed(own) => {
                if let Some(server) = own.server.take() {
                    server.stop(Duration::from_secs_f64(plan.limits.server_stop_s))?;
                }
            }
            Place::Remote(server) => match server.stop() {
                // It is waited for when the server is started.
                Err(error) if error.is::<ServerHostMissing>() => {}
                stopped => stopped?,
            },
            Place::InProcess(_) | Place::Running { .. } => {}
        }
        self.restart(contender, plan)?;
        self.residents[contender].unless_dead(ContenderServer::freeze)
    }

    /// Starts a dead server again; returns the seconds until it answered, crash recovery included.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn restart(&mut self, contender: usize, plan: &Plan) -> Result<f64> {
        let ContenderServer { name, place, .. } = &mut self.residents[contender];
        let own = match place {
            Place::Sandboxed(own) => own,
            Place::Remote(server) => {
                let started = server.restart();
                return started.with_context(|| format!("`{name}` did not come up again"));
            }
            // The next connection opens it.
            Place::InProcess(_) => return Ok(0.0),
            Place::Running { .. } => bail!("`{name}` is not ours to start"),
        };
        own.server = None;
        let server = own
            .sandbox
            .start(&plan.limits)
            .with_context(|| format!("`{name}` did not come up again"))?;
        let seconds = server.ready_after().as_secs_f64();
        own.server = Some(server);
        Ok(seconds)
    }

    /// Connects every contender's clients, each while its server is awake. Returns what the servers say
    /// of these sessions, in the order of the plan.
    ///
    /// # Errors
    /// When a server does not let the clients in.
    pub fn connect_clients(
        &mut self,
        plan: &Plan,
        load: &mut LoadProcesses,
    ) -> Result<Vec<(Address, Session)>> {
        let mut sessions = Vec::new();
        for contender in 0..self.residents.len() {
            self.activate(contender)?;
            sessions.push(self.open(plan, load, contender)?);
        }
        self.freeze_active()?;
        Ok(sessions)
    }

    /// A connection to an awake contender for questions.
    ///
    /// # Errors
    /// When the server does not let us in.
    pub fn connect(&mut self, contender: usize, statement: Duration) -> Result<Connection> {
        self.residents[contender].connect(statement)
    }

    /// Connects the clients of a level to an awake contender, in a suite where it has those of another. Each contender's
    /// first turn of a block follows that.
    ///
    /// # Errors
    /// When its server does not let the clients in.
    pub fn connect_at(
        &mut self,
        plan: &Plan,
        load: &mut LoadProcesses,
        contender: usize,
        level: usize,
    ) -> Result<()> {
        if plan.suite.is_none() || self.connected_at[contender] == level {
            return Ok(());
        }
        self.connected_at[contender] = level;
        self.reconnect_clients(plan, load, contender)
    }

    /// Reconnects the clients of an awake contender.
    ///
    /// # Errors
    /// When its server does not let the clients in.
    pub fn reconnect_clients(
        &mut self,
        plan: &Plan,
        load: &mut LoadProcesses,
        contender: usize,
    ) -> Result<()> {
        load.close(&self.residents[contender].name)?;
        self.open(plan, load, contender).map(|_| ())
    }

    /// One statement of each class that the clients of a level send to an awake contender within a slice. Its clients are closed
    /// then, and to be connected again at this level.
    ///
    /// # Errors
    /// When its server does not let the clients in, or the slice is lost.
    pub fn sample_statements(
        &mut self,
        plan: &Plan,
        load: &mut LoadProcesses,
        contender: usize,
        level: usize,
        slice: SliceOrder,
    ) -> Result<Vec<StatementExample>> {
        self.connected_at[contender] = level;
        let order = OpenOrder {
            clients: slice.clients,
            ..self.open_order(plan, contender)?
        };
        load.sample_statements(order, slice)
    }

    fn open(
        &mut self,
        plan: &Plan,
        load: &mut LoadProcesses,
        contender: usize,
    ) -> Result<(Address, Session)> {
        let order = self.open_order(plan, contender)?;
        let address = order.address.clone();
        Ok((address, load.open(order)?))
    }

    fn open_order(&mut self, plan: &Plan, contender: usize) -> Result<OpenOrder> {
        let level = self.connected_at[contender];
        let resident = &mut self.residents[contender];
        let (_, credentials) = resident.endpoint()?;
        let address = resident.client_address()?;
        Ok(OpenOrder {
            dialect: resident.dialect,
            contender: resident.name.clone(),
            address,
            user: credentials.user.clone(),
            password: credentials.password.clone(),
            tls: TlsMode::Off,
            database: resident.database.clone(),
            workload: plan.workload_at(level, &plan.contenders[contender]),
            clients: plan.connections_at(level),
            retries: plan.limits.transaction_retries,
            connect_s: plan.limits.server_start_s,
        })
    }

    /// A contender in its place.
    pub fn resident(&mut self, contender: usize) -> &mut ContenderServer {
        &mut self.residents[contender]
    }

    /// Process number of the contender's server, when it is ours.
    pub fn pid(&self, contender: usize) -> Option<u32> {
        match &self.residents[contender].place {
            Place::Sandboxed(own) => own
                .server
                .as_ref()
                .and_then(|server| u32::try_from(server.pid()).ok()),
            Place::Remote(_) | Place::InProcess(_) | Place::Running { .. } => None,
        }
    }

    /// Where the contender's server writes its log, for messages.
    pub fn log_of(&self, contender: usize) -> String {
        match &self.residents[contender].place {
            Place::Sandboxed(own) => format!("`{}`", own.sandbox.log().display()),
            Place::Remote(server) => format!("on server host `{}`", server.host_name()),
            Place::InProcess(_) => "none, for it has no server".to_owned(),
            Place::Running { address, .. } => format!("on the machine of `{address}`"),
        }
    }

    /// Freezes the contender that is awake, and gives all of them away.
    ///
    /// # Errors
    /// When the server cannot be frozen.
    pub fn into_residents(mut self) -> Result<Vec<ContenderServer>> {
        self.freeze_active()?;
        Ok(self.residents)
    }
}

/// The folder name that all sandboxes of one record share.
pub fn run_name(config: &ContestConfig<'_>) -> String {
    let path = std::path::absolute(config.record).unwrap_or_else(|_| PathBuf::from(config.record));
    let digest = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
    format!("run-{}", &digest[..12])
}
