//! The load process against servers that answer at once, late, wrongly or not at all.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod support;

use std::io::Write as _;
use std::time::{Duration, Instant};

use dbduel_load::blocking::TlsMode;
use dbduel_load::order::{Answer, Order, SliceAnswer, SliceOrder};
use dbduel_load::stand_in::{Role, StandIn};
use dbduel_record::latency;
use dbduel_record::plan::Arrival;
use dbduel_wire::ServerError;
use dbduel_wire::server::{Act, Answer as Reply};
use support::{Load, open_order, slice_order};
use tempfile::TempDir;

fn stand_in(role: Role) -> (TempDir, StandIn) {
    let directory = tempfile::tempdir().unwrap();
    let server = StandIn::start(&directory.path().join("s.sock"), role).unwrap();
    (directory, server)
}

fn scripted(acts: Vec<Act>) -> (TempDir, StandIn) {
    stand_in(Role::Scripted(acts))
}

fn act(after_ms: u64, answer: Reply) -> Act {
    Act {
        after: Duration::from_millis(after_ms),
        answer,
    }
}

fn error(code: u16, sqlstate: &[u8; 5]) -> Reply {
    Reply::Error(ServerError {
        code,
        sqlstate: *sqlstate,
        message: format!("error {code}"),
    })
}

/// A quantile of the only class's latencies, milliseconds.
fn quantile_ms(slice: &SliceAnswer, q: f64) -> f64 {
    latency::decode(&slice.classes[0].histogram)
        .unwrap()
        .value_at_quantile(q) as f64
        / 1e6
}

#[test]
fn slices_follow_one_another_and_everything_adds_up() {
    let (_directory, server) = stand_in(Role::Null);
    let mut load = Load::start(2);
    load.open(&server.address(), "oltp-read-write", 5);
    assert_eq!(server.connections(), 5);
    for clients in [5, 1, 3] {
        let slice = load.slice(&slice_order(clients, 0.3));
        let class = &slice.classes[0];
        assert!(class.ok > 10, "{class:?}");
        assert!(class.unfinished <= u64::from(clients));
        assert_eq!(
            class.statements,
            class.ok * 20,
            "a transaction has twenty statements"
        );
        assert!((slice.measured_s - 0.3).abs() < 1e-9);
        assert!(slice.errors.is_empty());
        assert!(slice.cpu_user_s + slice.cpu_system_s > 0.0);
    }
    load.order(&Order::Close {
        contender: "only".to_owned(),
    });
    assert_eq!(
        load.answer(),
        Answer::Closed {
            contender: "only".to_owned(),
            commits: Vec::new(),
        }
    );
    load.end();
}

#[test]
fn every_workload_runs_in_both_protocols() {
    let (_directory, server) = stand_in(Role::Null);
    let mut load = Load::start(1);
    for workload in dbduel_load::workloads::WORKLOADS {
        for protocol in ["prepared", "text"] {
            let mut order = open_order(&server.address(), workload.name(), 2);
            order
                .workload
                .parameters
                .insert("protocol".to_owned(), protocol.into());
            load.order(&Order::Open(order));
            assert!(
                matches!(load.answer(), Answer::Opened { .. }),
                "{}",
                workload.name()
            );
            let slice = load.slice(&SliceOrder {
                guard_s: 0.0,
                ..slice_order(2, 0.05)
            });
            assert!(
                slice.classes[0].ok > 0,
                "{} {protocol}: {slice:?}",
                workload.name()
            );
            load.order(&Order::Close {
                contender: "only".to_owned(),
            });
            load.answer();
        }
    }
    load.end();
}

