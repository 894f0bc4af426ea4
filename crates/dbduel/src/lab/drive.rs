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
use dbduel_load::order::{Answer, OpenOrder, Order, SliceAnswer, SliceOrder, Tick};
use dbduel_load::session::Session;
use dbduel_record::commits::CommitRange;
use dbduel_record::plan;

use crate::interrupt::{self, Urgency};

/// Time beyond what an order allows itself before the load process counts as stuck.
const GRACE: Duration = Duration::from_secs(15);
/// How often a wait looks at the user's wish to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// A running load process. Dropped means ended.
#[derive(Debug)]
pub struct LoadProcess {
    child: Child,
    orders: Option<ChildStdin>,
    commits: Vec<CommitRange>,
    answers: Receiver<std::io::Result<Answer>>,
}

/// How a slice ended.
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
    fn lost(why: String) -> Self {
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
            answers,
        })
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
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
            other => Err(unexpected(&other)),
        }
    }

    /// Closes a contender's connections.
    ///
    /// # Errors
    /// When the load process does not answer.
    pub fn close(&mut self, contender: &str) -> Result<()> {
        self.send(&Order::Close {
            contender: contender.to_owned(),
        })?;
        match self.answer(Instant::now() + GRACE)? {
            Answer::Closed { commits, .. } => {
                self.commits.extend(commits);
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Drives one slice; `on_tick` is called for every piece as it ends and may end the slice.
    ///
    /// # Errors
    /// When the load process is gone or stuck, which ends the contest. A server that is gone is
    /// [`SliceEnd::Lost`].
    pub fn slice(
        &mut self,
        order: SliceOrder,
        mut on_tick: impl FnMut(&Tick) -> ControlFlow<()>,
    ) -> Result<SliceEnd> {
        // Replies to the slice before may still be awaited as long as this one's.
        let length = order.guard_s + order.measured_s + 2.0 * order.drain_s;
        let deadline = Instant::now() + Duration::from_secs_f64(length) + GRACE;
        self.send(&Order::Slice(order))?;
        let mut is_ended = false;
        loop {
            // The load process ends with its input, so nobody need wait for its answer.
            if interrupt::urgency() == Urgency::Stop {
                return Ok(SliceEnd::lost("stopped by the user".to_owned()));
            }
            match self.answer_within(PAUSE, deadline)? {
                None => {}
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
                Some(other) => return Err(unexpected(&other)),
            }
        }
    }

    /// What the server of the contender that was driven last acknowledged since the last call.
    #[must_use]
    pub fn take_commits(&mut self) -> Vec<CommitRange> {
        std::mem::take(&mut self.commits)
    }

    fn send(&mut self, order: &Order) -> Result<()> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        let orders = self
            .orders
            .as_mut()
            .context("the load process takes no more orders")?;
        orders
            .write_all(line.as_bytes())
            .and_then(|()| orders.flush())
            .context("the load process is gone")
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
            Ok(answer) => answer
                .map(Some)
                .context("the load process answered something that is not understood"),
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("the load process did not answer in time"),
            Err(RecvTimeoutError::Disconnected) => match self.child.try_wait() {
                Ok(Some(status)) => bail!("the load process ended by itself: {status}"),
                _ => bail!("the load process closed its output"),
            },
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

fn unexpected(answer: &Answer) -> anyhow::Error {
    anyhow!("the load process answered out of turn: {answer:?}")
}
