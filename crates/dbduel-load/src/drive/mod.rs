//! The load process: executes orders, line by line, and answers.
//!
//! Every wait is for one inbox, which gets the orders and the reports of the load threads, and has a deadline; so a
//! stop is obeyed during a slice, and the end of the input ends the process at any time.

mod answer;
mod input;
mod open;
mod slice;

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use dbduel_client::commit_log::CommitLog;
use dbduel_client::share::HostShare;
use dbduel_client::tally::Tally;
use dbduel_driver::executor::policy::{confine_to, raise_open_files_limit};
use dbduel_driver::statement_examples::StatementExamples;
use dbduel_record::commits::CommitRange;

use crate::load_thread::{LoadThread, Report};
use crate::order::{Answer, Order};
use input::Input;
pub use input::take_standard_input;

/// Time for a command that depends on the load threads only.
const PROMPT: Duration = Duration::from_secs(10);

/// Why the load process cannot continue. An error with one contender is an answer instead.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The answers cannot be written.
    #[error("cannot write answers; has the process that sends the orders ended?")]
    Output(#[source] io::Error),
    /// The load threads cannot be started.
    #[error("cannot start {threads} load threads")]
    Threads {
        /// Requested number.
        threads: u32,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The load cannot be confined.
    #[error(
        "cannot confine the load to processors {cores:?}; do they exist, and may this process use them?"
    )]
    Cores {
        /// The processors.
        cores: Vec<u32>,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A load thread has ended or does not respond.
    #[error("a load thread failed: {0}")]
    Thread(String),
}

/// The load threads to be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads {
    /// Number of threads.
    pub count: u32,
    /// How long each of their waits polls before it sleeps; zero to sleep at once.
    pub busy_poll: Duration,
    /// Their share of the load.
    pub share: HostShare,
}

/// This many threads, without busy polling, for the whole load.
impl From<u32> for Threads {
    fn from(count: u32) -> Self {
        Threads {
            count,
            busy_poll: Duration::ZERO,
            share: HostShare::WHOLE,
        }
    }
}

/// Executes the orders on `input` and answers on `output`, with these load threads, confined to these processors
/// unless the list is empty. Returns when the input ends.
///
/// # Errors
/// [`DriveError`], after which the process must end.
pub fn drive(
    input: impl BufRead + Send + 'static,
    output: impl Write,
    threads: impl Into<Threads>,
    cores: &[u32],
) -> Result<(), DriveError> {
    let Threads {
        count,
        busy_poll,
        share,
    } = threads.into();
    confine_to(cores).map_err(|source| DriveError::Cores {
        cores: cores.to_vec(),
        source,
    })?;
    // With the old limit fewer clients can connect, and an order for more is refused.
    let _ = raise_open_files_limit();
    let (sender, inbox) = channel();
    let started: io::Result<Vec<LoadThread>> = (0..count.max(1))
        .map(|number| {
            let sender = sender.clone();
            LoadThread::start(number as usize, busy_poll, move |report| {
                // No receiver is left when the process is ending.
                let _ = sender.send(Input::Report(report));
            })
        })
        .collect();
    let threads = started.map_err(|source| DriveError::Threads {
        threads: count,
        source,
    })?;
    input::read(input, sender).map_err(|source| DriveError::Threads { threads: 1, source })?;
    let mut desk = Desk {
        threads,
        share,
        inbox,
        output,
        backlog: VecDeque::new(),
        contenders: HashMap::new(),
        sequences: HashMap::new(),
        commit_logs: HashMap::new(),
        reports_commit_times: false,
        next_examples: None,
        begin_at_ns: None,
        settles: 0,
        spare: Vec::new(),
    };
    match desk.serve() {
        Err(Interruption::End) => {
            desk.threads.into_iter().for_each(LoadThread::end);
            Ok(())
        }
        // A thread that failed may never end, so they are left to the end of the process.
        Err(Interruption::Failed(error)) => Err(error),
        Ok(never) => match never {},
    }
}

/// Reasons to end the load process.
enum Interruption {
    /// The input ended.
    End,
    /// An error.
    Failed(DriveError),
}

impl From<DriveError> for Interruption {
    fn from(error: DriveError) -> Self {
        Interruption::Failed(error)
    }
}

/// Result of a wait for an event.
enum Event {
    Report(Report),
    Stop,
    TimeUp,
}

/// Names of the classes that a workload's clients count by.
#[derive(Debug, Clone)]
struct ClassNames {
    /// Classes of transactions.
    classes: Vec<String>,
    /// Classes of single statements; empty unless these are measured.
    statements: Vec<String>,
}

/// A contender whose clients are connected.
struct OpenContender {
    classes: ClassNames,
    /// True when a transaction may block its load thread on purpose.
    blocks_threads: bool,
    clients: u32,
    retries: u32,
    /// Why its clients are gone, if they are.
    lost: Option<String>,
    /// Store for examples of their statements, if they keep them.
    examples: Option<Arc<StatementExamples>>,
}