#[test]
fn a_transaction_of_oltp_read_write_is_the_one_of_sysbench() {
    let (_directory, server) = scripted(Vec::new());
    let mut load = Load::start(1);
    let mut order = open_order(&server.address(), "oltp-read-write", 1);
    let parameters = &mut order.workload.parameters;
    parameters.insert("protocol".to_owned(), "text".into());
    parameters.insert("tables".to_owned(), 3.into());
    load.order(&Order::Open(order));
    load.answer();
    load.slice(&slice_order(1, 0.1));
    load.end();

    let heard = server.heard();
    let masked: Vec<String> = heard[..20].iter().map(|sql| mask(sql)).collect();
    let mut expected = vec!["BEGIN"];
    expected.extend(["SELECT c FROM sbtest# WHERE id=#"; 10]);
    expected.extend([
        "SELECT c FROM sbtest# WHERE id BETWEEN # AND #",
        "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN # AND #",
        "SELECT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c",
        "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c",
        "UPDATE sbtest# SET k=k+# WHERE id=#",
        "UPDATE sbtest# SET c='#-#-#-#-#-#-#-#-#-#' WHERE id=#",
        "DELETE FROM sbtest# WHERE id=#",
        "INSERT INTO sbtest# (id, k, c, pad) VALUES (#, #, '#-#-#-#-#-#-#-#-#-#', '#-#-#-#-#')",
        "COMMIT",
    ]);
    assert_eq!(masked, expected);
    let table = |index: usize| {
        heard[index]
            .split_once("sbtest")
            .map(|(_, rest)| rest[..1].to_owned())
    };
    assert!(
        (1..=10).all(|index| table(index) == table(1)),
        "one table for all point queries"
    );
    assert_eq!(
        table(17),
        table(18),
        "the row is inserted where it was deleted"
    );
    let tables: std::collections::BTreeSet<_> = (0..heard.len()).filter_map(table).collect();
    assert_eq!(tables.len(), 3, "all tables are used");
}

/// Every number as `#`.
fn mask(sql: &str) -> String {
    let mut masked = String::new();
    for letter in sql.chars() {
        match letter.is_ascii_digit() {
            true if masked.ends_with('#') => {}
            true => masked.push('#'),
            false => masked.push(letter),
        }
    }
    masked
}

#[test]
fn a_seed_draws_the_same_statements_again() {
    let (_directory, server) = scripted(Vec::new());
    let mut load = Load::start(1);
    let mut order = open_order(&server.address(), "oltp-point-select", 1);
    order
        .workload
        .parameters
        .insert("protocol".to_owned(), "text".into());
    load.order(&Order::Open(order));
    load.answer();
    let mut slices = Vec::new();
    for seed in [7, 7, 8] {
        let before = server.heard().len();
        load.slice(&SliceOrder {
            guard_s: 0.0,
            seed,
            ..slice_order(1, 0.02)
        });
        slices.push(server.heard()[before..].to_vec());
    }
    load.end();
    let common = slices.iter().map(Vec::len).min().unwrap();
    assert!(common > 20, "{common} statements");
    assert_eq!(slices[0][..common], slices[1][..common]);
    assert_ne!(slices[0][..common], slices[2][..common]);
}

