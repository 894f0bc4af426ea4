//! Contests whose servers run on other machines.

use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use dbduel_record::Record;
use dbduel_record::event::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::contests::PRODUCTS;
use super::faults::reasons;
use super::machines::Machines;
use super::{BUDGET, LONG_BUDGET, SERVER, experiment};
use crate::suite::lab::{
    assert_verified, check_refused, home, short_experiment, signal, with_budget,
};

const DB1: &str = "db1";
const DB2: &str = "db2";
const LOAD: &str = "load1";

/// A duel of equal servers, each on a machine of its own.
fn two_machines() -> String {
    let equal = short_experiment([SERVER, SERVER], "[limits]\nserver_start = \"60 s\"\n");
    let placed = |text: String, name: &str, host: &str| {
        let section = format!("[contenders.{name}]\n");
        text.replacen(&section, &format!("{section}host = \"{host}\"\n"), 1)
    };
    placed(placed(equal, "first", DB1), "second", DB2)
}

/// That duel with time for a host that is out of reach.
fn with_outage() -> String {
    with_budget(&two_machines(), BUDGET)
}

/// As [`with_outage`], for a host that is out of reach for longer than a contest bears its silence.
fn with_long_outage() -> String {
    with_budget(&two_machines(), LONG_BUDGET)
}

/// The turn to run contests, and machines with the agents of those for servers; `None`, and the test counts as ignored, where
/// that is not possible.
fn with_server_agents(experiment: &str) -> Option<Machines> {
    let mut machines = Machines::start(&[DB1, DB2, LOAD], experiment)?;
    for name in [DB1, DB2] {
        machines.start_server_agent(name);
    }
    Some(machines)
}

/// A text without its line breaks.
fn words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The contest ended with all it should have, and its servers were sampled where they ran.
#[track_caller]
fn assert_sampled(machines: &Machines, results: &str) -> Record {
    let rows = machines.finished(results);
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.ok > 0 && row.failed == 0, "{row:?}");
    }
    assert_verified(&machines.record_dir(results).unwrap());
    let record = machines.record(results);
    for contender in ["first", "second"] {
        let mut readings = record.readings.iter();
        let found = |source: &str, metric: &str| {
            readings.any(|row| {
                (row.contender.as_str(), row.source.as_str()) == (contender, source)
                    && row.metric == metric
                    && row.value > 0.0
            })
        };
        let mut found = found;
        assert!(found("server", "cpu_user_s"), "{contender}");
    }
    record
}

#[test(lab, needs = &[SERVER])]
fn servers_on_two_other_machines_take_turns_and_the_scope_names_the_machines() {
    let Some(machines) = with_server_agents(&two_machines()) else {
        return;
    };
    let said = words(&machines.run("duel.toml", "machines"));
    let scope = "on these machines (`first` on db1, `second` on db2)";
    assert!(said.contains(scope), "{said}");
    for of_one_machine in ["are identical", "One machine and one storage device"] {
        assert!(!said.contains(of_one_machine), "{said}");
    }
    let record = assert_sampled(&machines, "machines");
    // Loaded on one host, and shared with the other.
    let ready = record.events.iter().filter_map(|event| match &event.what {
        Event::DatasetReady { restored, load, .. } => Some((*restored, load.is_some())),
        _ => None,
    });
    assert_eq!(ready.collect::<Vec<_>>(), [(false, true), (true, false)]);
    let said = machines.said_by(DB2);
    assert!(said.contains("fetched the data"), "{said}");
    let hosts = record.host.server_hosts.iter();
    let hosts: Vec<&str> = hosts.map(|host| host.name.as_str()).collect();
    assert_eq!(hosts, [DB1, DB2]);
    // Both are this machine.
    assert_eq!(record.host.cpus, record.host.server_hosts[1].facts.cpus);
    let dir = machines.record_dir("machines").unwrap();
    let config = dir.join("contenders/first/server.cnf");
    let config = std::fs::read_to_string(config).unwrap();
    assert!(config.contains(&machines.address_of(DB1)), "{config}");
    let log = std::fs::read_to_string(dir.join("contenders/second/server.log")).unwrap();
    assert!(log.contains("ready for connections"), "{log}");
}

