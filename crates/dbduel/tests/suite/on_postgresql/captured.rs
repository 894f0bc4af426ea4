//! Captured statements on PostgreSQL: settings of sessions, and prepared statements with their values as text.

use dbduel_driver::Connection;
use dbduel_record::rows::error_name;

use super::cluster::shared;
use super::dumps::place;
use crate::suite::on_server::captured::{
    Replayed, drive, fill_table, imported, replay_trace, resolved,
};
use crate::suite::on_server::dumps::rows;

/// Messages of sessions of an application that works on a table of sysbench, as a stderr log has them.
const SESSIONS: [&[&str]; 3] = [
    &[
        "LOG:  statement: SET application_name = 'one'",
        "LOG:  execute <unnamed>: SELECT c FROM sbtest1 WHERE id = $1 AND k <> $2",
        "DETAIL:  parameters: $1 = '5', $2 = NULL",
        "LOG:  execute s1: UPDATE sbtest1 SET pad = current_setting($1) WHERE id = $2",
        "DETAIL:  parameters: $1 = 'application_name', $2 = '9'",
    ],
    &[
        "LOG:  statement: UPDATE sbtest1 SET pad = 'in ' || current_setting('application_name') WHERE id = 11",
        "LOG:  statement: BEGIN",
        "LOG:  execute <unnamed>: UPDATE sbtest1 SET k = k + $1 WHERE id = 3",
        "DETAIL:  parameters: $1 = '1'",
        "LOG:  statement: UPDATE sbtest1 SET k = k + 1 WHERE id = 4",
        "LOG:  statement: COMMIT",
    ],
    &[
        "LOG:  execute <unnamed>: INSERT INTO sbtest1 (id, k, c, pad) VALUES ($1, $2, $3, $4)",
        "DETAIL:  parameters: $1 = '1', $2 = '4711', $3 = 'secret', $4 = ''",
    ],
];

/// The messages of sessions one after the other.
fn stderr_log() -> String {
    let messages = SESSIONS.iter().enumerate();
    let messages: Vec<(usize, &str)> = messages
        .flat_map(|(session, messages)| messages.iter().map(move |message| (session, *message)))
        .collect();
    stderr_log_of(&messages)
}

/// A stderr log of these messages, with the session of each; a session is open from its first to its last message.
pub fn stderr_log_of(messages: &[(usize, &str)]) -> String {
    const BEGIN: &str = "LOG:  connection authorized: user=app database=shop";
    const END: &str =
        "LOG:  disconnection: session time: 0:00:00.035 user=app database=shop host=[local]";
    let mut log = String::new();
    let mut number = 0;
    let mut line = |session: usize, message: &str| {
        number += 1;
        log += &format!(
            "2026-11-27 23:45:44.{number:03} UTC [{session}] 6b0a1628.{session} {message}\n"
        );
    };
    for (place, (session, message)) in messages.iter().enumerate() {
        let is_of_it = |other: &(usize, &str)| other.0 == *session;
        if !messages[..place].iter().any(is_of_it) {
            line(*session, BEGIN);
        }
        line(*session, message);
        if !messages[place + 1..].iter().any(is_of_it) {
            line(*session, END);
        }
    }
    log
}

fn text(connection: &mut Connection, sql: &str) -> String {
    let set = connection.query(sql).unwrap();
    set.text(0, 0).unwrap().trim_end().to_owned()
}

fn k(connection: &mut Connection) -> [i64; 2] {
    [3, 4].map(|id| {
        let sql = format!("SELECT k::text FROM sbtest1 WHERE id = {id}");
        text(connection, &sql).parse().unwrap()
    })
}

