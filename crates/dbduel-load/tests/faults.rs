//! Errors, broken connections and servers that fall silent cost what they must and no more.

use std::io::Write as _;
use std::time::{Duration, Instant};

use dbduel_driver::mock_server::Role;
use dbduel_driver::{Credentials, Dialect, TlsMode};
use dbduel_load::monotonic;
use dbduel_load::order::{Answer, Order, SliceOrder, Tick};
use dbduel_record::plan::Parameters;
use dbduel_testkit::mock::{PROMPT, act, error, mock, scripted};
use dbduel_wire::server::Answer as Reply;
use dbduel_workloads::fill::{self, FillError, FillWatch, Place};
use dbduel_workloads::{Workload, parameters};

use crate::support::valve::Valve;
use crate::support::{Load, SLICE_MAX_S, ok_in, open_order, slice_order};

/// Statements that the first client sends before anything else, to learn what its session is.
const SESSION_QUESTIONS: u64 = 4;

/// Transactions that were given up in the measured part.
fn failed_in(ticks: &[Tick]) -> u64 {
    let measured = ticks.iter().filter(|tick| tick.offset_s > -1e-9);
    measured.map(|tick| tick.failed).sum()
}

#[test]
fn a_deadlock_is_rolled_back_and_tried_again() {
    // Every third statement deadlocks; the rollback after it is the fourth.
    let acts = vec![
        act(0, Reply::Proper),
        act(0, Reply::Proper),
        act(0, error(1213, b"40001")),
        act(0, Reply::Proper),
    ];
    let (_directory, server) = scripted(acts);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-update-index", 1);
    let order = SliceOrder {
        guard_s: 0.0,
        // A rollback that runs at the end is waited for.
        drain_s: 60.0,
        until_halted: false,
        ..slice_order(1, 0.3)
    };
    let slice = load.slice_until_ok(&order, 11);
    let class = &slice.classes[0];
    assert_eq!(class.counts.failed, 0);
    let deadlocks = slice
        .errors
        .iter()
        .find(|error| error.code == 1213)
        .map_or(0, |error| error.count);
    assert!(
        deadlocks >= class.counts.retries && deadlocks <= class.counts.retries + 1,
        "{deadlocks} and {}",
        class.counts.retries
    );
    let rollbacks = server
        .heard()
        .iter()
        .filter(|sql| *sql == "ROLLBACK")
        .count() as u64;
    // The mock server keeps the first ten thousand statements, those before the slice among them.
    assert!(
        rollbacks >= deadlocks.min(10_000 - 100),
        "{rollbacks} rollbacks for {deadlocks} deadlocks"
    );
    load.end();
}

#[test]
fn a_transaction_that_keeps_failing_is_given_up_and_the_slice_goes_on() {
    let (_directory, server) = scripted(vec![act(0, error(1205, b"HY000"))]);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-update-index", 1);
    let slice = load.slice_until(&slice_order(1, 0.2), |ticks| failed_in(ticks) > 5);
    let class = &slice.classes[0];
    assert!(class.counts.ok == 0 && class.counts.failed > 5, "{class:?}");
    assert_eq!(
        class.counts.retries,
        class.counts.failed * 3,
        "three attempts after the first were ordered"
    );
    assert_eq!(slice.errors[0].example, "error 1205");
    load.end();
}

#[test]
fn an_error_that_trying_again_does_not_cure_is_not_tried_again() {
    let (_directory, server) = scripted(vec![act(0, error(1062, b"23000")), act(0, Reply::Proper)]);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-insert", 1);
    let slice = load.slice_until(&slice_order(1, 0.2), |ticks| failed_in(ticks) > 5);
    let class = &slice.classes[0];
    assert!(
        class.counts.ok == 0 && class.counts.failed > 5 && class.counts.retries == 0,
        "{class:?}"
    );
    load.end();
}

