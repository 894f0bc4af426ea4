//! Fairness on real servers: equal ones raise nothing, the contest of 2014 raises its objections, a
//! record that was edited is found out, and counters survive a crash.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dbduel_record::Record;
use serde_json::Value;

use super::bare_server::{BareServer, free_port};
use super::finished;
use super::lab::{Lab, program, published, servers_left, shipped, short_experiment, signal};

fn json(arguments: &[&str]) -> (i32, Value) {
    let output = program().args(arguments).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_slice(&output.stdout);
    (
        output.status.code().unwrap(),
        value.unwrap_or_else(|error| panic!("{error}: {said}")),
    )
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn sandboxes() -> Vec<PathBuf> {
    let entries = fs::read_dir(super::lab::home().join("sandboxes"));
    let mut paths: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
}

#[test(lab, needs = &["mariadb-10.11"])]
fn equal_servers_are_fair_after_their_contest_and_their_record_is_whole() {
    let servers = ["mariadb-10.11"; 2];
    let lab = finished::contest(&short_experiment(servers, ""));
    let record = lab.record_dir();
    let report = published(&record);
    // The grade rests on counters and on the verdict as well, which chance may move.
    let compared = report["summary"]["audit"]["comparisons"]
        .as_array()
        .unwrap();
    assert!(compared.len() > 50, "{}", compared.len());
    for one in compared {
        assert!(one["outcome"] != "different", "{one:#}");
    }
    let of = |fact: &str| compared.iter().find(|one| one["fact"] == fact).unwrap();
    // The session is that of the load itself.
    assert_eq!(of("connection.prepared")["sides"][0]["value"], "on");
    assert_eq!(
        of("connection.transport")["sides"][0]["value"],
        "unix socket"
    );
    assert_eq!(of("connection.tls")["sides"][0]["value"], "off");
    let (code, whole) = json(&["verify", text(&record)]);
    assert_eq!(
        (code, &whole["verdict"]),
        (0, &Value::from("whole")),
        "{whole:#}"
    );
    assert_eq!(whole["digest"], report["summary"]["record_digest"]);
    let copies = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| copies.path().join(name));
    for copy in [&one, &two] {
        let copied = Command::new("cp").arg("-r").args([&record, copy]).status();
        assert!(copied.unwrap().success());
    }
    check_records_together(copies.path());
    check_edits(&one);
}

/// Two records in one directory are two contests, each with all of its contenders.
fn check_records_together(folder: &Path) {
    let (code, found) = json(&["audit", text(folder)]);
    assert_eq!(code, 0);
    let audits = found["audits"].as_array().unwrap();
    assert_eq!(audits.len(), 2);
    for one in audits {
        let contenders = one["audit"]["contenders"].as_array().unwrap();
        let names: Vec<&str> = contenders
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["first", "second"]);
    }
}

/// Each edit is found, by the name of its file.
fn check_edits(record: &Path) {
    for (file, from, to) in [
        ("slices.csv", ",all,", ",ALL,"),
        ("contenders/first/status.after.tsv", "Uptime\t", "Uptime\t1"),
        ("plan.json", "\"seed\": 7", "\"seed\": 8"),
        ("report.json", "\"ok\": ", "\"ok\": 1"),
        ("report.html", "<h1>", "<h1>x"),
    ] {
        let path = record.join(file);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, whole.replacen(from, to, 1)).unwrap();
        let (code, found) = json(&["verify", text(record)]);
        assert_eq!(
            (code, &found["verdict"]),
            (4, &Value::from("changed")),
            "{file}"
        );
        let named = found["changed"].as_array().unwrap();
        assert!(
            named.iter().any(|one| one["file"] == file),
            "{file}: {named:#?}"
        );
        fs::write(&path, whole).unwrap();
    }
    fs::remove_file(record.join("manifest.jsonl")).unwrap();
    for report in ["report.json", "report.html", "report.md"] {
        fs::remove_file(record.join(report)).unwrap();
    }
    let (code, found) = json(&["verify", text(record)]);
    assert_eq!(
        (code, &found["verdict"]),
        (3, &Value::from("cannot be told")),
        "{found:#}"
    );
}