struct Desk<O> {
    threads: Vec<LoadThread>,
    share: HostShare,
    inbox: Receiver<Input>,
    output: O,
    backlog: VecDeque<Order>,
    contenders: HashMap<String, OpenContender>,
    /// Kept after a contender is closed, so that its clients never draw a number twice.
    sequences: HashMap<String, Arc<AtomicU32>>,
    /// Acknowledged commits that have not been answered yet.
    commit_logs: HashMap<String, CommitLog>,
    /// Whether each acknowledgement is also answered with its time.
    reports_commit_times: bool,
    /// Store for examples of the next contender's statements, if it keeps them.
    next_examples: Option<Arc<StatementExamples>>,
    /// When the next slice begins, nanoseconds of `CLOCK_MONOTONIC`, if that was ordered.
    begin_at_ns: Option<u64>,
    /// Number of waits for clients so far.
    settles: u64,
    /// Tallies of earlier slices, for reuse of their memory.
    spare: Vec<Tally>,
}

impl<O: Write> Desk<O> {
    fn serve(&mut self) -> Result<std::convert::Infallible, Interruption> {
        loop {
            let order = self.next_order()?;
            self.halt();
            let answer = match order {
                Order::Open(order) => self.open(order)?,
                Order::Slice(order) => self.slice(&order)?,
                Order::Close { contender } => {
                    let examples = self.contenders.get(&contender);
                    let examples = examples.and_then(|open| open.examples.clone());
                    self.close(&contender)?;
                    Answer::Closed {
                        commits: self.take_commits(&contender),
                        examples: examples.map_or_else(Vec::new, |kept| kept.take()),
                        contender,
                    }
                }
                Order::ReportCommitTimes => {
                    self.reports_commit_times = true;
                    continue;
                }
                Order::KeepExamples => {
                    self.next_examples = Some(Arc::default());
                    continue;
                }
                Order::BeginAt { at_ns } => {
                    self.begin_at_ns = Some(at_ns);
                    continue;
                }
                // The slice ended before the order arrived, and has been answered.
                Order::Stop | Order::Halt => continue,
            };
            self.answer(&answer)?;
        }
    }

    fn next_order(&mut self) -> Result<Order, Interruption> {
        loop {
            if let Some(order) = self.backlog.pop_front() {
                return Ok(order);
            }
            match self.inbox.recv() {
                Ok(input) => match self.sort(input)? {
                    Some(Event::Report(Report::Lost { contender, why })) => {
                        self.remember_loss(&contender, &why);
                    }
                    _ => continue,
                },
                Err(_) => return Err(Interruption::End),
            }
        }
    }

    /// Waits for the next event of the current order.
    fn next_event(&mut self, deadline: Instant) -> Result<Event, Interruption> {
        loop {
            match self
                .inbox
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(input) => {
                    if let Some(event) = self.sort(input)? {
                        return Ok(event);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(Event::TimeUp),
                Err(RecvTimeoutError::Disconnected) => return Err(Interruption::End),
            }
        }
    }

    /// Queues orders other than a stop.
    fn sort(&mut self, input: Input) -> Result<Option<Event>, Interruption> {
        match input {
            Input::End => Err(Interruption::End),
            Input::Order(Order::Stop) => Ok(Some(Event::Stop)),
            Input::Order(order) => {
                self.backlog.push_back(order);
                Ok(None)
            }
            Input::Nonsense(why) => {
                self.answer(&Answer::Refused { why })?;
                Ok(None)
            }
            Input::Report(Report::Ended(outcome)) => {
                let why = outcome.err().map_or_else(
                    || "it ended unexpectedly".to_owned(),
                    |error| error.to_string(),
                );
                Err(DriveError::Thread(why).into())
            }
            Input::Report(Report::Committed {
                contender,
                acknowledged,
            }) => {
                let commitments = acknowledged.iter().map(|each| each.commitment);
                self.commit_logs
                    .entry(contender)
                    .or_default()
                    .note(commitments);
                if self.reports_commit_times {
                    self.answer(&Answer::Acknowledged { acknowledged })?;
                }
                Ok(None)
            }
            Input::Report(report) => Ok(Some(Event::Report(report))),
        }
    }

    fn answer(&mut self, answer: &Answer) -> Result<(), DriveError> {
        let write = |output: &mut O| -> io::Result<()> {
            serde_json::to_writer(&mut *output, answer)?;
            output.write_all(b"\n")?;
            output.flush()
        };
        write(&mut self.output).map_err(DriveError::Output)
    }

    /// Commits of the contender that its server acknowledged since the last call.
    fn take_commits(&mut self, contender: &str) -> Vec<CommitRange> {
        self.commit_logs
            .get_mut(contender)
            .map(CommitLog::take)
            .unwrap_or_default()
    }

    fn remember_loss(&mut self, contender: &str, why: &dyn std::fmt::Display) {
        if let Some(open) = self.contenders.get_mut(contender) {
            open.lost.get_or_insert_with(|| why.to_string());
        }
    }
}
