//! Fill, digest and load on a real server.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dbduel_driver::{Dialect, TlsMode};
use dbduel_load::order::{Answer, Order};
use dbduel_record::plan::Parameters;
use dbduel_workloads::fill::{
    Digest, FillError, FillWatch, LoadMethodChoice, Place, clear, digest, fill, fill_by,
};
use dbduel_workloads::{Moment, WORKLOADS, Workload, find, parameters};
use serde_json::Value;

use super::database::Database;
use super::server::{ALL, MYSQL, Server};
use super::workload::{Lab, WorkloadServer};
use crate::support::{Load, open_order, slice_order};

fn given(parameters: &[(&str, Value)]) -> Parameters {
    let named = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone());
    parameters.iter().map(named).collect()
}

fn small() -> Parameters {
    given(&[("tables", 2.into()), ("table_size", 12_345.into())])
}

#[test(on = ALL)]
fn equal_seeds_fill_equal_data_over_any_number_of_connections(server: &Server) {
    let database = Database::create(server, "fill");
    let workload = find("oltp-read-write").unwrap();
    let parameters = parameters::resolve(workload, &small()).unwrap();
    let filled = |connections, seed| -> Digest {
        let (place, watch) = (database.place(connections), FillWatch::default());
        let report = fill(workload, &parameters, &place, seed, &watch).unwrap();
        assert_eq!(report.rows, 24_690);
        assert_eq!(watch.rows_done.load(Ordering::Relaxed), 24_690);
        let again = fill(workload, &parameters, &place, seed, &watch);
        assert!(matches!(again, Err(FillError::Exists { .. })), "{again:?}");
        let digest = digest(workload, &parameters, &place, &watch).unwrap();
        clear(workload, &parameters, &place, &FillWatch::default()).unwrap();
        digest
    };
    let first = filled(1, 5);
    assert_eq!(first.rows, 24_690);
    assert_eq!(filled(3, 5), first);
    assert_ne!(filled(3, 6).hex, first.hex);
}

/// Lets the server refuse or allow files from clients, as its configuration would.
fn allow_files(database: &Database, allowed: bool) {
    database.run(&format!("SET GLOBAL local_infile = {}", u8::from(allowed)));
}

#[test(on = ALL)]
fn the_way_of_the_rows_does_not_show_in_the_data(server: &Server) {
    let database = Database::create(server, "method");
    // Two chunks of links, nodes with every byte there is.
    let graph = [
        ("maxid1", Value::from(3_001)),
        ("nlinks_max", 25_000.into()),
        ("node_add_datagen_startbyte", 0.into()),
        ("node_add_datagen_endbyte", 255.into()),
    ];
    let keys_first = [("index", "before".into()), ("partitions", 1.into())];
    let orders = [("scale", 0.1.into()), ("foreign_keys", "on".into())];
    for (name, given) in [
        ("oltp-read-write", small()),
        ("linkbench", given(&graph)),
        ("linkbench", given(&[&graph[..], &keys_first].concat())),
        ("order-entry", given(&orders)),
    ] {
        let workload = find(name).unwrap();
        let parameters = parameters::resolve(workload, &given).unwrap();
        let filled = |wish: LoadMethodChoice| {
            let (place, watch) = (database.place(3), FillWatch::default());
            let report = match fill_by(wish, workload, &parameters, &place, 5, &watch) {
                // MySQL knows no bulk execution. Nothing has been filled in, but the tables are there.
                Err(FillError::NoMethod { .. }) => None,
                outcome => Some(outcome.unwrap()),
            };
            let digest = report.map(|report| {
                let method = report.method.unwrap().to_string();
                assert_eq!(method, wish.to_string(), "{name}");
                digest(workload, &parameters, &place, &watch).unwrap()
            });
            clear(workload, &parameters, &place, &FillWatch::default()).unwrap();
            digest
        };
        let inserted = filled(LoadMethodChoice::Insert);
        let rows = inserted.as_ref().map_or(0, |digest| digest.rows);
        assert!(rows > 20_000, "{name}: {rows}");
        assert_eq!(filled(LoadMethodChoice::LoadData), inserted, "{name}");
        let in_bulk = filled(LoadMethodChoice::Bulk);
        assert!(in_bulk.is_none() || in_bulk == inserted, "{name}");
        // A method that the server does not allow is no method.
        allow_files(&database, false);
        let refused = filled(LoadMethodChoice::LoadData);
        allow_files(&database, true);
        assert_eq!(refused, None, "{name}");
    }
}

