//! Captured statements on real servers: settings of sessions, transactions, errors without values.

use std::path::Path;

use dbduel_capture::import::{ImportOptions, import};
use dbduel_driver::{Connection, Dialect};
use dbduel_load::order::{Answer, OpenOrder, Order, SliceAnswer};
use dbduel_record::plan::Parameters;
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

/// A general log of MySQL with these sessions, one after the other.
fn general_log() -> String {
    let mut log = "mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\nTcp port: 0  Unix socket: SOCKET\n\
         Time                 Id Command    Argument\n"
        .to_owned();
    let mut number = 0;
    let mut line = |session: usize, command: &str, argument: &str| {
        number += 1;
        log += &format!("2026-11-28T00:00:01.{number:06}Z\t{session:5} {command}\t{argument}\n");
    };
    for (session, statements) in SESSIONS.iter().enumerate() {
        line(session + 7, "Connect", "app@localhost on shop using Socket");
        for statement in *statements {
            line(session + 7, "Query", statement);
        }
        line(session + 7, "Quit", "");
    }
    log
}

/// Parameters of a replay of the log, which is imported below `dir`.
pub fn imported(dir: &Path, log: &str, prefix: Option<&str>) -> Parameters {
    let path = dir.join("log");
    std::fs::write(&path, log).unwrap();
    let options = ImportOptions {
        logs: vec![path],
        target: dir.join("a.cap"),
        prefix: prefix.map(|prefix| prefix.as_bytes().to_vec()),
        ..ImportOptions::default()
    };
    import(&options, &mut |_| Ok(())).unwrap();
    let capture = options.target.display().to_string();
    let given = Parameters::from([("capture".to_owned(), capture.into())]);
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
    let parameters = imported(dir.path(), &general_log(), None);
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
}
