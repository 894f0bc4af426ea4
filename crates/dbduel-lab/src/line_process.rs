//! A process of this program under a hidden name: reads orders as JSON lines from standard input and writes answers as
//! JSON lines to standard output.
//!
//! It has its own process group, so that a Ctrl-C at the terminal reaches only the orchestrator.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use dbduel_machine::clock;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Time from the end of a process's output to its exit.
const LAST_MOMENTS: Duration = Duration::from_millis(200);
/// Timeout for a process to exit after its input was closed; then it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The command of this program under one of its hidden names.
///
/// # Errors
/// When this program's own file is not found.
pub fn own_program(verb: &str) -> Result<Command> {
    let program = std::env::current_exe()
        .context("could not find this program's executable to start it again")?;
    let mut command = Command::new(program);
    command.arg(verb);
    Ok(command)
}

/// A running process with answers of type `A`. Dropping it ends it.
#[derive(Debug)]
pub struct LineProcess<A> {
    /// Its name in messages.
    name: String,
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<std::io::Result<A>>,
}

impl<A: DeserializeOwned + Send + 'static> LineProcess<A> {
    /// Starts the process; `name` is its name in messages.
    ///
    /// # Errors
    /// When the program cannot be executed.
    pub fn spawn(name: &str, mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| {
                let program = command.get_program().to_string_lossy().into_owned();
                format!("could not start {name} `{program}`")
            })?;
        let orders = child.stdin.take();
        let output = child.stdout.take();
        let output = output.with_context(|| format!("{name} has no output"))?;
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
            name: name.to_owned(),
            child,
            orders,
            answers,
        })
    }
}

impl<A> LineProcess<A> {
    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends an order.
    ///
    /// # Errors
    /// Description of the failure.
    pub fn send(&mut self, order: &impl Serialize) -> Result<(), String> {
        let mut line = serde_json::to_vec(order).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let Some(orders) = &mut self.orders else {
            return Err(format!("{} accepts no more orders", self.name));
        };
        let sent = orders.write_all(&line).and_then(|()| orders.flush());
        sent.map_err(|error| self.failed(&error.to_string()))
    }

    /// The next answer, `None` when there is none within `pause`.
    ///
    /// # Errors
    /// Description of the failure: it ended, sent an invalid answer, or is silent at the deadline.
    pub fn answer_within(
        &mut self,
        pause: Duration,
        deadline: Instant,
    ) -> Result<Option<A>, String> {
        match self.answers.recv_timeout(pause) {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(error)) => Err(self.failed(&format!("invalid answer: {error}"))),
            Err(RecvTimeoutError::Timeout) if clock::now() < deadline => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(self.failed("it did not answer in time")),
            Err(RecvTimeoutError::Disconnected) => Err(self.failed("it closed its output")),
        }
    }

    /// Description of its failure. Its exit status, if it ended, takes precedence over `what`.
    pub fn failed(&mut self, what: &str) -> String {
        let mut ended = None;
        let deadline = clock::now() + LAST_MOMENTS;
        while ended.is_none() && clock::now() < deadline {
            // Its pipes are closed a moment before it can be waited for.
            ended = self.child.try_wait().ok().flatten();
            clock::sleep(Duration::from_millis(1));
        }
        match ended {
            Some(status) => format!("{} ended: {status}", self.name),
            None => format!("{} failed: {what}", self.name),
        }
    }
}

impl<A> Drop for LineProcess<A> {
    /// Closing its input ends the process; a kill follows in case it does not.
    fn drop(&mut self) {
        drop(self.orders.take());
        let deadline = clock::now() + END_TIMEOUT;
        while clock::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            clock::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
