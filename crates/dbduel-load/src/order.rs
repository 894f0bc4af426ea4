//! Orders to the load process and its answers: one JSON object per line.
//!
//! The load process obeys and never chooses: every number that shapes the load is in the order.
//! Passwords travel here, on a pipe that only the two processes hold, and nowhere else.

use std::collections::BTreeMap;
use std::fmt;

use dbduel_driver::address::Address;
use dbduel_driver::session::Session;
use dbduel_driver::{Dialect, TlsMode};
use dbduel_record::commits::CommitRange;
use dbduel_record::facts::LoadHost;
use dbduel_record::plan::{Arrival, Workload};
use dbduel_record::rows::TransactionCounts;
use dbduel_record::statements::StatementExample;
use serde::{Deserialize, Serialize};

use dbduel_client::commit_log::Acknowledged;

/// One line on the load process's standard input. The end of the input ends the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// Connect the clients of one contender and prepare their statements. Answered by
    /// [`Answer::Opened`] or [`Answer::Refused`].
    Open(OpenOrder),
    /// Drive one slice. Answered by [`Answer::Begun`], any number of [`Answer::Tick`], then [`Answer::Slice`] or
    /// [`Answer::Lost`].
    Slice(SliceOrder),
    /// Close a contender's connections. Answered by [`Answer::Closed`], also when there are none.
    Close {
        /// Name of the contender.
        contender: String,
    },
    /// Say from now on of every number that a server acknowledges when that was, by [`Answer::Acknowledged`]. Not answered
    /// itself.
    ReportCommitTimes,
    /// Begin the next slice at this instant, or at once where that is past. Not answered itself.
    BeginAt {
        /// Nanoseconds of `CLOCK_MONOTONIC` ([`crate::monotonic`]).
        at_ns: u64,
    },
    /// Write the statements of the next contender that is opened out as text and keep one of each class, for the
    /// [`Answer::Closed`] about it. Not answered itself.
    KeepExamples,
    /// Put the ordered end of the running slice to now: it is answered when everything that was due until now has ended.
    Stop,
    /// Begin no more transactions in the slice that was answered, whose server has been frozen meanwhile. Not answered itself.
    Halt,
}

/// Connect the clients of one contender. Its debug output leaves the password out.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenOrder {
    /// Name of the contender; later orders refer to it.
    pub contender: String,
    /// What its server speaks.
    #[serde(default)]
    pub dialect: Dialect,
    /// Where its server listens.
    pub address: Address,
    /// Account.
    pub user: String,
    /// Its password; empty for none.
    pub password: String,
    /// How much TLS.
    #[serde(default)]
    pub tls: TlsMode,
    /// Database with the workload's tables.
    pub database: String,
    /// What the clients do.
    pub workload: Workload,
    /// Connections to open: the largest number of clients of any slice.
    pub clients: u32,
    /// Attempts after the first one for a transaction that met a deadlock or a lock timeout.
    pub retries: u32,
    /// Deadline for connecting all clients, seconds.
    pub connect_s: f64,
}

impl fmt::Debug for OpenOrder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpenOrder {
            contender,
            dialect,
            address,
            user,
            password: _,
            tls,
            database,
            workload,
            clients,
            retries,
            connect_s,
        } = self;
        out.debug_struct("OpenOrder")
            .field("contender", contender)
            .field("dialect", dialect)
            .field("address", address)
            .field("user", user)
            .field("tls", tls)
            .field("database", database)
            .field("workload", workload)
            .field("clients", clients)
            .field("retries", retries)
            .field("connect_s", connect_s)
            .finish_non_exhaustive()
    }
}

