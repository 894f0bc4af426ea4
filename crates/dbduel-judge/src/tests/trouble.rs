//! Runs in which something went wrong: what it costs, and that it is told.

use dbduel_record::rows::ReadingRow;
use dbduel_record::{Complaint, Event, Stamped, event};
use dbduel_testkit::synthetic::Observation;

use super::*;

#[test]
fn a_lost_slice_costs_its_block_and_is_told() {
    let lost = vec![SliceId {
        block: 4,
        position: 2,
    }];
    let (summary, findings) = summarise(
        &Scenario {
            lost,
            ..Scenario::duel()
        }
        .record(),
    );
    assert_eq!(summary.duels[1].blocks_complete, 13);
    assert_eq!(summary.run.blocks_incomplete, 1);
    assert!(
        the(&findings, "run.lost-slices")
            .claim
            .contains("4.2: the server closed the connection")
    );
    assert_eq!(summary.duels[1].contenders[0].slices, 26);
}

#[test]
fn a_resumed_run_counts_its_epochs_and_cuts_the_night_out() {
    let (summary, findings) = summarise(
        &Scenario {
            resumed_after: Some(20),
            ..Scenario::duel()
        }
        .record(),
    );
    assert_eq!(summary.run.epochs, 2);
    assert_eq!(the(&findings, "run.resumed").severity, Severity::Doubt);
    let [pause] = summary.timeline.pauses.as_slice() else {
        panic!("{:?}", summary.timeline.pauses)
    };
    assert!((pause.length_s - 8.0 * 3600.0).abs() < 60.0, "{pause:?}");
    assert!(summary.timeline.length_s < 2.0 * 3600.0);
}

#[test]
fn starts_for_an_extension_are_told_from_those_after_an_interruption() {
    let scenario = Scenario {
        resumed_after: Some(20),
        ..Scenario::duel()
    };
    let resumed = scenario.record();
    let mut starts = resumed
        .events
        .iter()
        .enumerate()
        .filter(|(_, event)| matches!(event.what, Event::Started { .. }));
    let (second, start) = starts.nth(1).unwrap();
    let at = |what| Stamped {
        at_ms: start.at_ms,
        what,
    };
    let more = || Event::Extended {
        budget_s: 60.0,
        blocks: Vec::new(),
    };
    let spent = || Event::Ended {
        reason: EndReason::BudgetSpent,
    };
    let told = |between: Vec<Event>| {
        let mut record = resumed.clone();
        let between = between.into_iter().map(at);
        record.events.splice(second..second, between);
        let (_, findings) = summarise(&record);
        let found = the(&findings, "run.resumed");
        (found.claim.clone(), found.remedy.clone())
    };

    let (claim, remedy) = told(vec![spent(), more()]);
    assert!(claim.starts_with("The run was extended: its blocks come from 2 starts"));
    assert!(remedy.contains("whole budget") && !remedy.contains("interruption"));

    // Killed right after it had started for the extension.
    let (claim, remedy) = told(vec![spent(), more(), start.what.clone()]);
    assert!(claim.starts_with("The run was extended and resumed: its blocks come from 3 starts"));
    assert!(remedy.contains("whole budget") && remedy.contains("interruption"));

    let (claim, remedy) = told(vec![]);
    assert!(claim.starts_with("The run was resumed: its blocks come from 2 starts"));
    assert!(!remedy.contains("whole budget"));
    // More time on the way does not make the interruption good.
    assert_eq!(told(vec![more()]), (claim, remedy));
}

#[test]
fn a_torn_last_line_costs_nothing_and_damage_a_note() {
    let scenario = Scenario {
        blocks: 8,
        ..Scenario::duel()
    };
    let whole = summarise(&scenario.record()).0;
    let torn = scenario.torn_record();
    assert_eq!(torn.complaints, []);
    assert_eq!(verdicts(&summarise(&torn).0), verdicts(&whole));
    let mut damaged = scenario.record();
    damaged.complaints.push(Complaint {
        file: "slices.csv".to_owned(),
        line: 7,
        why: "found record with 3 fields".to_owned(),
    });
    let (summary, findings) = summarise(&damaged);
    assert_eq!(verdicts(&summary), verdicts(&whole));
    assert!(
        the(&findings, "record.complaints")
            .claim
            .contains("slices.csv line 7")
    );
}

#[test]
fn failures_void_the_level_where_they_happened() {
    let mut scenario = Scenario::duel();
    scenario.sides[1].failed_share = 0.05;
    let (summary, findings) = summarise(&scenario.record());
    assert_eq!(verdicts(&summary), [Verdict::Void; 3]);
    let failures = the(&findings, "load.failures");
    assert_eq!(failures.severity, Severity::Void);
    assert!(failures.claim.contains("1205"), "{}", failures.claim);
    assert_eq!(
        findings[0].severity,
        Severity::Void,
        "the heaviest finding comes first"
    );
}

