//! The orchestrator's side of the load process: starts it, sends orders, awaits answers.
//!
//! The load process is this same program under its hidden name `drive`.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use dbduel_client::commit_log::Acknowledged;
use dbduel_client::share::HostShare;
use dbduel_driver::session::Session;
use dbduel_load::monotonic;
use dbduel_load::order::{Answer, OpenOrder, Order, SliceAnswer, SliceOrder, Tick};
use dbduel_machine::clock;
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_machine::random::secret;
use dbduel_record::commits::CommitRange;
use dbduel_record::facts::LoadHost;
use dbduel_record::plan;
use dbduel_record::statements::StatementExample;

use super::line_process::{self, LineProcess};
use super::outage::SILENCE_MAX;
use super::server_host::ServerLink;

/// Time beyond an order's own limit before the load process counts as stuck.
const GRACE: Duration = Duration::from_secs(15);
/// As [`GRACE`], of the link to load hosts: it reports a host that is silent for too long by name.
const HOSTS_GRACE: Duration = SILENCE_MAX.saturating_mul(2).saturating_add(GRACE);
/// How often a wait checks for an interrupt.
pub const PAUSE: Duration = Duration::from_millis(50);

/// Timeout for attaching the agents of load hosts; the link reports a failure earlier.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(200);

/// Access to the agents of load hosts and server hosts.
pub trait HostAccess: Debug + Send + Sync {
    /// Adds the options with which this program's links connect to them.
    fn add_to(&self, command: &mut Command);

    /// Stores a server's packed files under their digest for hosts, unless present, with a description.
    ///
    /// # Errors
    /// When there is no room.
    fn store_server(&self, digest: &str, packed: &Path, about: &str) -> Result<()>;

    /// Starts the link to the agent of a server host; `contest` is the contest's name towards it.
    ///
    /// # Errors
    /// When this program cannot be executed again.
    fn server_link(&self, host: &str, contest: &str) -> Result<Box<dyn ServerLink>> {
        let mut command = line_process::own_program("server-link")?;
        command
            .args(["--host", host])
            .args(["--contest", contest])
            .args(["--orchestrator", orchestrator()?]);
        self.add_to(&mut command);
        let title = format!("the link to server host `{host}`");
        Ok(Box::new(LineProcess::spawn(&title, command)?))
    }
}

/// A load host that cannot be used. The contest cannot continue without it.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct LoadHostMissing {
    why: String,
}

/// The command of a load process that drives a share of the load.
///
/// # Errors
/// When this program's own file is not found.
pub fn command(
    threads: u32,
    busy_poll_us: u32,
    cores: &[u32],
    share: HostShare,
) -> Result<Command> {
    let mut command = own_program("drive", threads, busy_poll_us)?;
    let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
    command
        .args(["--cores", &cores.join(",")])
        .args(["--host", &share.host.to_string()])
        .args(["--hosts", &share.hosts.to_string()]);
    Ok(command)
}

fn own_program(verb: &str, threads: u32, busy_poll_us: u32) -> Result<Command> {
    let mut command = line_process::own_program(verb)?;
    command
        .args(["--threads", &threads.to_string()])
        .args(["--busy-poll-us", &busy_poll_us.to_string()]);
    Ok(command)
}

/// A running load process, or the link to those of load hosts. Dropping it ends it.
#[derive(Debug)]
pub struct LoadProcess {
    process: LineProcess<Answer>,
    commits: Vec<CommitRange>,
    acknowledged: Vec<Acknowledged>,
    /// Time beyond an order's own limit before it counts as stuck.
    grace: Duration,
    /// Its failure, if any.
    failure: Option<String>,
}

/// The link to load hosts whose load processes are ready.
#[derive(Debug)]
pub struct AttachedHosts {
    /// The link.
    pub link: LoadProcess,
    /// The hosts, in the order of the plan.
    pub hosts: Vec<LoadHost>,
    /// Round trip to the farthest one, seconds.
    pub round_trip_s: f64,
}

/// How a slice ended.
#[derive(Debug)]
pub enum SliceEnd {
    /// It has a result.
    Finished(Box<SliceAnswer>),
    /// It has none.
    Lost {
        /// The reason.
        why: String,
        /// Counts of the measured part until then.
        counted: Option<Box<SliceAnswer>>,
    },
}

