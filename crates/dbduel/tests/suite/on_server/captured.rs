//! Captured statements on real servers: settings of sessions, transactions, errors without values.

use std::collections::BTreeSet;
use std::path::Path;

use dbduel_driver::{Connection, Dialect};
use dbduel_load::order::{Answer, OpenOrder, Order, SliceAnswer, SliceOrder, StatementAnswers};
use dbduel_record::plan::Parameters;
use dbduel_replay::{longest_quantum_s, statement_classes};
use dbduel_testkit::captures::{self, CONNECT, import_below};
use dbduel_workloads::fill::{FillWatch, Place, fill};
use dbduel_workloads::{find, parameters};

use super::database::Database;
use super::server::{ALL, Server};
use crate::support::{Load, open_order, slice_order};

/// Sessions of an application that works on a table of sysbench. The settings of each show in the rows that it writes.
pub const SESSIONS: [&[&str]; 4] = [
    &[
        "SET NAMES latin1",
        "SET @mark = 7",
        "SELECT c FROM sbtest1 WHERE id = 5",
        "UPDATE sbtest1 SET pad = @mark WHERE id = 9",
        "SELECT c FROM sbtest1 WHERE id = 6",
    ],
    &[
        "SET NAMES latin1",
        "SET @mark = 8",
        "UPDATE sbtest1 SET pad = @mark WHERE id = 10",
    ],
    &[
        "UPDATE sbtest1 SET pad = COALESCE(@mark, @@collation_connection) WHERE id = 11",
        "BEGIN",
        "UPDATE sbtest1 SET k = k + 1 WHERE id = 3",
        "UPDATE sbtest1 SET k = k + 1 WHERE id = 4",
        "COMMIT",
        "BEGIN",
        "UPDATE sbtest1 SET k = k + 1 WHERE id = 12",
        "ROLLBACK",
    ],
    &[
        "SET autocommit = 0",
        "UPDATE sbtest1 SET k = k + 1 WHERE id = 13",
        "ROLLBACK",
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES (1, 4711, 'secret', '')",
        "COMMIT",
    ],
];

/// A general log with these sessions, one after the other.
pub fn general_log(sessions: &[&[&str]]) -> String {
    let mut lines = Vec::new();
    for (session, statements) in (7..).zip(sessions) {
        lines.push((session, "Connect", CONNECT));
        let statements = statements.iter();
        lines.extend(statements.map(|statement| (session, "Query", *statement)));
        lines.push((session, "Quit", ""));
    }
    captures::general_log(&lines)
}

/// Parameters of a mix of the log, which is imported below `dir`.
pub fn imported(dir: &Path, log: &str, prefix: Option<&str>) -> Parameters {
    resolved(dir, log, prefix, &[])
}

/// Parameters of a replay of the log, with these ones among them.
pub fn resolved(
    dir: &Path,
    log: &str,
    prefix: Option<&str>,
    further: &[(&str, serde_json::Value)],
) -> Parameters {
    let capture = import_below(dir, log, prefix).display().to_string();
    let mut given = Parameters::from([("capture".to_owned(), capture.into())]);
    let further = further.iter();
    given.extend(further.map(|(name, value)| ((*name).to_owned(), value.clone())));
    parameters::resolve(find("captured").unwrap(), &given).unwrap()
}

/// Fills a table of sysbench.
pub fn fill_table(place: &Place<'_>) {
    let workload = find("oltp-read-write").unwrap();
    let given = Parameters::from([
        ("tables".to_owned(), 1.into()),
        ("table_size".to_owned(), 100.into()),
    ]);
    let parameters = parameters::resolve(workload, &given).unwrap();
    fill(workload, &parameters, place, 1, &FillWatch::default()).unwrap();
}

/// An order to open the clients of a replay.
fn order(place: &Place<'_>, parameters: &Parameters) -> OpenOrder {
    let mut order = open_order(place.address, "oltp-read-write", 3);
    "captured".clone_into(&mut order.workload.name);
    order.dialect = place.dialect;
    order.user.clone_from(&place.credentials.user);
    order.password.clone_from(&place.credentials.password);
    place.database.clone_into(&mut order.database);
    order.workload.parameters.clone_from(parameters);
    order
}

/// Drives a slice until it has so many transactions that each one of the capture was drawn.
pub fn drive(place: &Place<'_>, parameters: &Parameters) -> SliceAnswer {
    let mut load = Load::start(1);
    load.order(&Order::Open(order(place, parameters)));
    let answer = load.answer();
    assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    let slice = load.slice_until_ok(&slice_order(3, 0.5), 500);
    load.end();
    slice
}

