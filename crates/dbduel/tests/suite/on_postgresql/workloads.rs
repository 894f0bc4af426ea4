//! The workloads of sysbench: filled, digested, driven, and met by faults.

use std::time::Duration;

use dbduel_driver::{Dialect, ErrorClass, TlsMode};
use dbduel_load::order::{Answer, Order, SliceOrder};
use dbduel_record::plan::{Arrival, Parameters};
use dbduel_workloads::fill::{Digest, FillError, FillWatch, Place, clear, digest, fill};
use dbduel_workloads::{WORKLOADS, Workload, find, parameters};

use super::cluster::{Cluster, shared};
use crate::suite::on_server::database::Database;
use crate::suite::on_server::filling::fill_in_part;
use crate::suite::on_server::server::{MARIADB, Server};
use crate::support::{Load, open_order, slice_order};

fn small() -> Parameters {
    Parameters::from([
        ("tables".to_owned(), 2.into()),
        ("table_size".to_owned(), 12_345.into()),
    ])
}

/// What the tests of a database need to reach it.
struct Reached {
    address: dbduel_driver::address::Address,
    credentials: dbduel_driver::Credentials,
    name: &'static str,
}

impl Reached {
    fn create(cluster: &Cluster, name: &'static str) -> Self {
        cluster.create_database(name);
        Reached {
            address: cluster.address(),
            credentials: cluster.credentials(),
            name,
        }
    }

    fn place(&self) -> Place<'_> {
        Place {
            dialect: Dialect::PostgreSql,
            address: &self.address,
            credentials: &self.credentials,
            tls: &TlsMode::Off,
            database: self.name,
            connections: 3,
            deadline: Duration::from_secs(120),
        }
    }
}

fn of_sysbench() -> impl Iterator<Item = &'static dyn Workload> {
    let workloads = WORKLOADS.iter().copied();
    workloads.filter(|workload| {
        let specs = workload.parameters();
        specs.iter().any(|spec| spec.name == "table_size")
    })
}

/// Equal seeds, equal rows, whatever the product.
#[test(on = &[MARIADB])]
fn the_rows_are_those_of_mariadb(server: &Server) {
    let Some(cluster) = shared() else { return };
    let reached = Reached::create(&cluster, "equal");
    let workload = find("oltp-read-write").unwrap();
    let parameters = parameters::resolve(workload, &small()).unwrap();
    let filled = |place: &Place<'_>| -> Digest {
        let watch = FillWatch::default();
        fill(workload, &parameters, place, 5, &watch).unwrap();
        let found = digest(workload, &parameters, place, &watch).unwrap();
        clear(workload, &parameters, place, &FillWatch::default()).unwrap();
        found
    };
    let database = Database::create(server, "equal");
    let found = filled(&reached.place());
    assert_eq!(found.rows, 24_690);
    assert_eq!(filled(&database.place(3)), found);
}

#[test]
fn an_interrupted_fill_is_resumed() {
    let Some(cluster) = shared() else { return };
    let mut rows_before = 0;
    for (name, given) in [
        ("oltp-read-write", ["tables=2", "table_size=150000"]),
        ("order-entry", ["scale=0.4", "foreign_keys=true"]),
        ("linkbench", ["maxid1=30001", "nlinks_max=1000"]),
    ] {
        let reached = Reached::create(&cluster, "again");
        rows_before += check_interrupted_fill(&reached, find(name).unwrap(), &given);
    }
    // Of a small table perhaps none are kept, and those of the first are in large transactions.
    assert!(rows_before > 0, "no fill kept anything");
}

