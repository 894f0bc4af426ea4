//! The explanation against synthetic records whose truth is known.

use std::collections::BTreeSet;

use dbduel_record::Record;
use dbduel_record::rows::{ALL_CLASSES, ReadingRow};
use dbduel_testkit::synthetic::{Observation, Scenario};

use super::resources;
use super::{Doing, Explanation, Latency, Moved};
use crate::summarise;

fn explained(record: &Record) -> Explanation {
    let (mut summary, _) = summarise(record);
    summary.explanations.swap_remove(0)
}

#[test]
fn resources_have_unique_names_and_readings_with_the_unit_that_they_claim() {
    let mut seen = BTreeSet::new();
    for resource in resources::all() {
        assert!(seen.insert(resource.id), "`{}` stands twice", resource.id);
        assert!(
            !resource.name.ends_with('.') && resource.name.len() > 3,
            "`{}`: the name stands in the middle of a sentence",
            resource.id
        );
        for metric in resource.of.1 {
            let unit = metric.rsplit('_').next().unwrap();
            let expected = match resource.unit {
                super::Unit::Microseconds => "s",
                super::Unit::Bytes => "bytes",
                super::Unit::Count => "count",
            };
            assert_eq!(unit, expected, "`{}` reads `{metric}`", resource.id);
        }
    }
}

#[test]
fn a_contender_that_writes_less_and_waits_less_is_explained_by_that() {
    let record = Scenario::duel()
        .observed(Observation::doublewrite())
        .record();
    let explanation = explained(&record);
    let cost = |id: &str| {
        explanation
            .costs
            .iter()
            .find(|cost| cost.resource == id)
            .unwrap_or_else(|| panic!("no `{id}`"))
    };
    assert_eq!(cost("server-written").moved, Moved::Less);
    let (low, high) = cost("server-written").ratio.interval().unwrap();
    assert!(low < 0.59 && 0.59 < high, "{low} {high}");
    assert_eq!(cost("redo").moved, Moved::Same);
    assert_eq!(cost("doublewrite-pages").moved, Moved::Less);
    assert_eq!(cost("doublewrite-pages").ratio.value(), None);
    let moved = explanation.moved.iter();
    let moved: Vec<&str> = moved
        .map(|&index| explanation.costs[index].resource.as_str())
        .collect();
    // Processor time is time, bytes are not.
    assert_eq!(
        moved,
        ["connection-cpu", "server-written", "doublewrite-pages"]
    );

    let Latency::Divided(division) = &explanation.latency else {
        panic!("{:?}", explanation.latency)
    };
    let whole = division.difference_us.value().unwrap();
    let parts: f64 = division
        .parts
        .iter()
        .map(|part| part.difference_us.value().unwrap())
        .sum();
    assert!(whole < 0.0 && (parts - whole).abs() < 1e-6 * whole.abs());
    let part = |doing: Doing| {
        let part = division.parts.iter().find(|part| part.doing == doing);
        part.unwrap().difference_us.interval().unwrap()
    };
    assert!(part(Doing::OtherThread).1 < 0.0, "the wait got shorter");
    assert!(division.identity_gap.iter().all(|gap| gap.abs() < 0.2));
}

#[test]
fn equal_contenders_get_no_reasons() {
    let mut scenario = Scenario::duel();
    scenario.sides[1].speed = vec![1.0; 3];
    let explanation = explained(&scenario.observed(Observation::alike()).record());
    assert_eq!(explanation.moved, Vec::<usize>::new());
    assert!(!explanation.same.is_empty());
}

#[test]
fn a_record_without_observations_says_why_there_is_no_division() {
    let explanation = explained(&Scenario::duel().record());
    assert!(
        matches!(&explanation.latency, Latency::NotDivided { why } if why.contains("thread states of")),
        "{:?}",
        explanation.latency
    );
}

#[test]
fn a_counter_that_one_server_does_not_keep_is_not_compared() {
    let mut record = Scenario::duel()
        .observed(Observation::doublewrite())
        .record();
    record
        .readings
        .retain(|row| row.contender != "no-doublewrite" || row.metric != "redo_written_bytes");
    let explanation = explained(&record);
    let redo = explanation
        .costs
        .iter()
        .find(|cost| cost.resource == "redo")
        .unwrap();
    assert_eq!(redo.moved, Moved::Unknown);
    assert!(redo.baseline.value().is_some() && redo.contender.value().is_none());
}

