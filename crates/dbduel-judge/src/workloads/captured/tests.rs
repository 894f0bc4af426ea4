//! Classes of single statements, on a synthetic record of a capture.

use dbduel_audit::Finding;
use dbduel_record::Record;
use dbduel_record::captured::{MIX, MODE, NAME, TRACE};
use dbduel_record::event::{Event, Severity};
use dbduel_testkit::synthetic::Scenario;
use dbduel_testkit::synthetic::captured::captured_record;

use super::*;
use crate::summarise;

fn judged(change: impl FnOnce(&mut Record)) -> (StatementLevel, Vec<Finding>) {
    let mut record = captured_record();
    change(&mut record);
    let (mut summary, findings) = summarise(&record);
    (summary.statement_classes.remove(0), findings)
}

fn found<'f>(findings: &'f [Finding], rule: &str) -> Vec<&'f Finding> {
    let found = findings.iter().filter(|finding| finding.rule == rule);
    found.collect()
}

fn comparison(class: &StatementFigures) -> &StatementComparison {
    class.contenders[1].against_baseline.as_ref().unwrap()
}

#[test]
fn the_slower_class_is_found_and_the_others_are_not() {
    let (level, _) = judged(|_| {});
    let ids: Vec<&str> = level
        .classes
        .iter()
        .map(|class| class.id.as_str())
        .collect();
    // By the larger share of time of the two contenders.
    assert_eq!(
        ids,
        ["a1a1a1a1", "b2b2b2b2", "c3c3c3c3", "d4d4d4d4", "e5e5e5e5"]
    );
    assert_eq!(level.compared().count(), 4);
    for class in level.compared() {
        assert_eq!(class.contenders[0].against_baseline, None);
        let comparison = comparison(class);
        // A share of each of the four large classes; the small one has the rest.
        assert!((comparison.alpha - 0.05 * 0.8 / 4.0).abs() < 1e-12);
        let ratio = if class.id == "b2b2b2b2" { 3.0 } else { 1.0 };
        let found = comparison.ratio.value().unwrap();
        assert!((found / ratio - 1.0).abs() < 0.03, "{class:?}");
        let (low, high) = comparison.ratio.interval().unwrap();
        assert!(low < ratio && ratio < high, "{low} to {high}");
        let is_higher = comparison.change == Change::Higher;
        assert_eq!(is_higher, class.id == "b2b2b2b2", "{comparison:?}");
    }
    let rare = &level.classes[4];
    assert!(!rare.is_compared && rare.share_percent_max() < 1.0);
    assert_eq!(rare.contenders[1].against_baseline, None);
}

#[test]
fn a_class_has_its_counts_shares_latencies_and_what_the_capture_says() {
    let (level, _) = judged(|_| {});
    for who in 0..2 {
        let shares = level
            .classes
            .iter()
            .map(|class| class.contenders[who].time_share_percent);
        assert!((shares.sum::<f64>() - 100.0).abs() < 1e-9);
    }
    let slow = &level.classes[1].contenders[1];
    assert_eq!((slow.ok, slow.failed), (300 * 28, 0));
    let mean_us = slow.latency_us_mean.value().unwrap();
    assert!((mean_us / 2_400.0 - 1.0).abs() < 0.02, "{mean_us}");
    let p99_us = slow.latency_us_p99.value().unwrap();
    assert!((p99_us / mean_us - 1.1).abs() < 0.1, "{p99_us}");
    assert_eq!(
        (slow.unchanged_percent, slow.key_exists_percent),
        (None, None)
    );
    let [update, insert] = [2, 3].map(|place| &level.classes[place]);
    assert_eq!(update.captured.unchanged_percent, Some(30.0));
    assert_eq!(update.contenders[0].unchanged_percent, Some(56.0));
    let insert = &insert.contenders[0];
    assert_eq!((insert.ok, insert.failed), (18 * 28, 2 * 28));
    assert_eq!(insert.key_exists_percent, Some(10.0));
    assert_eq!(
        (insert.errors[0].code.as_str(), insert.errors[0].count),
        ("1062", 56)
    );
    let captured = &level.classes[0].captured;
    assert_eq!(captured.statements, 60_000);
    assert!(captured.time_share_percent.unwrap() > 50.0);
}

