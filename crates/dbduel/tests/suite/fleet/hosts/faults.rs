//! Faults of load hosts, of nats-server and of the orchestrator while load comes from two hosts.

use std::thread::sleep;
use std::time::{Duration, Instant};

use dbduel_record::Record;
use dbduel_record::event::Event;
use dbduel_record::rows::SliceRow;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::machines::Machines;
use super::{HOSTS, SERVER, two_hosts, two_hosts_for_long, without_agents};
use crate::suite::chaos::clock::Clock;
use crate::suite::harness::skip;
use crate::suite::lab::{assert_verified, signal};

/// Why slices were lost.
pub fn reasons(record: &Record) -> Vec<&str> {
    let events = record.events.iter();
    let lost = events.filter_map(|event| match &event.what {
        Event::SliceLost { why, .. } => Some(why.as_str()),
        _ => None,
    });
    lost.collect()
}

/// A slice was lost for a reason that names the load host.
#[track_caller]
fn assert_slice_lost_by(record: &Record, host: &str) {
    let reasons = reasons(record);
    let name = format!("load host `{host}`");
    assert!(reasons.iter().any(|why| why.contains(&name)), "{reasons:?}");
}

/// The record of a contest, which has all rows of finished slices that it had `before`, and more; its agents drive no load.
#[track_caller]
fn assert_continued(machines: &Machines, results: &str, before: &[SliceRow]) -> Record {
    let after = machines.finished(results);
    assert!(after.starts_with(before), "{before:?}");
    assert!(after.len() > before.len(), "nothing was measured after it");
    assert_verified(&machines.record_dir(results).unwrap());
    machines.wait_for_idle_agents();
    machines.record(results)
}

/// Claims of the notices about hosts that were lost.
fn lost_hosts(record: &Record) -> Vec<&str> {
    let notices = record.events.iter().filter_map(|event| match &event.what {
        Event::Noticed { notice } if notice.rule == "load.host-lost" => Some(notice.claim.as_str()),
        _ => None,
    });
    notices.collect()
}

#[test(lab, needs = &[SERVER])]
fn a_load_host_that_is_cut_off_for_two_seconds_loses_slices_by_name() {
    let Some(machines) = two_hosts() else {
        return;
    };
    let run = machines.begin("cut", 2);
    let before = machines.finished("cut");
    machines.cut("load1");
    sleep(Duration::from_secs(2));
    machines.heal("load1");
    machines.complete(run, "cut");
    let record = assert_continued(&machines, "cut", &before);
    assert_slice_lost_by(&record, "load1");
}

#[test(lab, needs = &[SERVER])]
fn a_killed_agent_ends_the_contest_by_name_and_the_record_is_resumed() {
    let Some(mut machines) = two_hosts_for_long() else {
        return;
    };
    let run = machines.begin("killed", 2);
    machines.stop_agent("load2", Signal::SIGKILL);
    let (code, said) = machines.finish(run, "killed");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("load host `load2`: no such agent answers"),
        "{said}"
    );
    let before = machines.finished("killed");
    machines.wait_for_idle_agents();

    machines.start_agent("load2");
    let dir = machines.record_dir("killed").unwrap();
    machines.run(dir.to_str().unwrap(), "resumed");
    let record = assert_continued(&machines, "killed", &before);
    assert_slice_lost_by(&record, "load2");
}

#[test(lab, needs = &[SERVER])]
fn an_agent_that_is_killed_and_started_again_drives_load_again() {
    let Some(mut machines) = two_hosts() else {
        return;
    };
    let run = machines.begin("again", 2);
    let before = machines.finished("again");
    machines.stop_agent("load2", Signal::SIGKILL);
    machines.start_agent("load2");
    machines.complete(run, "again");
    let record = assert_continued(&machines, "again", &before);
    let lost = lost_hosts(&record);
    assert_eq!(lost.len(), 1, "{lost:?}");
    let named = "load host `load2` has ended its session";
    assert!(lost[0].contains(named), "{lost:?}");
}

/// Shorter than the longest break that a contest survives with all its processes.
const BREAK: Duration = Duration::from_secs(25);