impl SliceEnd {
    /// A slice lost before anything was counted.
    pub fn lost(why: String) -> Self {
        SliceEnd::Lost { why, counted: None }
    }
}

impl LoadProcess {
    /// Starts the load process.
    ///
    /// # Errors
    /// When this program cannot be executed again.
    pub fn start(load: &plan::LoadProcess) -> Result<Self> {
        let whole = HostShare::WHOLE;
        let command = command(load.threads, load.busy_poll_us, &load.cores, whole)?;
        Self::spawn(command, GRACE)
    }

    /// Starts the link to load hosts and waits until their load processes are ready. `contest` is the contest's name
    /// towards their agents.
    ///
    /// # Errors
    /// [`LoadHostMissing`], or when this program cannot be executed again.
    pub fn start_on_hosts(
        load: &plan::LoadProcess,
        hosts: &plan::LoadHosts,
        access: &dyn HostAccess,
        contest: &str,
    ) -> Result<AttachedHosts> {
        let mut command = own_program("load-link", load.threads, load.busy_poll_us)?;
        command
            .args(["--contest", contest])
            .args(["--orchestrator", orchestrator()?]);
        for name in &hosts.load {
            command.args(["--host", name]);
        }
        access.add_to(&mut command);
        let mut link = Self::spawn(command, HOSTS_GRACE)?;
        let deadline = clock::now() + ATTACH_TIMEOUT;
        loop {
            interrupt::check()?;
            let answer = link.answer_within(PAUSE, deadline).map_err(|error| {
                let why = format!("{error:#}");
                anyhow::Error::new(LoadHostMissing { why })
            })?;
            match answer {
                None => {}
                Some(Answer::Attached {
                    hosts,
                    round_trip_s,
                }) => {
                    return Ok(AttachedHosts {
                        link,
                        hosts,
                        round_trip_s,
                    });
                }
                Some(other) => return Err(link.unexpected(&other)),
            }
        }
    }

    fn spawn(command: Command, grace: Duration) -> Result<Self> {
        Ok(Self {
            process: LineProcess::spawn("the load process", command)?,
            commits: Vec::new(),
            acknowledged: Vec::new(),
            grace,
            failure: None,
        })
    }

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// True when it has ended, timed out or answered out of order. It must then be started again.
    pub fn is_broken(&self) -> bool {
        self.failure.is_some()
    }