#[test]
fn ticks_are_answered_while_the_slice_runs() {
    let (_directory, server) = stand_in(Role::Null);
    let mut load = Load::start(2);
    load.open(&server.address(), "oltp-point-select", 2);
    let began = Instant::now();
    load.order(&Order::Slice(slice_order(2, 1.0)));
    let Answer::Tick(first) = load.answer() else {
        panic!("no tick")
    };
    assert!(
        began.elapsed() < Duration::from_millis(600),
        "the first tick came after {:?}",
        began.elapsed()
    );
    assert!(
        (first.offset_s + 0.1).abs() < 1e-9 && (first.length_s - 0.1).abs() < 1e-9,
        "{first:?}"
    );
    let mut ticks = vec![first];
    let slice = loop {
        match load.answer() {
            Answer::Tick(tick) => ticks.push(tick),
            Answer::Slice(slice) => break slice,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ticks, slice.ticks);
    for tick in &ticks {
        let quantiles = [
            tick.latency_us_p50,
            tick.latency_us_p95,
            tick.latency_us_p99,
            tick.latency_us_max,
        ];
        assert!(tick.ok > 0 && quantiles[0] > 0.0, "{tick:?}");
        assert!(quantiles.is_sorted(), "{tick:?}");
    }
    load.end();
}

#[test]
fn exact_delays_come_back() {
    for delay_ms in [2, 10] {
        let (_directory, server) = scripted(vec![act(delay_ms, Reply::Proper)]);
        let mut load = Load::start(1);
        load.open(&server.address(), "oltp-point-select", 4);
        let slice = load.slice(&slice_order(4, 0.5));
        let (smallest, median) = (quantile_ms(&slice, 0.0), quantile_ms(&slice, 0.5));
        let delay_ms = delay_ms as f64;
        // The histogram keeps three digits.
        assert!(
            smallest >= delay_ms * 0.999,
            "{smallest} ms is less than the server took"
        );
        assert!(
            median < delay_ms * 1.2 + 0.3,
            "median {median} ms of a delay of {delay_ms} ms"
        );
        load.end();
    }
}

#[test]
fn a_stall_is_charged_to_every_transaction_that_fell_due_in_it() {
    // 500 per second for two seconds; after about half a second one reply takes 400 ms. The 200 that
    // fall due meanwhile wait between 400 ms and nothing, so the 99 % quantile of all 1000 is 380 ms.
    let mut acts = vec![act(0, Reply::Proper); 5_000];
    acts[300] = act(400, Reply::Proper);
    let (_directory, server) = scripted(acts);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-point-select", 1);
    let arrival = Arrival::Constant { per_second: 500.0 };
    let slice = load.slice(&SliceOrder {
        arrival,
        ..slice_order(1, 2.0)
    });
    let class = &slice.classes[0];
    assert!((995..=1005).contains(&class.due), "{} fell due", class.due);
    // A few may be waiting still when a busy machine holds the load up near the end.
    assert!(
        class.skipped < 150,
        "{} late transactions were dropped",
        class.skipped
    );
    let (p50, p99, max) = (
        quantile_ms(&slice, 0.5),
        quantile_ms(&slice, 0.99),
        quantile_ms(&slice, 1.0),
    );
    assert!(p50 < 20.0, "median {p50} ms");
    assert!((365.0..600.0).contains(&p99), "99 % quantile {p99} ms");
    assert!((400.0..700.0).contains(&max), "maximum {max} ms");
    load.end();
}

#[test]
fn what_an_overloaded_server_leaves_is_counted_as_skipped() {
    let (_directory, server) = scripted(vec![act(5, Reply::Proper)]);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-point-select", 2);
    let arrival = Arrival::Poisson { per_second: 2000.0 };
    let slice = load.slice(&SliceOrder {
        arrival,
        ..slice_order(2, 1.0)
    });
    let class = &slice.classes[0];
    // Two clients manage 400 per second at most.
    assert!(class.ok <= 401 && class.ok > 100, "{class:?}");
    assert!(
        (1_800..2_400).contains(&class.due),
        "{} fell due",
        class.due
    );
    assert!(class.skipped > 1_300, "{class:?}");
    load.end();
}

#[test]
fn think_time_is_waited_and_is_no_latency() {
    let (_directory, server) = stand_in(Role::Null);
    let mut load = Load::start(1);
    load.open(&server.address(), "oltp-point-select", 2);
    let slice = load.slice(&SliceOrder {
        arrival: Arrival::Closed { think_ms: 20.0 },
        ..slice_order(2, 1.0)
    });
    let class = &slice.classes[0];
    assert!(class.ok <= 101 && class.ok > 50, "{class:?}");
    assert!(quantile_ms(&slice, 0.5) < 10.0);
    load.end();
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
    let slice = load.slice(&SliceOrder {
        guard_s: 0.0,
        drain_s: 1.0,
        ..slice_order(1, 0.3)
    });
    let class = &slice.classes[0];
    assert_eq!(class.failed, 0);
    assert!(class.ok > 10);
    let deadlocks = slice
        .errors
        .iter()
        .find(|error| error.code == 1213)
        .map_or(0, |error| error.count);
    assert!(
        deadlocks >= class.retries && deadlocks <= class.retries + 1,
        "{deadlocks} and {}",
        class.retries
    );
    let rollbacks = server
        .heard()
        .iter()
        .filter(|sql| *sql == "ROLLBACK")
        .count() as u64;
    assert!(
        rollbacks >= deadlocks.min(10_000 - 2),
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
    assert!(class.ok == 0 && class.failed > 5, "{class:?}");
    assert_eq!(
        class.retries,
        class.failed * 3,
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
        class.ok == 0 && class.failed > 5 && class.retries == 0,
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
            began.elapsed() < Duration::from_secs(2),
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
    assert!(began.elapsed() < Duration::from_secs(2));
    let class = &slice.classes[0];
    assert_eq!((class.ok, class.unfinished), (200, 4));
    assert!((slice.drained_s - 0.2).abs() < 0.05, "{}", slice.drained_s);
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
    assert_eq!((first.classes[0].ok, first.classes[0].unfinished), (20, 1));
    let second = load.slice(&slice_order(1, 0.2));
    assert!(second.classes[0].ok > 50);
    load.end();
}

#[test]
fn a_stop_ends_the_slice_and_keeps_what_was_measured() {
    let (_directory, server) = stand_in(Role::Null);
    let mut load = Load::start(2);
    load.open(&server.address(), "oltp-point-select", 3);
    for arrival in [
        Arrival::Closed { think_ms: 0.0 },
        Arrival::Constant { per_second: 3.0 },
    ] {
        let began = Instant::now();
        load.order(&Order::Slice(SliceOrder {
            arrival,
            ..slice_order(3, 60.0)
        }));
        std::thread::sleep(Duration::from_millis(500));
        load.order(&Order::Stop);
        let Answer::Slice(slice) = load.last_answer() else {
            panic!("no slice")
        };
        support::check_accounts(&slice);
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "stopped after {:?}",
            began.elapsed()
        );
        assert!(
            (0.3..1.5).contains(&slice.measured_s),
            "{}",
            slice.measured_s
        );
        assert!(slice.classes[0].ok > 0);
    }
    load.end();
}

#[test]
fn the_end_of_the_input_ends_everything_within_a_second() {
    let (_directory, server) = scripted(vec![act(0, Reply::Proper), act(0, Reply::Stall)]);
    let idle = Load::start(2);
    assert!(idle.end() < Duration::from_secs(1));
    let mut busy = Load::start(2);
    busy.open(&server.address(), "oltp-point-select", 2);
    busy.order(&Order::Slice(slice_order(2, 60.0)));
    busy.answer();
    assert!(busy.end() < Duration::from_secs(1));
}

#[test]
fn two_contenders_are_driven_in_turn_over_their_own_connections() {
    let (_directory, a) = stand_in(Role::Null);
    let (_other, b) = scripted(vec![act(3, Reply::Proper)]);
    let mut load = Load::start(1);
    for (name, server) in [("a", &a), ("b", &b)] {
        let mut order = open_order(&server.address(), "oltp-point-select", 2);
        order.contender = name.to_owned();
        load.order(&Order::Open(order));
        load.answer();
    }
    for name in ["a", "b", "b", "a"] {
        let slice = load.slice(&SliceOrder {
            contender: name.to_owned(),
            ..slice_order(2, 0.2)
        });
        let is_slow = quantile_ms(&slice, 0.5) > 2.9;
        assert_eq!(
            is_slow,
            name == "b",
            "{name}: {} ms",
            quantile_ms(&slice, 0.5)
        );
    }
    load.end();
}

#[test]
fn orders_that_make_no_sense_are_refused_with_a_reason() {
    let (directory, server) = stand_in(Role::Null);
    let mut load = Load::start(1);
    let mut refused = |order: &dyn Fn(&mut dbduel_load::order::OpenOrder)| {
        let mut open = open_order(&server.address(), "oltp-point-select", 1);
        order(&mut open);
        load.order(&Order::Open(open));
        match load.answer() {
            Answer::Refused { why } => why,
            other => panic!("{other:?}"),
        }
    };
    let nowhere = dbduel_load::address::Address::Unix {
        path: directory.path().join("nobody.sock"),
    };
    assert!(refused(&|open| open.address = nowhere.clone()).contains("connection broke"));
    assert!(
        refused(&|open| open.workload.name = "oltp-raed-only".to_owned())
            .contains("oltp-read-only")
    );
    assert!(
        refused(&|open| drop(open.workload.parameters.remove("tables"))).contains("not complete")
    );
    assert!(refused(&|open| open.connect_s = f64::MAX).contains("no time"));
    assert!(refused(&|open| open.clients = u32::MAX).contains("more than"));

    load.order(&Order::Slice(slice_order(1, 1.0)));
    assert!(matches!(load.answer(), Answer::Refused { why } if why.contains("not open")));
    load.say(r#"{"order":"open","password":"s3cret""#);
    assert!(matches!(load.answer(), Answer::Refused { why } if !why.contains("s3cret")));
    load.open(&server.address(), "oltp-point-select", 1);
    load.order(&Order::Slice(slice_order(2, 1.0)));
    assert!(matches!(load.answer(), Answer::Refused { .. }));
    load.order(&Order::Close {
        contender: "nobody".to_owned(),
    });
    assert!(matches!(load.answer(), Answer::Closed { .. }));
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
    assert!(began.elapsed() < Duration::from_secs(2));
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
    let (_directory, server) = stand_in(Role::Null);
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
