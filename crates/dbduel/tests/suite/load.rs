//! `dbduel load` as a user meets it, on a server that answers at once.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use dbduel_driver::mock_server::{MockServer, Role};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::lab::{program, signal};

/// A null server, and the words that begin a command line about it.
fn null_server() -> (tempfile::TempDir, MockServer, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let server = MockServer::start(&directory.path().join("s.sock"), Role::Null).unwrap();
    let address = server.address().to_string();
    let words = ["load", "--server", &address, "--workload", "oltp-read-only"];
    (directory, server, words.map(str::to_owned).to_vec())
}

#[test]
fn a_load_balances_its_account_in_every_output() {
    let (directory, _server, words) = null_server();
    let hlog = directory.path().join("latency.hlog");
    let output = program()
        .args(&words)
        .args(["--clients", "3", "--duration", "1 s", "--warm-up", "500 ms"])
        .args(["--set", "tables=2", "table-size=500", "--seed", "9"])
        .args(["--rate", "200", "--json", "--hlog"])
        .arg(&hlog)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.lines().next().is_some_and(|line| line.contains("p99")),
        "{said}"
    );
    assert!(
        said.lines().all(|line| line.chars().count() <= 80),
        "{said}"
    );

    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let total = |name: &str| document["total"][name].as_u64().unwrap();
    let ended = ["ok", "failed", "skipped", "unfinished"].map(total);
    assert_eq!(total("due"), ended.iter().sum::<u64>(), "{document}");
    assert!(total("due") > 0, "{document}");
    let (service, latency) = (&document["service_us"], &document["total"]["latency_us"]);
    assert!(
        service["p50"].as_f64() <= latency["p50"].as_f64(),
        "{document}"
    );
    assert_eq!(document["schema_version"], 2);
    assert_eq!(document["seed"], 9);
    assert_eq!(document["workload"]["parameters"]["table_size"], 500);

    let log = std::fs::read_to_string(&hlog).unwrap();
    let intervals: Vec<_> = log
        .lines()
        .filter_map(|line| dbduel_record::latency::parse_line(line).unwrap())
        .collect();
    assert_eq!(intervals.len(), 1);
    assert_eq!(intervals[0].histogram.unpack().len(), total("ok"));
}

#[test]
fn a_load_that_polls_says_so_and_counts_it_apart() {
    let (_directory, _server, words) = null_server();
    let load = |more: &[&str]| {
        let output = program()
            .args(&words)
            .args(["--duration", "500 ms", "--warm-up", "0 s", "--threads", "1"])
            .args(["--rate", "20"])
            .args(more)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let document = |more: &[&str]| -> Value { serde_json::from_str(&load(more)).unwrap() };
    let sleeping = document(&["--json"]);
    assert_eq!(sleeping["busy_poll_us"], 0);
    assert_eq!(sleeping["client"]["polled_s"], 0.0);
    let polling = document(&["--json", "--busy-poll", "100 ms"]);
    assert_eq!(polling["busy_poll_us"], 100_000);
    let of_client = |name: &str| polling["client"][name].as_f64().unwrap();
    assert!(of_client("polled_s") > 0.0, "{polling}");
    // The rest of what it used, which is none of the polling.
    let used = of_client("cpu_user_s") + of_client("cpu_system_s");
    let work_s = of_client("cpu_share") * polling["measured_s"].as_f64().unwrap();
    assert!(work_s <= used - of_client("polled_s") + 1e-6, "{polling}");
    let shown = load(&["--busy-poll", "200 us"]);
    for part in [
        "busy polling for 200 µs",
        "polling in vain",
        "beside polling",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn an_interruption_ends_the_load_with_a_summary() {
    let (_directory, _server, words) = null_server();
    let mut child = program()
        .args(&words)
        .args(["--duration", "1 h", "--warm-up", "0 s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut live = BufReader::new(child.stderr.take().unwrap()).lines();
    // A second with transactions.
    let has_latency = |line: &str| line.contains(" µs") || line.contains(" ms");
    assert!(live.any(|line| has_latency(&line.unwrap())));
    signal(&child, Signal::SIGINT);
    // Reads on, so that nothing waits for room in the pipe.
    let rest = std::thread::spawn(move || live.count());
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(
        shown.contains("interrupted") && shown.contains("unfinished"),
        "{shown}"
    );
}

#[test]
fn what_is_typed_wrong_is_told_from_what_is_broken() {
    let (directory, _server, words) = null_server();
    let code = |replaced: usize, word: &str, more: &[&str]| {
        let mut words = words.clone();
        words[replaced] = word.to_owned();
        let output = program().args(&words).args(more).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let (status, said) = code(2, "tcp://anna:s3cret@localhost", &[]);
    assert_eq!(status, Some(2), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
    let (status, said) = code(4, "oltp-raed-only", &[]);
    assert_eq!(status, Some(2));
    assert!(said.contains("`oltp-read-only`"), "{said}");
    let (status, said) = code(0, "load", &["--set", "tabels=3"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("`tables`"), "{said}");
    let (status, said) = code(0, "load", &["--duration", "5"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("90 s"), "{said}");
    let (status, said) = code(0, "load", &["--busy-poll", "1 s"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("at most 100 ms"), "{said}");
    let (status, said) = code(0, "load", &["--duration", "0s"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("longer than zero"), "{said}");
    let (status, said) = code(0, "load", &["--set", "tables"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("KEY=VALUE"), "{said}");
    let nowhere = format!("unix:{}", directory.path().join("nowhere").display());
    let (status, said) = code(2, &nowhere, &[]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("(is the server running and listening there?): "),
        "{said}"
    );
    assert_eq!(said.matches("os error").count(), 1, "{said}");
}

#[test]
fn a_server_that_dies_leaves_the_figures_of_the_time_before() {
    let (_directory, server, words) = null_server();
    let mut load = program()
        .args(&words)
        .args(["--clients", "3", "--duration", "600 s", "--warm-up", "0 s"])
        .args(["--set", "tables=2", "table-size=500", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(load.stderr.take().unwrap()).lines();
    // A second with transactions.
    let has_latency = |line: &str| line.contains(" µs") || line.contains(" ms");
    assert!(lines.any(|line| has_latency(&line.unwrap())));
    drop(server);
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{said:?}");
    let last = said.last().unwrap();
    assert!(last.contains("the server was lost after"), "{said:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["total"]["ok"].as_u64() > Some(0), "{document}");
    assert!(document["measured_s"].as_f64() < Some(600.0), "{document}");
    assert!(document["lost"].is_string(), "{document}");
    let ended = ["ok", "failed", "skipped", "unfinished"]
        .map(|name| document["total"][name].as_u64().unwrap());
    assert_eq!(document["total"]["due"], ended.iter().sum::<u64>());
}