    /// Its failure, if any.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Connects a contender's clients; returns the session facts that the server reports for the first one.
    ///
    /// # Errors
    /// When the clients cannot be connected.
    pub fn open(&mut self, order: OpenOrder) -> Result<Session> {
        let deadline = clock::now() + Duration::from_secs_f64(order.connect_s) + self.grace;
        let contender = order.contender.clone();
        self.send(&Order::Open(order))?;
        match self.answer(deadline)? {
            Answer::Opened { session, .. } => Ok(session),
            Answer::Refused { why } => {
                bail!("could not connect the clients of `{contender}`: {why}")
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Closes a contender's connections; returns their statement examples.
    ///
    /// # Errors
    /// When the load process does not answer.
    pub fn close(&mut self, contender: &str) -> Result<Vec<StatementExample>> {
        self.send(&Order::Close {
            contender: contender.to_owned(),
        })?;
        match self.answer(clock::now() + self.grace)? {
            Answer::Closed {
                commits, examples, ..
            } => {
                self.commits.extend(commits);
                Ok(examples)
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Drives one slice. Calls `on_begin` with the instant at which the measured part begins, and `on_tick` after every
    /// tick, which may end the slice. The slice is lost when the server or the load process is gone or stuck.
    pub fn slice(
        &mut self,
        order: SliceOrder,
        on_begin: impl FnMut(Instant),
        on_tick: impl FnMut(&Tick) -> ControlFlow<()>,
    ) -> SliceEnd {
        self.order_slice(order, on_begin, on_tick)
            .unwrap_or_else(|error| SliceEnd::lost(format!("{error:#}")))
    }

    /// As [`LoadProcess::slice`]; an error when the load process is gone or stuck.
    fn order_slice(
        &mut self,
        order: SliceOrder,
        mut on_begin: impl FnMut(Instant),
        mut on_tick: impl FnMut(&Tick) -> ControlFlow<()>,
    ) -> Result<SliceEnd> {
        // Replies to the slice before may still be awaited as long as this one's.
        let length = order.guard_s + order.measured_s + 2.0 * order.drain_s;
        let deadline = clock::now() + Duration::from_secs_f64(length) + self.grace;
        self.send(&Order::Slice(order))?;
        let mut is_ended = false;
        loop {
            // The load process ends with its input, so there is no answer to wait for.
            if interrupt::urgency() == Urgency::Stop {
                return Ok(SliceEnd::lost("stopped by the user".to_owned()));
            }
            match self.answer_within(PAUSE, deadline)? {
                None => {}
                Some(Answer::Begun { open_ns }) => on_begin(monotonic::instant_of(open_ns)),
                Some(Answer::Acknowledged { acknowledged }) => {
                    self.acknowledged.extend(acknowledged);
                }
                Some(Answer::Tick(tick)) => {
                    let is_enough = on_tick(&tick).is_break();
                    if is_enough && !is_ended {
                        self.send(&Order::Stop)?;
                        is_ended = true;
                    }
                }
                Some(Answer::Slice(mut answer)) => {
                    self.commits.append(&mut answer.commits);
                    return Ok(SliceEnd::Finished(answer));
                }
                Some(Answer::Lost {
                    why,
                    commits,
                    counted,
                }) => {
                    self.commits.extend(commits);
                    return Ok(SliceEnd::Lost { why, counted });
                }
                Some(Answer::Refused { why }) => return Ok(SliceEnd::lost(why)),
                Some(other) => return Err(self.unexpected(&other)),
            }
        }
    }

    /// Stops the clients of the last slice from beginning anything: their server was frozen under load. If the load
    /// process refuses the order, the next order reports it.
    pub fn halt(&mut self) {
        let _ = self.send(&Order::Halt);
    }

    /// Commits that the last driven contender acknowledged since the last call.
    #[must_use]
    pub fn take_commits(&mut self) -> Vec<CommitRange> {
        std::mem::take(&mut self.commits)
    }

    /// Makes the process report the time of each acknowledged number, for [`LoadProcess::take_acknowledged`].
    ///
    /// # Errors
    /// When it does not accept the order.
    pub fn report_commit_times(&mut self) -> Result<()> {
        self.send(&Order::ReportCommitTimes)
    }

    /// Makes the clients of the next opened contender keep one statement of each class, for [`LoadProcess::close`].
    ///
    /// # Errors
    /// When it does not accept the order.
    pub fn keep_examples(&mut self) -> Result<()> {
        self.send(&Order::KeepExamples)
    }

    /// Acknowledged numbers since the last call with their times, of slices only.
    #[must_use]
    pub fn take_acknowledged(&mut self) -> Vec<Acknowledged> {
        std::mem::take(&mut self.acknowledged)
    }

    fn send(&mut self, order: &Order) -> Result<()> {
        let sent = self.process.send(order);
        sent.map_err(|failure| self.has_failed(failure))
    }

    fn answer(&mut self, deadline: Instant) -> Result<Answer> {
        loop {
            if interrupt::gives_up() {
                return Err(self.has_failed("interrupted before its answer".to_owned()));
            }
            if let Some(answer) = self.answer_within(PAUSE, deadline)? {
                return Ok(answer);
            }
        }
    }

    /// The next answer, `None` when there is none within `pause`.
    fn answer_within(&mut self, pause: Duration, deadline: Instant) -> Result<Option<Answer>> {
        match self.process.answer_within(pause, deadline) {
            Ok(Some(Answer::Unreachable { why })) => Err(self.has_failed(why)),
            Ok(answer) => Ok(answer),
            Err(failure) => Err(self.has_failed(failure)),
        }
    }

    fn unexpected(&mut self, answer: &Answer) -> anyhow::Error {
        let what = format!("unexpected answer: {answer:?}");
        let failure = self.process.failed(&what);
        self.has_failed(failure)
    }

    fn has_failed(&mut self, failure: String) -> anyhow::Error {
        self.failure = Some(failure.clone());
        anyhow!(failure)
    }
}

/// Random identity of this process towards its hosts.
///
/// # Errors
/// When the system gives no random bytes.
pub fn orchestrator() -> Result<&'static str> {
    static IDENTITY: OnceLock<String> = OnceLock::new();
    if let Some(known) = IDENTITY.get() {
        return Ok(known);
    }
    let drawn = secret(8)?;
    Ok(IDENTITY.get_or_init(|| drawn))
}
