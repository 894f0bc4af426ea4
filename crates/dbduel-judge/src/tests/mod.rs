//! The judge against synthetic records whose truth is known.

use dbduel_record::Record;
use dbduel_record::Verdict;
use dbduel_record::event::{EndReason, Severity, SliceId};
use dbduel_record::rows::{ALL_CLASSES, SliceRow};
use dbduel_stats::sequential::{self, BlockTotals, Totals};
use dbduel_testkit::synthetic::{Scenario, turn_choice};
use serde_json::Value;

use super::summary::{Change, Figure, Summary};
use super::{Finding, decide_level, summarise};

mod continuity;
mod trouble;

/// The plan's least number of blocks is for its own confidence; here that is set higher afterwards.
#[test]
fn too_few_blocks_for_the_confidence_say_how_many_it_needs() {
    let mut record = Scenario::duel().record();
    record.plan.decision.confidence = 0.995;
    record.plan.decision.blocks_min = 6;
    let why_after = |blocks: usize| {
        let mut record = record.clone();
        let of_round = |row: &SliceRow| {
            let mut planned = record.plan.blocks.iter();
            let block = planned.find(|block| block.id == row.block).unwrap();
            (block.round as usize) < blocks
        };
        let mut slices = record.slices.clone();
        slices.retain(of_round);
        record.slices = slices;
        let (summary, _) = summarise(&record);
        match &summary.duels[0].comparisons[0].ratio {
            Figure::Bare { why, .. } => why.clone(),
            figure => panic!("{blocks} blocks: {figure:?}"),
        }
    };
    let why = why_after(6);
    let (_, needed) = why.split_once(": 6 of at least ").unwrap();
    assert!(why.starts_with("too few blocks for 99"), "{why}");
    let needed: usize = needed.parse().unwrap();
    assert!(needed > 6, "{why}");
    let why = why_after(needed - 1);
    assert!(
        why.ends_with(&format!(": {} of at least {needed}", needed - 1)),
        "{why}"
    );
}

fn verdicts(summary: &Summary) -> Vec<Verdict> {
    summary
        .duels
        .iter()
        .flat_map(|duel| &duel.comparisons)
        .map(|comparison| comparison.verdict)
        .collect()
}

fn rules(findings: &[Finding]) -> Vec<&str> {
    findings
        .iter()
        .map(|finding| finding.rule.as_str())
        .collect()
}

#[track_caller]
fn the<'a>(findings: &'a [Finding], rule: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.rule == rule);
    found.unwrap_or_else(|| panic!("no `{rule}` among {:?}", rules(findings)))
}

#[test]
fn a_quiet_duel_is_decided_as_it_was_made() {
    let (summary, findings) = summarise(&Scenario::duel().record());
    assert_eq!(verdicts(&summary)[0], Verdict::Faster);
    let ratio = &summary.duels[0].comparisons[0].ratio;
    let (low, high) = ratio.interval().unwrap();
    assert!(low < 1.08 && 1.08 < high, "{ratio:?}");
    assert!(
        summary
            .duels
            .iter()
            .all(|duel| duel.blocks_complete == 14 && duel.blocks_incomplete == 0)
    );
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity != Severity::Void),
        "{findings:?}"
    );
    assert!(
        the(&findings, "data.digest")
            .claim
            .contains("same 8,000,000 rows")
    );
}

#[test]
fn the_verdict_is_that_of_the_statistics() {
    verdicts_are_those_of_the_statistics(&Scenario::duel().record());
}

#[test]
fn blocks_of_more_turns_weigh_as_much_more() {
    let mut record = Scenario::duel().record();
    for block in &mut record.plan.blocks {
        block.repeats = 1 + block.round / 8;
    }
    record.plan.turns = [(0, turn_choice(0.2, 0.05))].into();
    assert!(record.plan.information(0) > 60.0);
    verdicts_are_those_of_the_statistics(&record);
    let (summary, _) = summarise(&record);
    let planned: Vec<u32> = summary
        .duels
        .iter()
        .map(|duel| duel.blocks_max(&summary.rule))
        .collect();
    assert_eq!(planned[0], 60);
    assert!(
        planned[1..]
            .iter()
            .all(|blocks| *blocks == record.plan.decision.blocks_max)
    );
}

