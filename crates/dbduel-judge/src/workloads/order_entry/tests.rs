//! The order-entry part of a summary and its rules, on a synthetic record with classes.

use dbduel_audit::Finding;
use dbduel_record::Record;
use dbduel_record::event::Severity;
use dbduel_record::latency::Packed;
use dbduel_testkit::synthetic::Scenario;
use dbduel_testkit::synthetic::order_entry::order_entry_record;

use crate::summarise;
use crate::summary::Summary;

fn found<'f>(findings: &'f [Finding], rule: &str) -> Vec<&'f Finding> {
    findings
        .iter()
        .filter(|finding| finding.rule == rule)
        .collect()
}

fn judged(change: impl FnOnce(&mut Record)) -> (Summary, Vec<Finding>) {
    let mut record = order_entry_record();
    change(&mut record);
    summarise(&record)
}

#[test]
fn nopm_is_new_orders_over_measured_minutes_with_an_interval() {
    let (summary, findings) = judged(|_| {});
    let part = summary.order_entry.as_ref().unwrap();
    assert_eq!(part.cells.len(), 2);
    let cell = &part.cells[0];
    let expected = cell.new_orders as f64 / summary.duels[0].contenders[0].active_s * 60.0;
    let value = cell.nopm.value().unwrap();
    assert!((value / expected - 1.0).abs() < 1e-9, "{value} {expected}");
    let (low, high) = cell.nopm.interval().unwrap();
    assert!(low < value && value < high);
    assert_eq!(
        cell.nopm_by_slice.len() as u32,
        summary.duels[0].contenders[0].slices
    );
    assert!(cell.nopm_by_slice.is_sorted_by_key(|slice| slice.start_ms));
    let classes = &summary.classes[0].classes;
    assert!((classes[0].share_percent - 1_000.0 / 23.0).abs() < 0.1);
    assert_eq!(part.deliveries[0].all, 500);
    // Nothing is wrong, and all of it is said.
    for rule in ["unaudited", "response-time", "mix"] {
        let rule = format!("order-entry.{rule}");
        let [finding] = found(&findings, &rule)[..] else {
            panic!("{rule}: {findings:?}");
        };
        assert_eq!(finding.severity, Severity::Note, "{finding:?}");
    }
    assert_eq!(found(&findings, "order-entry.rollbacks").len(), 2);
    assert!(found(&findings, "order-entry.skipped-deliveries").is_empty());
    assert!(found(&findings, "order-entry.scaling").is_empty());
}

#[test]
fn other_workloads_have_no_such_part() {
    let (summary, findings) = summarise(&Scenario::duel().record());
    assert_eq!(summary.order_entry, None);
    assert!(
        findings
            .iter()
            .all(|finding| !finding.rule.starts_with("order-entry"))
    );
    let json = serde_json::to_value(&summary).unwrap();
    assert!(json.get("order_entry").is_none());
}

#[track_caller]
fn check_doubt(rule: &str, part: &str, change: impl FnOnce(&mut Record)) {
    let (_, findings) = judged(change);
    let found = found(&findings, rule);
    assert!(
        found
            .iter()
            .any(|finding| finding.severity == Severity::Doubt && finding.claim.contains(part)),
        "{rule}: {findings:#?}"
    );
}

#[test]
fn what_breaks_the_specification_is_a_doubt() {
    check_doubt("order-entry.response-time", "`payment`", |record| {
        let mut slow = dbduel_record::latency::new_histogram();
        slow.record_n(6_000_000_000, 100).unwrap();
        for interval in record
            .latencies
            .iter_mut()
            .filter(|interval| interval.class == "payment")
        {
            interval.histogram = Packed::of(&slow);
        }
    });
    check_doubt("order-entry.mix", "`stock-level`", |record| {
        for row in record
            .slices
            .iter_mut()
            .filter(|row| row.class == "stock-level")
        {
            row.ok /= 2;
        }
    });
    check_doubt("order-entry.rollbacks", "rolled back 0 %", |record| {
        for reading in record
            .readings
            .iter_mut()
            .filter(|reading| reading.metric == "rolled_back")
        {
            reading.value = 0.0;
        }
    });
    check_doubt("order-entry.skipped-deliveries", "60 of 500", |record| {
        let files = record.contenders[0].conditions_after.as_mut().unwrap();
        files.counts.insert("deliveries-with-skips".to_owned(), 60);
    });
    check_doubt(
        "order-entry.scaling",
        "per minute and warehouse",
        |record| {
            let parameters = &mut record.plan.workload.parameters;
            parameters.insert("keying_and_think_times".to_owned(), true.into());
        },
    );
}

#[test]
fn a_record_without_rollbacks_says_that_it_has_none() {
    let (summary, findings) = judged(|record| {
        record
            .readings
            .retain(|reading| reading.metric != "rolled_back");
    });
    assert_eq!(summary.order_entry.unwrap().cells[0].rolled_back, None);
    assert!(found(&findings, "order-entry.rollbacks").is_empty());
}
