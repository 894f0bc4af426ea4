//! `dbduel audit` as a user meets it: on dumps, option files, published directories and hostile files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::lab::{program, shipped};
use super::plans::{experiments, plan};

mod running;

/// No input may keep the audit busy for longer.
const PATIENCE: Duration = Duration::from_secs(20);

fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/audit")
        .join(file)
}

fn audit(arguments: &[&str]) -> Output {
    let started = Instant::now();
    let output = program().arg("audit").args(arguments).output().unwrap();
    assert!(started.elapsed() < PATIENCE, "{arguments:?}");
    output
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

#[test]
fn published_settings_of_the_contest_of_2014_raise_its_objections() {
    let report = json(&[text(&data("contest-a"))], 4);
    let rules = rules(&report);
    for rule in [
        "flush.threads",
        "torn_page.protection",
        "R3",
        "R5",
        "R6",
        "R12",
        "R36",
        "R37",
        "R38",
        "R40",
        "R41",
        "R42",
    ] {
        assert!(rules.contains(&rule), "no {rule} in {rules:?}");
    }
    let waiver = "D3=the device writes pages whole";
    let report = json(&[text(&data("contest-a")), "--waive", waiver], 0);
    assert_eq!(report["audit"]["grade"], "unfair");
}

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
    assert_eq!(audit(&arguments).status.code(), Some(4));
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
fn an_option_file_that_its_server_does_not_take_is_void_with_that_reason_first() {
    let directory = tempfile::tempdir().unwrap();
    let option_file = directory.path().join("my.cnf");
    let dump = data("mariadb-10.1.8.tsv");
    let sides = ["--product-a", "mysql", "--version-a", "5.6.24"];
    for (line, place, why) in [
        (
            "innodb_buffer_pool_size=banana",
            "2:25",
            "the server expects a number",
        ),
        ("innodb_log_file_size = 8Q", "2:24", "the server expects"),
        ("innodb_flush_method=O_DIRCT", "2:21", "the server expects"),
        (
            "innodb_file_per_table=maybe",
            "2:23",
            "the server expects ON or OFF",
        ),
        (
            "innodb_use_mtflush=1",
            "2:20",
            "one for MariaDB: `innodb_use_mtflush` is an option of MariaDB",
        ),
        (
            "innodb_io_capacty=9",
            "2:19",
            "did you mean `innodb_io_capacity`?",
        ),
        (
            "innodb_io=9",
            "2:11",
            "may stand for innodb_io_capacity or innodb_io_capacity_max",
        ),
    ] {
        fs::write(&option_file, format!("[mysqld]\n{line}\n")).unwrap();
        let report = json(
            &[&[text(&option_file), text(&dump)][..], &sides].concat(),
            4,
        );
        let first = &report["audit"]["findings"][0];
        assert_eq!(
            (&first["rule"], &first["severity"]),
            (&"R46".into(), &"void".into()),
            "{line}"
        );
        let claim = first["claim"].as_str().unwrap();
        assert!(
            claim.contains("does not take its option file") && claim.contains(why),
            "{claim}"
        );
        let name = first["evidence"][0]["from"][0]["name"].as_str().unwrap();
        assert!(name.ends_with(&format!("my.cnf:{place}")), "{name}");
    }
    fs::write(
        &option_file,
        "[mysqld]\nloose-innodb_use_mtflush=1\nskip-name\n!includedir gone.d\n",
    )
    .unwrap();
    let report = json(
        &[&[text(&option_file), text(&dump)][..], &sides].concat(),
        0,
    );
    assert!(!rules(&report).contains(&"R46"), "{report:#}");
    let findings = report["audit"]["findings"].as_array().unwrap();
    let missing = findings.iter().find(|one| one["rule"] == "R47").unwrap();
    assert!(
        missing["claim"].as_str().unwrap().contains("`gone.d`"),
        "{missing:#}"
    );
}

#[test]
fn settings_of_an_experiment_that_its_server_does_not_take_are_errors_with_their_place() {
    let directory = tempfile::tempdir().unwrap();
    let experiment = directory.path().join("duel.toml");
    let lines = "[contenders.a]\nserver = \"mysql-5.6.24\"\n[contenders.b]\nlike = \"a\"\n\
                 [contenders.b.settings]\ninnodb_flush_method = \"O_DIRCT\"\n\
                 [workload]\nname = \"oltp-read-write\"\n";
    fs::write(&experiment, lines).unwrap();
    check_error(
        &[text(&experiment), "--dry"],
        &["duel.toml:6:1: ", "contender `b`", "O_DIRECT_NO_FSYNC"],
    );
    let lines = lines.replace(
        "innodb_flush_method = \"O_DIRCT\"",
        "innodb_redo_log_capacity = \"1G\"",
    );
    fs::write(&experiment, lines).unwrap();
    check_error(
        &[text(&experiment), "--dry"],
        &[
            "duel.toml:6:1: ",
            "`innodb_redo_log_capacity` is an option of MySQL 8.0 to 9.7",
        ],
    );
}

/// Thirty-six runs of a published comparison; all but one archive the option file of MariaDB.
#[test]
fn published_results_are_one_line_for_each_finding_with_its_runs() {
    let directory = tempfile::tempdir().unwrap();
    let mariadb = "[mysqld]\ninnodb_buffer_pool_size=SIZE\naria_pagecache_buffer_size=64M\nport=PORT\n\
                   socket=/tmp/PORT.sock\ndatadir=/data/PORT\n!includedir /etc/mysql/conf.d/\n";
    let mysql = mariadb.replace("aria_pagecache_buffer_size=64M\n", "");
    let mut port = 3306;
    for server in ["mysql-8.4.8", "mariadb-11.8.2", "percona-8.0.33"] {
        for (tier, size) in [
            ("tier2", "2G"),
            ("tier12", "12G"),
            ("tier32", "32G"),
            ("tier64", "64G"),
        ] {
            for threads in [1, 16, 128] {
                let folder = directory
                    .path()
                    .join(server)
                    .join(format!("{tier}_{threads}th"));
                fs::create_dir_all(&folder).unwrap();
                let is_right = server == "mysql-8.4.8" && (tier, threads) == ("tier64", 128);
                let file = if is_right { &mysql } else { mariadb };
                port += 1;
                let file = file
                    .replace("PORT", &port.to_string())
                    .replace("SIZE", size);
                fs::write(folder.join("my.cnf"), file).unwrap();
                fs::write(
                    folder.join("sysbench.txt"),
                    "transactions: 12345 (205.75 per sec.)\n",
                )
                .unwrap();
            }
        }
    }
    let output = audit(&[text(directory.path())]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.starts_with("Was it fair? not comparable: 36 runs of 3 servers in 12 contests\n"),
        "{said}"
    );
    assert!(said.contains("mysql-8.4.8: MySQL 8.4.8, 12 runs"), "{said}");
    let first = said.lines().find(|line| line.starts_with("void")).unwrap();
    assert!(
        first.starts_with(
            "void   12 of 36 runs  I R46  `percona-8.0.33` (Percona Server 8.0.33) does not"
        ),
        "{said}"
    );
    assert!(said.contains("which is one for MariaDB"), "{said}");
    assert!(said.contains("doubt  12 of 36 runs  I R47"), "{said}");
    for line in said
        .lines()
        .filter(|line| line.starts_with("void") || line.starts_with("doubt"))
    {
        assert!(
            !["socket", "datadir", "`port`"]
                .iter()
                .any(|name| line.contains(name)),
            "{line}"
        );
    }
    assert!(said.len() < 4000, "{} bytes:\n{said}", said.len());
    let report = json(&[text(directory.path())], 4);
    let refused: Vec<u64> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["rule"] == "R46")
        .map(|one| one["runs"].as_u64().unwrap())
        .collect();
    assert_eq!(refused, [12, 11]);
    assert_eq!(
        report["audits"].as_array().unwrap().len(),
        5,
        "one for each tier, and the run with another file"
    );
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
fn a_dry_audit_of_an_experiment_starts_nothing() {
    let ladder = shipped().join("contest-d-doublewrite-ladder.toml");
    let report = json(&[text(&ladder), "--dry"], 0);
    let findings = report["audit"]["findings"].as_array().unwrap();
    let declared = findings
        .iter()
        .find(|finding| finding["rule"] == "torn_page.protection")
        .unwrap();
    assert_eq!(declared["kind"], "declared");
}

/// What a server refuses, or makes the contest void, shows here and not when somebody runs it.
#[test]
fn every_shipped_experiment_is_comparable_and_asks_for_what_its_servers_take() {
    let mut audited = 0;
    for path in experiments() {
        let output = audit(&[text(&path), "--dry"]);
        let said = String::from_utf8_lossy(&output.stderr);
        // The version of a server that is installed is not known without starting it.
        let is_unknown = said.contains("shows only when it is started");
        let code = output.status.code();
        assert!(is_unknown || code == Some(0), "{}: {said}", path.display());
        audited += usize::from(!is_unknown);
    }
    assert!(audited >= 10, "{audited}");
}

/// Nothing is fetched, and neither the home nor the directory of results holds anything afterwards.
#[test]
fn a_contest_that_is_void_by_its_file_stops_before_anything_is_fetched() {
    let directory = tempfile::tempdir().unwrap();
    let run = |content: &str| {
        let (experiment, home) = (
            directory.path().join("duel.toml"),
            directory.path().join("home"),
        );
        fs::write(&experiment, content).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_dbduel"))
            .args(["--home", text(&home), "run", text(&experiment), "--results"])
            .arg(directory.path().join("results"))
            .output()
            .unwrap();
        let left: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["duel.toml"], "something was written");
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let duel = "[contenders.a]\nserver = \"mysql-5.5.34\"\n[contenders.b]\nserver = \"mariadb-10.1.8\"\n\
                settings = { innodb_flush_log_at_trx_commit = 2 }\n[workload]\nname = \"oltp-read-write\"\n";
    let (code, said) = run(duel);
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("D1: Commit durability") && said.contains("about = [\"D1\"]"),
        "{said}"
    );
    let (code, said) = run(&format!("{duel}[sweep]\ntable_size = [1000, 2000]\n"));
    assert_eq!(code, Some(4), "{said}");
    let (code, said) = run(&duel.replace("trx_commit = 2", "trx_commit = \"two\""));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("duel.toml:5:14: contender `b`"), "{said}");
}

