//! Contests of PostgreSQL servers, with each other and with a MariaDB.

use std::time::Duration;

use dbduel_record::event::{Event, Severity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::lab::{
    Lab, assert_verified, count, follows_the_plan, published, servers_left, signal,
};

/// Durable against relaxed commits: a difference of far more than a tenth.
const RELAXED: &str = r#"
budget = "90 s"
seed = 7
[contenders.durable]
server = "postgresql-16"
settings = { shared_buffers = "32MB" }
[contenders.relaxed]
like = "durable"
settings = { synchronous_commit = "off" }
[workload]
name = "oltp-update-non-index"
tables = 2
table_size = 2_000
[load]
clients = 4
"#;

#[test(lab, may_fail = 0.05, needs = &["postgresql-16"])]
fn a_large_difference_between_two_postgresql_servers_is_decided_and_explained() {
    let lab = Lab::new(RELAXED);
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(servers_left(), []);
    let record = lab.record();
    assert!(follows_the_plan(&record, &record.plan));
    let reading = |metric: &str, contender: &str| -> f64 {
        let rows = record.readings.iter();
        let of = rows.filter(|row| row.metric == metric && row.contender == contender);
        of.map(|row| row.value).sum()
    };
    assert!(reading("redo_written_bytes", "relaxed") > 0.0);
    // What sessions wait for is sampled, and divides the time of a transaction.
    let waited = |contender| reading("connections_in_commit_s", contender);
    assert!(waited("durable") > waited("relaxed"));
    for one in &record.contenders {
        let files = one.size.unwrap().after_files.unwrap();
        assert!(files.data.bytes > 1 << 20, "{files:?}");
        assert!(files.redo.bytes >= 16 << 20, "{files:?}");
    }
    let schema = lab.record_dir().join("contenders/durable/schema.sql");
    let schema = std::fs::read_to_string(schema).unwrap();
    assert!(schema.contains("CREATE INDEX k_2 ON"), "{schema}");
    let report = published(&lab.record_dir());
    let text = report.to_string();
    assert!(text.contains("\"state\":\"divided\""), "{text}");
    let rules = report["findings"].as_array().unwrap().iter();
    let missing = rules.filter(|finding| {
        let claim = finding["claim"].as_str().unwrap_or_default();
        claim.contains("unreadable") || claim.starts_with("Missing from")
    });
    assert_eq!(
        missing.collect::<Vec<_>>(),
        Vec::<&serde_json::Value>::new()
    );
    assert_verified(&lab.record_dir());
}

#[test(lab, needs = &["postgresql-16", "mariadb-10.11"])]
fn postgresql_and_mariadb_contend_on_the_same_rows_when_they_promise_the_same() {
    let other = "\n[contenders.mariadb]\nserver = \"mariadb-10.11\"\nsettings = { innodb_buffer_pool_size = \"32M\" }\n";
    let first = RELAXED.find("[contenders.relaxed]").unwrap();
    let rest = RELAXED.find("[workload]").unwrap();
    let as_they_come = format!("{}{other}{}", &RELAXED[..first], &RELAXED[rest..])
        .replace("oltp-update-non-index", "oltp-read-write")
        .replace("90 s", "30 s");
    let refused = Lab::new(&as_they_come).run();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{said}");
    for promise in ["data_checksums", "isolation", "wal_level", "character_set"] {
        assert!(said.contains(promise), "{promise}: {said}");
    }

    let equal = as_they_come
        .replace(
            "\"32MB\"",
            "\"32MB\", wal_level = \"minimal\", max_wal_senders = 0, data_checksums = \"on\"",
        )
        .replace(
            "\"32M\"",
            "\"32M\", transaction_isolation = \"READ-COMMITTED\", character_set_server = \"utf8mb4\", collation_server = \"utf8mb4_bin\"",
        );
    let lab = Lab::new(&equal);
    lab.run_to_the_end();
    assert_eq!(servers_left(), []);
    let record = lab.record();
    let digests: Vec<_> = record
        .events
        .iter()
        .filter_map(|event| match &event.what {
            Event::DatasetReady { digest, .. } => Some(digest),
            _ => None,
        })
        .collect();
    assert_eq!(digests.len(), 2);
    assert_eq!(digests[0], digests[1], "both hold the same rows");
    assert!(record.slices.iter().all(|row| row.failed == 0));
    let void = record.events.iter().any(|event| {
        matches!(&event.what, Event::Noticed { notice } if notice.severity == Severity::Void)
    });
    assert!(!void);
}

/// Equal contenders with fixed slices, which go on for `budget`.
fn alike(budget: &str) -> String {
    RELAXED
        .replace("settings = { synchronous_commit = \"off\" }\n", "")
        .replace("90 s", budget)
        + "[schedule]\nslice = \"500 ms\"\nguard = \"100 ms\"\nwarm_up = \"1 s\"\n"
}

/// The first processes of the servers that run, which the others descend from.
fn postmasters() -> Vec<i32> {
    let is_first = |line: &str| line.contains("--config-file");
    let left = servers_left().into_iter();
    left.filter(|(_, line)| is_first(line))
        .map(|(pid, _)| pid)
        .collect()
}

#[test(lab, needs = &["postgresql-16"])]
fn a_killed_postmaster_and_a_killed_session_cost_a_slice_each() {
    let lab = Lab::new(&alike("10 min"));
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 2);
    let killed = |pid| kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    killed(postmasters()[0]);
    let is_recovered = |event: &Event| matches!(event, Event::ServerRecovered { .. });
    let recovered = |times| {
        let record = lab.begun();
        record.is_some_and(|record| count(&record, is_recovered) == times)
    };
    lab.wait_until(&mut run, "recovered server", || recovered(1));
    let slices = lab.record().finished_slices().count();
    lab.wait_for_slices(&mut run, slices + 4);
    // One session's process; the server ends all others then, since shared memory may be damaged.
    let session = servers_left()
        .into_iter()
        .find(|(_, line)| line.starts_with("postgres: dbduel"));
    killed(session.unwrap().0);
    lab.wait_until(&mut run, "server that recovered again", || recovered(2));
    signal(&run, Signal::SIGINT);
    let code = lab.exit_code(&mut run, Duration::from_secs(60));
    assert_eq!(code, Some(130), "{}", lab.said());
    // A busy machine may lose others, for other reasons.
    let died = |event: &Event| matches!(event, Event::ServerDied { .. });
    assert_eq!(count(&lab.record(), died), 2);
    assert_eq!(servers_left(), []);
    assert_verified(&lab.record_dir());
}

#[test(lab, needs = &["postgresql-16"])]
fn after_a_kill_the_next_start_ends_frozen_sessions_too() {
    let lab = Lab::new(&alike("20 s"));
    lab.run_killed_after_slices(3);
    assert_eq!(postmasters().len(), 2, "both servers are orphans now");
    // Sessions of the frozen one stay behind a killed postmaster.
    kill(Pid::from_raw(postmasters()[0]), Signal::SIGKILL).unwrap();
    let output = lab.resume();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert_eq!(servers_left(), []);
    assert_verified(&lab.record_dir());
}
