//! Due, sent and done: exact delays, stalls and overload come back as what they are.

use std::time::{Duration, Instant};

use dbduel_client::share::HostShare;
use dbduel_driver::mock_server::{Role, Served};
use dbduel_load::drive::Threads;
use dbduel_load::order::{SliceOrder, Tick};
use dbduel_record::latency;
use dbduel_record::plan::Arrival;
use dbduel_testkit::mock::{act, mock, scripted};
use dbduel_wire::server::Act;
use dbduel_wire::server::Answer as Reply;

use crate::support::{Load, quantile_ms, slice_order};

/// What the client must have seen of its transactions, one after the other over one connection, by what the server saw.
/// A request is sent before the server has heard it and after the answer to the one before; its reply arrives after the
/// server sent it and before the next request is heard. That holds however busy the machine is, so these tests need
/// neither a quiet one nor luck.
struct Bounds {
    lower_ms: Vec<f64>,
    upper_ms: Vec<f64>,
}

impl Bounds {
    /// From the lower and the upper bound of each transaction.
    fn of(each: impl Iterator<Item = (Duration, Duration)>) -> Self {
        let (mut lower_ms, mut upper_ms): (Vec<f64>, Vec<f64>) = each
            .map(|(lower, upper)| (lower.as_secs_f64() * 1e3, upper.as_secs_f64() * 1e3))
            .unzip();
        lower_ms.sort_by(f64::total_cmp);
        upper_ms.sort_by(f64::total_cmp);
        Bounds { lower_ms, upper_ms }
    }

    /// Bounds of a quantile: each order statistic lies between those of the bounds.
    fn quantile_ms(&self, q: f64) -> (f64, f64) {
        let of = |sorted: &[f64]| {
            let rank = (q * sorted.len() as f64).ceil() as usize;
            sorted[rank.clamp(1, sorted.len()) - 1]
        };
        (of(&self.lower_ms), of(&self.upper_ms))
    }

    #[track_caller]
    fn check(&self, what: &str, q: f64, found_ms: f64) {
        let (lower_ms, upper_ms) = self.quantile_ms(q);
        // The histogram keeps three digits and at best microseconds.
        assert!(
            found_ms >= lower_ms * 0.999 - 0.0011 && found_ms <= upper_ms * 1.001 + 0.0011,
            "{what}, quantile {q}: {found_ms} ms, and the server says {lower_ms} to {upper_ms} ms"
        );
        eprintln!("{what}, quantile {q}: {found_ms} ms of {lower_ms:.4} to {upper_ms:.4} ms");
    }
}

/// When transaction `number` was done at the latest: the next one was heard only then.
fn done_by(served: &[Served], number: usize, over: Instant) -> Instant {
    served.get(number + 1).map_or(over, |next| next.heard)
}

/// One load thread that is awake when something happens within two milliseconds.
const POLLING: Threads = Threads {
    count: 1,
    busy_poll: Duration::from_millis(2),
    share: HostShare::WHOLE,
};

#[test]
fn exact_delays_come_back_at_every_quantile() {
    check_delays(
        1.into(),
        &[
            (50, 1_000),
            (200, 1_000),
            (1_000, 300),
            (20_000, 20),
            (1_000_000, 2),
        ],
    );
}

#[test]
fn exact_delays_come_back_to_a_load_thread_that_polls() {
    // Of 20 ms it polls the first two and sleeps through the rest.
    check_delays(
        POLLING,
        &[(50, 1_000), (200, 1_000), (1_000, 300), (20_000, 20)],
    );
}

