//! What the continuity check changes in what is said.

use dbduel_record::Record;
use dbduel_record::Verdict;
use dbduel_record::event::{ContinuityRound, Event, Severity, Stamped};
use dbduel_record::plan::TurnChoice;
use dbduel_testkit::synthetic::continuity::{rehearsed, stretch};
use dbduel_testkit::synthetic::{Scenario, turn_choice};

use super::the;
use crate::summarise;
use crate::summary::{ContinuityStage, Figure};

/// A duel whose second contender is 8 % faster in its blocks, with rounds between them in which each contender has `longer` times the rate of the slices next to them.
fn between_blocks(longer: [f64; 2]) -> Record {
    let mut record = Scenario::duel().record();
    let names: Vec<String> = record
        .plan
        .contenders
        .iter()
        .map(|one| one.name.clone())
        .collect();
    let mut events = Vec::new();
    for event in std::mem::take(&mut record.events) {
        let ended = match event.what {
            Event::SliceFinished { slice, .. } if slice.position == 3 => Some(slice.block),
            _ => None,
        };
        let at_ms = event.at_ms;
        events.push(event);
        let is_followed = |block: &u32| record.plan.blocks[*block as usize].level == 0;
        let Some(block) = ended.filter(is_followed) else {
            continue;
        };
        let unswitched = [0, 1].map(|who| {
            let own = |row: &&dbduel_record::rows::SliceRow| {
                row.block == block && row.contender == names[who] && row.class == "all"
            };
            let rows: Vec<_> = record.slices.iter().filter(own).collect();
            let done: u64 = rows.iter().map(|row| row.ok).sum();
            let seconds: f64 = rows.iter().map(|row| row.measured_s).sum();
            stretch(&names[who], longer[who] * done as f64 / seconds, 8.0)
        });
        let what = Event::ContinuityRound(ContinuityRound {
            level: 0,
            turn_s: 15.0,
            in_turns: Vec::new(),
            unswitched: unswitched.into(),
            seconds: 20.0,
        });
        events.push(Stamped { at_ms, what });
    }
    record.events = events;
    record
}

#[test]
fn switches_that_change_nothing_are_said_to_change_nothing() {
    let (summary, findings) = summarise(&rehearsed([1.0, 1.0]));
    let duel = &summary.duels[0];
    let continuity = duel.continuity.as_ref().unwrap();
    assert_eq!(continuity.stage, ContinuityStage::BeforeBlocks);
    for one in &continuity.contenders {
        let (low, high) = one.throughput.interval().unwrap();
        assert!(low < 1.0 && 1.0 < high && high < 1.05, "{one:?}");
        assert!(!one.is_shown && one.detectable < 0.05, "{one:?}");
    }
    assert_eq!(duel.comparisons[0].verdict, Verdict::Faster);
    assert_eq!(duel.comparisons[0].contradiction, None);
    assert!(!findings.iter().any(|one| one.rule.starts_with("turns.")));
}

