//! What goes wrong on real machines: kills, crashes, interruptions, a full disk, refused settings.

use std::collections::HashSet;
use std::time::Duration;

use dbduel_record::Record;
use dbduel_record::event::{EndReason, Event};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::harness::skip_always;
use super::lab::{
    Lab, assert_verified, count, load_process, program, servers_left, short_experiment, signal,
    verify, with_budget, with_schedule,
};
use super::small_disk::SmallDisk;

fn self_duel(extra: &str) -> String {
    short_experiment(["mariadb-10.11", "mariadb-10.11"], extra)
}

#[test(lab, needs = &["mariadb-10.11"])]
fn after_a_kill_the_next_start_ends_the_orphans_and_goes_on() {
    let lab = Lab::new(&self_duel(""));
    lab.run_killed_after_slices(9);
    let before = lab.record().finished_slices().count();
    assert_eq!(servers_left().len(), 2, "both servers are orphans now");

    let output = lab.resume();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert_eq!(
        said.matches("left behind by an earlier run").count(),
        2,
        "{said}"
    );
    assert_eq!(servers_left(), []);
    let record = lab.record();
    assert!(record.finished_slices().count() > before, "it went on");
    assert_eq!(
        count(&record, |event| matches!(event, Event::Started { .. })),
        2
    );
    let epochs: std::collections::BTreeSet<u32> =
        record.slices.iter().map(|row| row.epoch).collect();
    assert_eq!(epochs.into_iter().collect::<Vec<_>>(), [0, 1]);

    // A finished record is not run again.
    let again = lab.resume();
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("is over"),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_server_that_dies_is_started_again_and_its_slice_is_lost() {
    let lab = Lab::new(&with_budget(&self_duel(""), "12 s"));
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 2);
    let victim = servers_left()[0].0;
    kill(Pid::from_raw(victim), Signal::SIGKILL).unwrap();
    let code = lab.exit_code(&mut run, Duration::from_secs(120));
    assert!(matches!(code, Some(0 | 3)), "{code:?}: {}", lab.said());
    let record = lab.record();
    assert_eq!(
        count(&record, |event| matches!(event, Event::ServerDied { .. })),
        1,
        "{}",
        lab.said()
    );
    assert_eq!(
        count(
            &record,
            |event| matches!(event, Event::ServerRecovered { seconds, .. } if *seconds > 0.0)
        ),
        1
    );
    // A busy machine may lose others, for other reasons.
    assert!(count(&record, |event| matches!(event, Event::SliceLost { .. })) >= 1);
    assert_eq!(servers_left(), []);
}