#[test]
fn unequal_data_void_the_contender() {
    let mut scenario = Scenario::four();
    scenario.sides[2].digest = "another".to_owned();
    let (summary, findings) = summarise(&scenario.record());
    for duel in &summary.duels {
        let is_void: Vec<bool> = duel
            .comparisons
            .iter()
            .map(|one| one.verdict == Verdict::Void)
            .collect();
        assert_eq!(is_void, [false, true, false]);
        assert!(
            duel.comparisons[1]
                .because
                .as_deref()
                .unwrap()
                .contains("digests differ")
        );
    }
    assert_eq!(the(&findings, "data.digest").about, ["mysql-8.0"]);
}

#[test]
fn a_void_in_the_journal_voids_everything() {
    let noticed = event::Notice {
        rule: "lab.clock-stepped".to_owned(),
        severity: Severity::Void,
        about: vec![],
        claim: "The clock was set back during the run.".to_owned(),
        remedy: "Stop the time service.".to_owned(),
    };
    let (summary, findings) = summarise(
        &Scenario {
            noticed: vec![noticed.clone()],
            ..Scenario::duel()
        }
        .record(),
    );
    assert_eq!(verdicts(&summary), [Verdict::Void; 3]);
    assert_eq!(findings[0], noticed.into());
}

#[test]
fn a_slice_without_a_commit_counts_and_is_told() {
    let mut record = Scenario::duel().record();
    let row = record
        .slices
        .iter_mut()
        .find(|row| row.contender == "no-doublewrite")
        .unwrap();
    row.ok = 0;
    let level = record.plan.blocks[row.block as usize].level;
    let (summary, findings) = summarise(&record);
    let comparison = &summary.duels[level].comparisons[0];
    assert_ne!(comparison.verdict, Verdict::Void);
    assert!(
        comparison.blocks.iter().any(|block| block.ratio < 0.6),
        "the silence halves the work of its block"
    );
    assert!(
        the(&findings, "load.silent-slices")
            .claim
            .contains("committed nothing in 1 slice at")
    );
}

#[test]
fn a_contender_without_any_commit_is_void() {
    let mut record = Scenario::duel().record();
    for row in record
        .slices
        .iter_mut()
        .filter(|row| row.contender == "no-doublewrite")
    {
        row.ok = 0;
    }
    let (summary, _) = summarise(&record);
    assert_eq!(verdicts(&summary), [Verdict::Void; 3]);
    let because = summary.duels[0].comparisons[0].because.as_deref().unwrap();
    assert!(because.contains("committed nothing"), "{because}");
}

#[test]
fn a_busy_load_process_is_told() {
    let mut record = Scenario::duel().record();
    for reading in record
        .readings
        .iter_mut()
        .filter(|reading| reading.metric == "cpu_user_s")
    {
        reading.value += 25.0;
    }
    let (_, findings) = summarise(&record);
    assert!(the(&findings, "load.saturated").claim.contains("2 threads"));
}

#[test]
fn polling_in_vain_keeps_no_load_process_busy() {
    let mut record = Scenario::duel().record();
    let plain = summarise(&record).0;
    let mut polled = Vec::new();
    for reading in record
        .readings
        .iter_mut()
        .filter(|reading| reading.source == "load" && reading.metric == "cpu_user_s")
    {
        reading.value += 25.0;
        polled.push(ReadingRow {
            metric: "polled_s".to_owned(),
            value: 25.0,
            ..reading.clone()
        });
    }
    record.readings.extend(polled);
    record.plan.load.busy_poll_us = 2_000;
    let (summary, findings) = summarise(&record);
    assert!(findings.iter().all(|one| one.rule != "load.saturated"));
    let cpu_us = |summary: &Summary| {
        let figure = &summary.duels[0].contenders[0].client_cpu_us_per_transaction;
        figure.value().unwrap()
    };
    let (with, without) = (cpu_us(&summary), cpu_us(&plain));
    assert!((with / without - 1.0).abs() < 1e-6, "{with} and {without}");
}

#[test]
fn a_stalled_load_process_is_named_where_its_slices_count() {
    let mut record = Scenario::duel().record();
    let row = record.slices[20].clone();
    let stalled = |record: &Record| {
        let (_, findings) = summarise(record);
        let mut found = findings.into_iter();
        found.find(|finding| finding.rule == "load.stalled")
    };
    assert_eq!(stalled(&record), None);
    record.readings.push(ReadingRow {
        block: row.block,
        position: row.position,
        contender: row.contender.clone(),
        source: "load".to_owned(),
        metric: "stalled_s".to_owned(),
        value: 0.3,
    });
    let found = stalled(&record).unwrap();
    let place = format!("slice {}.{}, `{}`", row.block, row.position, row.contender);
    assert!(
        found
            .claim
            .starts_with("Load process stalled in 1 slice at")
    );
    assert!(found.claim.contains("up to 0.3 s of") && found.claim.contains(&place));
    assert!(found.about.is_empty(), "no contender is to blame");
}

