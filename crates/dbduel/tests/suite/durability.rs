//! Is what a server acknowledged still there after a kill? The durability log against real servers.

use std::time::Duration;

use dbduel_record::Record;
use dbduel_record::commits::{CommitRange, coalesce};
use dbduel_record::event::{Event, Notice, Severity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::lab::{Lab, count, servers_left};

/// Runs in which a loss is looked for; a kill that comes right after a flush shows none.
const ATTEMPTS: u32 = 3;

/// Order entry on two like servers, over in about a minute.
fn orders(flush: u32) -> String {
    let contender = format!(
        "server = \"mariadb-10.11\"\nsettings = {{ innodb_buffer_pool_size = \"32M\", \
         innodb_flush_log_at_trx_commit = {flush}, innodb_log_file_size = \"8M\" }}\n"
    );
    format!(
        "budget = \"10 min\"\nhorizon = \"25 %\"\nseed = 7\n\
         [contenders.first]\n{contender}[contenders.second]\n{contender}\
         [workload]\nname = \"order-entry\"\nwarehouses = 1\nscale = 0.02\n\
         [load]\nclients = 8\n\
         [schedule]\nslice = \"4 s\"\nguard = \"100 ms\"\nwarm_up = \"1 s\"\n"
    )
}

/// Runs a contest, kills the server of a running slice in the middle of it, and reads the record.
fn killed_in_a_slice(flush: u32) -> (Lab, Record) {
    let lab = Lab::new(&orders(flush));
    let mut run = lab.spawn();
    let mut awake = None;
    lab.wait_until(&mut run, "begun slice", || {
        let record = lab.begun();
        awake = record.and_then(|record| match &record.events.last()?.what {
            Event::SliceStarted { contender, .. } => Some(contender.clone()),
            _ => None,
        });
        awake.is_some()
    });
    let folder = format!("-{}/", awake.unwrap());
    // In the first fifth of the slice, so that the kill comes within it.
    std::thread::sleep(Duration::from_millis(700));
    let (victim, _) = servers_left()
        .into_iter()
        .find(|(_, line)| line.contains(&folder))
        .unwrap();
    kill(Pid::from_raw(victim), Signal::SIGKILL).unwrap();
    // Its log is compared with its tables before anything else is done.
    lab.wait_until(&mut run, "server that serves again", || {
        lab.begun().is_some_and(|record| {
            count(&record, |event| {
                matches!(event, Event::ServerRecovered { .. })
            }) > 0
                && record.finished_slices().count() > 0
        })
    });
    lab.interrupt(&mut run);
    let record = lab.record();
    assert_eq!(
        count(&record, |event| matches!(event, Event::ServerDied { .. })),
        1,
        "{}",
        lab.said()
    );
    assert_eq!(servers_left(), []);
    (lab, record)
}

fn notices<'a>(record: &'a Record, rule: &str) -> Vec<&'a Notice> {
    let noticed = record.events.iter().filter_map(|event| match &event.what {
        Event::Noticed { notice } if notice.rule == rule => Some(notice),
        _ => None,
    });
    noticed.collect()
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_server_that_flushes_at_every_commit_keeps_all_of_them_through_a_kill() {
    let (lab, record) = killed_in_a_slice(1);
    let kept = notices(&record, "data.commits-kept");
    assert_eq!(kept.len(), 1, "{}", lab.said());
    assert_eq!(kept[0].severity, Severity::Note);
    for rule in [
        "data.commits-lost",
        "data.commits-unknown",
        "data.condition-violated",
    ] {
        assert_eq!(notices(&record, rule), Vec::<&Notice>::new());
    }
    for contender in ["first", "second"] {
        let log = coalesce(record.commits_of(contender));
        let orders: u64 = log.ranges.iter().map(CommitRange::count).sum();
        assert!(orders > 0, "{contender}");
        assert_eq!(log.repeated, 0, "{contender}");
    }
    for files in &record.contenders {
        let before = files.conditions_before.as_ref().unwrap();
        let after = files.conditions_after.as_ref().unwrap();
        assert_eq!((before.conditions.len(), after.conditions.len()), (17, 16));
    }
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_server_that_flushes_once_a_second_is_seen_to_lose_commits() {
    for attempt in 1..=ATTEMPTS {
        let (lab, record) = killed_in_a_slice(0);
        let lost = notices(&record, "data.commits-lost");
        let kept = notices(&record, "data.commits-kept");
        assert_eq!(lost.len() + kept.len(), 1, "{}", lab.said());
        let Some(lost) = lost.first() else {
            assert!(attempt < ATTEMPTS, "nothing was lost in {ATTEMPTS} kills");
            continue;
        };
        assert_eq!(lost.severity, Severity::Doubt);
        assert!(
            lost.claim.contains("innodb_flush_log_at_trx_commit = 0"),
            "{}",
            lost.claim
        );
        // The numbers were handed out again, so the log alone proves the loss to any later reader.
        let contender = &lost.about[0];
        assert!(coalesce(record.commits_of(contender)).repeated > 0);
        return;
    }
}
