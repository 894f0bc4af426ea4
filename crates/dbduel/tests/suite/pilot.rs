//! Contests whose turns a pilot chooses, on real servers.

use dbduel_record::event::Event;
use dbduel_record::plan::TurnChoice;
use nix::sys::signal::Signal;

use super::lab::{
    Lab, assert_verified, count, follows_the_plan, lost_blocks, program, published, servers_left,
    short_experiment, signal, with_budget, with_schedule,
};

/// Durable against relaxed commits, with nothing said about slices: a difference of far more than a tenth.
fn durable_against_relaxed() -> String {
    let text = short_experiment(["mariadb-10.11", "mariadb-10.11"], "")
        .replacen("commit = 2", "commit = 1", 1)
        // A redo log that is soon full makes the server stall, and the pilot choose turns that outlast it.
        .replace(", innodb_log_file_size = \"8M\"", "")
        .replace("oltp-point-select", "oltp-update-non-index");
    with_budget(&with_schedule(&text, "warm_up = \"1 s\"\n"), "90 s")
}

fn choices(record: &dbduel_record::Record) -> Vec<TurnChoice> {
    let events = record.events.iter().filter_map(|event| match &event.what {
        Event::TurnsChosen { choice, .. } => Some(choice.clone()),
        _ => None,
    });
    events.collect()
}

#[test(lab, may_fail = 0.05, needs = &["mariadb-10.11"])]
fn turns_are_chosen_and_a_large_difference_is_decided_in_a_few_seconds_of_them() {
    let lab = Lab::new(&durable_against_relaxed());
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("4 clients: turns of "), "{said}");

    let record = lab.record();
    let choices = choices(&record);
    let [choice] = choices.as_slice() else {
        panic!("{choices:?}");
    };
    assert_eq!(record.plan.turns.get(&0), Some(choice));
    assert!((0.05..=2.0).contains(&choice.turn_s), "{choice:?}");
    assert!(choice.guard_s < choice.turn_s, "{choice:?}");
    assert!(follows_the_plan(&record, &record.plan));
    // A part of the plan is enough for a factor.
    let slices = record.finished_slices().count();
    let planned = record.plan.blocks_max(0) as usize * 4;
    assert!(slices < planned, "{slices} of {planned} slices");

    let report = program()
        .args(["report", "--format", "markdown"])
        .arg(lab.record_dir())
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&report.stdout).replace('\n', " ");
    assert!(report.contains("turns chosen by a pilot"), "{report}");
    assert!(report.contains("turns at 4 clients"), "{report}");
    assert_verified(&lab.record_dir());
    assert_eq!(servers_left(), []);
}

#[test(lab, needs = &["mariadb-10.11"])]
fn after_a_kill_the_chosen_turns_are_kept_and_no_block_is_begun_twice() {
    let equal = durable_against_relaxed()
        .replace("commit = 1", "commit = 2")
        .replace("horizon = \"25 %\"", "horizon = \"0.1 %\"")
        .replace("90 s", "24 s");
    let lab = Lab::new(&equal);
    lab.run_killed_after_slices(9);
    let before = lab.record();

    lab.resume_to_the_end();
    let after = lab.record();
    assert_eq!(choices(&after), choices(&before));
    assert_eq!(choices(&after).len(), 1);
    assert!(after.finished_slices().count() > before.finished_slices().count());
    let begun =
        |event: &Event| matches!(event, Event::SliceStarted { slice, .. } if slice.position == 0);
    let mut blocks: Vec<u32> = after.slices.iter().map(|row| row.block).collect();
    blocks.dedup();
    assert!(count(&after, begun) >= blocks.len());
    assert!(blocks.is_sorted_by(|one, other| one < other), "{blocks:?}");
    assert!(follows_the_plan(&after, &after.plan));
    assert_eq!(servers_left(), []);
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_block_that_the_user_ends_is_journaled_with_its_time() {
    let equal = durable_against_relaxed()
        .replace("commit = 1", "commit = 2")
        .replace("horizon = \"25 %\"", "horizon = \"0.1 %\"");
    let lab = Lab::new(&equal);
    let mut run = lab.spawn();
    // Two blocks have ended, and the third is under way.
    lab.wait_until(&mut run, "a begun third block", || {
        let record = lab.begun();
        record.is_some_and(|record| {
            let last = record.events.last().map(|event| &event.what);
            record.finished_slices().count() > 8 && matches!(last, Some(Event::SliceStarted { .. }))
        })
    });
    signal(&run, Signal::SIGINT);
    run.wait().unwrap();
    let record = lab.record();
    let seconds: Vec<f64> = record
        .events
        .iter()
        .filter_map(|event| match event.what {
            Event::BlockAbandoned { seconds, .. } => Some(seconds),
            _ => None,
        })
        .collect();
    // Unless the signal came between two blocks, or after turns that are all written down: where the pilot made turns as long as
    // slices, each slice is written when its turn ends.
    let lost = lost_blocks(&record);
    let begun = record.begun_blocks();
    let slices_of = |block: u32| {
        record
            .finished_slices()
            .filter(move |slice| slice.block == block)
            .count()
    };
    let incomplete = begun.iter().filter(|&&block| slices_of(block) != 4).count();
    let started_in = |block: u32| {
        count(
            &record,
            |event| matches!(event, Event::SliceStarted { slice, .. } if slice.block == block),
        )
    };
    let has_unwritten_turns = |block: &&u32| started_in(**block) > slices_of(**block);
    let abandoned = begun.difference(&lost).filter(has_unwritten_turns).count();
    assert_eq!(seconds.len(), abandoned, "{seconds:?}");
    assert!(seconds.iter().all(|&s| s > 0.0 && s < 10.0), "{seconds:?}");
    let run = &published(&lab.record_dir())["summary"]["run"];
    assert_eq!(run["blocks_incomplete"], incomplete);
    assert_eq!(servers_left(), []);
}