/// What the thread below the contest of 2014 objected to and running servers show without any load. The
/// other objections are about results; published ones are audited in `audit.rs`.
#[test(lab, needs = &["mysql-5.6.24", "mariadb-10.1.8"])]
fn contest_a_as_an_experiment_raises_its_objections() {
    let experiment = shipped().join("contest-a-as-published.toml");
    let before = sandboxes();
    let (code, found) = json(&["audit", text(&experiment)]);
    let audit = &found["audit"];
    assert_eq!((code, &audit["grade"]), (0, &Value::from("unfair")));
    let compared = audit["comparisons"].as_array().unwrap();
    let shown = |fact: &str| {
        let one = compared.iter().find(|one| one["fact"] == fact).unwrap();
        [0, 1].map(|side| one["sides"][side]["value"].as_str().unwrap().to_owned())
    };
    let findings = audit["findings"].as_array().unwrap();
    let claim = |rule: &str| {
        let one = findings.iter().find(|one| one["rule"] == rule);
        one.unwrap_or_else(|| panic!("no {rule}"))["claim"]
            .as_str()
            .unwrap()
    };
    // 1. The size of the redo log. 5. Neighbours. 6. Instances. 8. Instances of the table cache.
    assert_eq!(shown("redo.capacity"), ["512 MiB", "512 MiB"]);
    assert_eq!(shown("flush.neighbours"), ["0", "0"]);
    assert_eq!(shown("pool.instances"), ["16", "16"]);
    assert_eq!(shown("table_cache.instances"), ["1", "1"]);
    // 3. Thread concurrency. 4. Adaptive flushing. 7. The old checksum. 12. The scan depth.
    assert!(claim("R5").contains("32 threads"));
    assert!(claim("R12").contains("adaptive flushing on"));
    assert!(claim("R6").contains("checksums in software"));
    assert!(claim("R3").contains("25000 × 16 instances = 400000"));
    // 11. Sixteen flushing threads against one. 13. Performance Schema. 16. Several things at once.
    assert_eq!(shown("flush.threads"), ["1 thread", "17 threads"]);
    assert!(claim("instrumentation.pfs").contains("in favour of `mariadb`"));
    assert!(claim("R38").contains("flush.threads"));
    assert_eq!(servers_left(), [], "the audit leaves no server behind");
    let left: Vec<PathBuf> = sandboxes()
        .into_iter()
        .filter(|path| !before.contains(path))
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test(lab, needs = &["mariadb-10.11"])]
fn counters_of_a_resumed_contest_are_kept_by_stint_and_sealed_twice() {
    let servers = ["mariadb-10.11"; 2];
    let lab = Lab::new(&short_experiment(servers, ""));
    let mut child = lab.spawn();
    lab.wait_for_slices(&mut child, 4);
    signal(&child, nix::sys::signal::Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut again = lab.spawn_resumed();
    lab.wait_for_slices(&mut again, 8);
    lab.interrupt(&mut again);
    let dir = lab.record_dir();
    let record = Record::open(&dir).unwrap();
    for files in &record.contenders {
        assert_eq!(files.later_stints.len(), 1);
        assert!(!files.status_after.is_empty() && !files.later_stints[0].status_after.is_empty());
    }
    let (code, whole) = json(&["verify", text(&dir)]);
    assert_eq!(
        (code, &whole["runs_sealed"]),
        (0, &Value::from(2)),
        "{whole:#}"
    );
}

/// Servers that were configured elsewhere differ in what a commit survives: void, unless that is the declared question.
#[test(lab, needs = &["mariadb-10.11"])]
fn running_servers_may_be_compared_about_durability_when_it_is_declared() {
    const SERVER: &str = "mariadb-10.11";
    let ports = [free_port(), free_port()];
    let servers = ports.map(|port| {
        let options = [
            format!("--port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
        ];
        BareServer::start_with(SERVER, &options)
    });
    servers[1].query("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    let addresses = ports.map(|port| format!("tcp://root@127.0.0.1:{port}"));
    let undeclared = short_experiment(addresses.each_ref().map(String::as_str), "")
        .lines()
        .filter(|line| !line.starts_with("settings"))
        .map(|line| format!("{line}\n"))
        .collect::<String>();

    let refused = Lab::new(&undeclared).run();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains("D1: Commit durability"), "{said}");

    let lab = Lab::new(&format!("about = [\"D1\"]\n{undeclared}"));
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    let report = published(&lab.record_dir());
    assert_eq!(report["summary"]["audit"]["about"][0], "D1");
    let findings = report["findings"].as_array().unwrap();
    let disclosed = findings
        .iter()
        .find(|one| one["rule"] == "audit.D1.commit.level")
        .unwrap();
    assert_eq!(disclosed["severity"], "note", "{disclosed:#}");
}