fn pad(connection: &mut Connection, id: u32) -> String {
    let set = connection
        .query(&format!("SELECT pad FROM sbtest1 WHERE id = {id}"))
        .unwrap();
    set.text(0, 0).unwrap().trim_end().to_owned()
}

fn k(connection: &mut Connection, id: u32) -> i64 {
    let set = connection
        .query(&format!("SELECT k FROM sbtest1 WHERE id = {id}"))
        .unwrap();
    set.text(0, 0).unwrap().parse().unwrap()
}

#[test(on = ALL)]
fn captured_transactions_run_with_the_settings_of_their_sessions(server: &Server) {
    let database = Database::create(server, "captured");
    let place = database.place(1);
    assert_eq!(place.dialect, Dialect::MySql);
    fill_table(&place);
    let mut connection = database.connect();
    connection
        .execute(&format!("USE {}", database.name))
        .unwrap();
    let before = [3, 4, 12, 13].map(|id| k(&mut connection, id));
    let dir = tempfile::tempdir().unwrap();
    let parameters = imported(dir.path(), &general_log(&SESSIONS), None);
    let slice = drive(&place, &parameters);
    let marks = [9, 10, 11].map(|id| pad(&mut connection, id));
    // A session that lost its settings begins as the login does, whatever the server's defaults are.
    assert_eq!(marks, ["7", "8", "utf8mb4_general_ci"]);
    let after = [3, 4, 12, 13].map(|id| k(&mut connection, id));
    assert!(after[0] > before[0]);
    assert_eq!(after[0] - before[0], after[1] - before[1], "both or none");
    assert_eq!(after[2..], before[2..], "rolled back");
    let [error] = slice.errors.as_slice() else {
        panic!("{:?}", slice.errors);
    };
    assert_eq!(error.code, 1062);
    assert!(
        error.example.contains("class ") && !error.example.contains("Duplicate"),
        "{error:?}"
    );
    for class in &slice.classes {
        let fails = class.class.contains("insert into");
        assert_eq!(class.counts.failed > 0, fails, "{class:?}");
        assert_eq!(class.counts.ok == 0, fails, "{class:?}");
        assert!(!class.class.contains("4711"), "{class:?}");
    }
    let inserts: Vec<&StatementAnswers> = slice
        .statements
        .iter()
        .filter(|one| one.counts.failed > 0)
        .collect();
    let [insert] = inserts.as_slice() else {
        panic!("{inserts:?}")
    };
    // Errors count when they come, transactions and their statements when they end, which may be after the guard.
    let failed = slice.classes.iter().map(|class| class.counts.failed).sum();
    assert_eq!((insert.counts.ok, insert.counts.key_exists), (0, failed));
    assert_eq!(insert.errors, [(1062, failed)]);
    assert_eq!(insert.counts.failed, failed);
}

/// A view of one row, and statements of which one class reads it.
const VIEW_AND_TABLE: [&[&str]; 1] = [&[
    "SELECT a FROM shown",
    "SELECT c FROM sbtest1 WHERE id = 5",
    "SELECT c FROM sbtest1 WHERE id = 6",
    "SELECT c FROM sbtest1 WHERE id BETWEEN 7 AND 9",
    "UPDATE sbtest1 SET k = 5 WHERE id = 9",
    "UPDATE sbtest1 SET k = 5 WHERE id = 9",
]];
/// Less than what a row of the slow view takes, microseconds: a server's sleep may end a little early.
const VIEW_US: f64 = 15_000.0;

/// A slice on a database in which the view is this.
fn slice_with_view(server: &Server, parameters: &Parameters, view: &str) -> SliceAnswer {
    let database = Database::create(server, "captured_view");
    let place = database.place(1);
    fill_table(&place);
    database.run(&format!("CREATE VIEW {}.shown AS {view}", database.name));
    drive(&place, parameters)
}