#[track_caller]
fn check_refused(content: &[u8], expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hostile");
    fs::write(&path, content).unwrap();
    let output = audit(&[text(&path), text(&data("mariadb-10.1.8.tsv"))]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(expected), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn hostile_files_are_errors_with_file_and_line() {
    check_refused(&vec![b'x'; 10 << 20], "line 1: the line is longer");
    check_refused(&b"a\t1\n".repeat(1_000_000), "line 200001");
    check_refused(b"version\t1\n\0\x01\x02", "line 2: this is no text");
    check_refused(b"\xfe\xff\0v", "line 1: the text is in UTF-16BE");
    check_refused(b"version\t5.6\nx\t\xe4\n", "line 2: byte 3 is not UTF-8");
    check_refused(b"[mysqld]\n!include hostile\n", "line 2: ");
    check_refused(b"version\t5.6\nx\ty\0z\n", "line 2: this is no text");
    check_refused(b"\xff\xfev\0e\0r\0", "line 1: the text is in UTF-16LE");
    check_refused(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0], "line 1: ");
    check_refused(b"[mysqld]\ninnodb_io_capacity=1\n", "--product-a");
    check_refused(b"", "nothing that an audit understands");
    check_refused(b"max_connections\t151\n", "no `version`");
}

#[test]
fn option_files_that_include_each_other_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    fs::create_dir(file("all")).unwrap();
    fs::write(file("one.cnf"), "[mysqld]\n!include two.cnf\n").unwrap();
    fs::write(file("two.cnf"), "[mysqld]\n!include one.cnf\n").unwrap();
    fs::write(file("all/x.cnf"), "[mysqld]\n!includedir .\n").unwrap();
    for name in ["one.cnf", "all/x.cnf"] {
        let sides = ["--product-a", "mysql", "--version-a", "5.6.24"];
        let targets = [
            text(&file(name)).to_owned(),
            text(&data("mariadb-10.1.8.tsv")).to_owned(),
        ];
        let arguments = [&targets.each_ref().map(String::as_str)[..], &sides].concat();
        let output = audit(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("line 2: ") && said.contains("in a circle"),
            "{said}"
        );
    }
}

