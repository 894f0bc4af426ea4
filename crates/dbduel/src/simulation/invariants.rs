//! Invariants after every process of a contest, and at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbduel_lab::contest::Referee as _;
use dbduel_record::event::{EndReason, Event, Stamped};
use dbduel_record::{Record, manifest};
use dbduel_server::Home;

use super::{End, Simulation};
use crate::commands::fail_if::FailIf;
use crate::commands::{record_reports, verify};
use crate::exit::Exit;
use crate::referee::Judge;

/// Tolerated load beyond the budget, seconds: the last turn of a block may be longer than planned.
const TOLERANCE_S: f64 = 0.5;

/// Returns the reason as an error, unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        match $holds {
            true => {}
            false => return Err(format!($($why)+)),
        }
    };
}

/// After a process; returns the records that it left.
pub fn of_a_process(
    simulation: &Simulation,
    mut before: BTreeMap<PathBuf, Record>,
    end: &End,
    passed: Duration,
) -> Result<BTreeMap<PathBuf, Record>, String> {
    let world = simulation.world.0.borrow();
    ensure!(
        world.breaches.0.is_empty(),
        "{}",
        world.breaches.0.join("; ")
    );
    if matches!(
        end,
        End::Ended(Exit::Done | Exit::Undecided | Exit::RuleHit)
    ) {
        let dropped = world.servers.iter().filter(|server| server.was_dropped);
        let dropped: Vec<&str> = dropped.map(|server| server.name.as_str()).collect();
        ensure!(
            dropped.is_empty(),
            "servers were not stopped, only dropped: {dropped:?}"
        );
    }
    if !matches!(end, End::Killed) {
        let left = world.servers.iter().filter(|server| server.is_started);
        let left: Vec<&str> = left.map(|server| server.name.as_str()).collect();
        ensure!(left.is_empty(), "servers were left running: {left:?}");
        ensure!(world.load.running == 0, "the load process was left running");
    }
    let mut records = BTreeMap::new();
    for dir in simulation.records() {
        let after = Record::open(&dir).map_err(|error| format!("the record: {error}"))?;
        let seen = before.remove(&dir);
        let events_before = seen.as_ref().map_or(0, |seen| seen.events.len());
        of_a_record(&dir, seen, &after)
            .and_then(|()| stamped_as_time_passed(&after.events[events_before..], passed))
            .and_then(|()| decided_as_judged(&after, &simulation.rules))
            .and_then(|()| within_budget(&after, world.delayed_s))
            .map_err(|why| format!("{}: {why}", dir.display()))?;
        records.insert(dir, after);
    }
    let gone: Vec<&PathBuf> = before.keys().collect();
    ensure!(gone.is_empty(), "records are gone: {gone:?}");
    Ok(records)
}

fn of_a_record(dir: &Path, before: Option<Record>, after: &Record) -> Result<(), String> {
    ensure!(
        after.complaints.is_empty(),
        "complaints: {:?}",
        after.complaints
    );
    let stamps: Vec<u64> = after.events.iter().map(|event| event.at_ms).collect();
    ensure!(stamps.is_sorted(), "stamps go back: {stamps:?}");
    if let Some(before) = before {
        ensure!(
            after.slices.get(..before.slices.len()) == Some(before.slices.as_slice())
                && after.ticks.get(..before.ticks.len()) == Some(before.ticks.as_slice())
                && after.latencies.get(..before.latencies.len())
                    == Some(before.latencies.as_slice()),
            "slices that were finished are others now"
        );
        ensure!(
            after.events.get(..before.events.len()) == Some(before.events.as_slice()),
            "the journal is another"
        );
    }
    // What a killed process wrote is in no line of the manifest.
    let check = manifest::check(dir).map_err(|error| format!("the manifest: {error:#}"))?;
    ensure!(check.differences.is_empty(), "the manifest: {check:?}");
    begun_once(after)
}

/// After the contest came to its end.
pub fn of_the_end(simulation: &Simulation, in_full: bool) -> Result<(), String> {
    let home = Home::new(simulation.folder.path().join("home"));
    let mut left = std::fs::read_dir(home.sandboxes()).into_iter().flatten();
    ensure!(left.next().is_none(), "sandboxes were left");
    if in_full {
        for dir in simulation.records() {
            record_reports::write(&dir, None).map_err(|error| format!("reports: {error:#}"))?;
            verify::expect_whole(&dir)?;
        }
    }
    Ok(())
}