#[test(on = ALL)]
fn a_class_of_statements_that_is_slow_on_one_side_is_measured_as_such(server: &Server) {
    let dir = tempfile::tempdir().unwrap();
    let parameters = imported(dir.path(), &general_log(&VIEW_AND_TABLE), None);
    let classes = statement_classes(&parameters).unwrap();
    let place = |part: &str| {
        let mut found = classes.iter().filter(|class| class.text.contains(part));
        found.next().unwrap().id.clone()
    };
    let slices = ["SELECT 0 AS a", "SELECT SLEEP(0.02) AS a"]
        .map(|view| slice_with_view(server, &parameters, view));
    let of = |slice: &SliceAnswer, part: &str| {
        let id = place(part);
        let mut found = slice.statements.iter().filter(|one| one.statement == id);
        found.next().unwrap().clone()
    };
    for slice in &slices {
        let transactions = &slice.classes;
        let ok: u64 = transactions.iter().map(|class| class.counts.ok).sum();
        let statements: u64 = slice.statements.iter().map(|one| one.counts.ok).sum();
        assert_eq!((statements, slice.statements.len()), (ok, 4));
        // A statement's latency is a part of that of its transaction.
        let whole: f64 = transactions.iter().map(|class| class.latency_us_sum).sum();
        let parts: f64 = slice.statements.iter().map(|one| one.latency_us_sum).sum();
        assert!(0.0 < parts && parts <= whole, "{parts} of {whole}");
        let [point, range, view] = [
            "select c from sbtest1 where id = ?",
            "between",
            "from shown",
        ]
        .map(|one| of(slice, one));
        assert_eq!(point.counts.rows_returned, point.counts.ok);
        assert_eq!(range.counts.rows_returned, 3 * range.counts.ok);
        assert_eq!(view.counts.rows_returned, view.counts.ok);
        let counted: u64 = view.latencies_ns.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, view.counts.ok);
        // The first update changes the row, none after it does.
        let update = of(slice, "update");
        assert_eq!(
            update.counts.unchanged,
            update.counts.ok - update.counts.rows_changed
        );
        assert!(update.counts.rows_changed <= 1, "{update:?}");
    }
    let slow = of(&slices[1], "from shown");
    let mean_us = slow.latency_us_sum / slow.counts.ok as f64;
    assert!(mean_us >= VIEW_US, "{slow:?}");
}

/// Statements of three sessions in the order of the log. Two are open at once, and their changes of a row that both change commute;
/// within each session, and between these two and the third, no other order leaves the same rows.
const INTERLEAVED: [(u32, &str); 21] = [
    (7, "UPDATE t SET a = a * 3 + 1 WHERE id = 1"),
    (8, "UPDATE t SET a = a + 2 WHERE id = 2"),
    (7, "SELECT a FROM t WHERE id = 1"),
    (8, "UPDATE t SET a = a * 5 WHERE id = 2"),
    (7, "SET @step = 4"),
    (7, "BEGIN"),
    (7, "UPDATE t SET a = a * 2 + @step WHERE id = 1"),
    (8, "BEGIN"),
    (7, "UPDATE t SET a = a + 10 WHERE id = 3"),
    (7, "COMMIT"),
    (8, "UPDATE t SET a = a + 100 WHERE id = 3"),
    (8, "COMMIT"),
    (8, "UPDATE t SET a = a * 3 + 7 WHERE id = 2"),
    (7, "UPDATE t SET a = a * 2 WHERE id = 1"),
    (8, "BEGIN"),
    (8, "UPDATE t SET a = 0"),
    (8, "ROLLBACK"),
    (9, "UPDATE t SET a = a * 7 WHERE id <= 3"),
    (9, "INSERT INTO t (id, a) VALUES (4, 1)"),
    (9, "UPDATE t SET a = a * 3 + 1"),
    (9, "DELETE FROM t WHERE id = 1"),
];

/// A database with the table of these statements; `name` is unique in the test.
fn with_table(server: &Server, name: &str) -> Database {
    let database = Database::create(server, name);
    let mut connection = database.connect();
    for sql in [
        format!("USE {}", database.name),
        "CREATE TABLE t (id INT PRIMARY KEY, a BIGINT)".to_owned(),
        "INSERT INTO t VALUES (1, 1), (2, 1), (3, 1)".to_owned(),
    ] {
        connection.execute(&sql).unwrap();
    }
    database
}

fn rows(database: &Database) -> Vec<(i64, i64)> {
    let sql = format!("SELECT id, a FROM {}.t ORDER BY id", database.name);
    let set = database.connect().query(&sql).unwrap();
    let number = |row, column| set.text(row, column).unwrap().parse().unwrap();
    (0..set.rows.len())
        .map(|row| (number(row, 0), number(row, 1)))
        .collect()
}

/// Keys that a capture inserts: more than a mix of the tests draws.
const KEYS: u32 = 50_000;

/// A general log of eight sessions that insert each key once.
fn log_of_inserts() -> String {
    let sessions = 7..15;
    let inserts: Vec<String> = (0..KEYS)
        .map(|number| format!("INSERT INTO t (id, a) VALUES ({}, {number})", 10 + number))
        .collect();
    let mut lines: Vec<(u32, &str, &str)> = sessions
        .clone()
        .map(|session| (session, "Connect", CONNECT))
        .collect();
    let inserts = sessions.cycle().zip(&inserts);
    lines.extend(inserts.map(|(session, insert)| (session, "Query", insert.as_str())));
    captures::general_log(&lines)
}

