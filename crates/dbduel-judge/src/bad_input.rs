//! Records that hold what should not be: each has a stated outcome, and none makes the judge panic, give
//! a number without meaning, or say nothing.

use dbduel_record::Record;
use dbduel_record::Verdict;
use dbduel_record::event::{Event, Severity, SliceId, Stamped};
use dbduel_testkit::synthetic::Scenario;

use super::summary::{Change, Figure};
use super::{Finding, Summary, summarise};

/// One level, two contenders.
fn small() -> Scenario {
    Scenario {
        clients: vec![16],
        ..Scenario::duel()
    }
}

/// Judges, and makes sure that every number is finite: JSON has no others.
#[track_caller]
fn judged(record: &Record) -> (Summary, Vec<Finding>) {
    let (summary, findings) = summarise(record);
    let shown = format!("{summary:?}");
    let mut words = shown.split(|c: char| !c.is_alphanumeric() && c != '-');
    let found = words.find(|word| ["NaN", "inf", "-inf"].contains(word));
    assert_eq!(found, None, "{shown}");
    (summary, findings)
}

fn verdict(summary: &Summary) -> Verdict {
    summary.duels[0].comparisons[0].verdict
}

#[track_caller]
fn says(findings: &[Finding], rule: &str, severity: Severity) {
    let found = findings
        .iter()
        .any(|finding| finding.rule == rule && finding.severity == severity);
    assert!(found, "no `{rule}` among {findings:?}");
}

#[test]
fn one_block_gives_a_ratio_without_an_interval_and_no_verdict() {
    let (summary, _) = judged(
        &Scenario {
            blocks: 1,
            ..small()
        }
        .record(),
    );
    let comparison = &summary.duels[0].comparisons[0];
    assert_eq!(comparison.verdict, Verdict::Undecided);
    let Figure::Bare { why, .. } = &comparison.ratio else {
        panic!("{:?}", comparison.ratio)
    };
    assert_eq!(why, "1 of at least 6 blocks, too few for an interval");
    assert!(comparison.block_sd.is_none());
    assert!(
        comparison
            .quantities
            .iter()
            .all(|quantity| matches!(quantity.change, Change::Undecided | Change::NotCompared))
    );
}

#[test]
fn a_slice_without_a_commit_counts_with_its_time_and_is_told() {
    let mut record = small().record();
    let row = record
        .slices
        .iter_mut()
        .find(|row| row.contender == "no-doublewrite")
        .unwrap();
    (row.ok, row.due, row.latency_us_sum) = (0, 0, 0.0);
    let (summary, findings) = judged(&record);
    says(&findings, "load.silent-slices", Severity::Note);
    assert!(
        summary.duels[0].comparisons[0]
            .blocks
            .iter()
            .all(|block| block.ratio > 0.0)
    );
    let quantity = &summary.duels[0].comparisons[0].quantities[0];
    assert_eq!(quantity.change, Change::NotCompared);
    assert!(
        matches!(&quantity.ratio, Figure::NotMeasured { why } if why.contains("committed nothing"))
    );
}

#[test]
fn a_contender_that_never_commits_makes_the_duel_void() {
    let mut record = small().record();
    for row in &mut record.slices {
        if row.contender == "no-doublewrite" {
            row.ok = 0;
        }
    }
    let (summary, findings) = judged(&record);
    assert_eq!(verdict(&summary), Verdict::Void);
    says(&findings, "load.nothing-committed", Severity::Void);
}

#[test]
fn the_same_figure_in_every_slice_is_equivalence_with_an_interval_of_no_width() {
    let mut record = small().record();
    for row in &mut record.slices {
        (row.ok, row.measured_s, row.latency_us_p50) = (10_000, 10.0, 1600.0);
    }
    let (summary, _) = judged(&record);
    let comparison = &summary.duels[0].comparisons[0];
    assert_eq!(comparison.verdict, Verdict::Equivalent);
    let (low, high) = comparison.ratio.interval().unwrap();
    assert!((low - 1.0).abs() < 1e-12 && (high - 1.0).abs() < 1e-12);
    assert_eq!(comparison.block_sd, Some(0.0));
    assert_eq!(comparison.quantities[0].change, Change::Equivalent);
}

#[test]
fn lengths_that_are_no_numbers_cost_their_blocks() {
    for wrong in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        let mut record = small().record();
        record.slices[5].measured_s = wrong;
        let (summary, _) = judged(&record);
        assert_eq!(summary.duels[0].blocks_complete, 13, "{wrong}");
        assert_eq!(summary.duels[0].blocks_incomplete, 1, "{wrong}");
    }
}

#[test]
fn latencies_and_readings_that_are_no_numbers_are_not_compared() {
    let mut record = small().record();
    for row in &mut record.slices {
        row.latency_us_p95 = f64::NAN;
    }
    for reading in &mut record.readings {
        if reading.source == "server" {
            reading.value = f64::NAN;
        }
    }
    // The figures of a single contender rest on the histograms, which are whole.
    let (summary, _) = summarise(&record);
    let quantities = &summary.duels[0].comparisons[0].quantities;
    assert_eq!(quantities[1].change, Change::NotCompared);
    assert_eq!(quantities[3].change, Change::NotCompared);
}

#[test]
fn a_contender_that_died_half_way_leaves_a_verdict_on_the_blocks_before_and_says_so() {
    let scenario = small();
    let mut record = scenario.record();
    let blocks: Vec<u32> = record.plan.blocks.iter().map(|block| block.id).collect();
    let last = blocks[7];
    record.slices.retain(|row| row.block <= last);
    record.events.retain(|event| match &event.what {
        Event::SliceFinished { slice, .. } => slice.block <= last,
        _ => true,
    });
    let at_ms = record.events.last().unwrap().at_ms;
    let died = Event::ServerDied {
        contender: "no-doublewrite".to_owned(),
        how: "signal: 9 (SIGKILL)".to_owned(),
    };
    let lost = Event::SliceLost {
        slice: SliceId {
            block: blocks[8],
            position: 0,
        },
        why: "the server closed the connection".to_owned(),
        seconds: 3.0,
    };
    let entries = [died, lost].map(|what| Stamped { at_ms, what });
    record.events.extend(entries);
    let (summary, findings) = judged(&record);
    assert_eq!(summary.duels[0].blocks_complete, 8);
    assert_ne!(verdict(&summary), Verdict::Void);
    says(&findings, "server.died", Severity::Doubt);
}