#[test]
fn lost_slices_are_counted_by_contender_and_quoted_up_to_a_few() {
    let lost = |count: u32| {
        let slices = (0..count).map(|block| SliceId { block, position: 1 });
        let scenario = Scenario {
            lost: slices.collect(),
            ..Scenario::duel()
        };
        let (_, findings) = summarise(&scenario.record());
        the(&findings, "run.lost-slices").claim.clone()
    };
    let one = lost(1);
    assert!(one.starts_with("1 slice lost (1 of `"), "{one}");
    assert!(!one.contains("more"), "{one}");
    let five = lost(5);
    assert!(five.contains("2.1: ") && !five.contains("3.1: "), "{five}");
    assert!(
        five.contains("; and 2 more. 5 blocks were left out."),
        "{five}"
    );
}

#[test]
fn counters_that_were_read_over_another_time_than_the_slice_are_marked() {
    let with_windows = |shares: &[f64]| {
        let scenario = Scenario::duel().observed(Observation::alike());
        let mut record = scenario.record();
        let mut shares = shares.iter();
        for row in &mut record.readings {
            if (row.source.as_str(), row.metric.as_str()) == ("observer", "window_s")
                && let Some(share) = shares.next()
            {
                row.value *= share;
            }
        }
        let (_, findings) = summarise(&record);
        let mut found = findings.into_iter();
        found.find(|finding| finding.rule == "observe.window")
    };
    assert_eq!(with_windows(&[1.19, 0.81, 1.0]), None);
    let few = with_windows(&[1.19, 0.62, 1.0, 2.08]).unwrap();
    assert_eq!(few.severity, Severity::Note);
    let part = "cover 0.62 to 2.08 times the slice in 2 of ";
    assert!(few.claim.contains(part), "{}", few.claim);
    let one = with_windows(&[0.19]).unwrap();
    let part = "cover 0.19 times the slice in 1 of ";
    assert!(one.claim.contains(part), "{}", one.claim);
    let many = with_windows(&[1.3; 1000]).unwrap();
    assert_eq!(many.severity, Severity::Doubt);
}

/// The duel at one client, whose faster side drains for so long after some of its slices; its verdict was `faster`.
fn with_drains(drained_s: impl Fn(usize) -> f64) -> (Summary, Vec<Finding>) {
    let mut record = Scenario::duel().record();
    let mut slices = 0;
    for row in &mut record.slices {
        row.drained_s = Some(0.0);
        let level = record.plan.blocks[row.block as usize].level;
        if level == 0 && row.contender == "no-doublewrite" {
            row.drained_s = Some(drained_s(slices));
            slices += 1;
        }
    }
    summarise(&record)
}

#[test]
fn transactions_that_outlast_turns_are_told_with_their_share() {
    let (summary, findings) = with_drains(|_| 0.001);
    assert!(!findings.iter().any(|one| one.rule == "load.outlasted"));
    let share = summary.duels[0].contenders[1].drained_share.unwrap();
    assert!(share > 0.0 && share < 0.001, "{share}");
    let (summary, findings) = with_drains(|_| 1.0);
    let outlasted = the(&findings, "load.outlasted");
    assert_eq!(outlasted.severity, Severity::Doubt);
    assert_eq!(outlasted.level, Some(0));
    let share = summary.duels[0].contenders[1].drained_share.unwrap();
    let told = format!("{} for `no-doublewrite`", dbduel_text::percent::of(share));
    assert!(outlasted.claim.contains(&told), "{}", outlasted.claim);
}

#[test]
fn a_verdict_does_not_rest_on_a_few_stalls_that_may_have_been_fewer() {
    let (certain, findings) = with_drains(|_| 0.0);
    assert_eq!(certain.duels[0].comparisons[0].verdict, Verdict::Faster);
    assert!(!findings.iter().any(|one| one.rule == "verdict.few-stalls"));
    // One stall of the length of half a slice, among some thirty.
    let (summary, findings) = with_drains(|slice| if slice == 3 { 6.0 } else { 0.0 });
    let comparison = &summary.duels[0].comparisons[0];
    let few = comparison.few_stalls.as_ref().unwrap();
    assert_eq!(
        (few.contender.as_str(), few.stalls),
        ("no-doublewrite", 1.0)
    );
    assert_eq!(
        the(&findings, "verdict.few-stalls").severity,
        Severity::Doubt
    );
    let before = certain.duels[0].comparisons[0].ratio.interval().unwrap();
    let (low, high) = comparison.ratio.interval().unwrap();
    assert!(
        low < before.0 && high >= before.1,
        "{low} {high} {before:?}"
    );
    let stands = low >= 1.0;
    assert_eq!(comparison.verdict == Verdict::Faster, stands);
}