#[test(lab, needs = &[SERVER])]
fn a_host_that_is_cut_off_for_half_a_minute_keeps_its_load_process() {
    let Some(machines) = two_hosts_for_long() else {
        return;
    };
    let run = machines.begin("break", 2);
    let before = machines.finished("break");
    machines.cut("load1");
    sleep(BREAK);
    machines.heal("load1");
    machines.complete(run, "break");
    let record = assert_continued(&machines, "break", &before);
    assert_eq!(lost_hosts(&record), Vec::<&str>::new());
}

#[test(lab, needs = &[SERVER])]
fn a_nats_server_that_is_killed_and_restarted_costs_no_finished_slice() {
    let Some(mut machines) = two_hosts_for_long() else {
        return;
    };
    let mut run = machines.begin("restarted", 2);
    machines.restart_nats(Duration::ZERO);
    let finished = machines.finished("restarted").len();
    machines.wait_for_slices(&mut run, "restarted", finished + 2);
    let before = machines.finished("restarted");
    machines.restart_nats(BREAK);
    machines.complete(run, "restarted");
    let record = assert_continued(&machines, "restarted", &before);
    assert_eq!(lost_hosts(&record), Vec::<&str>::new());
}

/// Longer than hosts may be silent.
const NATS_AWAY: Duration = Duration::from_secs(45);

#[test(soak, needs = &[SERVER])]
fn a_nats_server_that_is_away_for_long_is_named_and_the_contest_continues() {
    let Some(mut machines) = two_hosts_for_long() else {
        return;
    };
    let run = machines.begin("away", 2);
    let before = machines.finished("away");
    machines.restart_nats(NATS_AWAY);
    machines.complete(run, "away");
    let record = assert_continued(&machines, "away", &before);
    let lost = lost_hosts(&record);
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].contains("nats-server at nats://"), "{lost:?}");
}

