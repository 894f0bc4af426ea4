//! The contest's side of server hosts: orders to their agents, and the answers.

mod observed;
pub mod orders;
mod remote_server;
pub mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use dbduel_machine::{clock, interrupt};
use dbduel_record::{Plan, facts};
use dbduel_server::{Home, Progress, RefusedSetting, ServerName, Setting};

use super::drive::{HostAccess, PAUSE};
use super::line_process::LineProcess;
pub use observed::HostObserved;
use orders::{ServerAnswer, ServerOrder};
pub use remote_server::{RemoteServer, RemoteWatch};
use shared::servers::{PackedServer, is_sent};

/// Timeout for attaching a host's agent; the link reports a failure earlier.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(200);

/// A server host that cannot be used. The contest cannot continue without it.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct ServerHostMissing {
    why: String,
}

/// The contest's end of a link to the agent of one server host. Dropping it releases the agent.
pub trait ServerLink: Debug + Send {
    /// Sends an order.
    ///
    /// # Errors
    /// Description of the failure.
    fn send(&mut self, order: &ServerOrder) -> Result<(), String>;

    /// The next answer, `None` when there is none within `pause`.
    ///
    /// # Errors
    /// Description of the failure: the link ended, sent an invalid answer, or is silent at the deadline.
    fn answer_within(
        &mut self,
        pause: Duration,
        deadline: Instant,
    ) -> Result<Option<ServerAnswer>, String>;

    /// Description of its failure. How it ended, if it did, takes precedence over `what`.
    fn failed(&mut self, what: &str) -> String;
}

impl ServerLink for LineProcess<ServerAnswer> {
    fn send(&mut self, order: &ServerOrder) -> Result<(), String> {
        LineProcess::send(self, order)
    }

    fn answer_within(
        &mut self,
        pause: Duration,
        deadline: Instant,
    ) -> Result<Option<ServerAnswer>, String> {
        LineProcess::answer_within(self, pause, deadline)
    }

    fn failed(&mut self, what: &str) -> String {
        LineProcess::failed(self, what)
    }
}

/// The server hosts of a plan, by the names of their agents. Dropping them releases the agents, which end their
/// servers.
#[derive(Debug, Default)]
pub struct ServerHosts {
    hosts: BTreeMap<String, Arc<Mutex<ServerHost>>>,
    /// Packed servers that hosts do not fetch by themselves, by their names in the experiment.
    packed: Mutex<BTreeMap<String, Arc<PackedServer>>>,
}

impl ServerHosts {
    /// Attaches the agents of all hosts in a plan; `contest` is the contest's name towards them.
    ///
    /// # Errors
    /// When one cannot be attached.
    pub fn attach(
        plan: &Plan,
        access: Option<&Arc<dyn HostAccess>>,
        contest: &str,
    ) -> Result<Self> {
        let mut attached = Self::default();
        let names = plan.contenders.iter().filter_map(|one| one.host.as_ref());
        // Always in the same order, so that of two orchestrators one gets them all.
        let names: BTreeSet<&String> = names.collect();
        for name in names {
            let access = access.context(
                "this contest runs servers on other machines; give the URL of their nats-server with `--nats URL`",
            )?;
            let host = ServerHost::attach(name, access, contest)?;
            attached
                .hosts
                .insert(name.clone(), Arc::new(Mutex::new(host)));
        }
        Ok(attached)
    }

    /// Facts of the hosts' machines.
    pub fn facts(&self) -> Vec<facts::ServerHost> {
        let hosts = self.hosts.values();
        hosts.map(|host| lock(host).facts.clone()).collect()
    }

    /// Round trip to the farthest host, seconds; 0 without hosts.
    #[must_use]
    pub fn round_trip_s(&self) -> f64 {
        let round_trips = self.hosts.values().map(|host| lock(host).round_trip_s);
        round_trips.fold(0.0, f64::max)
    }

    /// Refuses hosts whose machines changed since the contest began.
    ///
    /// # Errors
    /// Names the first such host.
    pub fn check_machines(&self, before: &[facts::ServerHost]) -> Result<()> {
        for now in self.facts() {
            let mut known = before.iter();
            if let Some(before) = known.find(|one| one.name == now.name) {
                check_machine(before, &now)?;
            }
        }
        Ok(())
    }