#[test]
fn blocks_without_a_class_are_left_out_of_its_ratio() {
    let (level, _) = judged(|record| {
        record
            .statements
            .retain(|row| row.statement != "b2b2b2b2" || row.block > 7 || row.position == 0);
    });
    let class = level
        .classes
        .iter()
        .find(|class| class.id == "b2b2b2b2")
        .unwrap();
    let (Figure::Estimated { n, .. } | Figure::Bare { n, .. }) = comparison(class).ratio else {
        panic!("{class:?}")
    };
    // One of the two had none in the first eight.
    assert_eq!(n, 6);
    let (level, _) = judged(|record| {
        let name = record.plan.contenders[1].name.clone();
        record
            .statements
            .retain(|row| row.statement != "b2b2b2b2" || row.contender != name);
    });
    let class = level
        .classes
        .iter()
        .find(|class| class.id == "b2b2b2b2")
        .unwrap();
    assert_eq!(comparison(class).change, Change::NotCompared);
    assert_eq!(class.contenders[1].latency_us_mean, not_answered());
}

#[test]
fn classes_are_waited_for_until_they_are_decided() {
    let undecided_after = |blocks: u32| {
        let mut record = captured_record();
        record.slices.retain(|row| row.block < blocks);
        record.statements.retain(|row| row.block < blocks);
        undecided_classes(&record, 0)
    };
    assert_eq!(undecided_after(6), 4);
    // One of them has a large difference.
    assert_eq!(undecided_after(14), 3);
}

#[test]
fn a_void_verdict_leaves_classes_uncompared() {
    let (level, _) = judged(|record| {
        let name = record.plan.contenders[1].name.clone();
        for row in &mut record.slices {
            if row.contender == name {
                row.failed = row.ok / 10;
            }
        }
    });
    for class in level.compared() {
        assert_eq!(comparison(class).change, Change::NotCompared);
    }
}

#[test]
fn writes_that_change_less_than_when_captured_are_a_finding_by_size() {
    let (_, findings) = judged(|_| {});
    let [first, second] = found(&findings, "captured.writes-unlike-log")[..] else {
        panic!("{findings:?}")
    };
    // 56 % of updates and 10 % of inserts against 30 % and none.
    assert_eq!(first.severity, Severity::Doubt);
    assert!(
        first
            .claim
            .contains("51.8 % of 6,160 writes of `doublewrite`"),
        "{}",
        first.claim
    );
    assert!(
        first.claim.contains("against 27.3 % of those captured"),
        "{}",
        first.claim
    );
    assert!(
        first.claim.contains("`update wp_options"),
        "{}",
        first.claim
    );
    assert_ne!(first.about, second.about);
    assert!(found(&findings, "captured.writes-differ").is_empty());
    let (_, findings) = judged(|record| {
        for row in &mut record.statements {
            row.unchanged = match row.statement.as_str() {
                "c3c3c3c3" => row.ok * 3 / 10 + row.ok / 10,
                _ => 0,
            };
        }
    });
    let notes = found(&findings, "captured.writes-unlike-log");
    assert!(!notes.is_empty() && notes.iter().all(|one| one.severity == Severity::Note));
}

#[test]
fn contenders_whose_writes_change_other_shares_of_rows_are_a_finding() {
    let (_, findings) = judged(|record| {
        let name = record.plan.contenders[1].name.clone();
        for row in &mut record.statements {
            if row.contender == name && row.statement == "c3c3c3c3" {
                row.unchanged += row.ok / 5;
            }
        }
    });
    let [finding] = found(&findings, "captured.writes-differ")[..] else {
        panic!("{findings:?}")
    };
    assert_eq!(finding.severity, Severity::Doubt);
    assert!(
        finding.claim.contains("against 51.8 % of `doublewrite`"),
        "{}",
        finding.claim
    );
    let (_, findings) = judged(|record| {
        record
            .statement_classes
            .classes
            .iter_mut()
            .for_each(|class| class.captured_with_rows = 0);
    });
    // The log does not say what writes changed.
    assert!(found(&findings, "captured.writes-unlike-log").is_empty());
}

