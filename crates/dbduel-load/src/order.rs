//! Orders to the load process and its answers: one JSON object per line.
//!
//! The load process makes no choices: every number that shapes the load is in the order. Passwords are sent only here,
//! on a pipe that only the two processes hold.

use std::collections::BTreeMap;
use std::fmt;

use dbduel_driver::address::Address;
use dbduel_driver::session::Session;
use dbduel_driver::{Dialect, TlsMode};
use dbduel_record::commits::CommitRange;
use dbduel_record::facts::LoadHost;
use dbduel_record::plan::{Arrival, Workload};
use dbduel_record::rows::TransactionCounts;
use dbduel_record::statement_classes::StatementCounts;
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
    /// Report from now on the time of every acknowledged number, by [`Answer::Acknowledged`]. Not answered itself.
    ReportCommitTimes,
    /// Begin the next slice at this instant, or at once where that is past. Not answered itself.
    BeginAt {
        /// Nanoseconds of `CLOCK_MONOTONIC` ([`crate::monotonic`]).
        at_ns: u64,
    },
    /// Send as text the statements of the next contender that is opened, and keep one of each class, for the
    /// [`Answer::Closed`] about it. Not answered itself.
    KeepExamples,
    /// Move the planned end of the running slice to now: it is answered when every transaction due until now has
    /// ended.
    Stop,
    /// Begin no more transactions in the slice that was answered; its server has been frozen meanwhile. Not answered
    /// itself.
    Halt,
}

/// Connect the clients of one contender. Its debug output leaves the password out.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenOrder {
    /// Name of the contender; later orders refer to it.
    pub contender: String,
    /// The dialect.
    #[serde(default)]
    pub dialect: Dialect,
    /// The server's address.
    pub address: Address,
    /// Account.
    pub user: String,
    /// Its password; empty for none.
    pub password: String,
    /// TLS mode.
    #[serde(default)]
    pub tls: TlsMode,
    /// Database with the workload's tables.
    pub database: String,
    /// The workload.
    pub workload: Workload,
    /// Connections to open: the largest number of clients of any slice.
    pub clients: u32,
    /// Retries of a transaction after a conflict with another client.
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
    /// Number of its clients that take part.
    pub clients: u32,
    /// When transactions fall due.
    pub arrival: Arrival,
    /// Uncounted load at the start, seconds.
    pub guard_s: f64,
    /// Counted load, seconds; it lasts until every transaction due in it has ended.
    pub measured_s: f64,
    /// Resolution of the series, seconds.
    pub tick_s: f64,
    /// Longest wait for transactions that were due in the measured part and have not ended at its ordered end,
    /// seconds.
    pub drain_s: f64,
    /// Clients continue after the answer, until [`Order::Halt`] or the next order: the server must be frozen under
    /// load. Transactions in flight then resume in the contender's next slice. Otherwise all transactions have ended
    /// before the answer.
    #[serde(default)]
    pub until_halted: bool,
    /// Number of the quantum that the clients run, where the workload is a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<u32>,
    /// Root of the clients' random streams in this slice.
    pub seed: u64,
}

/// One line on the load process's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// The load processes of the load hosts are ready. Sent before all other answers, where there are load hosts.
    Attached {
        /// The hosts, in the order of the plan.
        hosts: Vec<LoadHost>,
        /// Round trip to the farthest one, seconds.
        round_trip_s: f64,
    },
    /// A load host is unreachable. The process ends with this answer.
    Unreachable {
        /// The host, and the error.
        why: String,
    },
    /// The clients are connected.
    Opened {
        /// Name of the contender.
        contender: String,
        /// Duration, seconds.
        seconds: f64,
        /// The server's report on the first client's session.
        #[serde(default)]
        session: Session,
    },
    /// The clients could not be connected, or an order was invalid.
    Refused {
        /// The operation and the error.
        why: String,
    },
    /// A slice begins.
    Begun {
        /// Start of the measured part, nanoseconds of `CLOCK_MONOTONIC` ([`crate::monotonic`]).
        open_ns: u64,
    },
    /// A tick of the running slice.
    Tick(Tick),
    /// Numbers that a server acknowledged, each once, before the answer that ends the slice or closes the connections.
    Acknowledged {
        /// The numbers with their times, unordered.
        acknowledged: Vec<Acknowledged>,
    },
    /// The slice is over.
    Slice(Box<SliceAnswer>),
    /// The slice ended without a result: the server's connections broke.
    Lost {
        /// The error.
        why: String,
        /// Commits that the server had acknowledged since the last answer about this contender.
        #[serde(default)]
        commits: Vec<CommitRange>,
        /// Counts of the measured part until then; its own `commits` are empty.
        #[serde(default)]
        counted: Option<Box<SliceAnswer>>,
    },
    /// The connections are closed.
    Closed {
        /// Name of the contender.
        contender: String,
        /// Commits that the server had acknowledged since the last answer about this contender.
        #[serde(default)]
        commits: Vec<CommitRange>,
        /// One statement of each class that its clients sent, where that was ordered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        examples: Vec<StatementExample>,
    },
}

