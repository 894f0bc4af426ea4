//! Simulated load processes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use dbduel_driver::session::Session;
use dbduel_load::order::{Answer, ClassAnswer, Order, SliceAnswer, Tick};
use dbduel_record::commits::CommitRange;
use dbduel_record::latency;
use dbduel_record::rows::TransactionCounts;

use super::super::load::permitted;
use super::world::{Happening, Job, Process, Role, World};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SliceStep {
    Begun,
    Ticked,
    Ended,
}

/// A slice of a load process.
#[derive(Debug, Clone)]
struct Running {
    seed: u64,
    measured_s: f64,
}

/// The work of a load process.
#[derive(Debug, Default)]
pub(super) struct LoadJob {
    begin_ns: Option<u64>,
    running: Option<Running>,
}

/// What the load processes of a simulation did.
#[derive(Default)]
pub(super) struct LoadLog {
    /// By the seed of a slice: transactions counted on each host.
    pub(super) counted: BTreeMap<u64, BTreeMap<usize, u64>>,
    /// By the seed of a slice: when each host began it.
    pub(super) begun: BTreeMap<u64, BTreeMap<usize, Instant>>,
    /// Transactions acknowledged to each host.
    pub(super) committed: [u64; 2],
    /// Those of them that it has reported.
    reported: [u64; 2],
}

impl Process {
    fn load(&mut self) -> &mut LoadJob {
        match &mut self.job {
            Job::Load(job) => job,
            Job::Servers(_) => panic!("an order of load for servers"),
        }
    }
}

impl World {
    /// An order reaches a load process.
    pub(super) fn obey_load(&mut self, host: usize, process: &Rc<RefCell<Process>>, line: &[u8]) {
        if let Err(why) = permitted::check(line) {
            self.breaches.push(format!("an order was refused: {why}"));
            return;
        }
        match serde_json::from_slice(line).expect("it was checked") {
            Order::Open(order) => {
                let answer = Answer::Opened {
                    contender: order.contender,
                    seconds: 0.01,
                    session: Session::default(),
                };
                self.answer(host, process, &answer);
            }
            Order::BeginAt { at_ns } => process.borrow_mut().load().begin_ns = Some(at_ns),
            Order::Slice(order) => {
                let begin_ns = process.borrow_mut().load().begin_ns.take();
                let begin_ns = begin_ns.unwrap_or_default();
                let wait = begin_ns.saturating_sub(self.host_ns(host));
                let begun = self.load.begun.entry(order.seed).or_default();
                let begins = self.now.get() + Duration::from_nanos(wait);
                if begun.insert(host, begins).is_some() {
                    let breach = format!("slice {} was driven twice on one host", order.seed);
                    self.breaches.push(breach);
                }
                process.borrow_mut().load().running = Some(Running {
                    seed: order.seed,
                    measured_s: order.measured_s,
                });
                let opens = Duration::from_nanos(wait) + Duration::from_secs_f64(order.guard_s);
                let measured = Duration::from_secs_f64(order.measured_s);
                let session = process.borrow().session.clone();
                for (step, after) in [
                    (SliceStep::Begun, opens),
                    (SliceStep::Ticked, opens + measured / 2),
                    (SliceStep::Ticked, opens + measured),
                    (SliceStep::Ended, opens + measured),
                ] {
                    let seed = order.seed;
                    self.add(host, &session, after, Happening::Slice { seed, step });
                }
            }
            Order::Stop => {
                let seed = process
                    .borrow_mut()
                    .load()
                    .running
                    .as_ref()
                    .map(|one| one.seed);
                if let Some(seed) = seed {
                    let session = process.borrow().session.clone();
                    self.step(host, &session, seed, SliceStep::Ended);
                }
            }
            Order::Close { contender } => {
                let answer = Answer::Closed {
                    contender,
                    commits: self.commits(host),
                    examples: Vec::new(),
                };
                self.answer(host, process, &answer);
            }
            Order::ReportCommitTimes | Order::KeepExamples | Order::Halt => {}
        }
    }

    /// Commits of a host since its last report.
    fn commits(&mut self, host: usize) -> Vec<CommitRange> {
        let LoadLog {
            committed,
            reported,
            ..
        } = &mut self.load;
        let range = CommitRange {
            series: Role::Load.hosts()[host].to_owned(),
            first: reported[host] + 1,
            last: committed[host],
        };
        reported[host] = committed[host];
        (range.first <= range.last)
            .then_some(range)
            .into_iter()
            .collect()
    }

    pub(super) fn step(&mut self, host: usize, session: &str, seed: u64, step: SliceStep) {
        let Some(process) = self.process(host, session) else {
            return;
        };
        let own = process.borrow_mut().load().running.clone();
        let Some(Running { measured_s, .. }) = own.filter(|one| one.seed == seed) else {
            return;
        };
        let answer = match step {
            SliceStep::Begun => Answer::Begun {
                open_ns: self.host_ns(host),
            },
            SliceStep::Ticked => Answer::Tick(Tick {
                length_s: measured_s / 2.0,
                ..Tick::default()
            }),
            SliceStep::Ended => {
                process.borrow_mut().load().running = None;
                let ok = 1 + self.random.below(1000);
                self.load.counted.entry(seed).or_default().insert(host, ok);
                self.load.committed[host] += ok;
                let commits = self.commits(host);
                Answer::Slice(Box::new(slice_answer(ok, measured_s, commits)))
            }
        };
        self.answer(host, &process, &answer);
    }
}

fn slice_answer(ok: u64, measured_s: f64, commits: Vec<CommitRange>) -> SliceAnswer {
    let class = ClassAnswer {
        class: "transaction".to_owned(),
        counts: TransactionCounts {
            due: ok,
            ok,
            statements: ok,
            ..TransactionCounts::default()
        },
        latency_us_sum: ok as f64,
        histogram: latency::encode(&latency::new_histogram()),
    };
    SliceAnswer {
        open_ns: 0,
        measured_s,
        is_finished: false,
        classes: vec![class],
        statements: Vec::new(),
        ticks: Vec::new(),
        errors: Vec::new(),
        cpu_user_s: 0.0,
        cpu_system_s: 0.0,
        cpu_wait_s: 0.0,
        polled_s: 0.0,
        lag_us_p99: 0.0,
        service_times: None,
        stalled_s: 0.0,
        gaps_s: Vec::new(),
        drained_s: 0.0,
        client_drained_s: 0.0,
        reported: None,
        rolled_back: 0,
        commits,
        orchestration: None,
    }
}
