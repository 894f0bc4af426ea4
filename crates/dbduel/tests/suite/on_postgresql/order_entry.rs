//! Order entry: what holds on MySQL and MariaDB holds here, and what is different is as documented.

use dbduel_load::order::Answer;
use dbduel_workloads::Moment;
use dbduel_workloads::fill::FillError;
use serde_json::Value;

use super::cluster::shared;
use crate::suite::on_server::filling::check_foreign_keys;
use crate::suite::on_server::order_entry::{
    check_conditions, check_log, check_refusals, check_skips, check_variants, check_violations,
};
use crate::suite::on_server::server::{MARIADB, Server};
use crate::suite::on_server::workload::Lab;

#[test(lab)]
fn conditions_hold_after_filling_and_after_a_run() {
    let Some(cluster) = shared() else { return };
    check_conditions(&*cluster);
}

#[test(lab)]
fn every_variant_of_schema_and_protocol_keeps_the_conditions() {
    let Some(cluster) = shared() else { return };
    check_variants(&*cluster);
}

#[test(lab)]
fn every_condition_notices_its_violation() {
    let Some(cluster) = shared() else { return };
    check_violations(&*cluster);
}

#[test(lab)]
fn what_was_acknowledged_is_in_the_log_and_a_loss_is_noticed() {
    let Some(cluster) = shared() else { return };
    check_log(&*cluster);
}

#[test(lab)]
fn a_delivery_without_orders_is_counted() {
    let Some(cluster) = shared() else { return };
    check_skips(&*cluster);
}

#[test(lab)]
fn a_fill_interrupted_at_its_end_adds_no_foreign_key_twice() {
    let Some(cluster) = shared() else { return };
    check_foreign_keys(&*cluster);
}

#[test(lab)]
fn data_that_do_not_fit_are_refused_with_the_reason() {
    let Some(cluster) = shared() else { return };
    check_refusals(&*cluster);
}

/// Equal seeds, equal rows, whatever the product.
#[test(on = &[MARIADB], lab)]
fn the_rows_are_those_of_mariadb(server: &Server) {
    let Some(cluster) = shared() else { return };
    let given = [("scale", Value::from(0.1)), ("warehouses", 2.into())];
    let name = "dbduel_order_entry_equal";
    let here = Lab::new(&*cluster, "order-entry", name, &given);
    let there = Lab::new(server, "order-entry", name, &given);
    for lab in [&here, &there] {
        lab.fill().unwrap();
    }
    assert_eq!(here.digest(), there.digest());
    here.query("UPDATE stock SET s_quantity = s_quantity + 1 WHERE s_w_id = 2 AND s_i_id = 7");
    assert_ne!(here.digest(), there.digest());
}

/// Repeatable read fails where read committed waits: such transactions are tried again, and lose nothing.
#[test(lab)]
fn serialization_failures_are_tried_again() {
    let Some(cluster) = shared() else { return };
    let given = [
        ("scale", Value::from(0.1)),
        ("isolation", "repeatable-read".into()),
    ];
    let name = "dbduel_order_entry_serialized";
    let lab = Lab::new(&*cluster, "order-entry", name, &given);
    lab.fill().unwrap();
    let serialization_failure = u32::from_str_radix("40001", 36).unwrap();
    lab.run_until(8, 2.0, "retried serialization failure", |slice| {
        let mut errors = slice.errors.iter();
        let retries: u64 = slice.classes.iter().map(|class| class.counts.retries).sum();
        retries > 0 && errors.any(|error| error.code == serialization_failure)
    });
    lab.verify_all(Moment::AfterLoad, 16);
}

#[test(lab)]
fn parameters_of_mysql_are_refused_by_name() {
    let Some(cluster) = shared() else { return };
    for (name, value) in [
        ("engine", "myisam"),
        ("row_format", "compressed"),
        ("character_set", "utf8mb4"),
    ] {
        let given = [("scale", Value::from(0.1)), (name, value.into())];
        let database = format!("dbduel_order_entry_{name}");
        let lab = Lab::new(&*cluster, "order-entry", &database, &given);
        let expected = format!("`{name}` cannot be `{value}` on PostgreSQL");
        match lab.fill() {
            Err(FillError::Parameter(error)) => {
                assert!(error.to_string().contains(&expected), "{error}");
            }
            other => panic!("{other:?}"),
        }
        match lab.slice(1, 0.5) {
            Answer::Refused { why } => assert!(why.contains(&expected), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}
