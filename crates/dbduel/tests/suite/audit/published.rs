//! Directories of published results.

use std::fs;

use super::{audit, check_error, data, json, rules, text};

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
            "void   12 of 36 runs  I R46  `percona-8.0.33` (Percona Server 8.0.33) rejects"
        ),
        "{said}"
    );
    assert!(said.contains("is for MariaDB: `aria"), "{said}");
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
