//! Classes of a synthetic script.

use dbduel_record::Record;
use dbduel_record::order_entry::CLASSES;
use dbduel_testkit::synthetic::order_entry::script_record;

use super::*;
use crate::summarise;
use crate::summary::Change;

fn cells(record: &Record) -> Vec<ClassCell> {
    summarise(record).0.classes
}

#[test]
fn every_workload_with_classes_has_their_counts_shares_and_latencies() {
    let mut record = script_record();
    // Due and never sent: of no class yet.
    let mut undrawn = record.slices[0].clone();
    "undrawn".clone_into(&mut undrawn.class);
    (undrawn.due, undrawn.skipped, undrawn.ok) = (7, 7, 0);
    record.slices.push(undrawn);
    let (summary, _) = summarise(&record);
    assert_eq!(summary.order_entry, None);
    assert_eq!(summary.classes.len(), 2);
    for (cell, measures) in summary.classes.iter().zip(&summary.duels[0].contenders) {
        let names: Vec<&str> = cell.classes.iter().map(|one| one.class.as_str()).collect();
        assert_eq!(names, CLASSES);
        let share: f64 = cell.classes.iter().map(|one| one.share_percent).sum();
        assert!((share - 100.0).abs() < 1e-9, "{share}");
        let ok: u64 = cell.classes.iter().map(|one| one.ok).sum();
        // Of every slice each class has a whole number.
        let lost = measures.outcomes.ok - ok;
        assert!(lost <= 5 * u64::from(measures.slices), "{lost}");
        for class in &cell.classes {
            assert!(
                class.latency_us_p99.interval().is_some() || class.latency_us_p99.value().is_some()
            );
            assert_eq!(
                (class.share_min_percent, class.latency_us_p90_max),
                (None, None)
            );
        }
    }
}

#[test]
fn one_class_is_no_table() {
    let mut record = script_record();
    record
        .slices
        .retain(|row| row.class == ALL_CLASSES || row.class == "payment");
    assert_eq!(cells(&record), []);
}

#[test]
fn the_class_that_became_slower_is_the_one_that_is_named() {
    let mut record = script_record();
    let name = record.plan.contenders[1].name.clone();
    for row in &mut record.slices {
        if row.class == "payment" && row.contender == name {
            row.latency_us_p50 *= 4.0;
        }
    }
    let cells = cells(&record);
    assert!(
        cells[0]
            .classes
            .iter()
            .all(|class| class.against_baseline.is_empty())
    );
    for class in &cells[1].classes {
        let [p50, _] = class.against_baseline.as_slice() else {
            panic!("{:?}", class.against_baseline)
        };
        assert_eq!(p50.quantity, Quantity::LatencyP50);
        assert!((p50.alpha - 0.05 / 10.0).abs() < 1e-12, "{}", p50.alpha);
        let is_slower = p50.change == Change::Higher;
        assert_eq!(
            is_slower,
            class.class == "payment",
            "{}: {p50:?}",
            class.class
        );
    }
}
