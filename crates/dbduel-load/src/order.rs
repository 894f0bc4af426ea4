//! Orders to the load process and its answers: one JSON object per line.
//!
//! The load process obeys and never chooses: every number that shapes the load is in the order.
//! Passwords travel here, on a pipe that only the two processes hold, and nowhere else.

use std::fmt;

use dbduel_record::commits::CommitRange;
use dbduel_record::latency::{decode, encode, new_histogram};
use dbduel_record::plan::{Arrival, Workload};
use dbduel_record::rows::TransactionCounts;
use dbduel_record::statements::StatementExample;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::commit_log::Acknowledged;
use crate::driver::{Dialect, TlsMode};
use crate::session::Session;

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
    /// Write the statements of the next contender that is opened out as text and keep one of each class, for the
    /// [`Answer::Closed`] about it. Not answered itself.
    KeepExamples,
    /// End the running slice now: no new transactions; what was measured so far is answered.
    Stop,
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
    /// Load that is counted, seconds.
    pub measured_s: f64,
    /// Resolution of the series, seconds.
    pub tick_s: f64,
    /// Longest wait for transactions in flight at the end, seconds.
    pub drain_s: f64,
    /// Root of the clients' random streams in this slice.
    pub seed: u64,
}

/// One line on the load process's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
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
    Slice(SliceAnswer),
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
    /// Real length of the measured part, seconds; shorter than ordered after a stop.
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
    /// Seconds from the end of the measured part until the last transaction in flight was done.
    pub drained_s: f64,
    /// Transactions of the measured part, among the committed ones of their class, that were rolled back
    /// on purpose.
    #[serde(default)]
    pub rolled_back: u64,
    /// What the server acknowledged since the last answer about this contender, whether it counts or not.
    #[serde(default)]
    pub commits: Vec<CommitRange>,
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
    /// How often.
    pub count: u64,
    /// Text of the first.
    pub example: String,
}

impl SliceAnswer {
    /// All classes together under the name `class`, with the histogram of all latencies.
    ///
    /// # Errors
    /// When a histogram is not one of ours.
    pub fn total(&self, class: &str) -> Result<(ClassAnswer, Histogram<u64>), String> {
        let mut counts = TransactionCounts::default();
        let mut latency_us_sum = 0.0;
        let mut merged = new_histogram();
        for one in &self.classes {
            add(&mut merged, &one.histogram)?;
            counts += one.counts;
            latency_us_sum += one.latency_us_sum;
        }
        let total = ClassAnswer {
            class: class.to_owned(),
            counts,
            latency_us_sum,
            histogram: encode(&merged),
        };
        Ok((total, merged))
    }

    /// Adds what a later turn of the same slice brought; its ticks of the guard are left out.
    ///
    /// The lag becomes the mean of the turns' quantiles, weighted by transactions; of the waits at the end the longest is kept.
    ///
    /// # Errors
    /// When a histogram is not one of ours.
    pub fn append(&mut self, later: SliceAnswer) -> Result<(), String> {
        // Taken apart by name, so that a new figure cannot be forgotten.
        let SliceAnswer {
            open_ns,
            measured_s,
            is_finished,
            classes,
            ticks,
            errors,
            cpu_user_s,
            cpu_system_s,
            cpu_wait_s,
            polled_s,
            lag_us_p99,
            service_times,
            stalled_s,
            drained_s,
            rolled_back,
            commits,
        } = later;
        let after_s = open_ns.saturating_sub(self.open_ns) as f64 / 1e9;
        self.measured_s += measured_s;
        self.is_finished &= is_finished;
        let ok = |classes: &[ClassAnswer]| -> f64 {
            classes.iter().map(|class| class.counts.ok as f64).sum()
        };
        let (own_ok, later_ok) = (ok(&self.classes), ok(&classes));
        for class in classes {
            match self.classes.iter_mut().find(|own| own.class == class.class) {
                Some(own) => {
                    own.counts += class.counts;
                    own.latency_us_sum += class.latency_us_sum;
                    own.histogram = merged(&own.histogram, &class.histogram)?;
                }
                None => self.classes.push(class),
            }
        }
        let counted = ticks.into_iter().filter(|tick| tick.offset_s >= 0.0);
        self.ticks.extend(counted.map(|tick| Tick {
            offset_s: tick.offset_s + after_s,
            ..tick
        }));
        for error in errors {
            match self.errors.iter_mut().find(|own| own.code == error.code) {
                Some(own) => own.count += error.count,
                None => self.errors.push(error),
            }
        }
        self.cpu_user_s += cpu_user_s;
        self.cpu_system_s += cpu_system_s;
        self.cpu_wait_s += cpu_wait_s;
        self.polled_s += polled_s;
        self.lag_us_p99 =
            (own_ok * self.lag_us_p99 + later_ok * lag_us_p99) / (own_ok + later_ok).max(1.0);
        self.service_times = match (self.service_times.take(), service_times) {
            (Some(own), Some(later)) => Some(merged(&own, &later)?),
            (own, later) => own.or(later),
        };
        self.stalled_s += stalled_s;
        self.drained_s = self.drained_s.max(drained_s);
        self.rolled_back += rolled_back;
        self.commits.extend(commits);
        Ok(())
    }
}

