//! `dbduel audit` as a user meets it: on dumps, option files, published directories and hostile files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use super::mutated::bounded;

mod differential;
mod experiment;
mod fix;
mod hostile;
mod option_files;
mod published;
mod running;

fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/audit")
        .join(file)
}

fn audit(arguments: &[&str]) -> Output {
    bounded(&[&["audit"], arguments].concat(), Path::new("."))
        .output()
        .unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[track_caller]
fn json(arguments: &[&str], code: i32) -> Value {
    let output = audit(&[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rules(report: &Value) -> Vec<&str> {
    let findings = report["audit"]["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect()
}

#[test]
fn dumps_in_two_formats_are_compared() {
    let (mysql, mariadb) = (
        data("mysql-5.6.24.vertical.txt"),
        data("mariadb-10.1.8.tsv"),
    );
    let report = json(&[text(&mysql), text(&mariadb)], 0);
    assert_eq!(report["audit"]["grade"], "unfair");
    assert!(rules(&report).contains(&"instrumentation.pfs"));
    assert_eq!(report["audit"]["contenders"][1]["product"], "mariadb");
    let strict = audit(&[text(&mysql), text(&mariadb), "--strict"]);
    assert_eq!(strict.status.code(), Some(4));
}

#[test]
fn a_server_is_fair_beside_itself() {
    let dump = data("mariadb-10.1.8.tsv");
    let output = audit(&[text(&dump), text(&dump), "--strict"]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("Was it fair? fair"), "{said}");
}

#[track_caller]
fn check_error(arguments: &[&str], expected: &[&str]) {
    let output = audit(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{said}");
    for words in expected {
        assert!(said.contains(words), "no `{words}` in: {said}");
    }
}

#[test]
fn names_that_the_audit_does_not_know_are_refused_with_a_near_one() {
    let dump = data("mariadb-10.1.8.tsv");
    let pair = [text(&dump), text(&dump)];
    let with = |option: &'static str, value: &'static str| [&pair[..], &[option, value]].concat();
    check_error(
        &with("--waive", "D33=reason"),
        &["--waive", "`D3`", "D1, D2", "--codes"],
    );
    check_error(
        &with("--about", "innodb_doublewrit"),
        &["--about", "`innodb_doublewrite`"],
    );
    let directory = tempfile::tempdir().unwrap();
    let experiment = directory.path().join("duel.toml");
    let lines = "[contenders.a]\nserver = \"mysql-5.6.24\"\n[contenders.b]\nlike = \"a\"\n\
                 [workload]\nname = \"oltp-read-write\"\n[waivers]\nflush.thread = \"x\"\nQ7 = \"x\"\n";
    let lines = lines.replace("flush.thread", "\"flush.thread\"");
    fs::write(&experiment, lines).unwrap();
    check_error(
        &[text(&experiment), "--dry"],
        &[
            "duel.toml:8:1: ",
            "`flush.threads`",
            "duel.toml:9:1: `Q7` is no class",
        ],
    );
    let listed = audit(&["--codes"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("flush.threads: page flushing threads"),
        "{listed}"
    );
    assert!(listed.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn targets_that_make_no_pair_are_refused() {
    let dump = data("mariadb-10.1.8.tsv");
    let empty = tempfile::tempdir().unwrap();
    for (target, expected) in [
        (text(&dump), "name the other server too"),
        (text(empty.path()), "no server's variables or settings"),
        ("/nowhere", "name the other server too"),
    ] {
        let output = audit(&[target]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