#[test]
fn write_amplification_is_bytes_written_per_byte_changed() {
    let mut record = Scenario::duel()
        .observed(Observation::doublewrite())
        .record();
    // One row of 262.5 bytes (2.1 GB over 8 million rows) per transaction, 2625 bytes written for it.
    let rows: Vec<ReadingRow> = record
        .slices
        .iter()
        .filter(|row| row.class == ALL_CLASSES)
        .flat_map(|row| {
            [
                ("engine", "rows_changed_count", 1.0),
                ("server", "device_write_bytes", 2625.0),
            ]
            .map(|(source, metric, each)| ReadingRow {
                block: row.block,
                position: row.position,
                contender: row.contender.clone(),
                source: source.to_owned(),
                metric: metric.to_owned(),
                value: each * row.ok as f64,
            })
        })
        .collect();
    record.readings.extend(rows);
    let (summary, _) = summarise(&record);
    for storage in &summary.storage {
        let amplification = storage.write_amplification.unwrap();
        assert!((amplification - 10.0).abs() < 1e-6, "{storage:?}");
    }
}

#[test]
fn compression_is_judged_by_the_data_files_alone() {
    let mut record = Scenario::duel().record();
    // Of 2.35 GB of data the second keeps half; redo and system files are as large as ever.
    let size = record.contenders[1].size.as_mut().unwrap();
    let data = &mut size.after_files.as_mut().unwrap().data;
    data.allocated_bytes /= 2;
    let storage = |record: &Record| summarise(record).0.storage;
    let compressed = storage(&record).swap_remove(1);
    assert_eq!(compressed.apparent_bytes, Some(2_350_000_000));
    assert_eq!(compressed.allocated_bytes, Some(1_175_000_000));
    assert_eq!(compressed.allocated_share, Some(0.5));
    assert_eq!(compressed.allocated_of_baseline, Some(0.5));
    // A record of a version that did not separate them says nothing about data.
    let old = r#"{"before_bytes": 9, "before_allocated_bytes": 9, "after_bytes": 9, "after_allocated_bytes": 9}"#;
    for files in &mut record.contenders {
        files.size = Some(serde_json::from_str(old).unwrap());
    }
    for storage in storage(&record) {
        assert_eq!(
            (
                storage.allocated_bytes,
                storage.allocated_share,
                storage.growth_bytes
            ),
            (None, None, None)
        );
    }
}

#[test]
fn a_counter_that_was_seen_for_half_of_a_slice_counts_for_all_of_it() {
    let mut record = Scenario::duel()
        .observed(Observation::doublewrite())
        .record();
    let written = |record: &Record| {
        let costs = explained(record).costs;
        let cost = costs.iter().find(|cost| cost.resource == "server-written");
        cost.unwrap().baseline.value().unwrap()
    };
    let whole = written(&record);
    for row in &mut record.readings {
        if row.metric == "device_write_bytes" || row.metric == "window_s" {
            row.value /= 2.0;
        }
    }
    assert!((written(&record) / whole - 1.0).abs() < 1e-9);
}

/// A record of two PostgreSQL servers, whose counters gained a row per transaction of theirs that sessions reported, and 2,625 bytes
/// on the device per committed transaction.
fn of_sessions(version: &str, readings: &[(&str, f64)]) -> Record {
    let mut record = Scenario::duel()
        .observed(Observation::doublewrite())
        .record();
    record
        .readings
        .retain(|row| row.metric != "device_write_bytes");
    for files in &mut record.contenders {
        let build = files.build.as_mut().unwrap();
        "PostgreSQL".clone_into(&mut build.product);
        version.clone_into(&mut build.version);
    }
    let rows: Vec<ReadingRow> = record
        .slices
        .iter()
        .filter(|row| row.class == ALL_CLASSES)
        .flat_map(|row| {
            let fixed = [
                ("engine", "rows_changed_count", 1.3),
                ("server", "device_write_bytes", 2_625.0),
            ];
            let load = readings
                .iter()
                .map(|&(metric, each)| ("load", metric, each));
            let all: Vec<_> = fixed.into_iter().chain(load).collect();
            all.into_iter().map(|(source, metric, each)| ReadingRow {
                block: row.block,
                position: row.position,
                contender: row.contender.clone(),
                source: source.to_owned(),
                metric: metric.to_owned(),
                value: each * row.ok as f64,
            })
        })
        .collect();
    record.readings.extend(rows);
    record
}

