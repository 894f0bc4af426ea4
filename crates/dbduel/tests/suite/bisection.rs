//! `dbduel bisect` on a real server: 200 commits are settings of it, some of which cost throughput.
//!
//! A build is a program that starts the server with the settings of its commit. The names of the commits say nothing about
//! them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use dbduel_record::seed::named_seed;
use serde_json::Value;

use super::bare_server::Tree;
use super::harness::seed;
use super::lab::{program_in, servers_of};

const SERVER: &str = "mariadb-10.11";
/// Revisions after the good one.
const LAST: u64 = 199;

/// Settings of the good commit: a transaction takes 2 ms, most of which it waits for others to be committed with. So its
/// throughput depends little on processors and on the build of the load process, and the size of a planted change is known.
const GOOD: &str = "performance-schema=OFF\nlog-bin=binlog\nbinlog-commit-wait-count=1000\nbinlog-commit-wait-usec=2000\n";
/// A fifth less throughput.
const FIFTH: &str = "binlog-commit-wait-usec=2500\n";
/// A twentieth less.
const TWENTIETH: &str = "binlog-commit-wait-usec=2100\n";

const EXPERIMENT: &str = r#"
question = "Which commit made updates slower?"
horizon = "2 %"
budget = "3 min"
[contenders.server]
server = "mariadb-10.11"
settings = { innodb_buffer_pool_size = "32M", innodb_log_file_size = "8M", innodb_flush_log_at_trx_commit = 2 }
[workload]
name = "oltp-update-non-index"
tables = 1
table_size = 2_000
[load]
clients = 4
[schedule]
slice = "100 ms"
guard = "10 ms"
warm_up = "500 ms"
"#;

/// Builds a commit. `settings.inc` has its settings as the strings of an array.
const BUILD: &str = r#"set -e
mkdir -p "$DBDUEL_BUILD/bin" "$DBDUEL_BUILD/lib"
ln -s SHARE "$DBDUEL_BUILD/share"
ln -s PLUGINS "$DBDUEL_BUILD/lib/plugin"
sed 's/.*/"--&",/' settings > settings.inc
cc -o "$DBDUEL_BUILD/bin/mariadbd" launcher.c
"#;

/// Starts the server with the settings after all other arguments, so that they override these.
const LAUNCHER: &str = r#"#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *const server[] = {SERVER};
static char *const settings[] = {
#include "settings.inc"
    0};

int main(int count, char **given) {
    size_t own = sizeof server / sizeof *server;
    char *all[own + count + sizeof settings / sizeof *settings];
    memcpy(all, server, sizeof server);
    memcpy(all + own, given + 1, (count - 1) * sizeof *given);
    memcpy(all + own + count - 1, settings, sizeof settings);
    setenv("LD_LIBRARY_PATH", LIBRARIES, 1);
    execv(all[0], all);
    return 127;
}
"#;

/// A repository, and the bisections of it.
struct Bisected {
    folder: tempfile::TempDir,
}