#[test]
fn the_capture_alone_decides_how_classes_share_the_error() {
    let classes = captured_record().statement_classes.classes;
    let parts = |classes: &[StatementClass]| -> Vec<f64> {
        let family = Family::of(classes);
        let parts = classes.iter().map(|class| family.part(class));
        parts.collect()
    };
    let by_time = parts(&classes);
    assert!((by_time.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(
        by_time.iter().all(|part| (part - 0.2).abs() < 1e-12),
        "{by_time:?}"
    );
    // Without durations the number of statements decides: 20 of 6,522 are too few.
    let without: Vec<StatementClass> = classes
        .iter()
        .map(|class| StatementClass {
            captured_s: 0.0,
            ..class.clone()
        })
        .collect();
    let by_number = parts(&without);
    assert!((by_number.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((by_number[0] - 0.8 / 3.0).abs() < 1e-12 && (by_number[3] - 0.1).abs() < 1e-12);
    assert_eq!(parts(&classes[..4]), [0.25; 4]);
    // A class that is small in the capture and large on a contender is compared with its own part.
    let (level, _) = judged(|record| {
        let baseline = record.plan.contenders[0].name.clone();
        for row in &mut record.statements {
            if row.statement == "e5e5e5e5" && row.contender != baseline {
                row.latency_us_sum *= 1_000.0;
            }
        }
    });
    let grown = level
        .classes
        .iter()
        .find(|one| one.id == "e5e5e5e5")
        .unwrap();
    assert!(grown.is_compared);
    let comparison = comparison(grown);
    assert!((comparison.alpha - 0.05 * 0.2).abs() < 1e-12);
    assert_eq!(comparison.change, Change::Higher);
    let others = level.compared().filter(|one| one.id != "e5e5e5e5");
    let others: Vec<&StatementFigures> = others.collect();
    assert_eq!(others.len(), 4);
    for class in others {
        assert!((self::comparison(class).alpha - 0.05 * 0.2).abs() < 1e-12);
    }
}

#[test]
fn the_remedy_of_failed_transactions_is_that_of_a_replay() {
    let remedy = |mode: Option<&str>| {
        let mut scenario = Scenario::duel();
        scenario.sides[1].failed_share = 0.05;
        let mut record = scenario.record();
        if let Some(mode) = mode {
            NAME.clone_into(&mut record.plan.workload.name);
            record.plan.workload.parameters = [(MODE.to_owned(), mode.into())].into();
        }
        let (_, findings) = summarise(&record);
        found(&findings, "load.failures")[0].remedy.clone()
    };
    assert!(remedy(None).contains("use a workload"));
    let (mix, trace) = (remedy(Some(MIX)), remedy(Some(TRACE)));
    for part in ["section Answers", "`sql_mode`", "where the log begins"] {
        assert!(mix.contains(part) && trace.contains(part), "{mix} {trace}");
    }
    assert!(
        mix.contains("mode = \"trace\"") && mix.contains("for a longer time"),
        "{mix}"
    );
    assert!(
        trace.contains("`lock_timeout`") && !trace.contains("mode = "),
        "{trace}"
    );
}

/// Claims of the rule about a duel whose slices ran six quanta in turn.
fn quanta_of(mode: &str) -> Vec<String> {
    let mut record = Scenario::duel().record();
    NAME.clone_into(&mut record.plan.workload.name);
    record.plan.workload.parameters = [(MODE.to_owned(), mode.into())].into();
    let mut next = 0;
    for event in &mut record.events {
        if let Event::SliceStarted { quantum, .. } = &mut event.what {
            *quantum = (mode == TRACE).then_some(next % 6);
            next += 1;
        }
    }
    let (_, findings) = summarise(&record);
    let own = findings.iter().filter(|one| one.rule == "captured.quanta");
    own.map(|one| one.claim.clone()).collect()
}

#[test]
fn the_report_of_a_trace_says_how_much_of_it_was_run() {
    assert_eq!(quanta_of(MIX), Vec::<String>::new());
    let claims = quanta_of(TRACE);
    assert_eq!(claims.len(), 1);
    assert!(
        claims[0].contains(" ran 6 different quanta of the trace, in one pass"),
        "{claims:?}"
    );
}