#[test]
fn a_connection_that_breaks_loses_the_slice_before_its_end() {
    let wounds = [
        Reply::Close,
        Reply::Torn { bytes: 7 },
        Reply::Bytes(b"\x07\0\0\x01\0\0\0\x02\0\0\0surplus".to_vec()),
        Reply::Payload(vec![0x00]),
    ];
    for wound in wounds {
        let mut acts = vec![act(0, Reply::Proper); 50];
        acts.push(act(0, wound.clone()));
        let (_directory, server) = scripted(acts);
        let mut load = Load::start(2);
        load.open(&server.address(), "oltp-point-select", 4);
        load.order(&Order::Slice(slice_order(4, SLICE_MAX_S)));
        let counted = match load.last_answer() {
            Answer::Lost { counted, .. } => counted,
            other => panic!("{wound:?} did not lose the slice: {other:?}"),
        };
        // Nothing is counted where the connection broke in the guard.
        let measured_s = counted.map_or(0.0, |counted| counted.measured_s);
        assert!(
            measured_s < SLICE_MAX_S,
            "{wound:?}: lost after {measured_s} s"
        );
        // The contender is closed, and can be opened again.
        load.order(&Order::Slice(slice_order(4, 0.1)));
        assert!(matches!(load.last_answer(), Answer::Refused { .. }));
        load.open(&server.address(), "oltp-point-select", 1);
        load.end();
    }
}

#[test]
fn a_server_that_stalls_to_the_end_costs_no_hang_and_no_transaction() {
    const DRAIN_S: f64 = 0.2;
    let mut acts = vec![act(0, Reply::Proper); 50];
    acts.push(act(0, Reply::Stall));
    let (_directory, server) = scripted(acts);
    let mut load = Load::start(2);
    load.open(&server.address(), "oltp-point-select", 4);
    let answered = 4 * 50 - SESSION_QUESTIONS;
    let order = SliceOrder {
        guard_s: 0.0,
        drain_s: DRAIN_S,
        until_halted: false,
        ..slice_order(4, 0.5)
    };
    // After a whole tick without a transaction every client has sent one that the server does not answer.
    let slice = load.slice_until(&order, |ticks| {
        ok_in(ticks) >= answered && ticks.last().is_some_and(|last| last.ok == 0)
    });
    let class = &slice.classes[0];
    assert_eq!((class.counts.ok, class.counts.unfinished), (answered, 4));
    assert!(slice.drained_s >= DRAIN_S * 0.99, "{}", slice.drained_s);
    load.order(&Order::Slice(slice_order(4, 0.5)));
    let answer = load.last_answer();
    assert!(
        matches!(&answer, Answer::Lost { why, .. } if why.contains("previous slice")),
        "{answer:?}"
    );
    load.end();
}

#[test]
fn a_late_reply_to_the_slice_before_is_waited_for() {
    let (directory, server) = scripted(vec![act(0, Reply::Proper)]);
    let valve = Valve::before(&server.address(), directory.path());
    let mut load = Load::start(1);
    load.open(&valve.address(), "oltp-point-select", 1);
    let order = SliceOrder {
        guard_s: 0.0,
        drain_s: 0.1,
        until_halted: false,
        ..slice_order(1, 0.2)
    };
    let first = load.slice_until(&order, |ticks| {
        if ok_in(ticks) > 0 {
            valve.hold();
        }
        valve.held() == 1
    });
    assert_eq!(first.classes[0].counts.unfinished, 1);
    load.order(&Order::Slice(SliceOrder {
        guard_s: 0.0,
        // Also the longest wait for the reply.
        drain_s: 60.0,
        until_halted: false,
        ..slice_order(1, 0.2)
    }));
    // Time to begin without the reply. However long it is, a slice that waits for it begins later.
    std::thread::sleep(Duration::from_millis(100));
    let released = monotonic::ns_of(Instant::now());
    valve.release();
    let Answer::Begun { open_ns } = load.answer() else {
        panic!("the slice was lost")
    };
    assert!(
        open_ns > released,
        "it began {} ns before the reply",
        released - open_ns
    );
    assert!(matches!(load.last_answer(), Answer::Slice(_)));
    load.slice_until_ok(&slice_order(1, 0.2), 1);
    load.end();
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_given_up_at_the_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut load = Load::start(1);
    let mut order = open_order(
        &dbduel_driver::address::Address::Unix { path },
        "oltp-point-select",
        3,
    );
    order.connect_s = 0.3;
    let began = Instant::now();
    load.order(&Order::Open(order));
    assert!(matches!(load.answer(), Answer::Refused { why } if why.contains("0.3 s")));
    assert!(began.elapsed() >= Duration::from_millis(300));
    load.end();
}