#[test(lab, needs = &[SERVER])]
fn servers_on_one_machine_with_load_from_another_give_the_verdict_of_one_machine() {
    let hosts = format!("[hosts]\nservers = \"{DB1}\"\nload = [\"{LOAD}\"]\n");
    // More blocks than a verdict needs; the contest ends with it.
    let longer = with_budget(&experiment(&hosts), BUDGET);
    let Some(mut machines) = with_server_agents(&longer) else {
        return;
    };
    machines.start_agent(LOAD);
    let said = words(&machines.run("duel.toml", "three"));
    assert!(
        said.contains("on one machine (db1), under load from load1"),
        "{said}"
    );
    let report = machines.published("three");
    let comparison = &report["summary"]["duels"][0]["comparisons"][0];
    assert_eq!(comparison["verdict"], "slower", "{comparison:#}");
    let record = assert_sampled(&machines, "three");
    let mut stopped = record.readings.iter();
    assert!(stopped.any(|row| row.metric == "server_stopped_s" && row.value > 0.0));
    machines.wait_for_idle_agents();
}

#[test(lab, needs = &[SERVER])]
fn a_stall_of_a_server_on_its_host_outlasts_turns() {
    let stalls = "[injection]\ncontender = \"second\"\nstall = \"1 s\"\nevery = \"1 s to 3 s\"\n";
    let stalled = format!("{}{stalls}", with_outage()).replacen("25 %", "0.1 %", 1);
    let Some(machines) = with_server_agents(&stalled) else {
        return;
    };
    machines.run("duel.toml", "stalled");
    assert_verified(&machines.record_dir("stalled").unwrap());
    let record = machines.record("stalled");
    let stopped = record.readings.iter();
    let stopped = stopped.filter(|row| row.metric == "server_stopped_s");
    let longest_s = stopped.map(|row| row.value).fold(0.0, f64::max);
    // Slices take 0.1 s and a guard of 0.01 s.
    assert!(longest_s > 0.6, "{longest_s}");
}

#[test(lab, needs = &[SERVER])]
fn a_server_that_dies_on_its_host_is_started_again_there() {
    let Some(machines) = with_server_agents(&with_outage()) else {
        return;
    };
    let run = machines.begin("died", 2);
    let before = machines.finished("died");
    let shown = machines.output(&["fleet", "agents"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("servers, runs those of"), "{shown}");
    let (pid, _) = machines.servers_on(DB1).remove(0);
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    machines.complete(run, "died");
    let record = assert_sampled(&machines, "died");
    assert!(machines.finished("died").starts_with(&before));
    let recovered = record.events.iter();
    let recovered = recovered.filter(|event| matches!(event.what, Event::ServerRecovered { .. }));
    assert_eq!(recovered.count(), 1);
}

#[test(lab, needs = &[SERVER])]
fn a_killed_agent_ends_its_servers_and_the_contest_by_name_and_the_record_is_resumed() {
    let Some(mut machines) = with_server_agents(&with_long_outage()) else {
        return;
    };
    let run = machines.begin("killed", 2);
    machines.stop_agent(DB2, Signal::SIGKILL);
    let (code, said) = machines.finish(run, "killed");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("server host `db2`: no such agent"), "{said}");
    for name in [DB1, DB2] {
        machines.wait_for_no_servers_on(name);
    }
    machines.start_server_agent(DB2);
    assert_resumed(&machines, "killed");
}

/// Resumes a contest, which measures more.
#[track_caller]
fn assert_resumed(machines: &Machines, results: &str) {
    let before = machines.finished(results);
    let dir = machines.record_dir(results).unwrap();
    machines.run(dir.to_str().unwrap(), "resumed");
    let after = machines.finished(results);
    assert!(after.starts_with(&before), "{before:?}");
    assert!(after.len() > before.len(), "nothing was measured after it");
    assert_verified(&dir);
}

#[test(lab, needs = &[SERVER])]
fn a_killed_orchestrator_has_its_servers_ended_and_its_record_is_resumed() {
    let Some(machines) = with_server_agents(&two_machines()) else {
        return;
    };
    let mut run = machines.begin("killed", 2);
    signal(&run, Signal::SIGKILL);
    run.wait().unwrap();
    for name in [DB1, DB2] {
        machines.wait_for_no_servers_on(name);
    }
    assert_resumed(&machines, "killed");
}

#[test(lab, needs = &[SERVER])]
fn a_contest_that_ends_while_it_is_prepared_leaves_no_server_when_its_agents_are_free() {
    let Some(machines) = with_server_agents(&two_machines()) else {
        return;
    };
    for (results, end) in [("killed", Signal::SIGKILL), ("asked", Signal::SIGINT)] {
        let mut run = machines.begin_to_prepare(results, DB1);
        signal(&run, end);
        run.wait().unwrap();
        machines.wait_for_idle_agents();
        for name in [DB1, DB2] {
            assert_eq!(machines.servers_on(name), [], "{results}");
        }
    }
    let record = machines.record("asked");
    let mut events = record.events.iter();
    assert!(!events.any(|event| matches!(event.what, Event::ServerDied { .. })));
    machines.run("duel.toml", "after");
}

