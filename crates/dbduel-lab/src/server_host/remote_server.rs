//! A contender's server on another machine.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use dbduel_driver::Credentials;
use dbduel_driver::address::Address;
use dbduel_machine::clock;
use dbduel_record::event::LoadTime;
use dbduel_record::facts::FileSizes;
use dbduel_record::plan::{Contender, Injection, Limits};
use dbduel_record::{Plan, Record};
use dbduel_server::{Build, Home, Progress, ServerName};

use super::super::contest::backend::sandboxed::located;
use super::super::contest::backend::{Backend, Health, ServerTexts, origin};
use super::super::contest::prepare::{Content, is_dataset_known};
use super::super::contest::{ContestConfig, InjectedTime};
use super::super::snapshots::Description;
use super::observed::HostObserved;
use super::orders::{ServerAnswer, ServerOrder, ServerTask, StartedServer};
use super::shared::servers::PackedServer;
use super::{ServerHost, ServerHostMissing, ServerHosts, checked, lock};

/// Timeout of quick tasks, with the time for resending lines.
const SHORT: Duration = Duration::from_secs(60);
/// Timeout of fetching a server or copying its data.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// A server in a sandbox on another machine.
#[derive(Debug)]
pub struct RemoteServer {
    host: Arc<Mutex<ServerHost>>,
    /// Index into the plan's contenders.
    number: usize,
    /// The plan without blocks, which a host does not need and which may make a message long.
    plan: Box<Plan>,
    /// Folder of its sandbox.
    run: String,
    /// Its packed files, where its host does not fetch it.
    packed: Option<Arc<PackedServer>>,
    sandbox: PreparedSandbox,
    /// Address and login, once it was started.
    started: Option<StartedServer>,
    /// Outages of its host that its clients' connections do not suffer from.
    silences: u32,
}

/// A sandbox prepared by a host.
#[derive(Debug)]
struct PreparedSandbox {
    /// The session of the host that prepared it.
    session: u32,
    build: Build,
    overcounts_writes: bool,
    /// Names of settings, and the server's remarks on them.
    notices: Vec<(String, String)>,
}

impl PreparedSandbox {
    fn make(
        host: &Mutex<ServerHost>,
        number: usize,
        plan: &Plan,
        run: &str,
        packed: Option<&PackedServer>,
    ) -> Result<Self> {
        let order = ServerOrder {
            contender: number,
            what: ServerTask::Prepare {
                run: run.to_owned(),
                plan: Box::new(plan.clone()),
                sent: packed.map(|server| server.digest.clone()),
            },
        };
        let ask = || -> Result<(u32, ServerAnswer)> {
            let mut host = lock(host);
            host.attach_again()?;
            Ok((host.session, host.ask(&order, LONG, true)?))
        };
        let (mut session, mut answer) = ask()?;
        if let (ServerAnswer::ServerWanted, Some(packed)) = (&answer, packed) {
            let access = Arc::clone(&lock(host).access);
            packed.store(access.as_ref())?;
            (session, answer) = ask()?;
        }
        match checked(host, answer)? {
            ServerAnswer::Prepared {
                mut build,
                overcounts_writes,
                notices,
            } => {
                if let Some(packed) = packed {
                    packed.name_origin(&mut build);
                }
                Ok(Self {
                    session,
                    build: *build,
                    overcounts_writes,
                    notices,
                })
            }
            _ => Err(lock(host).out_of_turn()),
        }
    }
}

impl RemoteServer {
    /// Has its host fetch it if need be (or receive it from `home`), create its sandbox in the folder `run` and check
    /// its settings.
    ///
    /// # Errors
    /// When it cannot be fetched or refuses a setting.
    pub fn prepare(
        hosts: &ServerHosts,
        plan: &Plan,
        number: usize,
        run: &str,
        home: &Home,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let contender = &plan.contenders[number];
        let host = hosts.of(contender.host.as_deref().unwrap_or_default())?;
        let name = ServerName::parse(&contender.server)?;
        let packed = hosts.packed(&name, home, progress)?;
        let plan = Box::new(Plan {
            blocks: Vec::new(),
            turns: BTreeMap::new(),
            ..plan.clone()
        });
        Ok(Self {
            sandbox: PreparedSandbox::make(&host, number, &plan, run, packed.as_deref())?,
            host,
            number,
            plan,
            run: run.to_owned(),
            packed,
            started: None,
            silences: 0,
        })
    }