/// Drives servers that answer after so many microseconds, each until so many transactions have ended.
fn check_delays(threads: Threads, delays: &[(u64, u64)]) {
    for &(delay_us, ok_min) in delays {
        let delay = Duration::from_micros(delay_us);
        let act = Act {
            after: delay,
            answer: Reply::Proper,
        };
        let (_directory, server) = scripted(vec![act]);
        let mut load = Load::start(threads);
        load.open(&server.address(), "oltp-point-select", 1);
        let before = server.served().len();
        let ordered = Instant::now();
        let order = SliceOrder {
            guard_s: 0.0,
            ..slice_order(1, 1.0)
        };
        let slice = load.slice_until_ok(&order, ok_min);
        let over = Instant::now();
        assert_eq!(slice.polled_s > 0.0, !threads.busy_poll.is_zero());
        let served = server.served().split_off(before);
        let bounds = Bounds::of((0..slice.classes[0].counts.ok as usize).map(|number| {
            // A closed loop: it is due when the one before is done.
            let due = match number {
                0 => ordered,
                _ => served[number - 1].answered,
            };
            let Served { heard, answered } = served[number];
            (answered - heard, done_by(&served, number, over) - due)
        }));
        for q in [0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0] {
            bounds.check(&format!("{delay:?}"), q, quantile_ms(&slice, q));
        }
        load.end();
    }
}

#[test]
fn a_stall_shows_in_latency_by_the_law_and_not_in_service_time() {
    const PER_SECOND: f64 = 1_000.0;
    /// About half a second after the start.
    const STALLED: usize = 500;
    let gap = Duration::from_secs_f64(1.0 / PER_SECOND);
    let mut acts = vec![act(0, Reply::Proper); 10_000];
    acts[STALLED] = act(500, Reply::Proper);
    let (_directory, server) = scripted(acts);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-point-select", 1);
    let before = server.served().len();
    let ordered = Instant::now();
    let order = SliceOrder {
        arrival: Arrival::Constant {
            per_second: PER_SECOND,
        },
        guard_s: 0.0,
        ..slice_order(1, 2.0)
    };
    let slice = load.slice_until_ok(&order, 3 * STALLED as u64);
    let over = Instant::now();
    let served = server.served().split_off(before);
    let class = &slice.classes[0];
    // Those due before the end that was ordered are all waited for, and of the others some.
    let due = class.counts.due as f64;
    let whole_s = slice.measured_s;
    let least = (whole_s - slice.drained_s) * PER_SECOND - 1.0;
    assert!(
        due >= least && due <= whole_s * PER_SECOND + 1.0,
        "{due} fell due in {whole_s} s, at least {least}"
    );
    let took = |one: &Served| one.answered - one.heard;
    let stalled = (0..served.len())
        .max_by_key(|&number| took(&served[number]))
        .unwrap();
    assert!(took(&served[stalled]) >= Duration::from_millis(500));

    // The first was due when the slice started, which was after the order and before the server heard of it.
    let started = served[0].heard;
    let bounds = Bounds::of((0..class.counts.ok as usize).map(|number| {
        let due_after = gap * number as u32;
        let answered = served[number].answered;
        let lower = answered.saturating_duration_since(started + due_after);
        let done = done_by(&served, number, over);
        (lower, done.saturating_duration_since(ordered + due_after))
    }));
    // The law: what fell due in the stall waited for its end, so the m-th longest latency of an arrival per gap is that of
    // the first one less m gaps, and the quantiles of n arrivals are Q(q) = stall − (1 − q) · n · gap.
    let stall_ms =
        (served[stalled].answered - (started + gap * stalled as u32)).as_secs_f64() * 1e3;
    let services = latency::decode(slice.service_times.as_ref().unwrap()).unwrap();
    assert_eq!(services.len(), class.counts.ok);
    let service_ms = |q| services.value_at_quantile(q) as f64 / 1e6;
    assert!(service_ms(1.0) >= 499.0, "{} ms", service_ms(1.0));
    for q in [0.8, 0.9, 0.95, 0.99, 0.999] {
        let (latency_ms, service_ms) = (quantile_ms(&slice, q), service_ms(q));
        let longer = class.counts.ok as usize - (q * class.counts.ok as f64).ceil() as usize;
        let law_ms = stall_ms - longer as f64 * 1e3 / PER_SECOND;
        // On a machine that is too busy to work the backlog off, the last of those that waited are not done in time.
        if stalled + longer < class.counts.ok as usize {
            assert!(
                latency_ms >= law_ms * 0.999,
                "quantile {q}: {latency_ms} ms, where the law says {law_ms} ms"
            );
        }
        bounds.check("latency", q, latency_ms);
        // One transaction met the stall. The others come one after the other, so they share the rest of the slice.
        let share_ms = (slice.measured_s * 1e3 - 500.0) / longer as f64;
        assert!(
            service_ms <= share_ms * 1.01,
            "quantile {q} of service time: {service_ms} ms"
        );
        eprintln!(
            "quantile {q}: law {law_ms:.1}, latency {latency_ms:.1}, service time {service_ms:.3} ms"
        );
    }
    load.end();
}