/// Two contenders run the halves A B and B A of a block, the second one about twice as far.
#[test(on = ALL)]
fn a_mix_inserts_no_key_twice_and_the_same_keys_on_all_contenders(server: &Server) {
    let dir = tempfile::tempdir().unwrap();
    let parameters = imported(dir.path(), &log_of_inserts(), None);
    let databases = ["mix_a", "mix_b"].map(|name| with_table(server, name));
    let mut load = Load::start(2);
    for database in &databases {
        load.order(&Order::Open(OpenOrder {
            contender: database.name.clone(),
            clients: 4,
            ..order(&database.place(1), &parameters)
        }));
        let answer = load.answer();
        assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    }
    for (seed, order) in [(1, [0, 1]), (2, [1, 0])] {
        for contender in order {
            let slice = SliceOrder {
                contender: databases[contender].name.clone(),
                seed,
                ..slice_order(4, 0.5)
            };
            let slice = load.slice_until_ok(&slice, 200 * (1 + contender as u64));
            assert!(slice.errors.is_empty(), "{:?}", slice.errors);
        }
        let [a, b] = databases.each_ref().map(|database| {
            let rows = rows(database).into_iter();
            rows.map(|(id, _)| id).collect::<BTreeSet<i64>>()
        });
        if seed == 1 {
            assert!(a.len() > 200 && b.len() > 400);
            assert!(a.is_subset(&b) || b.is_subset(&a), "{a:?} {b:?}");
        }
    }
    load.end();
}

/// What a replay of a whole trace did.
pub struct Replayed {
    pub quanta: u32,
    /// Transactions that succeeded.
    pub done: u64,
    /// The longest slice, seconds.
    pub longest_s: f64,
}

/// Replays all quanta of a trace with two clients, each in a slice of its own.
pub fn replay_trace(place: &Place<'_>, parameters: &Parameters) -> Replayed {
    let quanta = find("captured").unwrap().quanta(parameters).unwrap();
    let mut load = Load::start(2);
    load.order(&Order::Open(OpenOrder {
        clients: 2,
        ..order(place, parameters)
    }));
    let answer = load.answer();
    assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    let (mut done, mut longest_s) = (0, 0.0_f64);
    for quantum in 0..quanta {
        let slice = load.slice(&SliceOrder {
            guard_s: 0.0,
            quantum: Some(quantum),
            ..slice_order(2, 60.0)
        });
        assert!(slice.is_finished && slice.errors.is_empty(), "{slice:?}");
        done += slice.classes.iter().map(|one| one.counts.ok).sum::<u64>();
        longest_s = longest_s.max(slice.measured_s);
    }
    load.end();
    Replayed {
        quanta,
        done,
        longest_s,
    }
}

#[test(on = ALL)]
fn a_trace_leaves_the_rows_that_the_captured_sessions_left(server: &Server) {
    let original = with_table(server, "original");
    let mut sessions: Vec<Connection> = (0..3)
        .map(|_| {
            let mut connection = original.connect();
            connection
                .execute(&format!("USE {}", original.name))
                .unwrap();
            connection
        })
        .collect();
    let mut lines = Vec::new();
    for (place, (session, statement)) in INTERLEAVED.into_iter().enumerate() {
        let is_of_it = |other: &(u32, &str)| other.0 == session;
        sessions[session as usize - 7].execute(statement).unwrap();
        if !INTERLEAVED[..place].iter().any(is_of_it) {
            lines.push((session, "Connect", CONNECT));
        }
        lines.push((session, "Query", statement));
        if !INTERLEAVED[place + 1..].iter().any(is_of_it) {
            lines.push((session, "Quit", ""));
        }
    }
    drop(sessions);
    let expected = rows(&original);
    assert_eq!(expected.len(), 3, "{expected:?}");
    // The open pace stretches the microseconds of the log to milliseconds.
    for (per_slice, pace, speed) in [
        (2_u32, "closed", 1.0),
        (4, "closed", 1.0),
        (4, "open", 0.001),
    ] {
        let replayed = with_table(server, &format!("replayed_{pace}{per_slice}"));
        let place = replayed.place(1);
        let dir = tempfile::tempdir().unwrap();
        let further = [
            ("mode", "trace".into()),
            ("transactions_per_slice", per_slice.into()),
            ("pace", pace.into()),
            ("speed", speed.into()),
        ];
        let parameters = resolved(dir.path(), &captures::general_log(&lines), None, &further);
        let Replayed {
            quanta,
            done,
            longest_s,
        } = replay_trace(&place, &parameters);
        assert_eq!(quanta, 13 / per_slice);
        assert_eq!((done, rows(&replayed)), (13, expected.clone()));
        let due_s = longest_quantum_s(&parameters).unwrap_or_default();
        assert_eq!(due_s > 0.0, pace == "open");
        assert!(longest_s >= due_s, "{longest_s} {due_s}");
    }
}
