//! Errors, broken connections and servers that fall silent cost what they must and no more.

mod support;

use std::io::Write as _;
use std::time::Instant;

use dbduel_load::driver::TlsMode;
use dbduel_load::mock_server::Role;
use dbduel_load::order::{Answer, Order, SliceOrder};
use dbduel_wire::server::Answer as Reply;
use support::{Load, act, error, mock, open_order, scripted, slice_order};

/// Statements that the first client sends before anything else, to learn what its session is.
const SESSION_QUESTIONS: u64 = 4;

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
    let slice = load.slice(&SliceOrder {
        guard_s: 0.0,
        drain_s: 1.0,
        ..slice_order(1, 0.3)
    });
    let class = &slice.classes[0];
    assert_eq!(class.counts.failed, 0);
    assert!(class.counts.ok > 10);
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
    let slice = load.slice(&slice_order(1, 0.2));
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
    let slice = load.slice(&slice_order(1, 0.2));
    let class = &slice.classes[0];
    assert!(
        class.counts.ok == 0 && class.counts.failed > 5 && class.counts.retries == 0,
        "{class:?}"
    );
    load.end();
}

#[test]
fn a_connection_that_breaks_loses_the_slice_promptly() {
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
        let began = Instant::now();
        load.order(&Order::Slice(slice_order(4, 30.0)));
        let answer = load.last_answer();
        assert!(
            matches!(answer, Answer::Lost { .. }),
            "{wound:?} did not lose the slice"
        );
        assert!(
            began.elapsed() < support::PROMPT,
            "{wound:?}: lost after {:?}",
            began.elapsed()
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
    let mut acts = vec![act(0, Reply::Proper); 50];
    acts.push(act(0, Reply::Stall));
    let (_directory, server) = scripted(acts);
    let mut load = Load::start(2);
    load.open(&server.address(), "oltp-point-select", 4);
    let began = Instant::now();
    let slice = load.slice(&SliceOrder {
        guard_s: 0.0,
        drain_s: 0.2,
        ..slice_order(4, 0.5)
    });
    assert!(began.elapsed() < support::PROMPT);
    let class = &slice.classes[0];
    assert_eq!(
        (class.counts.ok, class.counts.unfinished),
        (200 - SESSION_QUESTIONS, 4)
    );
    assert!(
        (0.19..10.0).contains(&slice.drained_s),
        "{}",
        slice.drained_s
    );
    load.order(&Order::Slice(slice_order(4, 0.5)));
    let answer = load.last_answer();
    assert!(
        matches!(&answer, Answer::Lost { why, .. } if why.contains("slice before")),
        "{answer:?}"
    );
    load.end();
}

#[test]
fn a_late_reply_to_the_slice_before_is_waited_for() {
    let mut acts = vec![act(0, Reply::Proper); 100_000];
    acts[20] = act(700, Reply::Proper);
    let (_directory, server) = scripted(acts);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-point-select", 1);
    let first = load.slice(&SliceOrder {
        guard_s: 0.0,
        drain_s: 0.1,
        ..slice_order(1, 0.2)
    });
    let class = &first.classes[0];
    assert_eq!(
        (class.counts.ok, class.counts.unfinished),
        (20 - SESSION_QUESTIONS, 1)
    );
    let second = load.slice(&slice_order(1, 0.2));
    assert!(second.classes[0].counts.ok > 50);
    load.end();
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_given_up_at_the_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut load = Load::start(1);
    let mut order = open_order(
        &dbduel_load::address::Address::Unix { path },
        "oltp-point-select",
        3,
    );
    order.connect_s = 0.3;
    let began = Instant::now();
    load.order(&Order::Open(order));
    assert!(matches!(load.answer(), Answer::Refused { why } if why.contains("0.3 s")));
    assert!(began.elapsed() < support::PROMPT);
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
    let address = dbduel_load::address::Address::Unix { path };
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