fn verdicts_are_those_of_the_statistics(record: &Record) {
    let (summary, _) = summarise(record);
    for (duel, level) in summary.duels.iter().zip(0..) {
        let comparison = &duel.comparisons[0];
        let units = comparison.blocks.iter().map(|one| {
            let block = &record.plan.blocks[one.block as usize];
            let of = |name: &str| {
                let rows = record.slices.iter().filter(|row| {
                    row.block == one.block && row.class == ALL_CLASSES && row.contender == name
                });
                rows.fold(Totals::default(), |sum, row| Totals {
                    work: sum.work + row.ok as f64,
                    time: sum.time + row.measured_s,
                })
            };
            let totals = BlockTotals {
                contender: of("no-doublewrite"),
                reference: of("doublewrite"),
            };
            let ratio = totals.contender.work / totals.contender.time * totals.reference.time
                / totals.reference.work;
            assert!((one.ratio / ratio - 1.0).abs() < 1e-12);
            (totals, f64::from(block.repeats))
        });
        let units: Vec<(BlockTotals, f64)> = units.collect();
        let units = sequential::Unit::of_totals(&units).unwrap();
        let plan = sequential::SequentialPlan {
            weight_max: record.plan.information(level),
            n_min: 6,
            alpha: 1.0 - 0.95,
            margin: 1.02_f64.ln(),
            seed: dbduel_record::seed::named_seed(
                record.plan.seed,
                &format!("judge/level/{level}/contender/no-doublewrite"),
            ),
            paths: 4999,
            reserve: record.plan.decision.reserve,
        };
        let decision = sequential::decide(&units, &plan).unwrap();
        let expected = match decision.verdict {
            sequential::Verdict::Faster => Verdict::Faster,
            sequential::Verdict::Slower => Verdict::Slower,
            sequential::Verdict::Equivalent => Verdict::Equivalent,
            sequential::Verdict::Undecided => Verdict::Undecided,
        };
        assert_eq!(comparison.verdict, expected, "level {level}");
        assert_eq!(comparison.decided_at_block, decision.decided_at);
        // Taking logarithms of ratios back and forth costs a rounding.
        let (low, high) = comparison.ratio.interval().unwrap();
        let interval = decision.interval.unwrap();
        assert!((low.ln() - interval.low).abs() < 1e-6 && (high.ln() - interval.high).abs() < 1e-6);
    }
}

#[test]
fn stopping_and_judging_agree() {
    let record = Scenario::duel().record();
    let (summary, _) = summarise(&record);
    for (level, duel) in summary.duels.iter().enumerate() {
        let decision = decide_level(&record.plan, &record.slices, level);
        assert_eq!(decision.blocks_complete, duel.blocks_complete);
        for (one, other) in decision.comparisons.iter().zip(&duel.comparisons) {
            assert_eq!((one.verdict, &one.ratio), (other.verdict, &other.ratio));
        }
    }
}

#[test]
fn before_the_first_block_nothing_is_decided_and_nothing_fails() {
    let record = Scenario {
        blocks: 0,
        ended: None,
        ..Scenario::duel()
    }
    .record();
    let (summary, findings) = summarise(&record);
    assert_eq!(verdicts(&summary), [Verdict::Undecided; 3]);
    let decision = decide_level(&record.plan, &record.slices, 0);
    assert_eq!(decision.comparisons[0].verdict, Verdict::Undecided);
    assert!(matches!(
        summary.duels[0].contenders[0].throughput_per_s,
        Figure::NotMeasured { .. }
    ));
    assert_eq!(the(&findings, "run.unfinished").severity, Severity::Note);
}