    /// Puts its data in place and starts it; `keeps_data` keeps existing data, if any. Returns the restored snapshot,
    /// and whether it kept its data.
    ///
    /// # Errors
    /// When the data cannot be prepared or it does not start.
    pub fn start(&mut self, keeps_data: bool) -> Result<(Option<Description>, bool)> {
        let limit = LONG + Duration::from_secs_f64(self.plan.limits.server_start_s);
        self.started_by(ServerTask::Start { keeps_data }, limit)
    }

    fn restart_limit(&self) -> Duration {
        let Limits {
            server_start_s,
            server_stop_s,
            ..
        } = self.plan.limits;
        2 * SHORT + Duration::from_secs_f64(server_start_s + server_stop_s)
    }

    fn started_by(
        &mut self,
        what: ServerTask,
        limit: Duration,
    ) -> Result<(Option<Description>, bool)> {
        self.started = None;
        match self.ask(what, limit, true)? {
            ServerAnswer::Started {
                restored,
                kept_data,
                server,
            } => {
                self.started = Some(server);
                Ok((restored, kept_data))
            }
            _ => Err(self.out_of_turn()),
        }
    }

    /// Sends a quick task. Returns how the server ended by itself, or that its host ended it or is out of reach.
    fn ask_short(&mut self, what: ServerTask) -> Result<Option<String>> {
        match self.ask(what, SHORT, false) {
            Ok(ServerAnswer::Done) => Ok(None),
            Ok(ServerAnswer::Ended { how }) => Ok(Some(how)),
            Ok(_) => Err(self.out_of_turn()),
            Err(error) if error.is::<ServerHostMissing>() => Ok(Some(format!("{error:#}"))),
            Err(error) => Err(error),
        }
    }

    /// Why its host made it unusable: the host ended it or is out of reach.
    fn is_lost(&self) -> Option<String> {
        let host = lock(&self.host);
        let ended = || {
            format!(
                "server host `{}` was out of reach and ended the server",
                host.facts.name
            )
        };
        let is_of_before = host.session != self.sandbox.session;
        host.failure.clone().or_else(|| is_of_before.then(ended))
    }

    fn begin(&mut self, what: ServerTask) -> Result<RemoteTask> {
        if let Some(how) = self.ask_short(what)? {
            bail!(how);
        }
        Ok(self.task())
    }

    fn task(&self) -> RemoteTask {
        RemoteTask {
            host: Arc::clone(&self.host),
            number: self.number,
        }
    }

    /// The server's build.
    pub fn prepared_build(&self) -> &Build {
        &self.sandbox.build
    }

    /// Names of settings, and the server's remarks on them.
    pub fn notices(&self) -> &[(String, String)] {
        &self.sandbox.notices
    }

    /// True where its host's kernel counts more than processes write.
    pub fn overcounts_writes(&self) -> bool {
        self.sandbox.overcounts_writes
    }

    /// Name of its host's agent.
    pub fn host_name(&self) -> String {
        lock(&self.host).facts.name.clone()
    }

    fn ask(
        &mut self,
        what: ServerTask,
        limit: Duration,
        is_interruptible: bool,
    ) -> Result<ServerAnswer> {
        // The session of after would know nothing of it.
        if let Some(why) = self.is_lost() {
            return Err(ServerHostMissing { why }.into());
        }
        let order = ServerOrder {
            contender: self.number,
            what,
        };
        let answer = lock(&self.host).ask(&order, limit, is_interruptible)?;
        checked(&self.host, answer)
    }