    /// The files of a server that hosts do not fetch by themselves, packed once per contest.
    fn packed(
        &self,
        name: &ServerName,
        home: &Home,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<PackedServer>>> {
        if !is_sent(name) {
            return Ok(None);
        }
        let mut all = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = all.get(&name.written) {
            return Ok(Some(Arc::clone(packed)));
        }
        let packed = Arc::new(PackedServer::pack(home, name, progress)?);
        all.insert(name.written.clone(), Arc::clone(&packed));
        Ok(Some(packed))
    }

    fn of(&self, name: &str) -> Result<Arc<Mutex<ServerHost>>> {
        let host = self.hosts.get(name).map(Arc::clone);
        host.with_context(|| format!("server host `{name}` is not attached"))
    }
}

fn lock(host: &Mutex<ServerHost>) -> MutexGuard<'_, ServerHost> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server host, with the link to its agent.
#[derive(Debug)]
struct ServerHost {
    facts: facts::ServerHost,
    /// Round trip to its agent when it was attached, seconds.
    round_trip_s: f64,
    access: Arc<dyn HostAccess>,
    contest: String,
    link: Box<dyn ServerLink>,
    /// How often its agent was attached again after it was out of reach. Servers of earlier sessions were ended.
    session: u32,
    /// How often it was out of reach and came back.
    silences: u32,
    /// How long it was out of reach the last time, seconds.
    silent_s: f64,
    /// Answers that no order waits for any more, since the user interrupted.
    answers_owed: u32,
    /// Why it cannot be used any more.
    failure: Option<String>,
}

impl ServerHost {
    fn attach(name: &str, access: &Arc<dyn HostAccess>, contest: &str) -> Result<Self> {
        let (link, facts, round_trip_s) = start_link(name, access.as_ref(), contest)?;
        Ok(Self {
            facts,
            round_trip_s,
            access: Arc::clone(access),
            contest: contest.to_owned(),
            link,
            session: 0,
            silences: 0,
            silent_s: 0.0,
            answers_owed: 0,
            failure: None,
        })
    }

    /// Attaches it again where it was out of reach.
    fn attach_again(&mut self) -> Result<()> {
        if self.failure.is_none() {
            return Ok(());
        }
        let started = start_link(&self.facts.name, self.access.as_ref(), &self.contest);
        let (link, facts, round_trip_s) =
            started.inspect_err(|error| self.failure = Some(format!("{error:#}")))?;
        self.link = link;
        self.round_trip_s = round_trip_s;
        self.session += 1;
        self.answers_owed = 0;
        self.failure = None;
        check_machine(&self.facts, &facts)
    }

    /// Sends an order and waits for its answer, unless the user interrupts an interruptible wait.
    fn ask(
        &mut self,
        order: &ServerOrder,
        limit: Duration,
        is_interruptible: bool,
    ) -> Result<ServerAnswer> {
        if let Some(why) = &self.failure {
            let why = why.clone();
            return Err(ServerHostMissing { why }.into());
        }
        let sent = self.link.send(order);
        sent.map_err(|failure| self.has_failed(failure))?;
        self.answer(limit, is_interruptible)
    }

    fn answer(&mut self, limit: Duration, is_interruptible: bool) -> Result<ServerAnswer> {
        let deadline = clock::now() + limit;
        loop {
            if is_interruptible && let Err(interrupted) = interrupt::check() {
                self.answers_owed += 1;
                return Err(interrupted.into());
            }
            match self.link.answer_within(PAUSE, deadline) {
                Ok(Some(ServerAnswer::Unreachable { why })) => return Err(self.has_failed(why)),
                Ok(Some(ServerAnswer::WasSilent { seconds })) => {
                    self.silences += 1;
                    self.silent_s = seconds;
                }
                Ok(Some(_)) if self.answers_owed > 0 => self.answers_owed -= 1,
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(failure) => return Err(self.has_failed(failure)),
            }
        }
    }

    /// The answer is not quoted, since it may contain a password.
    fn out_of_turn(&mut self) -> anyhow::Error {
        let failure = self.link.failed("unexpected answer");
        self.has_failed(failure)
    }

    fn has_failed(&mut self, why: String) -> anyhow::Error {
        self.failure = Some(why.clone());
        ServerHostMissing { why }.into()
    }
}

/// Starts the link to an agent and waits until it is attached; also returns the facts of its machine, and the round trip
/// to it, seconds.
fn start_link(
    name: &str,
    access: &dyn HostAccess,
    contest: &str,
) -> Result<(Box<dyn ServerLink>, facts::ServerHost, f64)> {
    let mut link = access.server_link(name, contest)?;
    let deadline = clock::now() + ATTACH_TIMEOUT;
    loop {
        interrupt::check()?;
        let why = match link.answer_within(PAUSE, deadline) {
            Ok(None) => continue,
            Ok(Some(ServerAnswer::Attached { host, round_trip_s })) => {
                return Ok((link, *host, round_trip_s));
            }
            Ok(Some(ServerAnswer::Unreachable { why })) | Err(why) => why,
            Ok(Some(_)) => link.failed("unexpected answer"),
        };
        return Err(ServerHostMissing { why }.into());
    }
}

/// Refuses a host whose machine changed since the contest began.
fn check_machine(before: &facts::ServerHost, now: &facts::ServerHost) -> Result<()> {
    if before.facts.machine == now.facts.machine {
        return Ok(());
    }
    let why = format!(
        "server host `{}` is a different machine than when this contest began; start its agent on the original machine, then \
         resume",
        now.name
    );
    Err(ServerHostMissing { why }.into())
}

/// The answer, with a reported failure as an error.
fn checked(host: &Mutex<ServerHost>, answer: ServerAnswer) -> Result<ServerAnswer> {
    match answer {
        ServerAnswer::RefusedSetting { name, value, said } => Err(RefusedSetting {
            setting: Setting::new(&name, value.as_deref()),
            said,
            suggestion: None,
        }
        .into()),
        ServerAnswer::Failed { why } => {
            let name = lock(host).facts.name.clone();
            Err(anyhow!("server host `{name}`: {why}"))
        }
        answer => Ok(answer),
    }
}