fn add(sum: &mut Histogram<u64>, encoded: &str) -> Result<(), String> {
    sum.add(decode(encoded)?)
        .map_err(|error| format!("histograms of different bounds: {error:?}"))
}

/// Two encoded histograms as one.
fn merged(one: &str, other: &str) -> Result<String, String> {
    let mut sum = decode(one)?;
    add(&mut sum, other)?;
    Ok(encode(&sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(open_ns: u64, ok: u64, latency_ns: u64) -> SliceAnswer {
        let mut histogram = new_histogram();
        histogram.record_n(latency_ns, ok).unwrap();
        let tick = |offset_s: f64| Tick {
            offset_s,
            length_s: 0.1,
            ok,
            ..Tick::default()
        };
        SliceAnswer {
            open_ns,
            measured_s: 0.1,
            is_finished: false,
            classes: vec![ClassAnswer {
                class: "select".to_owned(),
                counts: TransactionCounts {
                    due: ok + 1,
                    ok,
                    unfinished: 1,
                    retries: 2,
                    statements: ok,
                    ..TransactionCounts::default()
                },
                latency_us_sum: (ok * latency_ns) as f64 / 1e3,
                histogram: encode(&histogram),
            }],
            ticks: vec![tick(-0.1), tick(0.0)],
            errors: vec![ErrorCount {
                code: 1213,
                count: 2,
                example: "Deadlock".to_owned(),
            }],
            cpu_user_s: 0.01,
            cpu_system_s: 0.02,
            cpu_wait_s: 0.0,
            polled_s: 0.0,
            lag_us_p99: ok as f64,
            service_times: None,
            stalled_s: 0.0,
            drained_s: 1.0 / ok as f64,
            rolled_back: 1,
            commits: Vec::new(),
        }
    }

    #[test]
    fn the_turns_of_a_slice_are_summed_and_their_ticks_keep_their_time() {
        let mut slice = turn(1_000_000_000, 10, 200_000);
        slice.append(turn(1_500_000_000, 30, 400_000)).unwrap();
        let class = &slice.classes[0];
        let counts = class.counts;
        assert_eq!((counts.due, counts.ok, counts.unfinished), (42, 40, 2));
        let latencies = decode(&class.histogram).unwrap();
        assert_eq!(latencies.len(), 40);
        assert!(latencies.value_at_quantile(0.2) < latencies.value_at_quantile(0.3));
        assert_eq!(slice.measured_s, 0.2);
        let offsets: Vec<f64> = slice.ticks.iter().map(|tick| tick.offset_s).collect();
        assert_eq!(offsets, [-0.1, 0.0, 0.5]);
        assert_eq!(slice.errors[0].count, 4);
        assert_eq!((slice.lag_us_p99, slice.drained_s), (25.0, 0.1));
        assert_eq!(slice.rolled_back, 2);
    }
}
