//! The workload on a real server: filled, checked, run, checked again, with and without foreign keys.

use std::collections::BTreeSet;

use dbduel_record::commits::{CommitRange, coalesce};
use serde_json::Value;

use dbduel_driver::Dialect;
use dbduel_load::order::{Answer, ClassAnswer, SliceAnswer};
use dbduel_workloads::fill::{FillError, FillWatch, clear};
use dbduel_workloads::{Moment, UnusableData, VerifyError};

use super::server::{ALL, Server};
use super::workload::{Lab, WorkloadServer};

/// Half a million rows shrunk to a tenth, so that a debug build is done in seconds.
fn small(more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    [&[("scale", 0.1.into())], more].concat()
}

/// Why the data cannot be used.
#[track_caller]
fn refused(lab: &Lab) -> UnusableData {
    unusable(lab.verify(Moment::AfterLoad))
}

#[track_caller]
fn unusable<T: std::fmt::Debug>(looked_at: Result<T, VerifyError>) -> UnusableData {
    match looked_at {
        Err(VerifyError::Unusable(why)) => *why.downcast().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn ok_of(slice: &SliceAnswer) -> u64 {
    slice.classes.iter().map(|class| class.counts.ok).sum()
}

#[track_caller]
fn check_mix(slice: &SliceAnswer) {
    let ok = ok_of(slice);
    for (class, cards) in slice.classes.iter().zip([10.0, 10.0, 1.0, 1.0, 1.0]) {
        let ClassAnswer {
            class: name,
            counts,
            ..
        } = class;
        assert_eq!(counts.failed, 0, "{name}: {:?}", slice.errors);
        let (share, expected) = (counts.ok as f64 / ok as f64, cards / 23.0);
        // Decks that a terminal has not finished, and four standard deviations of what ended just outside.
        let tolerance = 4.0 * (expected / ok as f64).sqrt();
        assert!(
            (share - expected).abs() < tolerance,
            "{name}: {share} instead of {expected}"
        );
    }
}

#[test(on = ALL, lab)]
fn conditions_hold_after_filling_and_after_a_run(server: &Server) {
    check_conditions(server);
}

#[test(on = ALL, lab)]
fn every_variant_of_schema_and_protocol_keeps_the_conditions(server: &Server) {
    check_variants(server);
}

#[test(on = ALL, lab)]
fn every_condition_notices_its_violation(server: &Server) {
    check_violations(server);
}

#[test(on = ALL, lab)]
fn what_was_acknowledged_is_in_the_log_and_a_loss_is_noticed(server: &Server) {
    check_log(server);
}

#[test(on = ALL, lab)]
fn a_delivery_without_orders_is_counted(server: &Server) {
    check_skips(server);
}

#[test(on = ALL, lab)]
fn data_that_do_not_fit_are_refused_with_the_reason(server: &Server) {
    check_refusals(server);
}

pub fn check_conditions(server: &impl WorkloadServer) {
    let lab = Lab::new(
        server,
        "order-entry",
        "dbduel_order_entry",
        &[("warehouses", 1.into())],
    );
    lab.fill().unwrap();
    lab.verify_all(Moment::Fresh, 17);
    let slice = lab.run_until(8, 2.0, "200 transactions", |slice| ok_of(slice) > 200);
    check_mix(&slice);
    let verification = lab.verify_all(Moment::AfterLoad, 16);
    assert_eq!(verification.counts[0], ("deliveries-with-skips", 0));
    // What the server holds is what the clients counted, but for transactions outside the measured part.
    let orders: u64 = {
        let mut connection = lab.connect(Some(&lab.database));
        connection
            .query("SELECT COUNT(*) - 30000 FROM orders")
            .unwrap()
            .text(0, 0)
            .unwrap()
            .parse()
            .unwrap()
    };
    // Rolled back orders count.
    assert!(
        orders + slice.rolled_back >= slice.classes[0].counts.ok,
        "{orders} orders, {slice:?}"
    );
}

pub fn check_variants(server: &impl WorkloadServer) {
    for (name, mut given) in [
        ("foreign_keys", vec![("foreign_keys", true.into())]),
        ("partitions", vec![("partitions", 3.into())]),
        (
            "text",
            vec![("protocol", "text".into()), ("terminals", "roaming".into())],
        ),
        ("grouped", vec![("protocol", "grouped".into())]),
        (
            "weighted",
            vec![("mix", "weighted".into()), ("row_format", "dynamic".into())],
        ),
        ("committed", vec![("isolation", "read-committed".into())]),
    ] {
        if server.dialect() == Dialect::PostgreSql {
            given.retain(|(name, _)| *name != "row_format");
        }
        let given = small(&[&[("warehouses", 2.into())][..], &given].concat());
        let lab = Lab::new(
            server,
            "order-entry",
            &format!("dbduel_order_entry_{name}"),
            &given,
        );
        lab.fill().unwrap();
        lab.verify_all(Moment::Fresh, 17);
        let slice = lab.run_until(8, 1.0, "transaction of every class", |slice| {
            slice.classes.iter().all(|class| class.counts.ok > 0)
        });
        assert!(
            slice.classes.iter().all(|class| class.counts.failed == 0),
            "{name}: {slice:?}"
        );
        lab.verify_all(Moment::AfterLoad, 16);
        clear(
            lab.workload,
            &lab.parameters,
            &lab.place(),
            &FillWatch::default(),
        )
        .unwrap();
        assert_eq!(refused(&lab), UnusableData::Absent);
    }
}

pub fn check_violations(server: &impl WorkloadServer) {
    let lab = Lab::new(
        server,
        "order-entry",
        "dbduel_order_entry_broken",
        &small(&[]),
    );
    lab.fill().unwrap();
    // Each change is taken back before the next one. At a tenth of the scale orders 211 to 300 are open.
    for (condition, change, back) in [
        (
            "condition-1",
            "UPDATE warehouse SET w_ytd = w_ytd + 0.01",
            "UPDATE warehouse SET w_ytd = w_ytd - 0.01",
        ),
        (
            "condition-2",
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3",
            "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 3",
        ),
        (
            "condition-3",
            "DELETE FROM new_order WHERE no_d_id = 3 AND no_o_id = 250",
            "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (1, 3, 250)",
        ),
        (
            "condition-4",
            "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 3 AND o_id = 5",
            "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 3 AND o_id = 5",
        ),
        (
            "condition-5",
            "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 3 AND o_id = 250",
            "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 3 AND o_id = 250",
        ),
        (
            "condition-6",
            "UPDATE order_line SET ol_o_id = 1001 WHERE ol_d_id = 3 AND ol_o_id = 250",
            "UPDATE order_line SET ol_o_id = 250 WHERE ol_d_id = 3 AND ol_o_id = 1001",
        ),
        (
            "condition-7",
            "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_d_id = 3 AND ol_o_id = 250",
            "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 3 AND ol_o_id = 250",
        ),
        (
            "condition-8",
            "UPDATE history SET h_amount = h_amount + 1 WHERE h_d_id = 3 AND h_c_id = 5",
            "UPDATE history SET h_amount = h_amount - 1 WHERE h_d_id = 3 AND h_c_id = 5",
        ),
        (
            "condition-9",
            "UPDATE district SET d_ytd = d_ytd + CASE d_id WHEN 1 THEN 1 WHEN 2 THEN -1 ELSE 0 END",
            "UPDATE district SET d_ytd = d_ytd - CASE d_id WHEN 1 THEN 1 WHEN 2 THEN -1 ELSE 0 END",
        ),
        (
            "condition-10",
            "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_id = 5 AND c_d_id = 3",
            "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 WHERE c_id = 5 AND c_d_id = 3",
        ),
        (
            "condition-11",
            "DELETE FROM new_order WHERE no_d_id = 3 AND no_o_id = 211",
            "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (1, 3, 211)",
        ),
        (
            "condition-12",
            "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_id = 5 AND c_d_id = 3",
            "UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_id = 5 AND c_d_id = 3",
        ),
    ] {
        lab.query(change);
        let verification = lab.verify(Moment::Fresh).unwrap();
        let noticed = verification
            .conditions
            .iter()
            .find(|found| found.name == condition)
            .unwrap();
        assert!(
            !noticed.holds() && noticed.example.is_some(),
            "{condition}: {verification:#?}"
        );
        lab.query(back);
        lab.verify_all(Moment::Fresh, 17);
    }
}

pub fn check_log(server: &impl WorkloadServer) {
    let lab = Lab::new(server, "order-entry", "dbduel_order_entry_log", &small(&[]));
    lab.fill().unwrap();
    let slice = lab.run_until(8, 2.0, "order", |slice| slice.classes[0].counts.ok > 0);
    let log = coalesce(slice.commits);
    assert_eq!(log.repeated, 0, "{log:?}");
    let (mut series, longest) = (
        BTreeSet::new(),
        log.ranges.iter().max_by_key(|range| range.count()),
    );
    assert!(
        log.ranges.iter().all(|range| series.insert(&range.series)),
        "{log:?}"
    );
    let longest = longest.unwrap();
    let mut connection = lab.connect(Some(&lab.database));
    let mut commit_check = || {
        let parameters = &lab.parameters;
        let found = lab
            .workload
            .verify_commits(parameters, &mut connection, &log.ranges);
        found.unwrap().unwrap()
    };
    let kept = commit_check();
    assert_eq!((kept.lost, kept.beyond, kept.example), (0, 0, None));
    // The guard is in the log and does not count; rolled back orders count and are not in the log.
    assert!(kept.acknowledged + slice.rolled_back >= slice.classes[0].counts.ok);

    let victim = longest.first + longest.count() / 2;
    let district = longest.series.strip_prefix("1/").unwrap();
    lab.query(&format!(
        "DELETE FROM orders WHERE o_d_id = {district} AND o_id = {victim}"
    ));
    let lost = commit_check();
    let example = format!("order {victim} of district {district} of warehouse 1");
    assert_eq!((lost.lost, lost.example), (1, Some(example)));

    let alien = CommitRange {
        series: "node".to_owned(),
        first: 1,
        last: 2,
    };
    let mut connection = lab.connect(Some(&lab.database));
    let refused = lab
        .workload
        .verify_commits(&lab.parameters, &mut connection, &[alien]);
    assert!(matches!(refused, Err(VerifyError::Series { .. })));
}

pub fn check_skips(server: &impl WorkloadServer) {
    let lab = Lab::new(
        server,
        "order-entry",
        "dbduel_order_entry_skips",
        &small(&[]),
    );
    lab.fill().unwrap();
    let mut connection = lab.query("DELETE FROM new_order");
    connection
        .execute("UPDATE orders SET o_carrier_id = 1 WHERE o_carrier_id IS NULL")
        .unwrap();
    lab.run_until(4, 1.0, "delivery", |slice| slice.classes[3].counts.ok > 0);
    let counts = lab.verify(Moment::AfterLoad).unwrap().counts;
    assert_eq!(counts[0].0, "deliveries-with-skips");
    assert!(counts[0].1 > 0, "{counts:?}");
    assert!(counts[1].1 >= counts[0].1, "{counts:?}");
}

pub fn check_refusals(server: &impl WorkloadServer) {
    let mut lab = Lab::new(
        server,
        "order-entry",
        "dbduel_order_entry_refused",
        &small(&[]),
    );
    assert_eq!(refused(&lab), UnusableData::Absent);
    lab.query("CREATE TABLE orders (o_id INT)");
    lab.query("CREATE INDEX idx_order ON orders (o_id)");
    assert!(matches!(
        refused(&lab),
        UnusableData::Foreign { tool: "go-tpc", .. }
    ));
    lab.query("CREATE TABLE new_orders (no_o_id INT)");
    assert!(matches!(
        refused(&lab),
        UnusableData::Foreign {
            tool: "tpcc-mysql",
            ..
        }
    ));
    assert!(matches!(lab.fill(), Err(FillError::Exists { .. })));
    // The attempt to fill left nothing behind that could be taken for ours.
    let recognised = lab
        .workload
        .recognise(&lab.parameters, &mut lab.connect(Some(&lab.database)));
    assert!(matches!(unusable(recognised), UnusableData::Foreign { .. }));
    lab.query("DROP TABLE new_orders");
    clear(
        lab.workload,
        &lab.parameters,
        &lab.place(),
        &FillWatch::default(),
    )
    .unwrap();

    lab.fill().unwrap();
    match lab.slice(11, 0.5) {
        Answer::Refused { why } | Answer::Lost { why, .. } => {
            assert!(why.contains("10 clients"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    lab.parameters.insert("warehouses".to_owned(), 2.into());
    assert_eq!(
        refused(&lab),
        UnusableData::Warehouses {
            filled: 1,
            asked: 2
        }
    );
    match lab.slice(1, 0.5) {
        Answer::Refused { why } | Answer::Lost { why, .. } => {
            assert!(why.contains("`warehouses = 1`"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    lab.query("DELETE FROM order_entry_facts WHERE name = 'complete'");
    assert_eq!(refused(&lab), UnusableData::HalfFilled);
}