/// Drive one slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SliceOrder {
    /// Name of the contender.
    pub contender: String,
    /// How many of its clients take part.
    pub clients: u32,
    /// When transactions fall due.
    pub arrival: Arrival,
    /// Load that is not counted, at the start, seconds.
    pub guard_s: f64,
    /// Load that is counted, seconds; it goes on until everything that was due in it has ended.
    pub measured_s: f64,
    /// Resolution of the series, seconds.
    pub tick_s: f64,
    /// Longest wait for transactions that were due in the measured part and have not ended at its ordered end, seconds.
    pub drain_s: f64,
    /// Clients go on after the answer, until [`Order::Halt`] or the next order: the server is to be frozen under load. What is in
    /// flight then goes on in the contender's next slice. Otherwise all transactions have ended before the answer.
    #[serde(default)]
    pub until_halted: bool,
    /// Root of the clients' random streams in this slice.
    pub seed: u64,
}

/// One line on the load process's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// The load processes of the load hosts obey from now on. Before all others, where the load has hosts of its own.
    Attached {
        /// The hosts, in the order of the plan.
        hosts: Vec<LoadHost>,
    },
    /// A load host is out of reach. The process ends with this answer.
    Unreachable {
        /// Which, and what was noticed.
        why: String,
    },
    /// The clients are connected.
    Opened {
        /// Name of the contender.
        contender: String,
        /// Seconds that it took.
        seconds: f64,
        /// What the server says of the first client's session.
        #[serde(default)]
        session: Session,
    },
    /// The clients could not be connected, or an order made no sense.
    Refused {
        /// What was tried, what happened.
        why: String,
    },
    /// A slice begins.
    Begun {
        /// Start of the measured part, nanoseconds of `CLOCK_MONOTONIC` ([`crate::monotonic`]).
        open_ns: u64,
    },
    /// A piece of the running slice.
    Tick(Tick),
    /// Numbers that a server acknowledged, each once, before the answer that ends the slice or closes the connections.
    Acknowledged {
        /// With their times, in no order.
        acknowledged: Vec<Acknowledged>,
    },
    /// The slice is over.
    Slice(Box<SliceAnswer>),
    /// The slice ended without a result: the server's connections broke.
    Lost {
        /// What happened.
        why: String,
        /// What the server had acknowledged since the last answer about this contender.
        #[serde(default)]
        commits: Vec<CommitRange>,
        /// What was counted of the measured part until then; its own `commits` are empty.
        #[serde(default)]
        counted: Option<Box<SliceAnswer>>,
    },
    /// The connections are closed.
    Closed {
        /// Name of the contender.
        contender: String,
        /// What the server had acknowledged since the last answer about this contender.
        #[serde(default)]
        commits: Vec<CommitRange>,
        /// One statement of each class that its clients sent, where that was ordered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        examples: Vec<StatementExample>,
    },
}

/// A piece of a slice, all classes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Start after the end of the guard, seconds; negative inside the guard.
    pub offset_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// Committed in this piece.
    pub ok: u64,
    /// Given up in this piece.
    pub failed: u64,
    /// Sum of the latencies of `ok`, microseconds.
    pub latency_us_sum: f64,
    /// Largest latency of `ok`, microseconds.
    pub latency_us_max: f64,
    /// Median latency of `ok`, microseconds to two significant digits, as are the other quantiles.
    #[serde(default)]
    pub latency_us_p50: f64,
    /// 95 % quantile.
    #[serde(default)]
    pub latency_us_p95: f64,
    /// 99 % quantile.
    #[serde(default)]
    pub latency_us_p99: f64,
    /// Transactions that were due at its end and had not been sent, because all clients were busy; always
    /// 0 in a closed loop. Counted up to a million per load thread.
    #[serde(default)]
    pub backlog: u64,
}

