//! What a turn of a contest begins belongs to it, and its server is loaded until it is frozen.

use std::cell::Cell;
use std::time::{Duration, Instant};

use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_load::order::{Answer, Order, SliceAnswer, SliceOrder};
use dbduel_testkit::mock::{PROMPT, mock};

use crate::support::valve::Valve;
use crate::support::{Load, check_accounts, ok_in, open_order, quantile_ms, slice_order};
use tempfile::TempDir;

/// The orders end these slices.
fn order(clients: u32) -> SliceOrder {
    SliceOrder {
        guard_s: 0.0,
        drain_s: 2.0 * PROMPT.as_secs_f64(),
        ..slice_order(clients, 2.0 * PROMPT.as_secs_f64())
    }
}

/// A load process of so many threads, whose clients go through a valve.
fn behind_a_valve(threads: u32, clients: u32) -> (TempDir, MockServer, Valve, Load) {
    let (directory, server) = mock(Role::Scripted(vec![dbduel_testkit::mock::act(
        0,
        dbduel_wire::server::Answer::Proper,
    )]));
    let valve = Valve::before(&server.address(), directory.path());
    let mut load = Load::start(threads);
    load.order(&Order::Open(open_order(
        &valve.address(),
        "oltp-point-select",
        clients,
    )));
    let answer = load.answer();
    assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    (directory, server, valve, load)
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PROMPT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Drives a slice until a tick has a transaction in it, then calls `act`, ends the measured part, and calls `finally`.
fn cut(load: &mut Load, order: &SliceOrder, act: impl Fn(), finally: impl Fn()) -> SliceAnswer {
    load.order(&Order::Slice(order.clone()));
    let mut ticks = Vec::new();
    while ok_in(&ticks) == 0 {
        match load.answer() {
            Answer::Begun { .. } => {}
            Answer::Tick(tick) => ticks.push(tick),
            other => panic!("{other:?}"),
        }
    }
    act();
    load.order(&Order::Stop);
    finally();
    match load.last_answer() {
        Answer::Slice(slice) => {
            check_accounts(&slice);
            *slice
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_transaction_that_outlasts_the_slice_counts_with_all_its_latency_and_time() {
    let held = Duration::from_millis(300);
    let (_directory, _server, valve, mut load) = behind_a_valve(1, 1);
    let hold = || {
        valve.hold();
        until("nothing is held", || valve.held() == 1);
    };
    let slice = cut(&mut load, &order(1), hold, || {
        std::thread::sleep(held);
        valve.release();
    });
    let counts = slice.classes[0].counts;
    assert_eq!((counts.unfinished, counts.skipped), (0, 0), "{counts:?}");
    let held_ms = held.as_secs_f64() * 1e3;
    assert!(quantile_ms(&slice, 1.0) >= held_ms, "{slice:?}");
    // The order to stop may have come late, never early.
    assert!(slice.drained_s > 0.0 && slice.client_drained_s > 0.0);
    assert!(slice.measured_s * 1e3 >= held_ms, "{slice:?}");
    let longest_us = slice.ticks.iter().map(|tick| tick.latency_us_max);
    let longest_us = longest_us.fold(0.0, f64::max);
    assert!(longest_us >= held_ms * 1e3, "{:?}", slice.ticks);
    load.end();
}

#[test]
fn other_clients_load_the_server_until_the_last_transaction_of_the_slice_has_ended() {
    for threads in [1, 2] {
        check_that_others_go_on(threads);
    }
}

fn check_that_others_go_on(threads: u32) {
    let (_directory, server, valve, mut load) = behind_a_valve(threads, 2);
    let in_drain = Cell::new(0);
    let hold = || {
        valve.hold_of(1);
        until("nothing is held", || valve.held() == 1);
    };
    let slice = cut(&mut load, &order(2), hold, || {
        // The first of these may still have been due before the measured part was over.
        let served = server.served().len();
        until("the other client rests", || {
            server.served().len() >= served + 200
        });
        std::thread::sleep(Duration::from_millis(50));
        let served = server.served().len();
        until("the other client rests", || {
            server.served().len() >= served + 200
        });
        in_drain.set(server.served().len() - served);
        valve.release();
    });
    // What the other one did meanwhile counts, with its time.
    let counts = slice.classes[0].counts;
    assert_eq!(counts.unfinished, 0);
    let drained = slice.ticks.iter().rev();
    let drained = drained
        .take_while(|tick| tick.offset_s + tick.length_s > slice.measured_s - slice.drained_s);
    let drained: u64 = drained.map(|tick| tick.ok).sum();
    assert!(
        drained as usize >= in_drain.get(),
        "{drained} in the drain: {slice:?}"
    );
    assert!(slice.drained_s >= 0.05, "{slice:?}");
    load.end();
}

#[test]
fn what_is_in_flight_when_the_server_is_frozen_goes_on_in_the_next_slice_and_counts_there() {
    let (_directory, server, valve, mut load) = behind_a_valve(1, 2);
    let order = SliceOrder {
        until_halted: true,
        ..order(2)
    };
    cut(&mut load, &order, || (), || ());
    let served = server.served().len();
    until("it rests after the answer", || {
        server.served().len() >= served + 200
    });
    // As if the server were frozen.
    valve.hold();
    until("transactions are in flight", || valve.held() == 2);
    load.order(&Order::Halt);
    load.order(&Order::Slice(order.clone()));
    let answer = load.answer();
    assert!(matches!(answer, Answer::Begun { .. }), "{answer:?}");
    assert_eq!(valve.held(), 2, "the slice waited for what was in flight");
    let frozen = Duration::from_millis(300);
    std::thread::sleep(frozen);
    valve.release();
    let mut ticks = Vec::new();
    while ok_in(&ticks) == 0 {
        match load.answer() {
            Answer::Tick(tick) => ticks.push(tick),
            other => panic!("{other:?}"),
        }
    }
    load.order(&Order::Stop);
    let Answer::Slice(slice) = load.last_answer() else {
        panic!("no slice")
    };
    check_accounts(&slice);
    // Both were in flight while the slice ran and nothing was answered. It begins a moment after it says so.
    let longest_ms = quantile_ms(&slice, 1.0);
    assert!(
        longest_ms >= frozen.as_secs_f64() * 900.0,
        "{longest_ms} ms"
    );
    load.end();
}

#[test]
fn a_connection_that_breaks_after_the_answer_loses_the_next_slice_and_the_process_stays() {
    let (_directory, server, _valve, mut load) = behind_a_valve(1, 2);
    let order = SliceOrder {
        until_halted: true,
        ..order(2)
    };
    cut(&mut load, &order, || (), || ());
    drop(server);
    load.order(&Order::Slice(order));
    let answer = load.last_answer();
    assert!(matches!(answer, Answer::Lost { .. }), "{answer:?}");
    load.end();
}

#[test]
fn where_no_freeze_follows_nothing_is_in_flight_at_the_answer() {
    let (_directory, server, valve, mut load) = behind_a_valve(1, 2);
    let hold = || {
        valve.hold_of(1);
        until("nothing is held", || valve.held() == 1);
    };
    cut(&mut load, &order(2), hold, || valve.release());
    let served = server.served().len();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.served().len(), served, "clients go on");
    load.end();
}
