//! Killed workers, a killed nats-server, a full object store: no cell is lost or counted twice.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use dbduel_nats::{Nats, NatsAddress};
use dbduel_record::Record;
use nix::sys::signal::Signal;
use serde_json::json;

use super::nats_server::NatsServer;
use super::network::Network;
use super::relay::Relay;
use super::{Fleet, TIMEOUT, phase_of, undecided};
use crate::suite::harness::skip_always;
use crate::suite::lab::{SQLITE_DUEL, program, signal, verify};

/// Processes whose command line names a folder.
fn processes_of(folder: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let named = entries.filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(folder)
    });
    named.count()
}

#[test(lab)]
fn a_killed_worker_and_a_killed_nats_server_cost_no_cell() {
    let Some(mut fleet) = Fleet::start(SQLITE_DUEL) else {
        return;
    };
    assert!(fleet.submit(6).contains("6 queued"));
    for name in ["w1", "w2", "w3"] {
        fleet.start_agent(name, &["--work"]);
    }
    fleet.wait_until("w2 at work", |status| {
        phase_of(status, "w2") == Some("running")
    });
    signal(&fleet.agent("w2").child, Signal::SIGKILL);
    fleet.nats.kill_and_restart();

    let status = fleet.wait_until_done(6);
    assert_eq!(status["campaigns"][0]["failed"], 0, "{status:#}");
    assert_eq!(status["not_queued"], 0, "{status:#}");
    // The contest of the killed worker was ended by the system.
    let home = fleet.home_of("w2").display().to_string();
    let deadline = Instant::now() + TIMEOUT;
    while processes_of(&home) > 0 {
        assert!(Instant::now() < deadline, "a contest stayed behind");
        std::thread::sleep(Duration::from_millis(50));
    }

    let said = fleet.submit(6);
    assert!(
        said.contains("0 queued") && said.contains("6 done already"),
        "{said}"
    );
    let results = fleet.folder.path().join("fetched");
    let words = ["fleet", "fetch", "--results", results.to_str().unwrap()];
    assert!(fleet.done(&words).contains("6 records fetched"));
    assert!(fleet.done(&words).contains("0 records fetched"));
    let mut seeds = BTreeSet::new();
    for entry in std::fs::read_dir(&results).unwrap() {
        let record = entry.unwrap().path();
        assert_eq!(verify(&record).0, Some(0), "{}", record.display());
        seeds.insert(Record::open(&record).unwrap().plan.seed);
    }
    assert_eq!(seeds.len(), 6);
    let history = program().arg("history").arg(&results).output().unwrap();
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(history.contains("6 runs"), "{history}");
    check_archive(&fleet);

    for name in ["w1", "w3"] {
        let (code, said) = fleet.stop(name);
        assert_eq!(code, Some(0), "{said}");
    }
}

/// Records of a fleet are in the archive, and each is there once.
fn check_archive(fleet: &Fleet) {
    let all = fleet.json(&["archive", "list"]);
    let first = &all[0];
    let digest = first["digest"].as_str().unwrap();
    assert_eq!(first["question"], "What does a write-ahead log save?");
    assert_eq!(first["contenders"][1], json!(["write-ahead-log", "sqlite"]));
    assert_eq!(first["workload"], "oltp-update-non-index");
    assert_eq!(first["verdicts"].as_array().unwrap().len(), 1);
    let results = fleet.folder.path().join("from-archive");
    let results = results.to_str().unwrap();
    let said = fleet.done(&["archive", "get", &digest[..12], "--results", results]);
    assert!(said.contains("fetched"), "{said}");
    let said = fleet.done(&["archive", "push", results]);
    assert!(
        said.starts_with(&digest[..10]) && said.contains("there already"),
        "{said}"
    );
    let again = fleet.json(&["archive", "list"]);
    assert_eq!(
        again.as_array().unwrap().len(),
        all.as_array().unwrap().len()
    );
    let none = fleet.json(&["archive", "list", "--find", "no such text"]);
    assert_eq!(none, json!([]));
}

#[test(lab)]
fn a_cell_that_a_worker_finishes_while_it_is_cut_off_counts_once() {
    let network = match Network::new() {
        Ok(network) => network,
        Err(why) => return skip_always(&why),
    };
    let Some(mut fleet) = Fleet::start_in(&undecided("15 s"), network) else {
        return;
    };
    fleet.submit(1);
    fleet.start_agent_at("127.0.0.2", "w1", &["--work"]);
    fleet.wait_until("w1 at work", |status| {
        phase_of(status, "w1") == Some("running")
    });
    fleet.network.as_ref().unwrap().cut("127.0.0.2");
    fleet.start_agent("w2", &["--work"]);
    let status = fleet.wait_until_done(1);
    assert_eq!(status["agents"][0]["name"], "w2", "{status:#}");
    let deadline = Instant::now() + TIMEOUT;
    while !fleet.said_by("w1").contains("could not deliver duel") {
        assert!(Instant::now() < deadline, "{}", fleet.said_by("w1"));
        std::thread::sleep(Duration::from_millis(50));
    }
    fleet.network.as_ref().unwrap().heal();
    let status = fleet.wait_until("done twice", |status| {
        status["campaigns"][0]["repeated"] == 1
    });
    assert_eq!(status["campaigns"][0]["done"], 1, "{status:#}");
    for name in ["w1", "w2"] {
        let (code, said) = fleet.stop(name);
        assert_eq!(code, Some(0), "{said}");
    }
    let said = fleet.said_by("w1");
    assert!(
        said.contains("was meanwhile done by w2; that result counts"),
        "{said}"
    );
    assert!(fleet.done(&["fleet", "fetch"]).contains("1 record fetched"));
}