#[test(lab, needs = &[SERVER])]
fn servers_whose_process_on_the_host_is_killed_are_ended_and_started_again() {
    let Some(machines) = with_server_agents(&with_outage()) else {
        return;
    };
    let run = machines.begin("killed", 2);
    let before = machines.finished("killed");
    let (first, _) = machines.servers_on(DB2).remove(0);
    machines.kill_work_of(DB2);
    machines.complete(run, "killed");
    assert!(machines.finished("killed").starts_with(&before));
    let record = assert_sampled(&machines, "killed");
    let mut events = record.events.iter();
    let is_named = |event: &Event| matches!(event, Event::ServerDied { contender, how } if contender == "second" && how.contains("its process ended"));
    assert!(events.any(|event| is_named(&event.what)));
    assert!(kill(Pid::from_raw(first), None).is_err(), "it was left");
}

#[test(lab, needs = &[SERVER])]
fn servers_of_two_machines_are_restarted_for_an_epoch() {
    let text = with_outage().replacen("[schedule]\n", "[schedule]\nepochs = 3\n", 1);
    let Some(machines) = with_server_agents(&text) else {
        return;
    };
    machines.run("duel.toml", "epochs");
    let record = assert_sampled(&machines, "epochs");
    let mut events = record.events.iter();
    assert!(events.any(|event| event.what == Event::EpochStarted { epoch: 1 }));
    let mut events = record.events.iter();
    assert!(!events.any(|event| matches!(event.what, Event::ServerDied { .. })));
}

#[test(lab, needs = &[SERVER])]
fn servers_that_were_left_with_a_killed_agent_are_ended_by_the_next_contest() {
    let Some(mut machines) = with_server_agents(&with_long_outage()) else {
        return;
    };
    let run = machines.begin("left", 2);
    machines.kill_agent_with_its_work(DB2);
    let (code, said) = machines.finish(run, "left");
    assert_eq!(code, Some(1), "{said}");
    machines.wait_for_no_servers_on(DB1);
    let left = machines.servers_on(DB2);
    assert_eq!(left.len(), 1, "{left:?}");
    machines.start_server_agent(DB2);
    assert_resumed(&machines, "left");
    let said = machines.said_by(DB2);
    assert!(said.contains("left behind by an earlier run"), "{said}");
}

#[test(lab, needs = &[SERVER])]
fn server_hosts_that_are_cut_off_for_two_seconds_lose_slices_by_name() {
    let Some(machines) = with_server_agents(&with_outage()) else {
        return;
    };
    let mut run = machines.begin("cut", 2);
    let before = machines.finished("cut");
    let is_named = |record: &Record| {
        let by_name =
            |why: &&str| why.starts_with("server host `db") && why.contains("out of reach");
        reasons(record).iter().any(by_name)
    };
    // A cut between two turns costs no slice.
    while run.try_wait().unwrap().is_none() && !is_named(&machines.record("cut")) {
        for name in [DB1, DB2] {
            machines.cut(name);
        }
        sleep(Duration::from_secs(2));
        for name in [DB1, DB2] {
            machines.heal(name);
        }
        sleep(Duration::from_secs(2));
    }
    machines.complete(run, "cut");
    assert!(machines.finished("cut").starts_with(&before));
    let record = assert_sampled(&machines, "cut");
    assert!(is_named(&record), "{:?}", reasons(&record));
}

/// Shorter than the longest break that a contest survives with all its processes.
const BREAK: Duration = Duration::from_secs(12);

#[test(lab, needs = &[SERVER])]
fn a_server_host_that_is_cut_off_for_some_seconds_keeps_its_server() {
    let Some(machines) = with_server_agents(&with_outage()) else {
        return;
    };
    let run = machines.begin("break", 2);
    let before = machines.finished("break");
    let servers = machines.servers_on(DB1);
    machines.cut(DB1);
    sleep(BREAK);
    assert_eq!(machines.servers_on(DB1), servers);
    machines.heal(DB1);
    machines.complete(run, "break");
    assert!(machines.finished("break").starts_with(&before));
    let record = assert_sampled(&machines, "break");
    let mut events = record.events.iter();
    assert!(!events.any(|event| matches!(event.what, Event::ServerDied { .. })));
}