#[test]
fn a_transaction_that_never_ended_is_named_by_its_class() {
    let mut record = Scenario::duel().record();
    for row in &mut record.slices {
        row.drained_s = Some(0.0);
    }
    let row = record
        .slices
        .iter_mut()
        .find(|row| row.contender == "no-doublewrite");
    let row = row.unwrap();
    (row.due, row.unfinished) = (row.due + 2, 2);
    let of_class = SliceRow {
        class: "report".to_owned(),
        ..row.clone()
    };
    record.slices.push(of_class);
    let (_, findings) = summarise(&record);
    let claim = &the(&findings, "load.unfinished").claim;
    assert!(claim.contains("2 transactions (2 of `report`)"), "{claim}");
}

/// The finding about warm-ups without a steady state, where contenders have a share of their throughput in the first
/// rounds: `cold` maps the index of a contender to that share.
fn not_steady(scenario: &Scenario, cold: impl Fn(usize) -> f64) -> Option<Finding> {
    let mut record = scenario.record();
    for event in &mut record.events {
        if let Event::WarmedUp { steady, .. } = &mut event.what {
            *steady = false;
        }
    }
    let plan = &record.plan;
    for row in &mut record.slices {
        let contenders = &mut plan.contenders.iter();
        let contender = contenders.position(|one| one.name == row.contender);
        if plan.blocks[row.block as usize].round < 4 {
            row.ok = (row.ok as f64 * cold(contender.unwrap())) as u64;
        }
    }
    let (_, findings) = summarise(&record);
    let mut found = findings.into_iter();
    found.find(|one| one.rule == "warm-up.not-steady")
}

#[test]
fn a_warm_up_that_was_cut_short_is_a_finding_only_where_figures_changed_afterwards() {
    let duel = Scenario::duel();
    assert_eq!(not_steady(&duel, |_| 1.0), None);
    // All contenders become faster alike: ratios hold, figures of one contender do not.
    let common = not_steady(&duel, |_| 0.5).unwrap();
    assert_eq!(common.severity, Severity::Note);
    assert!(common.claim.contains("changing state"), "{}", common.claim);
    // The second contender alone becomes faster.
    let own = not_steady(&duel, |who| if who == 1 { 0.5 } else { 1.0 }).unwrap();
    assert_eq!(own.severity, Severity::Doubt);
    assert!(own.claim.contains("relative to"), "{}", own.claim);
    // Two slices of a contender show no change.
    let first = Scenario { blocks: 1, ..duel };
    let unchecked = not_steady(&first, |_| 1.0).unwrap();
    assert_eq!(unchecked.severity, Severity::Note);
    let claim = unchecked.claim;
    assert!(claim.contains("Too few slices"), "{claim}");
}

#[test]
fn memory_that_was_taken_from_a_frozen_server_is_a_doubt_when_it_costs_time() {
    let with_waits = |waited_s: f64| {
        let mut record = Scenario::duel().record();
        let slow = record.plan.contenders[1].name.clone();
        let rows: Vec<_> = record
            .slices
            .iter()
            .filter(|row| row.class == "all")
            .cloned()
            .collect();
        for row in rows {
            let is_slow = row.contender == slow;
            for (source, metric, value) in [
                (
                    "server",
                    "major_faults_count",
                    if is_slow { 200.0 } else { 0.0 },
                ),
                (
                    "host",
                    "pressure_memory_some_s",
                    if is_slow { waited_s } else { 0.0 },
                ),
            ] {
                let is_it = |one: &ReadingRow| {
                    (one.block, one.position) == (row.block, row.position)
                        && (one.source.as_str(), one.metric.as_str()) == (source, metric)
                };
                record.readings.retain(|one| !is_it(one));
                record.readings.push(ReadingRow {
                    block: row.block,
                    position: row.position,
                    contender: row.contender.clone(),
                    source: source.to_owned(),
                    metric: metric.to_owned(),
                    value,
                });
            }
        }
        summarise(&record).1
    };
    let found = with_waits(0.5);
    let idle = the(&found, "lab.idle-memory");
    assert_eq!(
        (idle.severity, idle.about.as_slice()),
        (Severity::Doubt, &["no-doublewrite".to_owned()][..])
    );
    let found = with_waits(0.01);
    assert!(!found.iter().any(|one| one.rule == "lab.idle-memory"));
}
