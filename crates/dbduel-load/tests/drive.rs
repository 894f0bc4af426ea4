//! The load process obeys its orders, against servers that answer at once.

use std::collections::BTreeMap;
use std::time::Instant;

use dbduel_driver::mock_server::Role;
use dbduel_load::monotonic;
use dbduel_load::order::{Answer, Order, SliceOrder, Tick};
use dbduel_record::plan::Arrival;
use dbduel_testkit::mock::{act, mock, scripted};
use dbduel_wire::server::Answer as Reply;

use crate::support::{Load, SLICE_MAX_S, open_order, quantile_ms, slice_order};

#[test]
fn slices_follow_one_another_and_everything_adds_up() {
    let (_directory, server) = mock(Role::Null);
    let mut load = Load::start(2);
    load.open(&server.address(), "oltp-read-write", 5);
    assert_eq!(server.connections(), 5);
    // A busy machine needs more slices, of which each obeys the rules.
    let (mut ok, mut cpu_s) = (BTreeMap::from([(5, 0), (1, 0), (3, 0)]), 0.0);
    for clients in [5, 1, 3].repeat(100) {
        let slice = load.slice(&slice_order(clients, 0.3));
        let class = &slice.classes[0];
        *ok.entry(clients).or_default() += class.counts.ok;
        cpu_s += slice.cpu_user_s + slice.cpu_system_s;
        assert!(class.counts.unfinished <= u64::from(clients));
        assert_eq!(
            class.counts.statements,
            class.counts.ok * 20,
            "a transaction has twenty statements"
        );
        assert!((slice.measured_s - slice.drained_s - 0.3).abs() < 1e-6);
        assert!(slice.errors.is_empty());
        if ok.values().all(|ok| *ok > 10) {
            break;
        }
    }
    assert!(ok.values().all(|ok| *ok > 10), "{ok:?}");
    assert!(cpu_s > 0.0);
    load.order(&Order::Close {
        contender: "only".to_owned(),
    });
    assert_eq!(
        load.answer(),
        Answer::Closed {
            contender: "only".to_owned(),
            commits: Vec::new(),
            examples: Vec::new(),
        }
    );
    load.end();
}

#[test]
fn every_workload_runs_in_both_protocols() {
    let (_directory, server) = mock(Role::Null);
    let mut load = Load::start(1);
    for workload in dbduel_workloads::WORKLOADS {
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
            eprintln!("{} {protocol}", workload.name());
            let order = SliceOrder {
                guard_s: 0.0,
                tick_s: 0.02,
                ..slice_order(2, 0.05)
            };
            load.slice_until_ok(&order, 1);
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
    load.slice_until_ok(&slice_order(1, 0.1), 20);
    load.end();

    // The first client asks for its session before anything else.
    let mut heard = server.heard();
    heard.retain(|sql| !sql.starts_with("SHOW SESSION"));
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
    let mut slices = Vec::new();
    for seed in [7, 7, 8] {
        // On a connection of its own: the server may hear late what was in flight when the slice before had ended.
        load.order(&Order::Open(order.clone()));
        load.answer();
        let before = server.heard().len();
        let slice = SliceOrder {
            guard_s: 0.0,
            seed,
            // The server keeps the first 10,000 statements, so these slices end before.
            arrival: Arrival::Constant {
                per_second: 1_000.0,
            },
            ..slice_order(1, 0.5)
        };
        load.slice_until_ok(&slice, 21);
        load.order(&Order::Close {
            contender: "only".to_owned(),
        });
        load.answer();
        slices.push(server.heard()[before..].to_vec());
    }
    load.end();
    let common = slices.iter().map(Vec::len).min().unwrap();
    assert!(common > 20, "{common} statements");
    assert_eq!(slices[0][..common], slices[1][..common]);
    assert_ne!(slices[0][..common], slices[2][..common]);
}

/// Ticks of a running slice, until one behind the guard has a transaction.
fn tick_until_measured(load: &mut Load) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = Vec::new();
    while !ticks
        .last()
        .is_some_and(|tick| tick.offset_s > -1e-9 && tick.ok > 0)
    {
        match load.answer() {
            Answer::Begun { .. } => {}
            Answer::Tick(tick) => ticks.push(tick),
            other => panic!("{other:?}"),
        }
    }
    ticks
}