/// A fill that is cancelled once so many rows are in. A busy machine may fill in all of them before it is: then it begins anew
/// and is cancelled at the next number, and the last one again and again.
pub fn fill_in_part(
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
    rows: [u64; 3],
) {
    let last = rows[rows.len() - 1];
    for rows in rows.into_iter().chain(std::iter::repeat_n(last, 20)) {
        let watch = FillWatch::default();
        let outcome = std::thread::scope(|scope| {
            let filling = scope.spawn(|| fill(workload, parameters, place, 5, &watch));
            while watch.rows_done.load(Ordering::Relaxed) < rows && !filling.is_finished() {
                std::thread::sleep(Duration::from_micros(200));
            }
            watch.cancel.cancel();
            filling.join().unwrap()
        });
        match outcome {
            Err(FillError::Cancelled) => return,
            Ok(_) => clear(workload, parameters, place, &FillWatch::default()).unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no fill was cancelled in time");
}

#[test(on = ALL)]
fn an_interrupted_fill_is_gone_on_with(server: &Server) {
    let database = Database::create(server, "again");
    let workload = find("oltp-read-write").unwrap();
    let given = Parameters::from([
        ("tables".to_owned(), 2.into()),
        ("table_size".to_owned(), 150_000.into()),
    ]);
    let parameters = parameters::resolve(workload, &given).unwrap();
    let place = database.place(2);
    let whole = {
        let watch = FillWatch::default();
        fill(workload, &parameters, &place, 5, &watch).unwrap();
        let digest = digest(workload, &parameters, &place, &watch).unwrap();
        clear(workload, &parameters, &place, &FillWatch::default()).unwrap();
        digest
    };

    // Stopped when a batch of 40,000 rows of each table is in.
    fill_in_part(workload, &parameters, &place, [210_000, 150_000, 100_000]);

    let other = fill(workload, &parameters, &place, 6, &FillWatch::default());
    assert!(
        matches!(other, Err(FillError::Unfinished { .. })),
        "{other:?}"
    );
    // What was written down and is not there any more is noticed.
    database.run(&format!("DELETE FROM {}.sbtest1 LIMIT 1", database.name));
    let watch = FillWatch::default();
    let report = fill(workload, &parameters, &place, 5, &watch).unwrap();
    assert!(
        (40_000..300_000).contains(&report.rows_before),
        "{report:?}"
    );
    assert_eq!(watch.rows_done.load(Ordering::Relaxed), 300_000);
    let found = digest(workload, &parameters, &place, &watch).unwrap();
    assert_eq!(found, whole);
    let again = fill(workload, &parameters, &place, 5, &watch);
    assert!(matches!(again, Err(FillError::Exists { .. })), "{again:?}");
}

/// Another transaction holds the last row, and asks for one that the fill has just inserted. It has changed more rows than the
/// fill, so that the server ends the fill's transaction.
#[test(on = ALL)]
fn a_fill_that_meets_a_deadlock_begins_its_batch_again(server: &Server) {
    const ROWS: u64 = 150_000;
    let database = Database::create(server, "deadlock");
    let workload = find("oltp-read-write").unwrap();
    let given = given(&[("tables", 1.into()), ("table_size", ROWS.into())]);
    let parameters = parameters::resolve(workload, &given).unwrap();
    let place = database.place(1);
    let deadline = Instant::now() + Duration::from_secs(60);
    let wait = || {
        assert!(Instant::now() < deadline, "not in time");
        // A server renews its list of transactions only after a tenth of a second without a reader.
        std::thread::sleep(Duration::from_millis(150));
    };

    let table = format!("{}.sbtest1", database.name);
    let heavy = format!("{}.heavy", database.name);
    let mut other = database.connect();
    let mut run = |sql: &str| other.execute(sql).map(drop);
    let create = "(id INT PRIMARY KEY AUTO_INCREMENT, k INT) ENGINE = InnoDB";
    run(&format!("CREATE TABLE {heavy} {create}")).unwrap();
    run("BEGIN").unwrap();
    run(&format!("INSERT INTO {heavy} (k) VALUES (1)")).unwrap();
    for _ in 0..17 {
        run(&format!("INSERT INTO {heavy} (k) SELECT k FROM {heavy}")).unwrap();
    }
    let deadlocks = || -> u64 {
        let sql =
            "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'";
        let answer = database.connect().query(sql).unwrap();
        answer.text(0, 0).unwrap().parse().unwrap()
    };
    let before = deadlocks();
    let watch = FillWatch::default();
    let report = std::thread::scope(|scope| {
        let filling = scope.spawn(|| fill(workload, &parameters, &place, 5, &watch));
        let last = format!("INSERT INTO {table} (id) VALUES ({ROWS})");
        // Until the table is there.
        while run(&last).is_err() {
            wait();
        }
        let waiting =
            "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
        let mut looker = database.connect();
        while looker.query(waiting).unwrap().text(0, 0).as_deref() == Some("0") {
            wait();
        }
        let last_but_one = ROWS - 1;
        run(&format!(
            "SELECT id FROM {table} WHERE id = {last_but_one} FOR UPDATE"
        ))
        .unwrap();
        run("ROLLBACK").unwrap();
        filling.join().unwrap().unwrap()
    });
    assert!(deadlocks() > before, "no deadlock");
    assert_eq!(report.rows, ROWS);
    let count = format!("SELECT COUNT(*) FROM {table}");
    let rows = database.connect().query(&count).unwrap();
    assert_eq!(rows.text(0, 0), Some(ROWS.to_string()));
}

#[test(on = ALL)]
fn a_fill_interrupted_at_its_end_adds_no_foreign_key_twice(server: &Server) {
    check_foreign_keys(server);
}

/// Rows, indexes and foreign keys are in, and the attempt ended before it said so.
pub fn check_foreign_keys(server: &impl WorkloadServer) {
    let given = [
        ("scale", Value::from(0.02)),
        ("foreign_keys", Value::from(true)),
    ];
    let lab = Lab::new(server, "order-entry", "dbduel_keys_once", &given);
    lab.fill().unwrap();
    let mut connection = lab.query(
        "CREATE TABLE dbduel_filling (kind VARCHAR(10) NOT NULL, subject VARCHAR(100) NOT NULL, \
         first BIGINT NOT NULL, behind BIGINT NOT NULL, amount BIGINT NOT NULL, \
         PRIMARY KEY (kind, subject, first))",
    );
    for table in lab.workload.tables(server.dialect(), &lab.parameters) {
        let name = table.name;
        let note = format!(
            "INSERT INTO dbduel_filling SELECT 'rows', '{name}', 0, 1000000, COUNT(*) FROM {name}"
        );
        connection.execute(&note).unwrap();
    }
    // The mark that nothing is missing is a row that is written after the keys.
    let unmark = "UPDATE dbduel_filling SET amount = 0 WHERE subject = 'facts'";
    let name_of_facts = "SELECT subject FROM dbduel_filling WHERE subject LIKE '%fact%'";
    let facts = connection.query(name_of_facts).unwrap().text(0, 0);
    connection
        .execute(&unmark.replace("facts", &facts.unwrap()))
        .unwrap();
    let mut keys = || {
        let sql = match server.dialect() {
            Dialect::MySql => {
                "SELECT COUNT(*) FROM information_schema.TABLE_CONSTRAINTS \
                 WHERE CONSTRAINT_TYPE = 'FOREIGN KEY' AND TABLE_SCHEMA = DATABASE()"
            }
            Dialect::PostgreSql => "SELECT COUNT(*) FROM pg_constraint WHERE contype = 'f'",
            Dialect::Sqlite => unreachable!("SQLite has no server"),
        };
        connection.query(sql).unwrap().text(0, 0).unwrap()
    };
    let before = keys();
    assert_ne!(before, "0");
    lab.fill().unwrap();
    assert_eq!(keys(), before);
    lab.verify_all(Moment::Fresh, 17);
}

#[test(on = ALL)]
fn a_cancelled_fill_stops(server: &Server) {
    let database = Database::create(server, "cancel");
    let workload = find("oltp-read-write").unwrap();
    let parameters = parameters::resolve(workload, &small()).unwrap();
    let watch = FillWatch::default();
    watch.cancel.cancel();
    let outcome = fill(workload, &parameters, &database.place(2), 1, &watch);
    assert!(matches!(outcome, Err(FillError::Cancelled)), "{outcome:?}");
    assert_eq!(watch.rows_done.load(Ordering::Relaxed), 0);
}

#[test(on = ALL)]
fn every_workload_runs_on_its_own_data(server: &Server) {
    let database = Database::create(server, "run");
    let mut load = Load::start(1);
    for workload in WORKLOADS {
        let mut given = small();
        given.insert("maxid1".to_owned(), 2_001.into());
        given.insert("rows".to_owned(), 2_001.into());
        given.retain(|name, _| workload.parameters().iter().any(|spec| spec.name == name));
        let parameters = parameters::resolve(*workload, &given).unwrap();
        fill(
            *workload,
            &parameters,
            &database.place(2),
            1,
            &FillWatch::default(),
        )
        .unwrap();
        let mut order = open_order(&database.address, workload.name(), 3);
        order.user.clone_from(&database.credentials.user);
        order.password.clone_from(&database.credentials.password);
        order.database.clone_from(&database.name);
        order.workload.parameters.clone_from(&parameters);
        load.order(&Order::Open(order));
        let answer = load.answer();
        assert!(
            matches!(answer, Answer::Opened { .. }),
            "{}: {answer:?}",
            workload.name()
        );
        let slice = load.slice_until_ok(&slice_order(3, 0.3), 20);
        assert!(
            slice.classes[0].counts.ok > 0,
            "{}: {:?}",
            workload.name(),
            slice.errors
        );
        assert_eq!(
            slice.classes[0].counts.failed,
            0,
            "{}: {:?}",
            workload.name(),
            slice.errors
        );
        load.order(&Order::Close {
            contender: "only".to_owned(),
        });
        load.answer();
        clear(
            *workload,
            &parameters,
            &database.place(1),
            &FillWatch::default(),
        )
        .unwrap();
    }
    load.end();
}

/// MySQL makes a certificate for itself.
#[test(on = &[MYSQL])]
fn a_load_over_tls_reads_the_same_rows(server: &Server) {
    let database = Database::create(server, "tls");
    let workload = find("oltp-read-only").unwrap();
    let parameters = parameters::resolve(workload, &small()).unwrap();
    let (place, watch) = (database.place(2), FillWatch::default());
    fill(workload, &parameters, &place, 1, &watch).unwrap();
    let mut load = Load::start(1);
    let mut order = open_order(&database.address, workload.name(), 3);
    order.user.clone_from(&database.credentials.user);
    order.password.clone_from(&database.credentials.password);
    order.database.clone_from(&database.name);
    order.workload.parameters.clone_from(&parameters);
    order.tls = TlsMode::Required;
    load.order(&Order::Open(order));
    let answer = load.answer();
    assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    let slice = load.slice_until_ok(&slice_order(3, 0.3), 20);
    let class = &slice.classes[0];
    assert!(
        class.counts.ok > 0 && class.counts.failed == 0,
        "{:?}",
        slice.errors
    );
    load.end();
}