#[test]
fn hostile_option_files_and_experiments_are_errors_too() {
    let directory = tempfile::tempdir().unwrap();
    let dump = data("mariadb-10.1.8.tsv");
    let sides = ["--product-a", "mysql", "--version-a", "5.6.24"];
    let long = [b"[mysqld]\nsql_mode=".as_slice(), &vec![b'x'; 10 << 20]].concat();
    let latin1 = b"[mysqld]\n# Gr\xf6\xdfe\nport=1\n";
    let utf16: Vec<u8> = "[mysqld]\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (content, expected) in [
        (long.as_slice(), "line 2: the line is longer"),
        (latin1, "line 2: byte 5 is not UTF-8"),
        (&utf16, "line 1: this is no text"),
        (
            b"[mysqld]\n!include /dev/zero\n",
            "line 2: `/dev/zero` cannot be included",
        ),
        (b"[mysqld]\n!include\n", "line 2: "),
        (b"[mysqld]\nport=1\0\n", "line 2: this is no text"),
    ] {
        let path = directory.path().join("my.cnf");
        fs::write(&path, content).unwrap();
        let arguments = [&[text(&path), text(&dump)][..], &sides].concat();
        check_error(&arguments, &[expected]);
    }
    for (content, expected) in [
        (long.as_slice(), "line 2: the line is longer"),
        (b"question = \"\xe4\"\n", "line 1: byte 13 is not UTF-8"),
        (b"\0\x01", "line 1: this is no text"),
    ] {
        let path = directory.path().join("duel.toml");
        fs::write(&path, content).unwrap();
        check_error(&[text(&path), "--dry"], &[expected]);
    }
}

#[test]
fn directories_that_lead_nowhere_end() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    std::os::unix::fs::symlink(directory.path(), below.join("up")).unwrap();
    nix::unistd::mkfifo(&below.join("pipe.cnf"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    check_error(
        &[text(directory.path())],
        &["no server's variables or settings"],
    );
    check_error(
        &[
            text(&below.join("pipe.cnf")),
            text(&data("mariadb-10.1.8.tsv")),
        ],
        &["is not a regular file"],
    );
}

#[test]
fn a_directory_whose_dumps_are_refused_says_which() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("variables.txt"), vec![b'x'; 10 << 20]).unwrap();
    let output = audit(&[text(directory.path())]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("variables.txt`, line 1: the line is longer"),
        "{said}"
    );
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