#[test]
fn what_an_overloaded_server_leaves_is_counted_as_skipped() {
    let (_directory, server) = scripted(vec![act(5, Reply::Proper)]);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-point-select", 2);
    let arrival = Arrival::Poisson { per_second: 2000.0 };
    let mut ok = 0;
    // Slices of a busy machine may end before their first transaction.
    for _ in 0..60 {
        let slice = load.slice(&SliceOrder {
            arrival,
            drain_s: 0.2,
            ..slice_order(2, 1.0)
        });
        let class = &slice.classes[0];
        // Two clients manage 400 per second at most, for 1.2 s, and less on a busy machine.
        assert!(class.counts.ok <= 481, "{class:?}");
        // What was not taken until the end of the drain is given up.
        assert!(
            slice.drained_s >= 0.2 && slice.measured_s >= 1.2,
            "{slice:?}"
        );
        assert!(
            (1_800..2_400).contains(&class.counts.due),
            "{} fell due",
            class.counts.due
        );
        assert!(class.counts.skipped > 1_300, "{class:?}");
        ok += class.counts.ok;
        if ok > 0 {
            break;
        }
    }
    assert!(ok > 0);
    load.end();
}

#[test]
fn think_time_is_waited_and_is_no_latency() {
    const THINK: Duration = Duration::from_millis(20);
    let (_directory, server) = scripted(vec![act(0, Reply::Proper)]);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-point-select", 1);
    let before = server.served().len();
    let ordered = Instant::now();
    let order = SliceOrder {
        arrival: Arrival::Closed { think_ms: 20.0 },
        guard_s: 0.0,
        ..slice_order(1, 1.0)
    };
    let slice = load.slice_until_ok(&order, 20);
    let over = Instant::now();
    let served = server.served().split_off(before);
    for pair in served.windows(2) {
        let pause = pair[1].heard - pair[0].answered;
        assert!(pause >= THINK, "{pause:?}");
    }
    let bounds = Bounds::of((0..slice.classes[0].counts.ok as usize).map(|number| {
        let Served { heard, answered } = served[number];
        // Both ends are a think time away from the transactions before and after.
        let free = number
            .checked_sub(1)
            .map_or(ordered, |before| served[before].answered);
        let done_by = served
            .get(number + 1)
            .map_or(over, |next| next.heard - THINK);
        (answered - heard, done_by - (free + THINK))
    }));
    for q in [0.0, 0.25, 0.5, 0.75, 0.9, 1.0] {
        bounds.check("with think time", q, quantile_ms(&slice, q));
    }
    load.end();
}

#[test]
fn what_waits_for_a_client_is_told_while_the_slice_runs() {
    // Two clients manage at most 400 of 2,000 per second, however busy the machine is, so each second leaves 1,600 more waiting.
    let (_directory, server) = scripted(vec![act(5, Reply::Proper)]);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-point-select", 2);
    let overload = SliceOrder {
        arrival: Arrival::Constant { per_second: 2000.0 },
        drain_s: 0.1,
        ..slice_order(2, 0.5)
    };
    let overloaded = load.slice(&overload);
    let ticks = &overloaded.ticks;
    let at_least = |tick: &Tick| 1_600.0 * (tick.offset_s + tick.length_s) - 10.0;
    let is_enough = |tick: &Tick| tick.backlog as f64 > at_least(tick);
    assert!(ticks.last().is_some_and(is_enough), "{ticks:?}");
    // Of ticks that end together on a busy machine only the last has a backlog.
    let are_enough = ticks
        .iter()
        .all(|tick| tick.backlog == 0 || is_enough(tick));
    assert!(are_enough, "{ticks:?}");
    let closed = load.slice(&slice_order(2, 0.3)).ticks;
    assert!(closed.iter().all(|tick| tick.backlog == 0), "{closed:?}");
    load.end();
}