/// How often servers ended after they were started again, before they were warm.
fn deaths_in_warm_up(record: &Record) -> usize {
    let mut deaths = 0;
    let mut cold = HashSet::new();
    for event in &record.events {
        match &event.what {
            Event::ServerRecovered { contender, .. } => {
                cold.insert(contender);
            }
            Event::WarmedUp { contender, .. } => {
                cold.remove(contender);
            }
            Event::ServerDied { contender, .. } if cold.contains(contender) => deaths += 1,
            _ => {}
        }
    }
    deaths
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_load_process_or_a_server_that_is_killed_costs_a_slice_even_when_it_is_killed_again_in_its_warm_up()
 {
    // A warm-up that is not over before the second kill.
    let schedule = "slice = \"100 ms\"\nguard = \"10 ms\"\nwarm_up = \"4 s\"\n";
    let lab = Lab::new(&with_budget(
        &with_schedule(&self_duel(""), schedule),
        "10 min",
    ));
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 2);
    let killed = |pid| kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    killed(load_process(&run).unwrap());
    let is_lost = |event: &Event| matches!(event, Event::SliceLost { .. });
    let is_recovered = |event: &Event| matches!(event, Event::ServerRecovered { .. });
    let mut wait = |what: &str, is_wanted: &dyn Fn(&Event) -> bool, wanted| {
        lab.wait_until(&mut run, what, || {
            let record = lab.begun();
            record.is_some_and(|record| count(&record, is_wanted) >= wanted)
        });
    };
    wait("lost slice", &is_lost, 1);
    let finished = lab.record().finished_slices().count();
    let is_finished = |event: &Event| matches!(event, Event::SliceFinished { .. });
    wait("slice of a new load process", &is_finished, finished + 2);

    let victim = servers_left()[0].clone();
    killed(victim.0);
    // On a busy machine a kill may come after the warm-up.
    for recovered in 1..=3 {
        wait("recovered server", &is_recovered, recovered);
        if deaths_in_warm_up(&lab.record()) > 0 {
            break;
        }
        let again = servers_left();
        killed(again.iter().find(|(_, line)| *line == victim.1).unwrap().0);
        wait("server that recovered again", &is_recovered, recovered + 1);
    }
    let finished = lab.record().finished_slices().count();
    wait("slice after that", &is_finished, finished + 2);
    signal(&run, Signal::SIGINT);
    let code = lab.exit_code(&mut run, Duration::from_secs(60));
    assert_eq!(code, Some(130), "{}", lab.said());
    let record = lab.record();
    let lost = record.events.iter().filter_map(|event| match &event.what {
        Event::SliceLost { why, .. } => Some(why.as_str()),
        _ => None,
    });
    let lost: Vec<&str> = lost.collect();
    assert_eq!(deaths_in_warm_up(&record), 1, "{:?}", record.events);
    // A busy machine may lose others, for other reasons.
    let killed = "the load process ended: signal: 9 (SIGKILL)";
    assert_eq!(
        lost.iter().filter(|why| **why == killed).count(),
        1,
        "{lost:?}"
    );
    assert_eq!(servers_left(), []);
}

#[test(lab, needs = &["mariadb-10.11"])]
fn one_interrupt_finishes_the_slice_and_the_record_goes_on_later() {
    let lab = Lab::new(&self_duel(""));
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 3);
    signal(&run, Signal::SIGINT);
    assert_eq!(
        lab.exit_code(&mut run, Duration::from_secs(60)),
        Some(130),
        "{}",
        lab.said()
    );
    assert_eq!(servers_left(), []);
    let record = lab.record();
    let started = count(&record, |event| matches!(event, Event::SliceStarted { .. }));
    assert_eq!(
        started,
        record.finished_slices().count(),
        "what was begun was finished"
    );
    assert_eq!(
        count(&record, |event| matches!(
            event,
            Event::Ended {
                reason: EndReason::Interrupted
            }
        )),
        1
    );
    assert!(
        lab.record_dir().join("report.html").is_file(),
        "a report of what there is"
    );

    let mut again = lab.spawn_resumed();
    lab.wait_for_slices(&mut again, record.finished_slices().count() + 1);
    lab.interrupt(&mut again);
}

#[test(lab, needs = &["mariadb-10.11"])]
fn two_interrupts_end_it_at_once_without_leaving_a_server() {
    // A slice that is over before the run ends only if that waits for it.
    let text = with_schedule(&self_duel(""), "slice = \"30 s\"\nwarm_up = \"300 ms\"\n");
    let lab = Lab::new(&with_budget(&text, "20 min"));
    let mut run = lab.spawn();
    lab.wait_until(&mut run, "slice that began", || {
        let is_start = |event: &Event| matches!(event, Event::SliceStarted { .. });
        lab.begun()
            .is_some_and(|record| count(&record, is_start) > 0)
    });
    // Of different kinds, because two of one kind may arrive as one.
    signal(&run, Signal::SIGINT);
    signal(&run, Signal::SIGTERM);
    assert_eq!(
        lab.exit_code(&mut run, Duration::from_secs(120)),
        Some(130),
        "{}",
        lab.said()
    );
    assert_eq!(lab.record().finished_slices().count(), 0);
    assert_eq!(servers_left(), []);
}

