//! A contender whose server is ours: fetched, put into a sandbox, given its data, started.

use std::any::Any;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dbduel_driver::Credentials;
use dbduel_driver::address::Address;
use dbduel_inspect::planned::check_workload;
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_record::Record;
use dbduel_record::event::{LoadTime, Notice, Severity};
use dbduel_record::facts::FileSizes;
use dbduel_record::plan::{Contender, Injection, Limits, Plan};
use dbduel_server::{
    self, Build, Home, Progress, RefusedSetting, RunningServer, Sandbox, ServerName, ServerProduct,
    SettingRemark, StartError, file_sizes, unless_written,
};

use super::super::arena::run_name;
use super::super::injector::{InjectedTime, SlowdownInjector};
use super::super::prepare::{Content, is_dataset_known, trouble};
use super::{Backend, ContenderServer, Health, ServerTexts, origin};
use crate::contest::ContestConfig;
use crate::snapshots::{self, Description, Snapshots};
use crate::{coverage, dataset};

/// Least `max_connections` of every server; some cap their thread cache by it.
const MAX_CONNECTIONS_MIN: u32 = 151;
/// Characters of a contender's name in the name of its sandbox, for readers.
const FOLDER_CHARACTERS: usize = 40;

/// A sandbox and the server in it.
pub struct Sandboxed {
    /// Its handicap; absent before the first turn with one. Dropped before the server.
    injector: Option<SlowdownInjector>,
    /// Where its files are.
    pub sandbox: Sandbox,
    /// The server, when it runs.
    pub server: Option<RunningServer>,
}

impl Sandboxed {
    /// A sandbox in which no server runs.
    pub fn new(sandbox: Sandbox) -> Self {
        Self {
            injector: None,
            sandbox,
            server: None,
        }
    }

    fn running(&mut self) -> Result<&mut RunningServer> {
        self.server.as_mut().context("the server does not run")
    }

    /// Stops all threads of the server. First ends a turn with a handicap, since that end wakes the server.
    ///
    /// # Errors
    /// As [`RunningServer::freeze`], and when it does not run.
    pub fn freeze_running(&mut self) -> Result<()> {
        if let Some(injector) = &mut self.injector {
            injector.pause();
        }
        self.running()?.freeze()
    }

    /// Lets all threads of the server run again.
    ///
    /// # Errors
    /// As [`RunningServer::thaw`], and when it does not run.
    pub fn thaw_running(&mut self) -> Result<()> {
        self.running()?.thaw()
    }

    /// Calls `act` on the server. Returns how the server ended when it has, before or meanwhile; that is no error here.
    ///
    /// # Errors
    /// Errors of `act` while the server runs.
    pub fn unless_dead(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<Health> {
        let before = self.health();
        if matches!(before, Health::Dead { .. }) {
            return Ok(before);
        }
        let outcome = act(self);
        match self.health() {
            Health::Alive => outcome.map(|()| Health::Alive),
            dead => Ok(dead),
        }
    }

    /// Starts the server of a contest.
    fn start(&mut self, config: &ContestConfig<'_>, contender: &Contender) -> Result<()> {
        self.server = Some(start(config, contender, &mut self.sandbox)?);
        Ok(())
    }
}

impl Backend for Sandboxed {
    fn start_on_data(
        &mut self,
        config: &ContestConfig<'_>,
        past: &Record,
        contender: &Contender,
    ) -> Result<Option<Content>> {
        let data = self.sandbox.data();
        // Anything else is created again.
        if data.is_dir() {
            // A contender may have begun a block that the others have not, and what was drawn of a capture is not known any more, so
            // all begin with their snapshots again.
            let workload = dbduel_workloads::find(&config.plan.workload.name)?;
            let parameters = &config.plan.workload.parameters;
            let is_usable = !workload.depends_on_past_work(parameters)
                && workload.draws_per_pass(parameters).is_none();
            if is_usable && is_dataset_known(past, &contender.name) {
                self.start(config, contender)?;
                return Ok(Some(Content::InUse));
            }
            std::fs::remove_dir_all(&data)
                .with_context(|| format!("could not clear `{}`", data.display()))?;
        }
        let key = key(&self.sandbox, contender, &config.plan);
        let begun = clock::now();
        let restored = put_data(config.home, config.console, &self.sandbox, &key)
            .map_err(|error| located(config, contender, error))?;
        self.start(config, contender)
            .map_err(|error| match restored.is_some() && error.is::<StartError>() {
                true => error.context(format!(
                    "its data come from the snapshot `{key}`; if these files were changed or belong to another server, run \
                     `dbduel datasets remove {key}` to load them again"
                )),
                false => error,
            })?;
        Ok(Some(Content::Fresh {
            restored: restored.map(Box::new),
            begun,
            damage: None,
        }))
    }