impl Bisected {
    /// Its commits change a setting without an effect; those with these numbers also add these.
    fn new(planted: &BTreeMap<u64, &str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bisected = Self { folder };
        let repository = bisected.repository();
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.args(arguments).arg(&repository);
            command
        };
        let made = git(&["init", "--quiet", "--bare"]).status().unwrap();
        assert!(made.success());
        let mut import = Command::new("git")
            .arg("-C")
            .arg(&repository)
            .args(["fast-import", "--quiet"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let stream = commits(planted);
        let input = import.stdin.take();
        input.unwrap().write_all(stream.as_bytes()).unwrap();
        assert!(import.wait().unwrap().success());
        std::fs::write(bisected.experiment(), EXPERIMENT).unwrap();
        bisected
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn experiment(&self) -> PathBuf {
        self.folder.path().join("bisect.toml")
    }

    /// Searches for so many changes, prints what that took, and gives the exit code and the report for programs.
    fn search(&self, changes: usize) -> (Option<i32>, Value) {
        let began = Instant::now();
        let home = self.folder.path().join("home");
        let results = self.folder.path().join("results");
        let output = program_in(&home)
            .arg("bisect")
            .arg(self.experiment())
            .arg("--results")
            .arg(&results)
            .arg("--repo")
            .arg(self.repository())
            .args(["--good", "good", "--bad", "main"])
            .args(["--build", "sh build.sh"])
            .args(["--server", "path:{build}/bin/mariadbd"])
            .args(["--changes", &changes.to_string()])
            .output()
            .unwrap();
        let minutes = began.elapsed().as_secs_f64() / 60.0;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(servers_of(&home), []);
        let dir = std::fs::read_dir(&results)
            .unwrap_or_else(|_| panic!("{said}"))
            .next();
        let report = dir
            .expect("a bisection")
            .unwrap()
            .path()
            .join("report.json");
        let report = std::fs::read_to_string(report).unwrap_or_else(|_| panic!("{said}"));
        let report: Value = serde_json::from_str(&report).unwrap();
        let steps = report["steps"].as_array().map_or(0, Vec::len);
        println!(
            "found {:?} in {steps} steps, {minutes:.1} minutes",
            found(&report)
        );
        (output.status.code(), report)
    }
}

/// What git imports: all commits on `main`, and the first one also as `good`.
fn commits(planted: &BTreeMap<u64, &str>) -> String {
    let tree = Tree::open(SERVER);
    let server = tree.daemon();
    let words = [server.get_program()].into_iter().chain(server.get_args());
    let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
    let mut variables = server.get_envs();
    let libraries = variables.find_map(|(name, value)| value.filter(|_| name == "LD_LIBRARY_PATH"));
    let launcher = LAUNCHER
        .replace("SERVER", &words.join(", "))
        .replace("LIBRARIES", &format!("{:?}", libraries.unwrap_or_default()));
    let quoted = |key: &str| {
        let path = tree.path(key).unwrap();
        format!("'{}'", path.display())
    };
    let build = BUILD
        .replace("SHARE", &quoted("share"))
        .replace("PLUGINS", &quoted("plugins"));
    let mut stream = String::new();
    let mut settings = GOOD.to_owned();
    for number in 0..=LAST {
        settings += planted.get(&number).copied().unwrap_or_default();
        let all = format!("{settings}wait-timeout={}\n", 28_800 + number);
        let name = "Change settings";
        write!(
            stream,
            "commit refs/heads/main\ncommitter T <t@example.org> {} +0000\n{}",
            1_700_000_000 + number,
            data(name)
        )
        .unwrap();
        for (file, text) in [
            ("build.sh", &build),
            ("launcher.c", &launcher),
            ("settings", &all),
        ] {
            write!(stream, "M 100644 inline {file}\n{}", data(text)).unwrap();
        }
        if number == 0 {
            stream += "reset refs/heads/good\nfrom refs/heads/main\n\n";
        }
    }
    stream
}

/// A text as git imports it.
fn data(text: &str) -> String {
    format!("data {}\n{text}\n", text.len())
}

/// The numbers of the found changes.
fn found(report: &Value) -> Vec<u64> {
    let parts = report["parts"].as_array().into_iter().flatten();
    let places = parts.map(|part| &part["place"]);
    let places = places.filter(|place| place["is_found"] == true);
    let mut found: Vec<u64> = places
        .map(|place| {
            let end = |name: &str| place[name].as_u64().unwrap();
            assert_eq!(end("after") + 1, end("up_to"), "{place}");
            end("up_to")
        })
        .collect();
    found.sort_unstable();
    found
}

/// A place between two numbers, another in each run of the lab tier.
fn drawn(from: u64, to: u64) -> u64 {
    from + named_seed(seed(), "bisection/place") % (to - from + 1)
}

#[track_caller]
fn check_found(planted: &[(u64, &str)]) {
    let planted: BTreeMap<u64, &str> = planted.iter().copied().collect();
    let (code, report) = Bisected::new(&planted).search(planted.len());
    let expected: Vec<u64> = planted.into_keys().collect();
    assert_eq!((code, found(&report)), (Some(0), expected), "{report:#}");
}

#[test(soak, may_fail = 0.05, needs = &["mariadb-10.11"])]
fn a_commit_that_costs_a_fifth_is_found_among_200() {
    check_found(&[(drawn(1, LAST), FIFTH)]);
}

#[test(soak, may_fail = 0.05, needs = &["mariadb-10.11"])]
fn a_commit_that_costs_a_twentieth_is_found_among_200() {
    check_found(&[(drawn(1, LAST), TWENTIETH)]);
}

#[test(soak, may_fail = 0.1, needs = &["mariadb-10.11"])]
fn two_commits_that_cost_something_are_found_among_200() {
    let first = drawn(1, LAST - 20);
    check_found(&[
        (first, TWENTIETH),
        (first + 20, "binlog-commit-wait-usec=2600\n"),
    ]);
}

/// The contest of the ends is wrong in one search of a hundred.
#[test(soak, may_fail = 0.01, needs = &["mariadb-10.11"])]
fn nothing_is_found_among_200_commits_that_cost_nothing() {
    let (code, report) = Bisected::new(&BTreeMap::new()).search(1);
    assert_eq!((code, found(&report)), (Some(3), vec![]), "{report:#}");
    assert_eq!(report["steps"].as_array().map(Vec::len), Some(1));
}