#[test]
fn captured_statements_run_with_their_values_and_settings() {
    let Some(cluster) = shared() else { return };
    let name = "captured";
    cluster.create_database(name);
    let (address, credentials) = (cluster.address(), cluster.credentials());
    let place = place(&address, &credentials, name);
    fill_table(&place);
    let mut connection = cluster.connect(name).unwrap();
    let before = k(&mut connection);
    let dir = tempfile::tempdir().unwrap();
    let parameters = imported(dir.path(), &stderr_log(), Some("%m [%p] %c "));
    let slice = drive(&place, &parameters);
    assert_eq!(
        text(&mut connection, "SELECT pad FROM sbtest1 WHERE id = 9"),
        "one"
    );
    assert_eq!(
        text(&mut connection, "SELECT pad FROM sbtest1 WHERE id = 11"),
        "in dbduel"
    );
    let after = k(&mut connection);
    assert!(after[0] > before[0]);
    assert_eq!(after[0] - before[0], after[1] - before[1], "both or none");
    let [error] = slice.errors.as_slice() else {
        panic!("{:?}", slice.errors);
    };
    assert_eq!(error_name(error.code), "23505");
    assert!(!error.example.contains("duplicate"), "{error:?}");
    for class in &slice.classes {
        let fails = class.class.contains("insert into");
        assert_eq!(class.counts.failed > 0, fails, "{class:?}");
    }
}

/// Statements of three sessions in the order of the log. Two are open at once, and their changes of a row that both change commute; within
/// each session, and between these two and the third, no other order leaves the same rows.
const INTERLEAVED: [(usize, &str); 19] = [
    (7, "UPDATE t SET a = a * 3 + 1 WHERE id = 1"),
    (8, "UPDATE t SET a = a + 2 WHERE id = 2"),
    (7, "SELECT a FROM t WHERE id = 1"),
    (8, "UPDATE t SET a = a * 5 WHERE id = 2"),
    (7, "SET application_name = '4'"),
    (7, "BEGIN"),
    (
        7,
        "UPDATE t SET a = a * 2 + current_setting('application_name')::bigint WHERE id = 1",
    ),
    (8, "BEGIN"),
    (7, "UPDATE t SET a = a + 10 WHERE id = 3"),
    (7, "COMMIT"),
    (8, "UPDATE t SET a = a + 100 WHERE id = 3"),
    (8, "COMMIT"),
    (8, "UPDATE t SET a = a * 3 + 7 WHERE id = 2"),
    (8, "BEGIN"),
    (8, "UPDATE t SET a = 0"),
    (8, "ROLLBACK"),
    (9, "UPDATE t SET a = a * 7 WHERE id <= 3"),
    (9, "INSERT INTO t (id, a) VALUES (4, 1)"),
    (9, "DELETE FROM t WHERE id = 1"),
];

#[test]
fn a_trace_leaves_the_rows_that_the_captured_sessions_left() {
    let Some(cluster) = shared() else { return };
    let with_table = |name: &str| {
        cluster.create_database(name);
        let mut connection = cluster.connect(name).unwrap();
        for sql in [
            "CREATE TABLE t (id int PRIMARY KEY, a bigint)",
            "INSERT INTO t VALUES (1, 1), (2, 1), (3, 1)",
        ] {
            connection.execute(sql).unwrap();
        }
        connection
    };
    let left = |connection: &mut Connection| rows(connection, "SELECT id, a FROM t ORDER BY id");
    let mut original = with_table("trace_original");
    let mut sessions = [(); 3].map(|()| cluster.connect("trace_original").unwrap());
    for (session, statement) in INTERLEAVED {
        sessions[session - 7].execute(statement).unwrap();
    }
    drop(sessions);
    let expected = left(&mut original);
    assert_eq!(expected.len(), 3, "{expected:?}");
    let messages = INTERLEAVED.map(|(session, sql)| (session, format!("LOG:  statement: {sql}")));
    let messages: Vec<(usize, &str)> = messages
        .iter()
        .map(|(session, message)| (*session, message.as_str()))
        .collect();
    let (address, credentials) = (cluster.address(), cluster.credentials());
    let mut replayed = with_table("trace_replayed");
    let dir = tempfile::tempdir().unwrap();
    let further = [
        ("mode", "trace".into()),
        ("transactions_per_slice", 3.into()),
    ];
    let log = stderr_log_of(&messages);
    let parameters = resolved(dir.path(), &log, Some("%m [%p] %c "), &further);
    let place = place(&address, &credentials, "trace_replayed");
    let Replayed { quanta, done, .. } = replay_trace(&place, &parameters);
    assert_eq!((quanta, done), (3, 11));
    assert_eq!(left(&mut replayed), expected);
}