    fn out_of_turn(&self) -> anyhow::Error {
        lock(&self.host).out_of_turn()
    }
}

impl Backend for RemoteServer {
    fn start_on_data(
        &mut self,
        config: &ContestConfig<'_>,
        past: &Record,
        contender: &Contender,
    ) -> Result<Option<Content>> {
        config.step(&format!(
            "{}: starting {} on {}",
            contender.name,
            self.sandbox.build.id,
            self.host_name()
        ));
        let workload = dbduel_workloads::find(&config.plan.workload.name)?;
        let keeps_data = !workload.depends_on_past_work(&config.plan.workload.parameters)
            && is_dataset_known(past, &contender.name);
        let begun = clock::now();
        let started = self.start(keeps_data);
        let (restored, kept_data) = started.map_err(|error| located(config, contender, error))?;
        Ok(Some(match kept_data {
            true => Content::InUse,
            false => Content::Fresh {
                restored: restored.map(Box::new),
                begun,
                damage: None,
            },
        }))
    }

    /// A snapshot on its host is not known here.
    fn snapshot_key(&self, _contender: &Contender, _plan: &Plan) -> Option<String> {
        None
    }

    fn keep_data(
        &mut self,
        _config: &ContestConfig<'_>,
        _contender: &Contender,
        load: LoadTime,
    ) -> Result<()> {
        let limit = LONG + self.restart_limit();
        self.started_by(ServerTask::KeepData { load }, limit)
            .map(drop)
    }

