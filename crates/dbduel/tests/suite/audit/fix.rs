//! `--fix`: an experiment whose contenders are set alike.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::super::lab::shipped;
use super::super::plans::plan;
use super::{audit, data, json, text};

/// The experiment has a plan, and is fair before it is run.
#[track_caller]
fn check_equal(experiment: &Path) {
    plan(experiment);
    let report = json(&[text(experiment), "--dry"], 0);
    assert_eq!(report["audit"]["grade"], "fair", "{report:#}");
}

#[test]
fn a_fix_is_an_experiment_that_can_be_planned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("equal.toml");
    let (a, b) = (
        data("contest-a/mysql-5.6.24/my.cnf"),
        data("contest-a/mariadb-10.1.8/my.cnf"),
    );
    let sides = [
        "--product-a",
        "mysql",
        "--version-a",
        "5.6.24",
        "--product-b",
        "mariadb",
        "--version-b",
        "10.1.8",
        "--name-a",
        "mysql",
        "--name-b",
        "mariadb",
    ];
    let arguments = [
        [text(&a), text(&b)].as_slice(),
        &sides,
        &["--fix", text(&path)],
    ]
    .concat();
    // The servers as they are are not comparable; those of the file that is written are.
    let without = &arguments[..arguments.len() - 2];
    assert_eq!(audit(without).status.code(), Some(4));
    assert_eq!(audit(&arguments).status.code(), Some(0));
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains("innodb_use_mtflush = \"0\""), "{written}");
    check_equal(&path);
    assert_eq!(
        audit(&arguments).status.code(),
        Some(1),
        "a file is never overwritten"
    );
}

#[test]
fn a_fix_of_an_experiment_keeps_what_its_author_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("equal.toml");
    let published = shipped().join("contest-a-as-published.toml");
    let report = json(&[text(&published), "--dry", "--fix", text(&path)], 0);
    let set = report["fix"].as_array().unwrap();
    assert!(
        set.iter().any(|one| one["name"] == "innodb_use_mtflush"),
        "{set:?}"
    );
    let given = fs::read_to_string(&published).unwrap();
    let written = fs::read_to_string(&path).unwrap();
    // Every line is there, in its order, but for those of settings that were altered.
    let mut lines = written.lines();
    for line in given.lines() {
        let name = line.split('=').next().unwrap().trim();
        let is_altered = set.iter().any(|one| one["name"] == name);
        assert!(
            is_altered || lines.any(|one| one == line),
            "`{line}` is missing in:\n{written}"
        );
    }
    assert!(written.contains("innodb_use_mtflush = 0"), "{written}");
    check_equal(&path);
}

#[test]
fn a_fix_leaves_what_the_experiment_is_about() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ladder.toml");
    let ladder = shipped().join("contest-d-doublewrite-ladder.toml");
    let report = json(&[text(&ladder), "--dry", "--fix", text(&path)], 0);
    assert_eq!(report["fix"], Value::Array(Vec::new()));
    assert_eq!(
        fs::read_to_string(&ladder).unwrap(),
        fs::read_to_string(&path).unwrap()
    );
}
