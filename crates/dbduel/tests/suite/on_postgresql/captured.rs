//! Captured statements on PostgreSQL: settings of sessions, and prepared statements with their values as text.

use std::time::Duration;

use dbduel_driver::{Connection, Dialect, TlsMode};
use dbduel_record::rows::error_name;
use dbduel_workloads::fill::Place;

use super::cluster::shared;
use crate::suite::on_server::captured::{drive, fill_table, imported};

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

fn stderr_log() -> String {
    let mut log = String::new();
    let mut number = 0;
    for (session, messages) in SESSIONS.iter().enumerate() {
        let begin = "LOG:  connection authorized: user=app database=shop";
        let end =
            "LOG:  disconnection: session time: 0:00:00.035 user=app database=shop host=[local]";
        for message in [&[begin], *messages, &[end]].concat() {
            number += 1;
            log += &format!(
                "2026-11-27 23:45:44.{number:03} UTC [{session}] 6b0a1628.{session} {message}\n"
            );
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
    let place = Place {
        dialect: Dialect::PostgreSql,
        address: &address,
        credentials: &credentials,
        tls: &TlsMode::Off,
        database: name,
        connections: 1,
        deadline: Duration::from_secs(120),
    };
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