#[test]
fn ticks_are_answered_while_the_slice_runs() {
    let (_directory, server) = mock(Role::Null);
    let mut load = Load::start(2);
    load.open(&server.address(), "oltp-point-select", 2);
    let ordered = Instant::now();
    load.order(&Order::Slice(slice_order(2, 60.0)));
    let Answer::Begun { open_ns } = load.answer() else {
        panic!("a slice begins without saying so")
    };
    let mut ticks = tick_until_measured(&mut load);
    let opened = monotonic::instant_of(open_ns);
    assert!(ordered < opened && opened < Instant::now());
    let first = &ticks[0];
    assert!(
        (first.offset_s + 0.1).abs() < 1e-9 && (first.length_s - 0.1).abs() < 1e-9,
        "{first:?}"
    );
    load.order(&Order::Stop);
    let slice = loop {
        match load.answer() {
            Answer::Tick(tick) => ticks.push(tick),
            Answer::Slice(slice) => break slice,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ticks, slice.ticks);
    assert_eq!(open_ns, slice.open_ns);
    // The ticks came before the order to stop, which ended it long before its time.
    assert!(slice.measured_s < 60.0, "{}", slice.measured_s);
    for tick in ticks.iter().filter(|tick| tick.ok > 0) {
        let quantiles = [
            tick.latency_us_p50,
            tick.latency_us_p95,
            tick.latency_us_p99,
            tick.latency_us_max,
        ];
        assert!(quantiles[0] > 0.0, "{tick:?}");
        assert!(quantiles.is_sorted(), "{tick:?}");
    }
    load.end();
}

#[test]
fn a_stop_ends_the_slice_and_keeps_what_was_measured() {
    let (_directory, server) = mock(Role::Null);
    let mut load = Load::start(2);
    load.open(&server.address(), "oltp-point-select", 3);
    for arrival in [
        Arrival::Closed { think_ms: 0.0 },
        Arrival::Constant { per_second: 3.0 },
    ] {
        load.order(&Order::Slice(SliceOrder {
            arrival,
            ..slice_order(3, 60.0)
        }));
        let last = tick_until_measured(&mut load).pop().unwrap();
        load.order(&Order::Stop);
        let Answer::Slice(slice) = load.last_answer() else {
            panic!("no slice")
        };
        crate::support::check_accounts(&slice);
        assert!(
            (last.offset_s + last.length_s - 1e-9..60.0).contains(&slice.measured_s),
            "{} s, and a tick before the end {last:?}",
            slice.measured_s
        );
        assert!(slice.classes[0].counts.ok > 0);
    }
    load.end();
}

#[test]
fn the_end_of_the_input_ends_everything_before_its_time() {
    // What the first client asks about its session is answered.
    let mut acts = vec![act(0, Reply::Proper); 6];
    acts.push(act(0, Reply::Stall));
    let (_directory, server) = scripted(acts);
    let idle = Load::start(2);
    assert!(idle.end() < dbduel_testkit::mock::PROMPT);
    let mut busy = Load::start(2);
    busy.open(&server.address(), "oltp-point-select", 2);
    busy.order(&Order::Slice(slice_order(2, SLICE_MAX_S)));
    busy.answer();
    assert!(busy.end() < dbduel_testkit::mock::PROMPT);
}

#[test]
fn two_contenders_are_driven_in_turn_over_their_own_connections() {
    const DELAY_MS: f64 = 40.0;
    let (_directory, a) = scripted(vec![act(0, Reply::Proper)]);
    let (_other, b) = scripted(vec![act(DELAY_MS as u64, Reply::Proper)]);
    let mut load = Load::start(1);
    for (name, server) in [("a", &a), ("b", &b)] {
        let mut order = open_order(&server.address(), "oltp-point-select", 2);
        order.contender = name.to_owned();
        load.order(&Order::Open(order));
        load.answer();
    }
    let served = || [&a, &b].map(|server| server.served().len());
    for (driven, name) in [(0, "a"), (1, "b"), (1, "b"), (0, "a")] {
        let before = served();
        let order = SliceOrder {
            contender: name.to_owned(),
            // None of its transactions is left for the next slice.
            drain_s: 60.0,
            until_halted: false,
            ..slice_order(2, 0.5)
        };
        let slice = load.slice_until_ok(&order, 2);
        let after = served();
        let ok = slice.classes[0].counts.ok;
        assert!(after[driven] - before[driven] >= ok as usize, "{name}");
        assert_eq!(after[1 - driven], before[1 - driven], "{name}");
        if name == "b" {
            let shortest_ms = quantile_ms(&slice, 0.0);
            assert!(shortest_ms >= DELAY_MS * 0.999, "{shortest_ms} ms");
        }
    }
    load.end();
}

#[test]
fn orders_that_make_no_sense_are_refused_with_a_reason() {
    let (directory, server) = mock(Role::Null);
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
    let nowhere = dbduel_driver::address::Address::Unix {
        path: directory.path().join("nobody.sock"),
    };
    assert!(refused(&|open| open.address = nowhere.clone()).contains("connection broke"));
    assert!(
        refused(&|open| open.workload.name = "oltp-raed-only".to_owned())
            .contains("oltp-read-only")
    );
    assert!(
        refused(&|open| drop(open.workload.parameters.remove("tables"))).contains("incomplete")
    );
    assert!(refused(&|open| open.connect_s = f64::MAX).contains("`connect_s` cannot be"));
    assert!(refused(&|open| open.clients = u32::MAX).contains("exceed the limit"));

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
