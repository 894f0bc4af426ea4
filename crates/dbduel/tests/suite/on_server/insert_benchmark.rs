//! The Insert Benchmark on real servers: the same rows at any speed, deletes that keep a table's size, rates that are kept.

use dbduel_load::order::SliceAnswer;
use dbduel_workloads::fill::Digest;
use dbduel_workloads::parameters::resolve;
use serde_json::Value;

use super::server::{MARIADB, Server};
use super::workload::{Lab, WorkloadServer};

/// Far longer than the work takes on any machine.
const CAP_S: f64 = 120.0;

fn lab(server: &impl WorkloadServer, database: &str, given: &[(&str, Value)]) -> Lab {
    let lab = Lab::new(server, "insert-benchmark", database, given);
    lab.fill().unwrap();
    lab
}

fn run(lab: &Lab, clients: u32) -> SliceAnswer {
    let slice = lab.run_at_once(clients, CAP_S);
    assert!(slice.is_finished && slice.measured_s < CAP_S, "{slice:?}");
    assert!(slice.errors.is_empty(), "{slice:?}");
    slice
}

fn numbers(lab: &Lab, sql: &str) -> Vec<u64> {
    let answer = lab.connect(Some(&lab.database)).query(sql).unwrap();
    let columns = 0..answer.columns.len();
    let number = |column| answer.text(0, column).unwrap().parse().unwrap();
    columns.map(number).collect()
}

fn ok(slice: &SliceAnswer, class: &str) -> u64 {
    let mut classes = slice.classes.iter();
    let class = classes.find(|one| one.class == class).unwrap();
    class.counts.ok
}

/// What l.i0 inserts, what l.x leaves, and what is filled in for the steps behind them are the same rows.
pub fn check_load(server: &impl WorkloadServer) {
    let given = [
        ("step", "l.i0".into()),
        ("tables", 2.into()),
        ("rows_per_slice", 3_000.into()),
    ];
    let loaded = lab(server, "ibench_load", &given);
    let slice = run(&loaded, 2);
    assert_eq!(ok(&slice, "insert"), 2 * 3_000 / 100);
    let given = [
        ("step", "l.x".into()),
        ("tables", 2.into()),
        ("rows", 3_000.into()),
    ];
    let mut filled = lab(server, "ibench_filled", &given);
    assert_eq!(filled.digest(), loaded.digest());
    let slice = run(&filled, 2);
    assert_eq!(ok(&slice, "index"), 2);
    let given = [
        ("step", "l.i1".into()),
        ("tables", 2.into()),
        ("rows", 3_100.into()),
    ];
    let indexed = lab(server, "ibench_indexed", &given);
    assert_eq!(filled.digest(), indexed.digest());
    // The indexes are there: their queries, which name them, run.
    let given = [("step", "qr100".into()), ("tables", 2.into())];
    let given = given.map(|(name, value): (&str, Value)| (name.to_owned(), value));
    filled.parameters = resolve(filled.workload, &given.into()).unwrap();
    filled.run_until_committed(6);
}

/// Two slices of inserts and deletes of 50 rows, then one of 5 rows; returns the digest of what is left.
pub fn check_changes(server: &impl WorkloadServer) -> Digest {
    let mut lab = lab(
        server,
        "ibench_changes",
        &[("rows", 2_000.into()), ("rows_per_slice", 1_000.into())],
    );
    for done in [1_000, 2_000] {
        let slice = run(&lab, 2);
        assert_eq!((ok(&slice, "insert"), ok(&slice, "delete")), (20, 20));
        let sql = "SELECT COUNT(*), MIN(transactionid), MAX(transactionid) FROM pi1";
        let found = numbers(&lab, sql);
        assert_eq!(found[..2], [2_000, done + 1]);
        // A session of PostgreSQL takes numbers in advance, so the last key may have gaps before it.
        assert!(found[2] >= 2_000 + done, "{found:?}");
    }
    let given = [("step", "l.i2"), ("rows_per_slice", "200")];
    let given = given.map(|(name, value)| (name.to_owned(), value.into()));
    lab.parameters = resolve(lab.workload, &given.into()).unwrap();
    let slice = run(&lab, 2);
    assert_eq!((ok(&slice, "insert"), ok(&slice, "delete")), (40, 40));
    assert_eq!(numbers(&lab, "SELECT COUNT(*) FROM pi1"), [2_000]);
    lab.digest()
}

/// Queries run at full speed beside inserts and deletes that are no faster than asked for.
pub fn check_queries(server: &impl WorkloadServer) {
    let mut lab = lab(
        server,
        "ibench_queries",
        &[("step", "qp500".into()), ("rows", 2_000.into())],
    );
    for step in ["qp500", "qr1000"] {
        let given = [("step", step), ("rows", "2000")];
        let given = given.map(|(name, value)| (name.to_owned(), value.into()));
        lab.parameters = resolve(lab.workload, &given.into()).unwrap();
        let slice = lab.run_until_committed(3);
        let burst = if step == "qp500" { 10 } else { 20 };
        for class in ["insert", "delete"] {
            assert!(ok(&slice, class) <= burst, "{slice:?}");
        }
    }
}

#[test(on = &[MARIADB], lab)]
fn loaded_and_filled_tables_of_the_insert_benchmark_are_equal(server: &Server) {
    check_load(server);
}

#[test(on = &[MARIADB], lab)]
fn queries_of_the_insert_benchmark_run_beside_a_rate(server: &Server) {
    check_queries(server);
}