#[test]
fn counters_of_sessions_belong_to_the_transactions_that_they_report() {
    // Guards are reported with their turns: 1.3 rows for 1.3 transactions.
    let record = of_sessions("17.6", &[("reported_count", 1.3)]);
    let (summary, findings) = summarise(&record);
    for storage in &summary.storage {
        let own = record.slices.iter();
        let own = own.filter(|row| row.contender == storage.contender && row.class == ALL_CLASSES);
        let committed: u64 = own.map(|row| row.ok).sum();
        let changed = storage.rows_changed.unwrap();
        assert!((changed / committed as f64 - 1.0).abs() < 1e-9, "{changed}");
        let amplification = storage.write_amplification.unwrap();
        assert!((amplification - 10.0).abs() < 1e-6, "{storage:?}");
    }
    let is_late = |one: &dbduel_audit::Finding| one.rule == "observe.statistics-lag";
    assert!(!findings.iter().any(is_late));
}

#[test]
fn no_ratio_comes_from_a_counter_that_lags() {
    for (version, readings) in [
        ("14.20", &[][..]),
        ("17.6", &[][..]),
        ("14.20", &[("unreported_turns_count", 1.0)]),
        (
            "17.6",
            &[("reported_count", 0.9), ("unreported_turns_count", 1.0)],
        ),
    ] {
        let (summary, findings) = summarise(&of_sessions(version, readings));
        for storage in &summary.storage {
            assert_eq!(
                (
                    storage.rows_changed,
                    storage.written_per_row_bytes,
                    storage.write_amplification
                ),
                (None, None, None)
            );
            let each = storage.written_per_transaction_bytes.unwrap();
            assert!((each - 2_625.0).abs() < 1e-6, "{each}");
        }
        let costs = &summary.explanations[0].costs;
        let cost = costs.iter().find(|cost| cost.resource == "rows-changed");
        assert!(
            cost.is_none_or(|cost| cost.ratio.value().is_none()),
            "{cost:?}"
        );
        let mut late = findings
            .iter()
            .filter(|one| one.rule == "observe.statistics-lag");
        assert!(late.next().is_some_and(|one| one.about.len() == 2));
    }
}

#[test]
fn storage_is_that_of_all_slices_where_samplers_saw_some_of_the_blocks() {
    let mut record = of_sessions("17.6", &[("reported_count", 1.3)]);
    let level = record.plan.blocks[0].level;
    record
        .plan
        .turns
        .insert(level, dbduel_testkit::synthetic::turn_choice(1.0, 0.1));
    let whole = summarise(&record).0.storage;
    let of_level: BTreeSet<u32> = record
        .plan
        .blocks
        .iter()
        .filter(|block| block.level == level)
        .map(|block| block.id)
        .collect();
    let unseen = |row: &ReadingRow| of_level.contains(&row.block) && row.block.is_multiple_of(2);
    record.readings.retain(|row| !unseen(row));
    for (all, some) in whole.iter().zip(summarise(&record).0.storage) {
        let rows = some.rows_changed.unwrap() / all.rows_changed.unwrap();
        assert!((rows - 1.0).abs() < 1e-9, "{rows}");
    }
}

#[test]
fn no_doubt_about_the_cause_stands_beside_a_resource_that_differs() {
    let doubted = |observation: Observation, change: &dyn Fn(&mut Record)| {
        let mut scenario = Scenario::duel();
        scenario.sides[1].speed = vec![1.15; 3];
        let mut record = scenario.observed(observation).record();
        change(&mut record);
        let (summary, _) = summarise(&record);
        let audit = summary.audit.unwrap();
        let mut claims = audit.findings.iter().map(|one| one.claim.as_str());
        claims.any(|claim| claim.starts_with("Cause "))
    };
    assert!(doubted(Observation::alike(), &|_| {}));
    assert!(!doubted(Observation::doublewrite(), &|_| {}));
    // Also where it moved against the time.
    assert!(!doubted(Observation::alike(), &|record| {
        for row in &mut record.readings {
            if row.metric == "redo_written_bytes" && row.contender == "no-doublewrite" {
                row.value *= 15.7;
            }
        }
    }));
}
