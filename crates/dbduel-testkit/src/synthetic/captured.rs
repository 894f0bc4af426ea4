//! A record of captured statements.

use dbduel_record::Record;
use dbduel_record::captured::NAME;
use dbduel_record::rows::ALL_CLASSES;
use dbduel_record::statement_classes::{
    StatementClass, StatementClasses, StatementRow, join_counts,
};

use super::Scenario;
use crate::noise::Noise;

/// One class of statements of the synthetic capture.
struct SyntheticClass {
    id: &'static str,
    text: &'static str,
    /// Statements in a slice.
    per_slice: u64,
    /// Mean latency on the first contender, microseconds.
    latency_us: f64,
    /// Mean latency of the other contender ÷ that of the first.
    ratio: f64,
    /// Shares of writes that changed no row when captured, and on each contender; `None` for reads.
    unchanged: Option<[f64; 3]>,
    /// Share of statements that fail because their key exists.
    key_exists: f64,
}

const CLASSES: [SyntheticClass; 5] = [
    SyntheticClass {
        id: "a1a1a1a1",
        text: "select option_value from wp_options where option_name = ?",
        per_slice: 6_000,
        latency_us: 100.0,
        ratio: 1.0,
        unchanged: None,
        key_exists: 0.0,
    },
    SyntheticClass {
        id: "b2b2b2b2",
        text: "select * from wp_posts where post_name = ? order by post_date desc limit ?",
        per_slice: 300,
        latency_us: 800.0,
        ratio: 3.0,
        unchanged: None,
        key_exists: 0.0,
    },
    SyntheticClass {
        id: "c3c3c3c3",
        text: "update wp_options set option_value = ? where option_name = ?",
        per_slice: 200,
        latency_us: 500.0,
        ratio: 1.0,
        unchanged: Some([0.3, 0.56, 0.56]),
        key_exists: 0.0,
    },
    SyntheticClass {
        id: "d4d4d4d4",
        text: "insert into wp_term_relationships ( object_id , term_taxonomy_id ) values ( ... )",
        per_slice: 20,
        latency_us: 600.0,
        ratio: 1.0,
        unchanged: Some([0.0, 0.0, 0.0]),
        key_exists: 0.1,
    },
    SyntheticClass {
        id: "e5e5e5e5",
        text: "show tables like ?",
        per_slice: 2,
        latency_us: 200.0,
        ratio: 1.0,
        unchanged: None,
        key_exists: 0.0,
    },
];

/// A duel on a capture of five classes: the second contender is three times slower on one that reads, and one class holds less
/// than 1 % of the time. 56 % of the updates change no row, against 30 % when they were captured.
pub fn captured_record() -> Record {
    let scenario = Scenario {
        clients: vec![4],
        ..Scenario::duel()
    };
    let mut record = scenario.record();
    NAME.clone_into(&mut record.plan.workload.name);
    record.plan.workload.parameters.clear();
    let classes = CLASSES.iter().map(|class| StatementClass {
        id: class.id.to_owned(),
        text: class.text.to_owned(),
        writes: class.unchanged.is_some(),
        captured: class.per_slice * 10,
        captured_s: class.latency_us * class.per_slice as f64 / 1e5,
        captured_with_rows: class.unchanged.map_or(0, |_| class.per_slice * 10),
        captured_unchanged: class.unchanged.map_or(0, |shares| {
            (shares[0] * class.per_slice as f64 * 10.0) as u64
        }),
    });
    record.statement_classes = StatementClasses {
        classes: classes.collect(),
    };
    let mut noise = Noise::new(42);
    let baseline = record.plan.contenders[0].name.clone();
    for row in record.slices.iter().filter(|row| row.class == ALL_CLASSES) {
        let who = usize::from(row.contender != baseline);
        for class in &CLASSES {
            let failed = (class.key_exists * class.per_slice as f64) as u64;
            let ok = class.per_slice - failed;
            let ratio = if who == 1 { class.ratio } else { 1.0 };
            let mean_us = class.latency_us * ratio * (0.02 * noise.normal()).exp();
            let unchanged = class
                .unchanged
                .map_or(0.0, |shares| shares[1 + who] * ok as f64);
            record.statements.push(StatementRow {
                block: row.block,
                position: row.position,
                contender: row.contender.clone(),
                statement: class.id.to_owned(),
                ok,
                failed,
                key_exists: failed,
                unchanged: unchanged as u64,
                rows_returned: if class.unchanged.is_none() { ok } else { 0 },
                rows_changed: class.unchanged.map_or(0, |_| ok - unchanged as u64),
                latency_us_sum: mean_us * ok as f64,
                failed_us_sum: 100.0 * failed as f64,
                errors: join_counts((failed > 0).then_some(("1062", failed)).into_iter()),
                latencies: join_counts(
                    [
                        ((mean_us * 900.0) as u64, ok / 2),
                        ((mean_us * 1_100.0) as u64, ok - ok / 2),
                    ]
                    .into_iter(),
                ),
            });
        }
    }
    record
}