#[test(needs = &["mariadb-10.11"])]
fn a_refused_setting_of_any_contender_is_said_before_anything_is_loaded() {
    let text = self_duel("");
    let second = text.rfind("innodb_buffer_pool_size").unwrap();
    let misspelt = format!(
        "{}innodb_bufer_pool_size{}",
        &text[..second],
        &text[second + "innodb_buffer_pool_size".len()..]
    );
    let lab = Lab::new(&misspelt);
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("duel.toml:9:14: "), "{said}");
    assert!(
        said.contains("did you mean `innodb_buffer_pool_size`?"),
        "{said}"
    );
    assert!(!said.contains("loading"), "{said}");
    assert_eq!(servers_left(), []);
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_record_that_is_being_written_is_left_alone() {
    // It is not decided, and its budget does not end before the test has looked.
    let text = self_duel("").replace("25 %", "0.1 %");
    let lab = Lab::new(&with_budget(&text, "1 min"));
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 2);
    let second = lab.resume();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("being written by another dbduel"), "{said}");
    let slices = lab.record().finished_slices().count();
    lab.wait_for_slices(&mut run, slices + 1);
    lab.interrupt(&mut run);
    assert_eq!(
        count(&lab.record(), |event| matches!(
            event,
            Event::Started { .. }
        )),
        1
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_disk_that_fills_up_costs_no_finished_slice_and_the_record_is_whole_when_it_was_resumed() {
    let disk = match SmallDisk::mount(8192) {
        Ok(disk) => disk,
        Err(why) => return skip_always(&why),
    };
    let text = with_schedule(
        &self_duel("[limits]\nfree_disk = \"1 KiB\"\n"),
        "slice = \"5 s\"\nguard = \"50 ms\"\nwarm_up = \"300 ms\"\n",
    );
    let experiment = with_budget(&text, "10 min");
    let lab = Lab::with_results(&experiment, disk.path().join("results"));
    let mut run = lab.spawn();
    // In a slice, so that the room ends while its rows are written and not before: that would be found beforehand.
    lab.wait_until(&mut run, "slice under way after one", || {
        let record = lab.begun();
        record.is_some_and(|record| {
            let last = record.events.last().map(|event| &event.what);
            record.finished_slices().count() >= 1
                && matches!(last, Some(Event::SliceStarted { .. }))
        })
    });
    disk.fill();
    let code = lab.exit_code(&mut run, Duration::from_secs(60));
    assert_eq!(code, Some(1), "{}", lab.said());
    assert!(lab.said().contains("No space left"), "{}", lab.said());
    assert_eq!(servers_left(), []);
    let before = lab.record();
    assert!(before.finished_slices().count() >= 1);
    let (code, said) = verify(&lab.record_dir());
    assert_eq!(code, Some(3), "nothing was changed: {said}");

    disk.empty();
    let mut again = lab.spawn_resumed();
    lab.wait_for_slices(&mut again, before.finished_slices().count() + 1);
    lab.interrupt(&mut again);
    let after = lab.record();
    assert!(after.finished_slices().count() > before.finished_slices().count());
    assert_eq!(after.slices[..before.slices.len()], before.slices);
    assert_eq!(after.latencies[..before.latencies.len()], before.latencies);
    assert_eq!(after.complaints, []);
    assert_verified(&lab.record_dir());
}

#[test(needs = &["mariadb-10.11"])]
fn a_disk_without_room_stops_the_contest_with_an_intact_record() {
    // No file system has this much room, so the guard must speak before the first block.
    let lab = Lab::new(&self_duel("[limits]\nfree_disk = \"4000 TiB\"\n"));
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("MiB left") && said.contains("make room"),
        "{said}"
    );
    let record = lab.record();
    assert_eq!(record.complaints, []);
    assert_eq!(
        count(&record, |event| matches!(
            event,
            Event::Ended {
                reason: EndReason::Failed
            }
        )),
        1
    );
    assert_eq!(servers_left(), []);
    assert!(
        program()
            .arg("report")
            .arg(lab.record_dir())
            .status()
            .unwrap()
            .success()
    );
}
