//! A load process inside the test: orders in, answers out, through pipes as in production.

#![expect(clippy::unwrap_used, reason = "a helper of tests may panic")]
#![allow(dead_code, reason = "each test program uses its own part of this")]

pub mod valve;

use std::io::{BufRead, BufReader, Lines, PipeReader, PipeWriter, Write, pipe};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbduel_driver::TlsMode;
use dbduel_driver::address::Address;
use dbduel_load::drive::{DriveError, Threads, drive};
use dbduel_load::order::{Answer, ClassAnswer, OpenOrder, Order, SliceAnswer, SliceOrder, Tick};
use dbduel_record::latency;
use dbduel_record::plan::{Arrival, Parameters, Workload};
use dbduel_workloads::parameters;

/// A quantile of the only class's latencies, milliseconds.
pub fn quantile_ms(slice: &SliceAnswer, q: f64) -> f64 {
    latency::decode(&slice.classes[0].histogram)
        .unwrap()
        .value_at_quantile(q) as f64
        / 1e6
}

/// Measured part of a slice that ends by an order, by a loss or not at all, seconds.
pub const SLICE_MAX_S: f64 = 120.0;

/// Transactions that ended well in the measured part.
pub fn ok_in(ticks: &[Tick]) -> u64 {
    let measured = ticks.iter().filter(|tick| tick.offset_s > -1e-9);
    measured.map(|tick| tick.ok).sum()
}

pub struct Load {
    orders: Option<PipeWriter>,
    answers: Lines<BufReader<PipeReader>>,
    process: Option<JoinHandle<Result<(), DriveError>>>,
}

impl Load {
    pub fn start(threads: impl Into<Threads>) -> Load {
        let threads = threads.into();
        let (order_reader, orders) = pipe().unwrap();
        let (answers, answer_writer) = pipe().unwrap();
        let process = std::thread::spawn(move || {
            drive(BufReader::new(order_reader), answer_writer, threads, &[])
        });
        Load {
            orders: Some(orders),
            answers: BufReader::new(answers).lines(),
            process: Some(process),
        }
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn order(&mut self, order: &Order) {
        self.say(&serde_json::to_string(order).unwrap());
    }

    pub fn answer(&mut self) -> Answer {
        serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap()
    }

    /// The answer after all ticks.
    pub fn last_answer(&mut self) -> Answer {
        loop {
            match self.answer() {
                Answer::Begun { .. } | Answer::Tick(_) => {}
                answer => return answer,
            }
        }
    }

    pub fn open(&mut self, address: &Address, workload: &str, clients: u32) {
        self.order(&Order::Open(open_order(address, workload, clients)));
        let answer = self.answer();
        assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    }

    pub fn slice(&mut self, order: &SliceOrder) -> SliceAnswer {
        self.order(&Order::Slice(order.clone()));
        match self.last_answer() {
            Answer::Slice(slice) => {
                check_accounts(&slice);
                *slice
            }
            other => panic!("{other:?}"),
        }
    }

    /// Drives a slice until its ticks have counted enough, however long that takes on a busy machine, and then stops it.
    /// The slice ends at [`SLICE_MAX_S`] in any case.
    pub fn slice_until(
        &mut self,
        order: &SliceOrder,
        mut is_enough: impl FnMut(&[Tick]) -> bool,
    ) -> SliceAnswer {
        self.order(&Order::Slice(SliceOrder {
            measured_s: SLICE_MAX_S,
            ..order.clone()
        }));
        let (mut ticks, mut is_stopped) = (Vec::new(), false);
        loop {
            match self.answer() {
                Answer::Begun { .. } => {}
                Answer::Tick(tick) => {
                    ticks.push(tick);
                    if !is_stopped && is_enough(&ticks) {
                        self.order(&Order::Stop);
                        is_stopped = true;
                    }
                }
                Answer::Slice(slice) => {
                    check_accounts(&slice);
                    return *slice;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Drives a slice until so many transactions have ended well in its measured part.
    pub fn slice_until_ok(&mut self, order: &SliceOrder, ok_min: u64) -> SliceAnswer {
        let slice = self.slice_until(order, |ticks| ok_in(ticks) >= ok_min);
        let ok: u64 = slice.classes.iter().map(|class| class.counts.ok).sum();
        assert!(ok >= ok_min, "{ok} of {ok_min} in {SLICE_MAX_S} s");
        slice
    }

    /// Ends the input and waits for the end; returns how long that took.
    pub fn end(mut self) -> Duration {
        let began = Instant::now();
        self.orders = None;
        self.process.take().unwrap().join().unwrap().unwrap();
        began.elapsed()
    }
}

pub fn open_order(address: &Address, workload: &str, clients: u32) -> OpenOrder {
    let workload = dbduel_workloads::find(workload).unwrap();
    let parameters = parameters::resolve(workload, &Parameters::new()).unwrap();
    OpenOrder {
        dialect: dbduel_driver::Dialect::MySql,
        contender: "only".to_owned(),
        address: address.clone(),
        user: "dbduel".to_owned(),
        password: "s3cret".to_owned(),
        tls: TlsMode::Off,
        database: "dbduel".to_owned(),
        workload: Workload {
            name: workload.name().to_owned(),
            parameters,
        },
        clients,
        retries: 3,
        connect_s: 60.0,
    }
}

pub fn slice_order(clients: u32, measured_s: f64) -> SliceOrder {
    SliceOrder {
        contender: "only".to_owned(),
        clients,
        arrival: Arrival::Closed { think_ms: 0.0 },
        guard_s: 0.1,
        measured_s,
        tick_s: 0.1,
        drain_s: 2.0,
        until_halted: false,
        quantum: None,
        seed: 1,
    }
}

/// What must hold for every slice.
pub fn check_accounts(slice: &SliceAnswer) {
    for ClassAnswer {
        class,
        counts,
        histogram,
        latency_us_sum,
    } in &slice.classes
    {
        assert_eq!(
            counts.due,
            counts.ok + counts.failed + counts.skipped + counts.unfinished,
            "class {class} does not balance"
        );
        let histogram = latency::decode(histogram).unwrap();
        assert_eq!(
            histogram.len(),
            counts.ok,
            "not every latency of class {class} was recorded"
        );
        assert!(*latency_us_sum >= 0.0);
    }
    let measured: Vec<_> = slice
        .ticks
        .iter()
        .filter(|tick| tick.offset_s > -1e-9)
        .collect();
    let ok: u64 = slice.classes.iter().map(|class| class.counts.ok).sum();
    let failed: u64 = slice.classes.iter().map(|class| class.counts.failed).sum();
    assert_eq!(
        measured.iter().map(|tick| tick.ok).sum::<u64>(),
        ok,
        "the ticks miss transactions"
    );
    assert_eq!(
        measured.iter().map(|tick| tick.failed).sum::<u64>(),
        failed,
        "the ticks miss failures"
    );
    let length: f64 = measured.iter().map(|tick| tick.length_s).sum();
    assert!(
        (length - slice.measured_s).abs() < 1e-6,
        "the ticks cover {length} s of {} s",
        slice.measured_s
    );
}