/// Each way between an agent and nats-server.
const DELAY: Duration = Duration::from_millis(50);
const RESET_EVERY: Duration = Duration::from_secs(3);

#[test(lab)]
fn a_slow_connection_that_is_reset_again_and_again_costs_no_cell() {
    let Some(mut fleet) = Fleet::start(SQLITE_DUEL) else {
        return;
    };
    let relay = Relay::start(fleet.nats.port(), DELAY);
    fleet.submit(2);
    fleet.start_agent_by(&relay.url(), "w1", &["--work"]);
    fleet.wait_until("w1 at work", |status| {
        phase_of(status, "w1") == Some("running")
    });
    // Both clocks are the same one, so the truth is 0.
    let agents = fleet.json(&["fleet", "agents"]);
    let clock = |field: &str| agents[0]["clock"][field].as_f64().unwrap();
    let (offset_us, uncertainty_us) = (clock("offset_us"), clock("uncertainty_us"));
    assert!(
        uncertainty_us >= DELAY.as_micros() as f64 && offset_us.abs() <= uncertainty_us,
        "{agents:#}"
    );

    let mut resets = 0;
    let mut next = Instant::now();
    let status = fleet.wait_until("2 cells done", |status| {
        if Instant::now() >= next {
            resets += usize::from(relay.reset() > 0);
            next = Instant::now() + RESET_EVERY;
        }
        status["campaigns"][0]["done"] == 2
    });
    // How many more there are depends on how fast the cells are.
    assert!(resets >= 1, "{resets}");
    assert_eq!(status["campaigns"][0]["failed"], 0, "{status:#}");
    assert!(
        fleet
            .done(&["fleet", "fetch"])
            .contains("2 records fetched")
    );
    let (code, said) = fleet.stop("w1");
    assert_eq!(code, Some(0), "{said}");
}

#[test(lab)]
fn questions_over_a_slow_connection_do_not_wait_for_each_other() {
    let Some(nats_server) = NatsServer::start() else {
        return;
    };
    let relay = Relay::start(nats_server.port(), DELAY);
    let connect = |url: &str| {
        let address = NatsAddress::new(url, None, None).unwrap();
        Nats::connect(&address, "test").unwrap()
    };
    let (near, far) = (connect(&nats_server.url()), connect(&relay.url()));
    near.answer("heard", Vec::new).unwrap();
    let subjects = ["heard".to_owned(), "unheard".to_owned()];
    // One after the other they would take five times as long as the quickest, however often that is tried. Together they may, on
    // a busy machine, but not each time.
    let is_together = (0..10).any(|_| {
        let began = Instant::now();
        let answers = far.ask_each(&subjects, 5, TIMEOUT);
        let took = began.elapsed();
        assert_eq!((answers[0].len(), answers[1].len()), (5, 0), "{answers:?}");
        let quickest = answers[0].iter().map(|answer| answer.round_trip).min();
        let quickest = quickest.unwrap();
        assert!(quickest >= 2 * DELAY, "{quickest:?}");
        took < 3 * quickest
    });
    assert!(is_together);
}

/// The object store of records with room for so many bytes.
fn store_of(bytes: u32) -> String {
    let config = json!({
        "name": "OBJ_dbduel-records",
        "subjects": ["$O.dbduel-records.C.>", "$O.dbduel-records.M.>"],
        "retention": "limits", "storage": "file", "discard": "new", "num_replicas": 1,
        "max_bytes": bytes, "max_consumers": -1, "max_msgs": -1, "max_age": 0,
        "allow_rollup_hdrs": true, "allow_direct": true,
    });
    config.to_string()
}

#[test(lab)]
fn a_record_that_does_not_fit_is_kept_until_there_is_room() {
    let Some(mut fleet) = Fleet::start(SQLITE_DUEL) else {
        return;
    };
    let made = fleet.nats.request(
        "$JS.API.STREAM.CREATE.OBJ_dbduel-records",
        &store_of(10_000),
    );
    assert!(made["error"].is_null(), "{made}");
    fleet.submit(1);
    fleet.start_agent("w1", &["--work"]);
    let status = fleet.wait_until("full", |status| {
        let trouble = status["agents"][0]["trouble"].as_str();
        trouble.is_some_and(|trouble| trouble.contains("is full"))
    });
    assert_eq!(phase_of(&status, "w1"), Some("delivering"));
    assert_eq!(status["campaigns"][0]["running"], 1, "{status:#}");
    let (code, said) = fleet.stop("w1");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("was run but not delivered"), "{said}");

    let made = fleet.nats.request(
        "$JS.API.STREAM.UPDATE.OBJ_dbduel-records",
        &store_of(10_000_000),
    );
    assert!(made["error"].is_null(), "{made}");
    fleet.start_agent("w1", &["--work", "--until-empty"]);
    fleet.wait_until_done(1);
    let agent = fleet.agent("w1");
    assert_eq!(agent.child.wait().unwrap().code(), Some(0));
    // The lease of the cell ended meanwhile; it came back and was not run again.
    let said = fleet.said_by("w1");
    assert!(said.contains("was already done by w1"), "{said}");
    let status = fleet.wait_until_done(1);
    assert_eq!(status["campaigns"][0]["repeated"], 0, "{status:#}");
}