/// No slice was begun twice, and none in a block that an earlier process had begun or that had lost a slice.
fn begun_once(record: &Record) -> Result<(), String> {
    let mut slices = BTreeSet::new();
    let (mut past, mut own) = (BTreeSet::new(), BTreeSet::new());
    for event in &record.events {
        match &event.what {
            Event::Started { .. } => past.append(&mut own),
            Event::SliceStarted { slice, .. } => {
                ensure!(
                    slices.insert((slice.block, slice.position)),
                    "{slice} was begun twice"
                );
                ensure!(
                    !past.contains(&slice.block),
                    "{slice} was begun after its block was over"
                );
                own.insert(slice.block);
            }
            Event::SliceLost { slice, .. } => {
                past.insert(slice.block);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The stamps of a run of the contest span no more than the time of its process, whatever the wall clock showed. A sweep may run the
/// contest of a cell twice.
fn stamped_as_time_passed(own: &[Stamped], passed: Duration) -> Result<(), String> {
    let is_start = |event: &Stamped| matches!(event.what, Event::Started { .. });
    let started = own.iter().rposition(is_start);
    if let Some([first, .., last]) = started.map(|started| &own[started..]) {
        let stamped_ms = last.at_ms - first.at_ms;
        let passed_ms = passed.as_millis() as u64 + 1;
        ensure!(
            stamped_ms <= passed_ms,
            "{stamped_ms} ms were stamped in a process of {passed_ms} ms"
        );
    }
    Ok(())
}

/// Load stays within the budget. A resumed contest plans warm-ups as long as the longest so far; they may take up to
/// their cap.
fn within_budget(record: &Record, delayed_s: f64) -> Result<(), String> {
    let used_s = record.used_s();
    let schedule = &record.plan.schedule;
    let budget_s = schedule.budget_s;
    let warm_ups = record.events.iter().filter_map(|event| match &event.what {
        Event::WarmedUp { seconds, .. } => Some(*seconds),
        _ => None,
    });
    let shortest_s = warm_ups.fold(schedule.warm_up_cap_s, f64::min);
    let unexpected_s = (schedule.warm_up_cap_s - shortest_s) * record.plan.contenders.len() as f64;
    ensure!(
        used_s <= budget_s + delayed_s + unexpected_s + TOLERANCE_S,
        "{used_s:.3} s of load were used, of {budget_s} s, with {delayed_s:.3} s of stalls"
    );
    Ok(())
}

/// The judge of the record agrees with the decisions of the contest.
fn decided_as_judged(record: &Record, rules: &[FailIf]) -> Result<(), String> {
    let plan = &record.plan;
    let judge = Judge {
        limits: FailIf::limits(rules),
        ..Judge::default()
    };
    for event in &record.events {
        if let Event::LevelDecided { level, blocks } = event.what {
            let judged = judge.decide_level(plan, &record.slices, level);
            ensure!(
                judged.is_settled() && judged.blocks_complete == blocks,
                "level {level} was decided after {blocks} blocks, and its record says {judged:?}"
            );
        }
    }
    let mut endings = record.events.iter().rev();
    let ended = endings.find_map(|event| match event.what {
        Event::Ended { reason } => Some(reason),
        // Of a contest that is not over.
        Event::Started { .. } => Some(EndReason::Interrupted),
        _ => None,
    });
    // A search adds levels, and ends one for reasons of its own.
    if plan.search.is_none() {
        let has_questions = judge.has_limits() || plan.suite.is_none();
        let mut levels = 0..plan.levels.len();
        let is_settled = levels.all(|level| {
            judge.decide_level(plan, &record.slices, level).is_settled()
                && (!has_questions
                    || judge.open_questions(record, level).is_empty()
                        && judge.doubts(record, level).is_empty())
        });
        match ended {
            Some(EndReason::Decided) => ensure!(is_settled, "it ended as decided and is not"),
            Some(EndReason::BudgetSpent) => {
                ensure!(!is_settled, "it ended as undecided and is decided");
            }
            Some(EndReason::Interrupted | EndReason::Failed) | None => {}
        }
    }
    Ok(())
}
