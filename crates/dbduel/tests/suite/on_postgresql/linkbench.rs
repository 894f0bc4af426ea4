//! LinkBench: what holds on MySQL and MariaDB holds here.

use dbduel_load::order::Answer;
use dbduel_workloads::fill::FillError;
use dbduel_workloads::{Moment, VerifyError};
use serde_json::Value;

use super::cluster::shared;
use crate::suite::on_server::linkbench::{
    check_forms, check_lock_timeouts, check_run, check_violations, small,
};
use crate::suite::on_server::server::{MARIADB, Server};
use crate::suite::on_server::workload::Lab;

#[test(lab)]
fn counts_are_in_step_after_filling_and_after_a_run() {
    let Some(cluster) = shared() else { return };
    check_run(&*cluster);
}

#[test(lab)]
fn every_form_of_table_and_statement_keeps_the_counts_in_step() {
    let Some(cluster) = shared() else { return };
    check_forms(&*cluster);
}

#[test(lab)]
fn a_lock_that_is_not_had_in_time_costs_no_count() {
    let Some(cluster) = shared() else { return };
    check_lock_timeouts(&*cluster);
}

#[test(lab)]
fn a_count_out_of_step_is_noticed() {
    let Some(cluster) = shared() else { return };
    check_violations(&*cluster);
}

/// Equal seeds, equal rows, whatever the product; also bytes that are no text.
#[test(on = &[MARIADB], lab)]
fn the_rows_are_those_of_mariadb(server: &Server) {
    let Some(cluster) = shared() else { return };
    let name = "dbduel_linkbench_equal";
    let here = Lab::new(&*cluster, "linkbench", name, &small(&[]));
    let there = Lab::new(server, "linkbench", name, &small(&[]));
    for lab in [&here, &there] {
        lab.fill().unwrap();
    }
    let equal = here.digest();
    assert_eq!(equal, there.digest());
    here.query("UPDATE nodetable SET data = data || 'x' WHERE id = 7");
    assert_ne!(here.digest(), equal);
}

/// Only then a list is answered by its index alone.
#[test(lab)]
fn lists_are_read_from_their_index_alone() {
    let Some(cluster) = shared() else { return };
    let name = "dbduel_linkbench_lists";
    let lab = Lab::new(
        &*cluster,
        "linkbench",
        name,
        &small(&[("partitions", 1.into())]),
    );
    lab.fill().unwrap();
    let mut connection = lab.connect(Some(&lab.database));
    let explain = "EXPLAIN SELECT id1, id2, link_type, visibility, data, version, time FROM linktable WHERE id1 = 7 \
                   AND link_type = 123456789 AND time >= 0 AND time <= 9223372036854775807 AND visibility = 1 \
                   ORDER BY time DESC LIMIT 10000 OFFSET 0";
    let plan = connection.query(explain).unwrap();
    let lines: Vec<_> = (0..plan.rows.len()).map(|row| plan.text(row, 0)).collect();
    let is_alone = |line: &Option<String>| {
        line.as_ref()
            .is_some_and(|line| line.contains("Index Only Scan"))
    };
    assert!(lines.iter().any(is_alone), "{lines:#?}");
}

#[test(lab)]
fn what_does_not_fit_is_refused_with_the_reason() {
    let Some(cluster) = shared() else { return };
    for (name, value) in [
        ("engine", Value::from("rocksdb")),
        ("row_format", "dynamic".into()),
        ("page_compression", "zlib".into()),
    ] {
        let database = format!("dbduel_linkbench_{name}");
        let lab = Lab::new(&*cluster, "linkbench", &database, &small(&[(name, value)]));
        let expected = format!("`{name}` cannot be");
        match lab.fill() {
            Err(FillError::Parameter(error)) => {
                assert!(error.to_string().contains(&expected), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    let mut lab = Lab::new(
        &*cluster,
        "linkbench",
        "dbduel_linkbench_refused",
        &small(&[]),
    );
    lab.fill().unwrap();
    lab.parameters.insert("maxid1".to_owned(), 30_001.into());
    match lab.verify(Moment::AfterLoad) {
        Err(VerifyError::Unusable(why)) => assert!(why.to_string().contains("smaller `maxid1`")),
        other => panic!("{other:?}"),
    }
    match lab.slice(1, 0.5) {
        Answer::Refused { why } | Answer::Lost { why, .. } => {
            assert!(why.contains("smaller `maxid1`"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}