#[test]
fn with_four_contenders_the_error_is_shared_among_three_comparisons() {
    let (summary, findings) = summarise(&Scenario::four().record());
    let comparisons = &summary.duels[2].comparisons;
    assert_eq!(comparisons.len(), 3);
    assert!(
        comparisons
            .iter()
            .all(|comparison| (comparison.alpha - 0.05 / 3.0).abs() < 1e-12)
    );
    assert_eq!(comparisons[0].verdict, Verdict::Faster);
    assert_eq!(summary.duels[0].comparisons[2].verdict, Verdict::Slower);
    assert!(
        the(&findings, "server.builds-differ")
            .claim
            .contains("MySQL")
    );
}

#[test]
fn every_two_of_four_are_compared_and_three_pairs_share_an_error_of_their_own() {
    let (summary, _) = summarise(&Scenario::four().record());
    let pairs = &summary.duels[2].pairs;
    assert_eq!(pairs.len(), 6);
    // Three have the shares of their verdicts, three divide an error probability of their own.
    assert!(
        pairs
            .iter()
            .all(|pair| (pair.alpha - 0.05 / 3.0).abs() < 1e-12)
    );
    let found = |contender: &str, against: &str| {
        let mut of_them = pairs
            .iter()
            .filter(|pair| pair.contender == contender && pair.against == against);
        of_them.next().unwrap().verdict
    };
    assert_eq!(found("mysql-8.0", "mariadb-10.11"), Verdict::Faster);
    assert_eq!(found("mysql-8.0", "mariadb-11.8"), Verdict::Faster);
    let faster = pairs
        .iter()
        .find(|pair| pair.contender == "mysql-9.7" && pair.against == "mariadb-11.8");
    let quantities = &faster.unwrap().quantities;
    assert_eq!(quantities.len(), 5);
    // The latencies and costs of three pairs share the error probability that throughput has once more.
    assert!(
        quantities
            .iter()
            .all(|one| (one.alpha - 0.05 / 15.0).abs() < 1e-12)
    );
    // A server that is 13 % faster answers 12 % sooner.
    assert_eq!(quantities[0].change, Change::Lower);
    let (low, high) = quantities[0].ratio.interval().unwrap();
    assert!(low < 1.15 / 1.3 && 1.15 / 1.3 < high, "{low} {high}");
    assert_eq!(quantities[4].change, Change::NotCompared);
    // 1.31 against 1.30 is not to be told in twelve blocks.
    assert!(matches!(
        found("mysql-9.7", "mysql-8.0"),
        Verdict::Undecided | Verdict::Equivalent
    ));
    assert!(
        summarise(&Scenario::duel().record()).0.duels[0]
            .pairs
            .is_empty()
    );
}

#[test]
fn latency_and_cost_are_compared_within_blocks() {
    let mut record = Scenario::duel().record();
    // The contender writes a fifth less per transaction, and the device's noise is shared.
    for row in &record.slices {
        let share = if row.contender == "no-doublewrite" {
            0.8
        } else {
            1.0
        };
        let noise = 1.0 + 0.01 * f64::from(row.block * 7 % 5) + 0.002 * f64::from(row.position);
        record.readings.push(dbduel_record::rows::ReadingRow {
            block: row.block,
            position: row.position,
            contender: row.contender.clone(),
            source: "server".to_owned(),
            metric: "device_write_bytes".to_owned(),
            value: row.ok as f64 * 4096.0 * share * noise,
        });
    }
    let (summary, _) = summarise(&record);
    let quantities = &summary.duels[0].comparisons[0].quantities;
    assert_eq!(quantities.len(), 5);
    assert!(
        quantities
            .iter()
            .all(|one| (one.alpha - 0.01).abs() < 1e-12)
    );
    // With one client a server that is 8 % faster answers 7.4 % sooner.
    assert_eq!(quantities[0].change, Change::Lower);
    let (low, high) = quantities[0].ratio.interval().unwrap();
    assert!(low < 1.0 / 1.08 && 1.0 / 1.08 < high, "{low} {high}");
    let written = &quantities[4];
    assert_eq!(written.change, Change::Lower);
    let (low, high) = written.ratio.interval().unwrap();
    assert!(low <= 0.8 && 0.8 <= high, "{low} {high}");
}

