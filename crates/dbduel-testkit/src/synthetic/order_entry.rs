//! Records with transaction classes.

use dbduel_record::Record;
use dbduel_record::facts::Conditions;
use dbduel_record::order_entry::{CLASSES, CONSTRAINTS, NAME};
use dbduel_record::rows::{ALL_CLASSES, ReadingRow, SliceRow};

use super::Scenario;

/// The synthetic duel as if its transactions were those of order entry, dealt by the deck.
pub fn order_entry_record() -> Record {
    let scenario = Scenario {
        clients: vec![16],
        ..Scenario::duel()
    };
    let mut record = scenario.record();
    NAME.clone_into(&mut record.plan.workload.name);
    let parameters = &mut record.plan.workload.parameters;
    parameters.clear();
    parameters.insert("warehouses".to_owned(), 10.into());
    parameters.insert("keying_and_think_times".to_owned(), false.into());
    for (name, value) in [
        ("mix", "deck"),
        ("terminals", "bound"),
        ("protocol", "prepared"),
    ] {
        parameters.insert(name.to_owned(), value.into());
    }
    let totals = record.slices.clone();
    for row in totals.iter().filter(|row| row.class == ALL_CLASSES) {
        for constraint in &CONSTRAINTS {
            record.slices.push(SliceRow {
                class: constraint.class.to_owned(),
                ok: row.ok * u64::from(constraint.cards) / 23,
                ..row.clone()
            });
        }
        record.readings.push(ReadingRow {
            block: row.block,
            position: row.position,
            contender: row.contender.clone(),
            source: "load".to_owned(),
            metric: "rolled_back".to_owned(),
            value: (row.ok * 10 / 23 / 100) as f64,
        });
    }
    let totals = record.latencies.clone();
    for interval in &totals {
        for class in CLASSES {
            let mut own = interval.clone();
            (*class).clone_into(&mut own.class);
            record.latencies.push(own);
        }
    }
    for files in &mut record.contenders {
        let counts = |list: [u64; 3]| Conditions {
            counts: [
                "deliveries-with-skips",
                "skipped-districts",
                "delivered-orders",
            ]
            .map(str::to_owned)
            .into_iter()
            .zip(list)
            .collect(),
            ..Conditions::default()
        };
        files.conditions_before = Some(counts([0, 0, 0]));
        files.conditions_after = Some(counts([1, 1, 4_999]));
    }
    record
}

/// A duel of a script with the classes of order entry, in their order.
pub fn script_record() -> Record {
    let mut record = order_entry_record();
    "script".clone_into(&mut record.plan.workload.name);
    record
}