/// Returns how many rows were in when the fill was resumed: of a small table perhaps none, as rows are sent in large transactions.
fn check_interrupted_fill(reached: &Reached, workload: &dyn Workload, given: &[&str]) -> u64 {
    let given = given
        .iter()
        .filter_map(|given| given.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let parameters = parameters::resolve(workload, &given).unwrap();
    let place = reached.place();
    let (whole, rows) = {
        let watch = FillWatch::default();
        let report = fill(workload, &parameters, &place, 5, &watch).unwrap();
        let digest = digest(workload, &parameters, &place, &watch).unwrap();
        clear(workload, &parameters, &place, &FillWatch::default()).unwrap();
        (digest, report.rows)
    };
    fill_in_part(
        workload,
        &parameters,
        &place,
        [rows * 7 / 10, rows * 6 / 10, rows / 2],
    );
    let other = fill(workload, &parameters, &place, 6, &FillWatch::default());
    assert!(
        matches!(other, Err(FillError::Unfinished { .. })),
        "{other:?}"
    );
    let watch = FillWatch::default();
    let report = fill(workload, &parameters, &place, 5, &watch).unwrap();
    assert!(report.rows_before < rows, "{report:?}");
    assert_eq!(
        digest(workload, &parameters, &place, &watch).unwrap(),
        whole
    );
    let again = fill(workload, &parameters, &place, 5, &watch);
    assert!(matches!(again, Err(FillError::Exists { .. })), "{again:?}");
    report.rows_before
}

/// All with prepared statements, as text, and numbered by the client.
#[test]
fn every_workload_of_sysbench_runs_on_its_own_data() {
    let Some(cluster) = shared() else { return };
    let reached = Reached::create(&cluster, "run");
    let mut load = Load::start(1);
    for workload in of_sysbench() {
        for (protocol, auto_inc) in [("prepared", true), ("text", false)] {
            let mut given = small();
            given.insert("protocol".to_owned(), protocol.into());
            given.insert("auto_inc".to_owned(), auto_inc.into());
            given.insert("secondary".to_owned(), (!auto_inc).into());
            given.retain(|name, _| workload.parameters().iter().any(|spec| spec.name == name));
            let parameters = parameters::resolve(workload, &given).unwrap();
            fill(
                workload,
                &parameters,
                &reached.place(),
                1,
                &FillWatch::default(),
            )
            .unwrap();
            let mut order = open_order(&reached.address, workload.name(), 3);
            order.dialect = Dialect::PostgreSql;
            order.user.clone_from(&reached.credentials.user);
            order.password.clone_from(&reached.credentials.password);
            reached.name.clone_into(&mut order.database);
            order.workload.parameters.clone_from(&parameters);
            load.order(&Order::Open(order));
            let opened = load.answer();
            let Answer::Opened { session, .. } = opened else {
                panic!("{}: {opened:?}", workload.name());
            };
            assert!(session.variables.len() > 200);
            let is_prepared = protocol == "prepared" && workload.name() != "oltp-insert";
            assert_eq!(session.prepared, Some(is_prepared), "{}", workload.name());
            let slice = load.slice_until_ok(&slice_order(3, 0.3), 20);
            let counts = slice.classes[0].counts;
            assert!(counts.ok > 0, "{}: {slice:?}", workload.name());
            assert_eq!(counts.failed, 0, "{}: {slice:?}", workload.name());
            load.order(&Order::Close {
                contender: "only".to_owned(),
            });
            load.answer();
            clear(
                workload,
                &parameters,
                &reached.place(),
                &FillWatch::default(),
            )
            .unwrap();
        }
    }
    load.end();
}

/// Rows that sessions say to have updated in this database.
fn rows_updated(cluster: &Cluster, name: &str) -> u64 {
    let mut connection = cluster.connect("postgres").unwrap();
    let sql = format!("SELECT tup_updated::text FROM pg_stat_database WHERE datname = '{name}'");
    let set = connection.query(&sql).unwrap();
    set.text(0, 0).unwrap().parse().unwrap()
}

/// Of the cluster, or of nothing where its sessions report when they like.
#[test]
fn sessions_report_all_that_they_did_when_a_slice_is_over() {
    let Some(cluster) = shared() else { return };
    let reached = Reached::create(&cluster, "reported");
    let workload = find("oltp-update-non-index").unwrap();
    let parameters = parameters::resolve(workload, &small()).unwrap();
    let place = reached.place();
    fill(workload, &parameters, &place, 1, &FillWatch::default()).unwrap();
    let mut load = Load::start(2);
    let mut order = open_order(&reached.address, workload.name(), 5);
    order.dialect = Dialect::PostgreSql;
    order.user.clone_from(&reached.credentials.user);
    order.password.clone_from(&reached.credentials.password);
    reached.name.clone_into(&mut order.database);
    order.workload.parameters = parameters;
    load.order(&Order::Open(order));
    let opened = load.answer();
    assert!(matches!(opened, Answer::Opened { .. }), "{opened:?}");
    let version = cluster.connect("postgres").unwrap();
    let can_report = !["9.", "10", "11", "12", "13", "14"]
        .iter()
        .any(|old| version.server_version().starts_with(old));
    let mut before = rows_updated(&cluster, reached.name);
    for arrival in [
        Arrival::Closed { think_ms: 0.0 },
        Arrival::Closed { think_ms: 300.0 },
        Arrival::Constant { per_second: 30.0 },
    ] {
        // All take part in the second, and their sessions have nothing else to say.
        for clients in [3, 5] {
            let slice = load.slice(&SliceOrder {
                arrival,
                ..slice_order(clients, 0.4)
            });
            let after = rows_updated(&cluster, reached.name);
            let counted = slice.reported;
            if !can_report {
                assert_eq!(counted, None);
            } else if clients == 5 {
                // The guard is among it.
                assert_eq!(counted, Some(after - before), "{arrival:?}");
                assert!(counted >= Some(slice.classes[0].counts.ok), "{arrival:?}");
            }
            before = after;
        }
    }
    load.end();
    clear(
        workload,
        &parameters::resolve(workload, &small()).unwrap(),
        &place,
        &FillWatch::default(),
    )
    .unwrap();
}

#[test]
fn a_deadlock_is_a_conflict_and_a_taken_key_is_one() {
    let Some(cluster) = shared() else { return };
    cluster.create_database("faults");
    let (mut one, mut two) = (
        cluster.connect("faults").unwrap(),
        cluster.connect("faults").unwrap(),
    );
    one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        .unwrap();
    one.execute("INSERT INTO t VALUES (1, 0), (2, 0)").unwrap();
    let taken = one.execute("INSERT INTO t VALUES (1, 0)").unwrap_err();
    assert_eq!(taken.class(), Some(ErrorClass::DuplicateKey), "{taken}");
    for (connection, id) in [(&mut one, 1), (&mut two, 2)] {
        connection.execute("BEGIN").unwrap();
        let update = format!("UPDATE t SET v = v + 1 WHERE id = {id}");
        connection.execute(&update).unwrap();
    }
    let waiting = std::thread::spawn(move || one.execute("UPDATE t SET v = v + 1 WHERE id = 2"));
    let second = two.execute("UPDATE t SET v = v + 1 WHERE id = 1");
    drop(two);
    let outcomes = [waiting.join().unwrap(), second];
    let refused: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().err())
        .collect();
    assert_eq!(refused.len(), 1, "{outcomes:?}");
    assert_eq!(refused[0].class(), Some(ErrorClass::Conflict));
}
