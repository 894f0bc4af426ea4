//! The orchestrator's end of the load process: starts it, gives orders, awaits answers.
//!
//! The load process is this same program under its hidden name `drive`, in a process group of its
//! own so that a Ctrl-C at the terminal reaches only the orchestrator.

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use dbduel_load::commit_log::Acknowledged;
use dbduel_load::monotonic;
use dbduel_load::order::{Answer, OpenOrder, Order, SliceAnswer, SliceOrder, Tick};
use dbduel_load::session::Session;
use dbduel_record::commits::CommitRange;
use dbduel_record::plan;
use dbduel_record::statements::StatementExample;

use crate::interrupt::{self, Urgency};

/// Time beyond what an order allows itself before the load process counts as stuck.
const GRACE: Duration = Duration::from_secs(15);
/// Between the end of a process's output and its own end.
const LAST_MOMENTS: Duration = Duration::from_millis(200);
/// How often a wait checks for an interrupt.
const PAUSE: Duration = Duration::from_millis(50);

/// A running load process. Dropped means ended.
#[derive(Debug)]
pub struct LoadProcess {
    child: Child,
    orders: Option<ChildStdin>,
    commits: Vec<CommitRange>,
    acknowledged: Vec<Acknowledged>,
    answers: Receiver<std::io::Result<Answer>>,
    is_broken: bool,
}

#[derive(Debug)]
pub enum SliceEnd {
    /// With a result.
    Finished(Box<SliceAnswer>),
    /// Without one.
    Lost {
        /// What happened.
        why: String,
        /// What was counted of the measured part until then.
        counted: Option<Box<SliceAnswer>>,
    },
}

impl SliceEnd {
    /// Before anything was counted.
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
        let program = std::env::current_exe()
            .context("could not find this program's own file to start the load process")?;
        let cores: Vec<String> = load.cores.iter().map(u32::to_string).collect();
        let mut child = Command::new(&program)
            .arg("drive")
            .args(["--threads", &load.threads.to_string()])
            .args(["--busy-poll-us", &load.busy_poll_us.to_string()])
            .args(["--cores", &cores.join(",")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| {
                format!(
                    "could not start the load process `{} drive`",
                    program.display()
                )
            })?;
        let orders = child.stdin.take();
        let output = child
            .stdout
            .take()
            .context("the load process has no output")?;
        let (sender, answers) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let answer =
                    line.and_then(|line| serde_json::from_str(&line).map_err(std::io::Error::from));
                if sender.send(answer).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            orders,
            commits: Vec::new(),
            acknowledged: Vec::new(),
            answers,
            is_broken: false,
        })
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True when it has ended, did not answer in time or answered out of turn. It must then be started again.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Connects a contender's clients; returns what the server says of the first one's session.
    ///
    /// # Errors
    /// When the clients cannot be connected.
    pub fn open(&mut self, order: OpenOrder) -> Result<Session> {
        let deadline = Instant::now() + Duration::from_secs_f64(order.connect_s) + GRACE;
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

    /// Closes a contender's connections; returns the examples that they kept.
    ///
    /// # Errors
    /// When the load process does not answer.
    pub fn close(&mut self, contender: &str) -> Result<Vec<StatementExample>> {
        self.send(&Order::Close {
            contender: contender.to_owned(),
        })?;
        match self.answer(Instant::now() + GRACE)? {
            Answer::Closed {
                commits, examples, ..
            } => {
                self.commits.extend(commits);
                Ok(examples)
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Drives one slice; `on_begin` is called with the instant at which its measured part begins, `on_tick` for every piece
    /// as it ends, which may end the slice. The slice is lost when the server or the load process is gone or stuck.
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
        let deadline = Instant::now() + Duration::from_secs_f64(length) + GRACE;
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
                    return Ok(SliceEnd::Finished(Box::new(answer)));
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

    /// What the server of the contender that was driven last acknowledged since the last call.
    #[must_use]
    pub fn take_commits(&mut self) -> Vec<CommitRange> {
        std::mem::take(&mut self.commits)
    }

    /// Lets the process say when each number was acknowledged, for [`LoadProcess::take_acknowledged`].
    ///
    /// # Errors
    /// When it takes no orders.
    pub fn report_commit_times(&mut self) -> Result<()> {
        self.send(&Order::ReportCommitTimes)
    }

    /// Lets the clients of the next contender that is opened keep one statement of each class, for [`LoadProcess::close`].
    ///
    /// # Errors
    /// When it takes no orders.
    pub fn keep_examples(&mut self) -> Result<()> {
        self.send(&Order::KeepExamples)
    }

    /// The numbers that were acknowledged since the last call, with their times; of slices only.
    #[must_use]
    pub fn take_acknowledged(&mut self) -> Vec<Acknowledged> {
        std::mem::take(&mut self.acknowledged)
    }

    fn send(&mut self, order: &Order) -> Result<()> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        let orders = self
            .orders
            .as_mut()
            .context("the load process takes no more orders")?;
        let sent = orders
            .write_all(line.as_bytes())
            .and_then(|()| orders.flush());
        if let Err(error) = sent {
            return Err(self.failed(&error.to_string()));
        }
        Ok(())
    }

    fn answer(&mut self, deadline: Instant) -> Result<Answer> {
        loop {
            if let Some(answer) = self.answer_within(PAUSE, deadline)? {
                return Ok(answer);
            }
        }
    }

    /// The next answer, `None` when there is none within `pause`.
    fn answer_within(&mut self, pause: Duration, deadline: Instant) -> Result<Option<Answer>> {
        match self.answers.recv_timeout(pause) {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(error)) => {
                Err(self.failed(&format!("it answered what is not understood: {error}")))
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(self.failed("it did not answer in time")),
            Err(RecvTimeoutError::Disconnected) => Err(self.failed("it closed its output")),
        }
    }

    fn unexpected(&mut self, answer: &Answer) -> anyhow::Error {
        self.failed(&format!("it answered out of turn: {answer:?}"))
    }

    /// It sends nothing more. How it ended says more than what was noticed first.
    fn failed(&mut self, what: &str) -> anyhow::Error {
        self.is_broken = true;
        let mut ended = None;
        let deadline = Instant::now() + LAST_MOMENTS;
        while ended.is_none() && Instant::now() < deadline {
            // Its pipes are closed a moment before it can be waited for.
            ended = self.child.try_wait().ok().flatten();
            std::thread::sleep(Duration::from_millis(1));
        }
        match ended {
            Some(status) => anyhow!("the load process ended: {status}"),
            None => anyhow!("the load process failed: {what}"),
        }
    }
}

impl Drop for LoadProcess {
    /// Closing its input ends the load process; a kill makes sure.
    fn drop(&mut self) {
        drop(self.orders.take());
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