#[test(lab, needs = &[SERVER])]
fn a_server_host_is_refused_to_a_second_contest_which_is_told_who_has_it() {
    // Undecided, so that it lasts until a second one was refused.
    let undecided = with_outage().replacen("25 %", "0.1 %", 1);
    let Some(machines) = with_server_agents(&undecided) else {
        return;
    };
    let run = machines.begin("first", 1);
    let second = machines.output(&["run", "duel.toml", "--results", "second"]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    let named = "server host `db1`: it runs servers for another contest (";
    assert!(said.contains(named), "{said}");
    machines.complete(run, "first");
}

/// Longer than an agent waits for the orchestrator.
const AWAY: Duration = Duration::from_secs(50);

#[test(soak, needs = &[SERVER])]
fn a_server_host_that_comes_back_has_its_server_started_again() {
    let Some(machines) = with_server_agents(&with_long_outage()) else {
        return;
    };
    let run = machines.begin("away", 2);
    let before = machines.finished("away");
    machines.cut(DB1);
    sleep(AWAY);
    machines.heal(DB1);
    machines.complete(run, "away");
    assert!(machines.finished("away").starts_with(&before));
    let record = assert_sampled(&machines, "away");
    let mut events = record.events.iter();
    let is_named = |event: &Event| matches!(event, Event::ServerDied { contender, how } if contender == "first" && how.contains("`db1`"));
    assert!(events.any(|event| is_named(&event.what)));
    assert!(events.any(|event| matches!(event.what, Event::ServerRecovered { .. })));
}

#[test(lab, needs = &["postgresql-16", "mysql-8.0.33"])]
fn other_products_run_on_another_machine() {
    let Some(machines) = with_server_agents(&format!("{PRODUCTS}[hosts]\nservers = \"{DB1}\"\n"))
    else {
        return;
    };
    machines.run("duel.toml", "products");
    for row in machines.finished("products") {
        assert!(row.ok > 0 && row.failed == 0, "{row:?}");
    }
    assert_verified(&machines.record_dir("products").unwrap());
}

#[test(lab, needs = &[SERVER])]
fn a_build_of_this_machine_is_sent_to_its_hosts_once_each() {
    let installed = format!("server = \"{SERVER}\"");
    let folder = home().join("servers").join(SERVER);
    let own_build = format!("server = \"path:{}\"", folder.display());
    let text = two_machines().replace(&installed, &own_build);
    assert!(text.contains("path:"), "{text}");
    let Some(machines) = with_server_agents(&text) else {
        return;
    };
    machines.run("duel.toml", "sent");
    assert_sampled(&machines, "sent");
    let first = machines.received_by(DB1);
    assert_eq!(first.len(), 1, "{first:?}");
    let name_of = |(folder, _): &(PathBuf, SystemTime)| folder.file_name().unwrap().to_owned();
    let names: Vec<_> = machines.received_by(DB2).iter().map(name_of).collect();
    assert_eq!(names, [name_of(&first[0])]);
    // Equal files elsewhere, of another time, are the same server.
    let copies = tempfile::tempdir().unwrap();
    let copy = copies.path().join("copy");
    let copied = Command::new("cp").arg("-r").args([&folder, &copy]).status();
    assert!(copied.unwrap().success());
    let names = [&folder, &copy].map(|one| one.display().to_string());
    machines.write("again.toml", &text.replace(&names[0], &names[1]));
    machines.run("again.toml", "again");
    assert_eq!(machines.received_by(DB1), first, "it was fetched again");
    let build = machines.record_dir("again").unwrap();
    let build = build.join("contenders/first/server-build.json");
    let build: serde_json::Value = serde_json::from_slice(&std::fs::read(build).unwrap()).unwrap();
    assert_eq!(build["source"], "path");
    assert_eq!(build["locator"], names[1].as_str());
}

#[test(lab, needs = &[SERVER])]
fn a_server_host_takes_no_setting_that_may_name_a_program() {
    let text = two_machines().replacen("settings = {", "settings = { init_connect = \"x\",", 1);
    let Some(machines) = with_server_agents(&text) else {
        return;
    };
    let refused = machines.output(&["run", "duel.toml", "--results", "refused"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains(
            "server host `db1`: setting `init_connect`: agents refuse settings with `init`"
        ),
        "{said}"
    );
}

#[test]
fn what_server_hosts_cannot_do_is_refused_at_its_place() {
    let text = two_machines();
    let here = format!("host = \"{DB2}\"\n");
    for (old, new, place, part) in [
        (
            here.as_str(),
            "",
            "8:13",
            "`second` has no host and `first` has one",
        ),
        ("\"db1\"", "\"a/b\"", "5:8", "not an agent's name"),
        (
            "clients = 4",
            "clients = 4\nserver_cores = [0]",
            "18:16",
            "names processors of this machine",
        ),
    ] {
        check_refused(&text, old, new, place, part);
    }
}