/// Events of a start, of pilots of two levels whose choices are journalled together, and of an earlier pilot that was interrupted.
#[test]
fn pilots_of_several_levels_are_shaded_where_each_of_them_ran() {
    let mut record = Scenario::duel().record();
    let origin_ms = record.events[0].at_ms;
    let at = |seconds: f64, what| Stamped {
        at_ms: origin_ms + (1e3 * seconds) as u64,
        what,
    };
    let round = |level, seconds| {
        Event::ContinuityRound(ContinuityRound {
            level,
            turn_s: 0.2,
            in_turns: vec![stretch("a", 1000.0, 0.8)],
            unswitched: vec![stretch("a", 1000.0, 0.8)],
            seconds,
        })
    };
    let choice = |level, seconds| Event::TurnsChosen {
        level,
        choice: TurnChoice {
            seconds,
            ..turn_choice(0.2, 0.05)
        },
        blocks: Vec::new(),
    };
    let started = Event::Started {
        pid: 1,
        dbduel: String::new(),
        epoch: 0,
    };
    let journal = vec![
        at(5.0, round(0, 4.0)),
        at(6.0, started),
        at(20.0, round(0, 4.0)),
        at(40.0, round(1, 5.0)),
        at(41.0, choice(0, 10.0)),
        at(41.0, choice(1, 12.0)),
    ];
    record.events.splice(1..1, journal);
    let (summary, _) = summarise(&record);
    let mut shaded: Vec<_> = summary
        .timeline
        .apart
        .iter()
        .map(|one| (one.level, one.start_s.round(), one.length_s))
        .collect();
    shaded.sort_by(|one, other| one.1.total_cmp(&other.1));
    let first = shaded[0].1;
    let starts: Vec<_> = shaded
        .iter()
        .map(|&(level, start_s, length_s)| (level, start_s - first, length_s))
        .collect();
    // Interrupted round 1 to 5; trials of level 0 until 16, its round until 20; trials of level 1 until 35, its round until 40.
    assert_eq!(
        starts,
        [
            (0, 0.0, 4.0),
            (0, 5.0, 10.0),
            (0, 15.0, 4.0),
            (1, 22.0, 12.0),
            (1, 34.0, 5.0)
        ]
    );
}

#[test]
fn an_equal_loss_keeps_the_ratio_and_marks_the_absolute_figures() {
    let (summary, findings) = summarise(&rehearsed([0.7, 0.7]));
    assert_eq!(summary.duels[0].comparisons[0].contradiction, None);
    assert_eq!(the(&findings, "turns.departure").severity, Severity::Note);
    assert!(!findings.iter().any(|one| one.rule == "turns.contradiction"));
}

#[test]
fn another_ratio_without_switches_comes_first() {
    // In turns the second loses two fifths of its speed: it is 1.8 times as fast and not 1.08.
    let (summary, findings) = summarise(&rehearsed([1.0, 0.6]));
    let comparison = &summary.duels[0].comparisons[0];
    let found = comparison.contradiction.as_ref().unwrap();
    let (low, high) = found.ratio.interval().unwrap();
    assert!(low < 1.8 && 1.8 < high && low > 1.7, "{found:?}");
    // Both are faster, so the verdict stands beside what it depends on.
    assert_eq!(comparison.verdict, Verdict::Faster);
    assert_eq!(
        the(&findings, "turns.contradiction").severity,
        Severity::Doubt
    );
}

#[test]
fn a_verdict_that_long_turns_turn_round_is_taken_back() {
    let (summary, _) = summarise(&rehearsed([0.6, 1.0]));
    let comparison = &summary.duels[0].comparisons[0];
    assert_eq!(comparison.verdict, Verdict::Undecided);
    let because = comparison.because.as_ref().unwrap();
    assert!(
        because.contains("without a switch does not support"),
        "{because}"
    );
}

#[test]
fn rounds_between_blocks_are_compared_with_the_blocks_beside_them() {
    let (summary, _) = summarise(&between_blocks([1.0, 1.0]));
    let duel = &summary.duels[0];
    let continuity = duel.continuity.as_ref().unwrap();
    assert_eq!(continuity.stage, ContinuityStage::BetweenBlocks);
    assert!((continuity.unswitched_s - 8.0).abs() < 1e-9);
    assert_eq!(duel.comparisons[0].contradiction, None);

    let (summary, _) = summarise(&between_blocks([1.0, 1.5]));
    let found = summary.duels[0].comparisons[0]
        .contradiction
        .as_ref()
        .unwrap();
    let Figure::Estimated {
        value, confidence, ..
    } = found.departure
    else {
        panic!("{found:?}");
    };
    assert!((value - 1.0 / 1.5).abs() < 0.1, "{found:?}");
    assert!((confidence - 0.99).abs() < 1e-9);
}