    fn snapshot_key(&self, contender: &Contender, plan: &Plan) -> Option<String> {
        Some(key(&self.sandbox, contender, plan))
    }

    fn keep_data(
        &mut self,
        config: &ContestConfig<'_>,
        contender: &Contender,
        load: LoadTime,
    ) -> Result<()> {
        let ContestConfig {
            home,
            console,
            plan,
            ..
        } = config;
        stop_and_keep(home, *console, plan, contender, self, load)?;
        self.start(config, contender)
    }

    fn endpoint(&mut self) -> Result<(Address, Credentials)> {
        let server = self.running()?;
        Ok((server.address(), server.credentials()))
    }

    fn client_address(&mut self) -> Result<Address> {
        Ok(self.running()?.client_address())
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn build(&self) -> Option<&Build> {
        Some(self.sandbox.build())
    }

    fn origin(&self) -> String {
        origin(self.sandbox.build())
    }

    fn ready_after_s(&self) -> Option<f64> {
        let server = self.server.as_ref();
        server.map(|server| server.ready_after().as_secs_f64())
    }

    fn texts(&mut self) -> Result<Option<ServerTexts>> {
        let since_start = self.server.as_ref().map(RunningServer::log_since_start);
        Ok(Some(ServerTexts {
            config: std::fs::read(self.sandbox.config()).unwrap_or_default(),
            log: std::fs::read(self.sandbox.log()).unwrap_or_default(),
            log_since_start: since_start.unwrap_or_default(),
        }))
    }

    fn sizes(&mut self) -> Result<Option<FileSizes>> {
        Ok(Some(file_sizes(&self.sandbox.data())?))
    }

    fn log_place(&self) -> Option<String> {
        Some(format!("`{}`", self.sandbox.log().display()))
    }

    fn pid(&self) -> Option<u32> {
        u32::try_from(self.server.as_ref()?.pid()).ok()
    }

    fn freezes(&self) -> bool {
        true
    }

    fn is_started(&self) -> bool {
        self.server.is_some()
    }

    fn health(&mut self) -> Health {
        let Some(server) = &mut self.server else {
            return Health::Dead {
                how: "it was stopped".to_owned(),
            };
        };
        match server.ended() {
            Ok(None) => Health::Alive,
            Ok(Some(status)) => Health::Dead {
                how: format!("{status}; {}", server.last_words()),
            },
            Err(error) => Health::Dead {
                how: format!("{error:#}"),
            },
        }
    }

    fn freeze(&mut self) -> Result<Health> {
        self.unless_dead(Self::freeze_running)
    }

    fn thaw(&mut self) -> Result<Health> {
        self.unless_dead(Self::thaw_running)
    }

    fn stop(&mut self, limits: &Limits) -> Result<()> {
        if let Some(injector) = &mut self.injector {
            injector.pause();
        }
        if let Some(server) = self.server.take() {
            server.stop(Duration::from_secs_f64(limits.server_stop_s))?;
        }
        Ok(())
    }

    fn restart(&mut self, limits: &Limits) -> Result<f64> {
        self.server = None;
        let server = self.sandbox.start(limits)?;
        let seconds = server.ready_after().as_secs_f64();
        self.server = Some(server);
        Ok(seconds)
    }

    fn restore(&mut self, config: &ContestConfig<'_>, contender: &Contender) -> Result<()> {
        let data = self.sandbox.data();
        std::fs::remove_dir_all(&data)
            .with_context(|| format!("could not clear `{}`", data.display()))?;
        let key = key(&self.sandbox, contender, &config.plan);
        if put_data(config.home, config.console, &self.sandbox, &key)?.is_none() {
            bail!(
                "the tables of `{}` cannot be restored: the snapshot `{key}` is gone; resume the contest, which loads them again",
                contender.name
            );
        }
        self.start(config, contender)
    }

    fn remove(self: Box<Self>) -> Result<()> {
        self.sandbox.remove()
    }

    fn resume_injection(&mut self, injection: &Injection, seed: u64) -> Result<()> {
        let group = self.running()?.pid();
        self.injector
            .get_or_insert_with(|| SlowdownInjector::new(injection, seed))
            .resume(group);
        Ok(())
    }

    fn pause_injection(&mut self) -> InjectedTime {
        let injector = self.injector.as_mut();
        injector.map_or_else(InjectedTime::default, SlowdownInjector::end_turn)
    }
}

/// Fetches the server if need be, creates its sandbox, and lets it check its settings. Also returns the server's
/// remarks on its settings.
///
/// # Errors
/// When the server cannot be fetched or refuses a setting.
pub fn create(
    config: &ContestConfig<'_>,
    number: usize,
    contender: &Contender,
    name: &ServerName,
) -> Result<(Sandbox, Vec<Notice>)> {
    let plan = &config.plan;
    let build = fetch(config.home, config.console, plan, contender, name)?;
    let address = plan.hosts.as_ref().map(|hosts| hosts.servers.parse());
    let address = address.transpose();
    let address = address.context("`servers` under `hosts` in the plan is not an IP address")?;
    let (sandbox, remarks) = make(config.home, plan, number, &run_name(config), build, address)
        .map_err(|error| located(config, contender, error))?;
    let notices = remarks
        .iter()
        .map(|one| remark(contender, &one.name, &one.said));
    Ok((sandbox, notices.collect()))
}

/// Note on a server's remark about a setting that it accepts.
pub fn remark(contender: &Contender, setting: &str, said: &str) -> Notice {
    Notice::new(
        "server.setting-notice",
        Severity::Note,
        &[&contender.name],
        format!("`{}` remarks on `{setting}`: {said}", contender.name),
        "use a value that the server accepts unchanged",
    )
}

/// Fetches the server of a contender if need be.
///
/// # Errors
/// When it cannot be fetched, or the workload has no statements for it.
pub fn fetch(
    home: &Home,
    progress: &dyn Progress,
    plan: &Plan,
    contender: &Contender,
    name: &ServerName,
) -> Result<Build> {
    let build = dbduel_server::install::install(name, home, progress)?;
    let product = build.product()?;
    let version = build.version.to_string();
    check_workload(plan, contender, product.dialect(), &version)
        .with_context(|| format!("contender `{}`", contender.name))?;
    Ok(build)
}

/// Creates the sandbox of a contender, whose server listens on `address` for clients of other machines, and lets the
/// server check its settings.
///
/// # Errors
/// When it cannot be made, or the server refuses a setting.
pub fn make(
    home: &Home,
    plan: &Plan,
    number: usize,
    run: &str,
    build: Build,
    address: Option<IpAddr>,
) -> Result<(Sandbox, Vec<SettingRemark>)> {
    let contender = &plan.contenders[number];
    check_connections(plan, contender)?;
    let settings = complete_settings(plan, contender, build.product()?);
    let mut sandbox = Sandbox::create(home, run, &folder(number, contender), build, settings)?;
    if coverage::is_captured(plan) {
        sandbox.withhold_log();
    }
    sandbox.confine(&plan.load.server_cores);
    if let Some(limit) = plan.load.server_io {
        sandbox.limit_io(limit)?;
    }
    if let Some(address) = address {
        sandbox.listen(address)?;
    }
    let remarks = sandbox.check_settings()?;
    Ok((sandbox, remarks))
}

/// Snapshot key: a name made of everything that loading the contender's data depends on.
pub fn key(sandbox: &Sandbox, contender: &Contender, plan: &Plan) -> String {
    let build = sandbox.build();
    snapshots::key(&build.id, &build.daemon_digests.sha256, contender, plan)
}

/// A folder name: unique by the contender's number, readable by its name.
pub(super) fn folder(number: usize, contender: &Contender) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = contender
        .name
        .chars()
        .map(plain)
        .take(FOLDER_CHARACTERS)
        .collect();
    format!("{number}-{name}")
}

/// Restores the snapshot's data, or a data directory without tables where there is no such snapshot. Returns the
/// snapshot's description.
///
/// # Errors
/// When they cannot be copied, or the server cannot be initialised.
pub fn put_data(
    home: &Home,
    progress: &dyn Progress,
    sandbox: &Sandbox,
    key: &str,
) -> Result<Option<Description>> {
    let restored = Snapshots::new(home).restore(key, &sandbox.data(), progress)?;
    match restored {
        Some(_) => sandbox.forget_identity()?,
        None => sandbox.initialise(home, progress)?,
    }
    Ok(restored)
}

/// Starts the server on a new data directory without tables.
///
/// # Errors
/// When the server cannot be initialised or does not start.
pub fn start_empty(
    config: &ContestConfig<'_>,
    contender: &Contender,
    sandbox: Sandbox,
) -> Result<ContenderServer> {
    sandbox
        .initialise(config.home, config.console)
        .map_err(|error| located(config, contender, error))?;
    let dialect = sandbox.build().product()?.dialect();
    let mut own = Box::new(Sandboxed::new(sandbox));
    own.start(config, contender)?;
    Ok(ContenderServer::of_ours(contender, dialect, own))
}

/// The sandbox of a contender, with its data in place and no server running in it.
///
/// # Errors
/// When the server cannot be fetched or started, refuses a setting, or its data cannot be loaded.
pub fn loaded(config: &ContestConfig<'_>, number: usize) -> Result<Sandbox> {
    let contender = &config.plan.contenders[number];
    let name = ServerName::parse(&contender.server)?;
    let (sandbox, _) = create(config, number, contender, &name)?;
    let key = key(&sandbox, contender, &config.plan);
    let snapshots = Snapshots::new(config.home);
    let restored = snapshots.restore(&key, &sandbox.data(), config.console)?;
    if restored.is_some() {
        sandbox.forget_identity()?;
        return Ok(sandbox);
    }
    let workload = dbduel_workloads::find(&config.plan.workload.name)?;
    let mut resident = start_empty(config, contender, sandbox)?;
    let load = dataset::fill(&config.plan, workload, &mut resident, config.console)?;
    let backend: Box<dyn Any> = resident.backend;
    let Ok(mut own) = backend.downcast::<Sandboxed>() else {
        bail!(
            "dbduel did not start `{}` and cannot stop it",
            contender.name
        );
    };
    stop_and_keep(
        config.home,
        config.console,
        &config.plan,
        contender,
        &mut own,
        load,
    )?;
    Ok(own.sandbox)
}

/// Stops the server and keeps its data as a snapshot.
///
/// # Errors
/// When it does not shut down cleanly, or its data cannot be copied.
pub fn stop_and_keep(
    home: &Home,
    progress: &dyn Progress,
    plan: &Plan,
    contender: &Contender,
    own: &mut Sandboxed,
    load: LoadTime,
) -> Result<()> {
    if let Some(server) = own.server.take() {
        progress.stage(&format!(
            "{}: stopping for a snapshot of its data",
            contender.name
        ));
        let limit_s = plan.limits.server_stop_s;
        if server.stop(Duration::from_secs_f64(limit_s))?.killed {
            bail!(
                "`{}` did not shut down within {limit_s} s after loading and was killed; its data are unusable \
                 for a snapshot; raise `server_stop` in [limits]",
                contender.name
            );
        }
    }
    let build = &own.sandbox.build().id;
    Snapshots::new(home).keep(
        &key(&own.sandbox, contender, plan),
        &own.sandbox.data(),
        Description::of(build, contender, plan, load),
        progress,
    )
}

fn start(
    config: &ContestConfig<'_>,
    contender: &Contender,
    sandbox: &mut Sandbox,
) -> Result<RunningServer> {
    interrupt::check()?;
    config.step(&format!(
        "{}: starting {}",
        contender.name,
        sandbox.build().id
    ));
    let limits = &config.plan.limits;
    sandbox.start(limits).map_err(|error| match error {
        StartError::Refused(refused) => located(config, contender, refused.into()),
        other => anyhow::Error::new(other)
            .context(format!("contender `{}` did not start", contender.name)),
    })
}

/// Refuses a `max_connections` below what the load needs: the server would reject the remaining clients.
fn check_connections(plan: &Plan, contender: &Contender) -> Result<(), RefusedSetting> {
    let is_it = |name: &str| {
        name.replace('-', "_")
            .eq_ignore_ascii_case("max_connections")
    };
    let mut own = contender.settings.iter().filter(|one| is_it(&one.name));
    let Some((setting, given)) = own.find_map(|one| Some((one, one.value.parse::<u32>().ok()?)))
    else {
        return Ok(());
    };
    let clients = largest_level(plan);
    // One more asks the server about itself.
    if given > clients {
        return Ok(());
    }
    Err(RefusedSetting {
        setting: dbduel_server::Setting::of_plan(setting),
        said: format!(
            "{clients} clients and dbduel itself need {} connections; raise it or omit it",
            clients + 1
        ),
        suggestion: None,
    })
}

/// Number of clients of the largest level.
fn largest_level(plan: &Plan) -> u32 {
    let clients = plan.levels.iter().map(|level| level.clients);
    clients.max().unwrap_or(0)
}

/// The settings that the lab needs for the planned load, then the contender's own.
fn complete_settings(
    plan: &Plan,
    contender: &Contender,
    product: &dyn ServerProduct,
) -> Vec<dbduel_server::Setting> {
    let mut clients = largest_level(plan);
    if plan.hosts.is_some() {
        // Connections of a host that was cut off end when the server notices.
        clients *= 2;
    }
    // Room for the clients and for our own questions.
    let mut needed = product.needed_settings((clients + 20).max(MAX_CONNECTIONS_MIN));
    // Servers on machines of their own are frozen all the same while others have their turns.
    needed.extend(product.paced_settings(plan.contenders.len() as u32));
    let own = contender
        .settings
        .iter()
        .map(dbduel_server::Setting::of_plan);
    unless_written(needed, &contender.settings)
        .chain(own)
        .collect()
}

/// Adds the place in the experiment file to a refused setting.
pub fn located(
    config: &ContestConfig<'_>,
    contender: &Contender,
    error: anyhow::Error,
) -> anyhow::Error {
    let Some(refused) = error.downcast_ref::<RefusedSetting>() else {
        return error.context(format!("contender `{}`", contender.name));
    };
    let message = format!("contender `{}`: {refused}", contender.name);
    let span = config
        .experiment
        .setting_span(&contender.name, &refused.setting.name);
    match trouble(config, span, &message) {
        Some(trouble) => trouble.into(),
        None => error.context(message),
    }
}