#[test]
fn a_quantile_asks_for_enough_transactions_in_every_slice() {
    let mut record = Scenario::duel().record();
    (record.slices[0].ok, record.slices[2].ok) = (999, 188);
    let (summary, _) = summarise(&record);
    let [_, p95, p99, ..] = summary.duels[0].comparisons[0].quantities.as_slice() else {
        panic!("five quantities are compared")
    };
    // Both name the slice that has the fewest.
    for (one, needed) in [(p95, 200), (p99, 1000)] {
        let said = format!("188 transactions, but its quantile needs {needed}");
        assert!(
            matches!(&one.ratio, Figure::NotMeasured { why } if why.contains(&said)),
            "{:?}",
            one.ratio
        );
    }
    assert_eq!(p99.change, Change::NotCompared);
}

#[test]
fn stalls_on_one_side_are_counted_and_told() {
    let mut scenario = Scenario::duel();
    scenario.sides[1].stalls_per_s = 0.05;
    let (summary, findings) = summarise(&scenario.record());
    let stalls = summary.duels[0].contenders[1].stalls.unwrap();
    assert!(stalls.count >= 3 && stalls.lost_s > 3.0, "{stalls:?}");
    assert_eq!(summary.duels[0].contenders[0].stalls.unwrap().count, 0);
    assert!(
        the(&findings, "verdict.uneven-stalls")
            .claim
            .contains("`doublewrite` never")
    );
}

#[test]
fn slow_transactions_are_no_stalls() {
    let mut record = Scenario::duel().record();
    for (number, tick) in record.ticks.iter_mut().enumerate() {
        tick.ok = [0, 2, 1][number % 3];
    }
    let (summary, _) = summarise(&record);
    for measures in &summary.duels[0].contenders {
        let count = measures.stalls.map_or(0, |stalls| stalls.count);
        assert_eq!(count, 0, "{:?}", measures.stalls);
    }
}

#[test]
fn a_record_on_disk_says_what_the_record_in_memory_says() {
    let scenario = Scenario {
        blocks: 2,
        resumed_after: Some(2),
        ..Scenario::four()
    };
    let dir = tempfile::tempdir().unwrap();
    scenario.write(&dir.path().join("record"));
    let read = Record::open(&dir.path().join("record")).unwrap();
    assert_eq!(read.complaints, []);
    let json = |record| {
        let (mut summary, findings) = summarise(record);
        // Which files there are is a fact of the disk.
        summary.disclosure.clear();
        serde_json::to_value((summary, findings)).unwrap()
    };
    assert!(is_close(&json(&read), &json(&scenario.record())));
}

#[test]
fn effective_settings_that_differ_are_listed_those_asked_for_first() {
    let (summary, _) = summarise(&Scenario::duel().record());
    let names: Vec<(&str, bool)> = summary
        .settings
        .iter()
        .map(|setting| (setting.name.as_str(), setting.is_asked_for))
        .collect();
    assert_eq!(
        names,
        [
            ("innodb_doublewrite", true),
            ("innodb_read_io_threads", false)
        ]
    );
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    let record: Record = Scenario::four().record();
    let bytes = |record: &Record| serde_json::to_vec(&summarise(record)).unwrap();
    assert_eq!(bytes(&record), bytes(&record));
    assert_eq!(bytes(&record), bytes(&Scenario::four().record()));
}

/// Equal but for the last digits of numbers: the JSON reader rounds them.
fn is_close(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| is_close(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_close(one, other))
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= 1e-12 * one.abs()
        }
        _ => one == other,
    }
}

#[test]
fn the_summary_survives_its_json() {
    for scenario in [
        Scenario::duel(),
        Scenario {
            ended: Some(EndReason::Failed),
            blocks: 3,
            ..Scenario::four()
        },
    ] {
        let (summary, _) = summarise(&scenario.record());
        let json = serde_json::to_string(&summary).unwrap();
        let read = serde_json::from_str(&json).unwrap();
        assert!(is_close(&read, &serde_json::to_value(&summary).unwrap()));
    }
}