/// What the histogram's three digits and the promise of the clocks allow around an exact delay.
fn is_exact(found_ms: f64, delay_ms: f64) -> bool {
    let allowed_ms = (delay_ms * 0.01).max(0.02);
    found_ms >= delay_ms * 0.999 && found_ms <= delay_ms + allowed_ms
}

#[test]
#[ignore = "lab: needs a machine that does nothing else"]
fn delays_from_50_us_to_1_s_come_back_at_every_quantile_that_the_machine_leaves() {
    let mut missed = Vec::new();
    for delay_us in [50, 200, 1_000, 20_000, 1_000_000] {
        let act = Act {
            after: Duration::from_micros(delay_us),
            answer: Reply::Proper,
        };
        let (_directory, server) = scripted(vec![act]);
        let mut load = Load::start(POLLING);
        load.open(&server.address(), "oltp-point-select", 1);
        let seconds = if delay_us == 1_000_000 { 5.0 } else { 2.0 };
        let away = away_share();
        let slice = load.slice(&SliceOrder {
            // As in a contest. Each tick wakes threads of the load and of this test, on processors that others poll on.
            tick_s: 1.0,
            ..slice_order(1, seconds)
        });
        let away = away.max(away_share());
        // Both ends of a delay meet it, and the share is an estimate.
        let last = (1.0 - 2.0 * away).min(0.999);
        assert!(
            last >= 0.9,
            "this machine is too busy for the test: processors were away at {:.2} % of all instants",
            away * 1e2
        );
        let delay_ms = delay_us as f64 / 1e3;
        let quantiles = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999];
        let found = quantiles.map(|q| (q, quantile_ms(&slice, q)));
        eprintln!(
            "{delay_ms} ms, by quantile: {found:?}; asked for up to {last:.3}, because processors were away from threads that \
             only read the clock at {:.2} % of all instants",
            away * 1e2
        );
        for (q, found_ms) in found.into_iter().filter(|(q, _)| *q <= last) {
            if !is_exact(found_ms, delay_ms) {
                missed.push(format!(
                    "quantile {q}: {found_ms} ms of a delay of {delay_ms} ms"
                ));
            }
        }
        load.end();
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// What the machine does to two threads that only read the clock, and no load thread and no server can be better: the share
/// of all instants at which the processor of one of them was away for more than what is allowed to come.
fn away_share() -> f64 {
    const ALLOWED: Duration = Duration::from_micros(20);
    let watch = || {
        let began = Instant::now();
        let (mut last, mut away) = (began, Duration::ZERO);
        while last - began < Duration::from_secs(2) {
            let now = Instant::now();
            away += (now - last).saturating_sub(ALLOWED);
            last = now;
        }
        away.as_secs_f64() / (last - began).as_secs_f64()
    };
    let threads = [(); 2].map(|()| std::thread::spawn(watch));
    threads
        .map(|thread| thread.join().unwrap_or(1.0))
        .iter()
        .sum()
}

#[test]
fn a_million_transactions_lose_none() {
    let (_directory, server) = mock(Role::Null);
    let mut load = Load::start(2);
    load.open(&server.address(), "oltp-point-select", 64);
    let mut ok = 0;
    for _ in 0..1_000 {
        // Every slice is checked: its account balances, and each latency was recorded.
        let slice = load.slice(&slice_order(64, 2.0));
        let class = &slice.classes[0];
        assert_eq!((class.counts.failed, class.counts.skipped), (0, 0));
        assert!(class.counts.unfinished <= 64);
        ok += class.counts.ok;
        if ok >= 1_000_000 {
            break;
        }
    }
    assert!(ok >= 1_000_000, "{ok} in 2,000 s");
    load.end();
}