/// A tick, all classes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Start after the end of the guard, seconds; negative inside the guard.
    pub offset_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// Committed in this tick.
    pub ok: u64,
    /// Failed for good in this tick.
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
    /// Transactions that were due at its end and had not been sent, because all clients were busy; always 0 in a
    /// closed loop. Counted up to a million per load thread.
    #[serde(default)]
    pub backlog: u64,
}

/// Results of a slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SliceAnswer {
    /// Start of the measured part, nanoseconds of `CLOCK_MONOTONIC` ([`crate::monotonic`]).
    pub open_ns: u64,
    /// Actual length of the measured part, seconds. It ends when every transaction due in the ordered length has
    /// ended.
    pub measured_s: f64,
    /// True when the slice ended because all clients had done their fixed work.
    #[serde(default)]
    pub is_finished: bool,
    /// Tally by transaction class.
    pub classes: Vec<ClassAnswer>,
    /// Tally by class of statements, of those that occurred; empty unless the workload measures single statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementAnswers>,
    /// All ticks of the slice, guard included.
    pub ticks: Vec<Tick>,
    /// Errors by code, retried ones included.
    pub errors: Vec<ErrorCount>,
    /// Processor time of the load process in user mode during the measured part, seconds.
    pub cpu_user_s: f64,
    /// Processor time of the load process in the kernel during the measured part, seconds.
    pub cpu_system_s: f64,
    /// Time that the load threads were ready to run and waited for a processor during the measured part, seconds. It
    /// is part of the latencies but not caused by the server.
    #[serde(default)]
    pub cpu_wait_s: f64,
    /// Part of that processor time that the load threads spent polling without result during the measured part,
    /// seconds; 0 without busy polling.
    #[serde(default)]
    pub polled_s: f64,
    /// 99 % quantile of the load process's own lag, microseconds: the delay between the due instant of a transaction
    /// and its sending when its client was free in time, and the wait of a reply behind others that arrived with it.
    pub lag_us_p99: f64,
    /// Service times of all classes together, done − sent, of the committed transactions, encoded like the latencies:
    /// the server's time, without the wait for a free client. Absent for closed loops, where they equal the latencies.
    #[serde(default)]
    pub service_times: Option<String>,
    /// How long the load process stalled during the measured part, seconds: stopped, frozen or without a processor, in
    /// gaps of 0.25 s and more. Nothing was sent then.
    #[serde(default)]
    pub stalled_s: f64,
    /// The stalls in which no load thread ran, seconds after the start of the measured part, each with its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps_s: Vec<[f64; 2]>,
    /// Part of it after its ordered end, until the last transaction due before that was done, seconds.
    pub drained_s: f64,
    /// Time of clients inside transactions that were due before the ordered end of the measured part, after that end,
    /// seconds, summed over the clients.
    #[serde(default)]
    pub client_drained_s: f64,
    /// Transactions that the clients committed between the last two reports of their sessions to the server's
    /// statistics: the last one before the measured part and the one after it. Absent where sessions do not report on
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<u64>,
    /// Transactions of the measured part, among the committed ones of their class, that were rolled back
    /// on purpose.
    #[serde(default)]
    pub rolled_back: u64,
    /// Commits that the server acknowledged since the last answer about this contender, counted or not.
    #[serde(default)]
    pub commits: Vec<CommitRange>,
    /// Cost of driving it by several load hosts; absent where the load process is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<Orchestration>,
}

/// Cost of driving a slice by several load hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Orchestration {
    /// Bound of the difference between the hosts' starts: the largest uncertainty of the offset between a host's clock
    /// and the orchestrator's, microseconds.
    pub clock_uncertainty_us: f64,
    /// Time of the slice in which no load ran: from the order to the agreed beginning, and from the end of the load to the
    /// last host's answer, milliseconds.
    pub orchestration_ms: f64,
    /// Bytes of orders, answers and heartbeats, sent and received over NATS.
    pub orchestration_bytes: u64,
    /// 99 % quantiles of the hosts' lags, microseconds, by host name.
    pub lag_us_p99: BTreeMap<String, f64>,
    /// True when a host was out of reach, so that connections of its clients may wait for TCP to repeat packets.
    #[serde(default)]
    pub was_cut_off: bool,
    /// Why the slice is not usable: a host, and its error.
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

/// Tally of the statements of one class in one slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementAnswers {
    /// Its class, as the workload names it.
    pub statement: String,
    /// Statements by outcome, and their rows.
    #[serde(flatten)]
    pub counts: StatementCounts,
    /// Sum of the latencies of those without an error, microseconds.
    pub latency_us_sum: f64,
    /// Sum of the latencies of those with an error, microseconds.
    pub failed_us_sum: f64,
    /// Error codes with their numbers of occurrences.
    pub errors: Vec<(u32, u64)>,
    /// Distinguishable latencies of those without an error in ascending order, nanoseconds to two significant digits, with their
    /// numbers.
    pub latencies_ns: Vec<(u64, u64)>,
}

/// Number of occurrences of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// The server's error number; 0 for a lost connection.
    pub code: u32,
    /// True for conflicts with other clients, which the load itself causes.
    pub is_conflict: bool,
    /// Number of occurrences.
    pub count: u64,
    /// Text of the first.
    pub example: String,
}