#[test(lab, needs = &[SERVER])]
fn an_orchestrator_that_is_killed_frees_its_hosts_and_its_record_is_resumed() {
    let Some(machines) = two_hosts() else {
        return;
    };
    let mut run = machines.begin("killed", 2);
    signal(&run, Signal::SIGKILL);
    run.wait().unwrap();
    let before = machines.finished("killed");
    machines.wait_for_idle_agents();
    let shown = machines.output(&["fleet", "agents"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("load") && !shown.contains("drives"),
        "{shown}"
    );
    let dir = machines.record_dir("killed").unwrap();
    machines.run(dir.to_str().unwrap(), "resumed");
    let record = assert_continued(&machines, "killed", &before);
    assert_eq!(lost_hosts(&record), Vec::<&str>::new());
}

const RESET_EVERY: Duration = Duration::from_secs(3);

#[test(lab, needs = &[SERVER])]
fn connections_to_nats_that_are_reset_again_and_again_end_no_contest() {
    let Some(mut machines) = without_agents() else {
        return;
    };
    let Some((relay, url)) = machines.relay(Duration::ZERO) else {
        return;
    };
    for name in HOSTS {
        machines.start_agent_by(&url, name);
    }
    let mut run = machines.begin("reset", 2);
    let before = machines.finished("reset");
    let mut resets = 0;
    while run.try_wait().unwrap().is_none() {
        resets += usize::from(relay.reset() > 0);
        sleep(RESET_EVERY);
    }
    machines.complete(run, "reset");
    let record = assert_continued(&machines, "reset", &before);
    assert!(resets >= 2, "{resets}");
    // All are connected again long before a host counts as lost.
    assert_eq!(lost_hosts(&record), Vec::<&str>::new());
}

/// Longer than a tenth of a slice, there and back.
const FAR: Duration = Duration::from_millis(20);

#[test(lab, needs = &[SERVER])]
fn turns_shorter_than_ten_round_trips_are_refused_with_the_length_to_set() {
    let Some(mut machines) = without_agents() else {
        return;
    };
    let Some((_relay, url)) = machines.relay(FAR) else {
        return;
    };
    for name in HOSTS {
        machines.start_agent_by(&url, name);
    }
    let refused = machines.output(&["run", "duel.toml", "--results", "refused"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    for part in [
        "round trip to the hosts",
        "turns of",
        "set `slice = \"",
        "in [schedule]",
    ] {
        assert!(said.contains(part), "{said}");
    }
    machines.wait_for_idle_agents();
}

#[test(lab, needs = &[SERVER])]
fn hosts_behind_narrow_lines_finish_the_contest() {
    let Some(machines) = two_hosts() else {
        return;
    };
    // Enough for the statements of four clients some hundred times a second, and for the lines of the link.
    if !HOSTS.iter().all(|name| machines.narrow(name, "2mbit")) {
        return;
    }
    let run = machines.begin("narrow", 2);
    let before = machines.finished("narrow");
    machines.complete(run, "narrow");
    let record = assert_continued(&machines, "narrow", &before);
    assert_eq!(lost_hosts(&record), Vec::<&str>::new());
}

/// Seconds.
const STEP_S: i64 = 10;
/// Shorter than a slice.
const STEP_EVERY: Duration = Duration::from_millis(200);
/// Seconds.
const AHEAD_S: u32 = 1000;

#[test(lab, needs = &[SERVER])]
fn a_wall_clock_that_is_stepped_and_a_monotonic_clock_that_is_ahead_move_no_slice() {
    let Some(mut machines) = without_agents() else {
        return;
    };
    let mut clock = match Clock::build() {
        Ok(clock) => clock,
        Err(why) => return skip(&format!("no clock of its own: {why}")),
    };
    let [stepped, ahead] = HOSTS;
    machines.start_agent_with_clock(stepped, &clock);
    if !machines.start_agent_ahead(ahead, AHEAD_S) {
        return;
    }
    clock.step(STEP_S);
    // The agents' wall clocks differ by the step.
    let shown = machines.output(&["fleet", "agents", "--json"]);
    let agents: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let seconds_of = |name: &str| {
        let mut agents = agents.as_array().unwrap().iter();
        let found = agents.find(|one| one["agent"]["name"] == name).unwrap();
        found["clock"]["offset_us"].as_f64().unwrap() / 1e6
    };
    assert!(
        seconds_of(stepped) > 9.0 && seconds_of(ahead) < 1.0,
        "{agents:#}"
    );
    let mut run = machines.begin("stepped", 2);
    let before = machines.finished("stepped");
    let mut steps = 0;
    while run.try_wait().unwrap().is_none() {
        steps += 1;
        clock.step(if steps % 2 == 0 { STEP_S } else { -STEP_S });
        sleep(STEP_EVERY);
    }
    machines.complete(run, "stepped");
    let record = assert_continued(&machines, "stepped", &before);
    // A busy machine may cost single slices.
    let (lost, finished) = (reasons(&record), machines.finished("stepped").len());
    assert!(
        lost.len() * 4 < finished,
        "{finished} slices, lost: {lost:?}"
    );
    assert_eq!(lost_hosts(&record), Vec::<&str>::new());
    // A slice that begins by a wall clock would begin up to a step later.
    let waits = record.readings.iter();
    let waits = waits.filter(|row| row.metric == "orchestration_ms");
    let waits: Vec<f64> = waits.map(|row| row.value).collect();
    assert!(
        waits.len() >= finished && waits.iter().all(|ms| *ms < 5000.0),
        "{waits:?}"
    );
}

const MINUTE: Duration = Duration::from_secs(60);

#[test(soak, needs = &[SERVER])]
fn a_load_host_that_is_cut_off_for_a_minute_is_waited_for() {
    let Some(machines) = two_hosts_for_long() else {
        return;
    };
    let run = machines.begin("minute", 2);
    let before = machines.finished("minute");
    machines.cut("load1");
    let cut = Instant::now();
    // Also on the host that is cut off.
    machines.wait_for_idle_agents();
    sleep(MINUTE.saturating_sub(cut.elapsed()));
    machines.heal("load1");
    machines.complete(run, "minute");
    let record = assert_continued(&machines, "minute", &before);
    assert_slice_lost_by(&record, "load1");
    let lost = lost_hosts(&record);
    assert!(
        lost.iter()
            .any(|claim| claim.contains("load host `load1` is out of reach")),
        "{lost:?}"
    );
}