    fn endpoint(&mut self) -> Result<(Address, Credentials)> {
        let started = self.started.as_ref().context("the server does not run")?;
        let address = Address::Tcp {
            host: started.host.clone(),
            port: started.port,
        };
        let credentials = Credentials::new(&started.user, &started.password);
        Ok((address, credentials))
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn build(&self) -> Option<&Build> {
        Some(&self.sandbox.build)
    }

    fn origin(&self) -> String {
        origin(&self.sandbox.build)
    }

    fn ready_after_s(&self) -> Option<f64> {
        self.started.as_ref().map(|started| started.ready_after_s)
    }

    fn texts(&mut self) -> Result<Option<ServerTexts>> {
        match self.ask(ServerTask::Files, SHORT, false)? {
            ServerAnswer::Files {
                config,
                log,
                log_since_start,
            } => Ok(Some(ServerTexts {
                config: config.into_bytes(),
                log: log.into_bytes(),
                log_since_start,
            })),
            _ => Err(self.out_of_turn()),
        }
    }

    fn sizes(&mut self) -> Result<Option<FileSizes>> {
        match self.ask(ServerTask::Sizes, SHORT, false)? {
            ServerAnswer::Sizes { files } => Ok(Some(files)),
            _ => Err(self.out_of_turn()),
        }
    }

    fn log_place(&self) -> Option<String> {
        Some(format!("on server host `{}`", self.host_name()))
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn freezes(&self) -> bool {
        true
    }

    fn is_started(&self) -> bool {
        self.started.is_some()
    }

    fn health(&mut self) -> Health {
        match self.ask_short(ServerTask::Health) {
            Ok(ended) => Health::from(ended),
            Err(error) => Health::Dead {
                how: format!("{error:#}"),
            },
        }
    }

    /// The host itself checks whether it has ended: one round trip instead of three.
    fn freeze(&mut self) -> Result<Health> {
        self.ask_short(ServerTask::Freeze).map(Health::from)
    }

    fn thaw(&mut self) -> Result<Health> {
        self.ask_short(ServerTask::Thaw).map(Health::from)
    }

    fn stop(&mut self, _limits: &Limits) -> Result<()> {
        self.started = None;
        let limit = self.restart_limit();
        match self.ask(ServerTask::Stop, limit, false)? {
            ServerAnswer::Done => Ok(()),
            _ => Err(self.out_of_turn()),
        }
    }

    /// Its host may have ended it while out of reach.
    fn restart(&mut self, _limits: &Limits) -> Result<f64> {
        let session = {
            let mut host = lock(&self.host);
            host.attach_again()?;
            host.session
        };
        if session == self.sandbox.session {
            let limit = self.restart_limit();
            self.started_by(ServerTask::Restart, limit)?;
        } else {
            self.started = None;
            self.sandbox = PreparedSandbox::make(
                &self.host,
                self.number,
                &self.plan,
                &self.run,
                self.packed.as_deref(),
            )?;
            let (_, has_kept_data) = self.start(true)?;
            // Others would not be the ones of the slices before.
            ensure!(
                has_kept_data,
                "server host `{}` no longer has its data",
                self.host_name()
            );
        }
        Ok(self.ready_after_s().unwrap_or_default())
    }

    fn remove(mut self: Box<Self>) -> Result<()> {
        match self.ask(ServerTask::Remove, 5 * SHORT, false)? {
            ServerAnswer::Done => Ok(()),
            _ => Err(self.out_of_turn()),
        }
    }

    fn resume_injection(&mut self, injection: &Injection, _seed: u64) -> Result<()> {
        let injection = injection.clone();
        self.begin(ServerTask::ResumeInjection { injection })
            .map(drop)
    }

    fn pause_injection(&mut self) -> InjectedTime {
        match self.task().ask(ServerTask::PauseInjection) {
            Ok(ServerAnswer::Injected(injected)) => injected,
            // A host that does not obey is found when it is asked to freeze the server.
            _ => InjectedTime::default(),
        }
    }

    fn watch(&mut self) -> Option<Result<RemoteWatch, String>> {
        let watch = self.begin(ServerTask::Watch).map(RemoteWatch);
        // One that has died or is out of reach loses its slice.
        Some(watch.map_err(|error| format!("{error:#}")))
    }

    fn forget_silence(&mut self) {
        self.silences = lock(&self.host).silences;
    }

    fn silence(&mut self, asks: bool) -> Option<String> {
        if asks {
            // One that has ended is found when its clients are.
            self.health();
        }
        let host = lock(&self.host);
        let (name, silent_s) = (&host.facts.name, host.silent_s);
        let was_silent = || format!("server host `{name}` was out of reach for {silent_s:.1} s");
        let failure = host.failure.clone();
        failure.or_else(|| (host.silences > self.silences).then(was_silent))
    }
}

/// The watch over a turn of a remote server, run by its host.
#[derive(Debug)]
pub struct RemoteWatch(RemoteTask);

/// A pending task of a host, during a turn.
#[derive(Debug)]
struct RemoteTask {
    host: Arc<Mutex<ServerHost>>,
    number: usize,
}

impl RemoteTask {
    fn ask(&self, what: ServerTask) -> Result<ServerAnswer> {
        let order = ServerOrder {
            contender: self.number,
            what,
        };
        let answer = lock(&self.host).ask(&order, SHORT, false)?;
        checked(&self.host, answer)
    }
}

impl RemoteWatch {
    /// Sets the measured part of the turn. Call it once.
    pub fn measure(&self, measured: &Range<Instant>) {
        let now = clock::now();
        let ahead = measured.start.saturating_duration_since(now);
        let behind = now.saturating_duration_since(measured.start);
        let length = measured.end.saturating_duration_since(measured.start);
        // A host that does not obey is found when it is asked to freeze the server.
        let _ = self.0.ask(ServerTask::Measure {
            opens_in_s: ahead.as_secs_f64() - behind.as_secs_f64(),
            length_s: length.as_secs_f64(),
        });
    }

    /// The observations; for a turn that broke off, those until now.
    ///
    /// # Errors
    /// When the host does not return them.
    pub fn finish(self) -> Result<HostObserved, String> {
        match self.0.ask(ServerTask::EndWatch) {
            Ok(ServerAnswer::Observed { seen }) => Ok(seen),
            Ok(_) => Err(format!("{:#}", lock(&self.0.host).out_of_turn())),
            Err(error) => Err(format!("{error:#}")),
        }
    }
}