/// What a slice brought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SliceAnswer {
    /// Start of the measured part, nanoseconds of `CLOCK_MONOTONIC` ([`crate::monotonic`]).
    pub open_ns: u64,
    /// Real length of the measured part, seconds. It ends when everything that was due in the ordered length has ended.
    pub measured_s: f64,
    /// The slice ended because all clients had done the work that each has to do in one.
    #[serde(default)]
    pub is_finished: bool,
    /// Tally by transaction class.
    pub classes: Vec<ClassAnswer>,
    /// Every piece of the slice, guard included.
    pub ticks: Vec<Tick>,
    /// Errors by code, retried ones included.
    pub errors: Vec<ErrorCount>,
    /// Processor time of the load process in user mode during the measured part, seconds.
    pub cpu_user_s: f64,
    /// Processor time of the load process in the kernel during the measured part, seconds.
    pub cpu_system_s: f64,
    /// Time that the load threads were ready to run and waited for a processor during the measured
    /// part, seconds. It is in the latencies and is not the server's doing.
    #[serde(default)]
    pub cpu_wait_s: f64,
    /// Processor time, among that above, that the load threads spent polling in vain during the measured part, seconds;
    /// 0 unless they poll busily.
    #[serde(default)]
    pub polled_s: f64,
    /// 99 % quantile of the load process's own lag, microseconds: how long after its due instant a
    /// transaction was sent whose client was free in time, and how long a reply waited for its turn
    /// behind others that arrived with it.
    pub lag_us_p99: f64,
    /// Service times of all classes together, done − sent, of the committed transactions, written as the latencies are:
    /// what the server took, without the wait for a free client. Absent for closed loops, whose latencies they are.
    #[serde(default)]
    pub service_times: Option<String>,
    /// How long the load process stalled during the measured part, seconds: stopped, frozen or without a processor, in
    /// gaps of 0.25 s and more. Nothing was sent then, whatever the server would have done.
    #[serde(default)]
    pub stalled_s: f64,
    /// The stalls in which no load thread ran, seconds after the start of the measured part, each with its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps_s: Vec<[f64; 2]>,
    /// How much of it was after its ordered end, until the last transaction was done that was due before that, seconds.
    pub drained_s: f64,
    /// How long clients were in transactions that were due before the ordered end of the measured part, after that end, seconds,
    /// summed over the clients.
    #[serde(default)]
    pub client_drained_s: f64,
    /// Transactions that the clients committed between the last two reports of their sessions to the server's statistics: the one at
    /// the latest moment before the measured part and the one after it. Absent where sessions do not report when they are asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<u64>,
    /// Transactions of the measured part, among the committed ones of their class, that were rolled back
    /// on purpose.
    #[serde(default)]
    pub rolled_back: u64,
    /// What the server acknowledged since the last answer about this contender, whether it counts or not.
    #[serde(default)]
    pub commits: Vec<CommitRange>,
    /// What it took to have several load hosts drive it; absent where the load process is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<Orchestration>,
}

/// What it took to have several load hosts drive a slice together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Orchestration {
    /// How far apart the hosts may have begun: the largest uncertainty of the offset between a host's clock and the
    /// orchestrator's, microseconds.
    pub clock_uncertainty_us: f64,
    /// Time of the slice in which no load ran: from the order to the agreed beginning, and from the end of the load to the
    /// last host's answer, milliseconds.
    pub orchestration_ms: f64,
    /// Bytes of orders, answers and beats, sent and received over NATS.
    pub orchestration_bytes: u64,
    /// 99 % quantiles of the hosts' lags, microseconds, by their names.
    pub lag_us_p99: BTreeMap<String, f64>,
    /// Why the slice shows nothing of the server: a host, and what was wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Tally of one transaction class in one slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassAnswer {
    /// Name of the class.
    pub class: String,
    /// Transactions by outcome.
    #[serde(flatten)]
    pub counts: TransactionCounts,
    /// Sum of the latencies of `ok`, microseconds.
    pub latency_us_sum: f64,
    /// Latencies of `ok` as `dbduel_record::latency::encode` writes them.
    pub histogram: String,
}

/// How often an error came up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// The server's error number; 0 for a lost connection.
    pub code: u32,
    /// Other clients were in the way, so it came of the load itself.
    pub is_conflict: bool,
    /// How often.
    pub count: u64,
    /// Text of the first.
    pub example: String,
}