#[test]
fn a_refusal_right_before_the_end_of_the_connection_is_passed_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let message = b"\xFF\x10\x04Too many connections";
        let head = [message.len() as u8, 0, 0, 0];
        // In one piece, so that words and end are there together.
        client.write_all(&[&head, &message[..]].concat()).unwrap();
    });
    let mut load = Load::start(1);
    let address = dbduel_driver::address::Address::Unix { path };
    load.order(&Order::Open(open_order(&address, "oltp-read-only", 1)));
    server.join().unwrap();
    let Answer::Refused { why } = load.answer() else {
        panic!("opened without a server")
    };
    assert!(why.contains("Too many connections"), "{why}");
    load.end();
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_required() {
    let (_directory, server) = mock(Role::Null);
    let mut load = Load::start(1);
    for (tls, is_opened) in [(TlsMode::Required, false), (TlsMode::Preferred, true)] {
        let mut order = open_order(&server.address(), "oltp-read-only", 1);
        order.tls = tls;
        load.order(&Order::Open(order));
        let answer = load.answer();
        assert_eq!(
            matches!(answer, Answer::Opened { .. }),
            is_opened,
            "{answer:?}"
        );
    }
    load.end();
}

/// The workload's parameters with so many tables of 100 rows.
fn small_tables(tables: u64) -> (&'static dyn Workload, Parameters) {
    let workload = dbduel_workloads::find("oltp-read-only").expect("it exists");
    let given = [("tables", tables), ("table_size", 100)]
        .map(|(name, value)| (name.to_owned(), value.into()));
    let parameters = parameters::resolve(workload, &given.into()).expect("they are its own");
    (workload, parameters)
}

#[test]
fn a_server_that_requires_primary_keys_is_told_by_its_setting_and_keeps_no_table() {
    let (workload, parameters) = small_tables(2);
    let credentials = Credentials::default();
    for (code, sqlstate, setting) in [
        (1173, b"42000", "`innodb_force_primary_key` = OFF"),
        (3750, b"HY000", "`sql_require_primary_key` = OFF"),
    ] {
        let mut is_tried = false;
        // The statements before the second table is created; the loop finds their number.
        for answers in 0..12 {
            let mut acts = vec![act(0, Reply::Proper); answers];
            acts.push(act(0, error(code, sqlstate)));
            acts.extend(vec![act(0, Reply::Proper); 20]);
            let (_directory, server) = scripted(acts);
            let place = Place {
                dialect: Dialect::MySql,
                address: &server.address(),
                credentials: &credentials,
                tls: &TlsMode::Off,
                database: "dbduel",
                connections: 1,
                deadline: PROMPT,
            };
            let outcome = fill::fill(workload, &parameters, &place, 1, &FillWatch::default());
            let heard = server.heard();
            let is_second = |sql: &String| sql.starts_with("CREATE TABLE sbtest2");
            if !heard.get(answers).is_some_and(is_second) {
                continue;
            }
            is_tried = true;
            let error = outcome.unwrap_err();
            assert!(error.to_string().contains(setting), "{error}");
            assert!(!error.is_resumable());
            let dropped = |name: &str| {
                let mut after = heard[answers + 1..].iter();
                after.any(|sql| sql.starts_with("DROP TABLE") && sql.contains(name))
            };
            assert!(dropped("sbtest1") && dropped("dbduel_filling"), "{heard:?}");
        }
        assert!(is_tried);
    }
}

#[test]
fn work_on_tables_whose_server_falls_silent_is_given_up() {
    let (workload, parameters) = small_tables(1);
    let silent_after = |answers: usize| {
        let mut acts = vec![act(0, Reply::Proper); answers];
        acts.push(act(0, Reply::Stall));
        scripted(acts)
    };
    let credentials = Credentials::default();
    // The question for the claim, the statements that create tables, and those of a digest.
    for (answers, is_digest) in [(0, false), (1, false), (2, false), (3, false), (0, true)] {
        let (_directory, server) = silent_after(answers);
        let place = Place {
            dialect: Dialect::MySql,
            address: &server.address(),
            credentials: &credentials,
            tls: &TlsMode::Off,
            database: "dbduel",
            connections: 2,
            deadline: Duration::from_secs(24 * 3600),
        };
        let watch = FillWatch::default();
        let outcome = std::thread::scope(|scope| {
            let working = scope.spawn(|| match is_digest {
                true => fill::digest(workload, &parameters, &place, &watch).map(drop),
                false => fill::fill(workload, &parameters, &place, 1, &watch).map(drop),
            });
            let begun = Instant::now();
            while server.heard().len() <= answers && begun.elapsed() < PROMPT {
                std::thread::sleep(Duration::from_millis(5));
            }
            watch.cancel.cancel();
            working.join().unwrap()
        });
        assert!(
            matches!(outcome, Err(FillError::Cancelled)),
            "{answers}: {outcome:?}, {:?}",
            server.heard()
        );
    }
}
