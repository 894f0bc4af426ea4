//! Fill, digest and load against a real server, where the environment names one: a socket in
//! `DBDUEL_TEST_SOCKET`, an account that may create databases in `DBDUEL_TEST_USER` (root) and
//! `DBDUEL_TEST_PASSWORD` (none).

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod support;

use std::sync::atomic::Ordering;

use dbduel_load::blocking::{ConnectOptions, Connection, TlsMode};
use dbduel_load::fill::{Digest, FillError, FillWatch, clear, digest, fill};
use dbduel_load::order::{Answer, Order};
use dbduel_load::workloads::{WORKLOADS, find, parameters};
use dbduel_record::plan::Parameters;
use support::database::Database;
use support::{Load, open_order, slice_order};

fn small() -> Parameters {
    Parameters::from([
        ("tables".to_owned(), 2.into()),
        ("table_size".to_owned(), 12_345.into()),
    ])
}

#[test]
fn equal_seeds_fill_equal_data_over_any_number_of_connections() {
    let Some(database) = Database::create("fill") else {
        return;
    };
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
        clear(workload, &parameters, &place).unwrap();
        digest
    };
    let first = filled(1, 5);
    assert_eq!(first.rows, 24_690);
    assert_eq!(filled(3, 5), first);
    assert_ne!(filled(3, 6).hex, first.hex);
}

#[test]
fn a_cancelled_fill_stops() {
    let Some(database) = Database::create("cancel") else {
        return;
    };
    let workload = find("oltp-read-write").unwrap();
    let parameters = parameters::resolve(workload, &small()).unwrap();
    let watch = FillWatch::default();
    watch.cancelled.store(true, Ordering::Relaxed);
    let outcome = fill(workload, &parameters, &database.place(2), 1, &watch);
    assert!(matches!(outcome, Err(FillError::Cancelled)), "{outcome:?}");
    assert_eq!(watch.rows_done.load(Ordering::Relaxed), 0);
}

#[test]
fn every_workload_runs_on_its_own_data() {
    let Some(database) = Database::create("run") else {
        return;
    };
    let mut load = Load::start(1);
    for workload in WORKLOADS {
        let mut given = small();
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
        let slice = load.slice(&slice_order(3, 0.3));
        assert!(
            slice.classes[0].ok > 0,
            "{}: {:?}",
            workload.name(),
            slice.errors
        );
        assert_eq!(
            slice.classes[0].failed,
            0,
            "{}: {:?}",
            workload.name(),
            slice.errors
        );
        load.order(&Order::Close {
            contender: "only".to_owned(),
        });
        load.answer();
        clear(*workload, &parameters, &database.place(1)).unwrap();
    }
    load.end();
}

#[test]
fn a_load_over_tls_reads_the_same_rows() {
    let Some(database) = Database::create("tls") else {
        return;
    };
    let options = ConnectOptions {
        tls: TlsMode::Required,
        ..ConnectOptions::default()
    };
    if Connection::connect(&database.address, &database.credentials, &options).is_err() {
        // Not every server has certificates.
        return;
    }
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
    let slice = load.slice(&slice_order(3, 0.3));
    let class = &slice.classes[0];
    assert!(class.ok > 0 && class.failed == 0, "{:?}", slice.errors);
    load.end();
}
