//! Layouts of published results.

use std::fs;

use dbduel_audit::Product;
use dbduel_record::event::Severity;

use super::*;

fn read(directory: &Path, root: Option<&Path>) -> Result<Published> {
    super::read(directory, root, |_| {
        panic!("no record is among these files")
    })
}

fn variables(version: &str) -> String {
    format!("version\t{version}\nmax_connections\t151\ninnodb_io_capacity\t200\n")
}

fn status(uptime: u32, commits: u32) -> String {
    format!("Uptime\t{uptime}\nQuestions\t9\nCom_commit\t{commits}\n")
}

fn write(directory: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// The contenders of the one contest of a directory.
fn only_contest(directory: &Path) -> Vec<ServerEvidence> {
    let mut contests = read(directory, None).unwrap().contests;
    assert_eq!(contests.len(), 1);
    contests.remove(0).case.contenders
}

#[test]
fn a_directory_per_server_is_recognised_by_content() {
    let directory = tempfile::tempdir().unwrap();
    write(
        directory.path(),
        &[
            ("one/a.txt", &variables("5.6.24")),
            ("one/x1", &status(500, 90)),
            ("one/x2", &status(100, 10)),
            ("one/chart.png", "\u{0}\u{1}"),
            ("two/run/b.txt", &variables("10.1.8-MariaDB")),
            ("two/my.cnf", "[mysqld]\ninnodb_io_capacity=200\n"),
            ("README.md", "# results\n"),
        ],
    );
    let found = only_contest(directory.path());
    assert_eq!(
        (found[0].name.as_str(), found[0].product),
        ("one", Product::MySql)
    );
    assert_eq!(
        found[0].delta("com_commit"),
        Some(80.0),
        "the uptime orders the two looks"
    );
    assert_eq!(
        (found[1].name.as_str(), found[1].product),
        ("two", Product::MariaDb)
    );
    assert_eq!(found[1].asked["innodb_io_capacity"], "200");
}

#[test]
fn files_that_lie_together_are_told_apart_by_their_names() {
    let directory = tempfile::tempdir().unwrap();
    write(
        directory.path(),
        &[
            ("mariadb_variables.txt", &variables("10.1.8-MariaDB")),
            ("mariadb_status_after.txt", &status(9, 9)),
            ("mysql_variables.txt", &variables("5.6.24")),
            ("mysql_status_before.txt", &status(9, 9)),
        ],
    );
    let found = only_contest(directory.path());
    let names: Vec<&str> = found
        .iter()
        .map(|contender| contender.name.as_str())
        .collect();
    assert_eq!(names, ["mariadb", "mysql"]);
    assert!(!found[0].status_after.is_empty() && found[0].status_before.is_empty());
    assert!(found[1].status_after.is_empty() && !found[1].status_before.is_empty());
}

#[test]
fn option_files_alone_need_a_version_in_the_name_of_their_directory() {
    let directory = tempfile::tempdir().unwrap();
    write(
        directory.path(),
        &[
            (
                "mariadb-10.1.8/my.cnf",
                "[mysqld]\ninnodb_io_capacity=900\n",
            ),
            ("mysql-5.6/my.cnf", "[mysqld]\n"),
        ],
    );
    let found = only_contest(directory.path());
    assert_eq!(found[0].variables["innodb_io_capacity"], "900");
    assert!(found[0].is_predicted);
    write(directory.path(), &[("unnamed/my.cnf", "[mysqld]\n")]);
    let left_out = read(directory.path(), None).unwrap().left_out;
    assert!(left_out[0].contains("mysql_version.txt"), "{left_out:?}");
}

/// Of both versions of the file's format.
#[test]
fn what_set_persist_wrote_comes_after_the_option_file() {
    let directory = tempfile::tempdir().unwrap();
    let first = r#"{"Version": 1, "mysql_server": {"innodb_io_capacity": {"Value": "300", "Metadata": {"User": "root"}}}}"#;
    let second = r#"{"Version": 2, "mysql_dynamic_variables": {"innodb_io_capacity": {"Value": "301"}},
        "mysql_static_variables": {"back_log": {"Value": "77"}}}"#;
    write(
        directory.path(),
        &[
            ("mysql-8.0.33/my.cnf", "[mysqld]\ninnodb_io_capacity=900\n"),
            ("mysql-8.0.33/mysqld-auto.cnf", first),
            ("mysql-8.4.8/my.cnf", "[mysqld]\ninnodb_io_capacity=900\n"),
            ("mysql-8.4.8/mysqld-auto.cnf", second),
        ],
    );
    let found = only_contest(directory.path());
    assert_eq!(found[0].variables["innodb_io_capacity"], "300");
    assert_eq!(found[1].variables["innodb_io_capacity"], "301");
    assert_eq!(found[1].variables["back_log"], "77");
}

#[test]
fn a_data_directory_of_postgresql_is_one_server() {
    let directory = tempfile::tempdir().unwrap();
    for side in ["one", "two"] {
        write(
            directory.path(),
            &[
                (&format!("{side}/PG_VERSION"), "17\n"),
                (&format!("{side}/postgresql.conf"), "# work_mem = 4MB\n"),
                (
                    &format!("{side}/postgresql.auto.conf"),
                    "# Do not edit this file manually!\nwork_mem = '64MB'\n",
                ),
                (&format!("{side}/pg_hba.conf"), "local all all trust\n"),
                (&format!("{side}/base/1/PG_VERSION"), "17\n"),
                (&format!("{side}/base/4/PG_VERSION"), "17\n"),
            ],
        );
    }
    let found = only_contest(directory.path());
    assert_eq!(found.len(), 2);
    for server in &found {
        assert_eq!(server.product, Product::PostgreSql);
        assert_eq!(server.version.major, 17);
        assert_eq!(server.variables["work_mem"], "67108864");
    }
    let subject = Subject {
        target: String::new(),
        name: "a".to_owned(),
        product: None,
        version: None,
        password_file: None,
        tls: dbduel_driver::TlsMode::Off,
        machine: dbduel_audit::Machine::default(),
        root: None,
    };
    let server = contender(&directory.path().join("one"), &subject).unwrap();
    assert_eq!(server.variables["work_mem"], "67108864");
}

fn names(contests: &[Gathered]) -> Vec<Vec<&str>> {
    contests
        .iter()
        .map(|contest| {
            let contenders = contest.case.contenders.iter();
            contenders
                .map(|contender| contender.name.as_str())
                .collect()
        })
        .collect()
}

#[test]
fn folders_of_contests_are_paired_within_each() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for workload in ["linkbench", "tpcc"] {
        for (server, version) in [("mariadb", "10.1.8-MariaDB"), ("mysql", "5.6.24")] {
            for moment in ["before", "after"] {
                files.push((
                    format!("{workload}/{server}/{moment}/variables.txt"),
                    variables(version),
                ));
            }
            files.push((
                format!("{workload}/{server}/after/status.txt"),
                status(9, 9),
            ));
        }
    }
    files.push(("alone/variables.txt".to_owned(), variables("8.0.33")));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_str()))
        .collect();
    write(directory.path(), &files);
    let found = read(directory.path(), None).unwrap();
    assert_eq!(names(&found.contests), [["mariadb", "mysql"]; 2]);
    assert!(found.contests[1].title.ends_with("tpcc"));
    let first = &found.contests[0].case.contenders[0];
    assert!(!first.variables_after.is_empty() && !first.status_after.is_empty());
    assert_eq!(found.left_out, ["`alone`: nothing to compare it with"]);
}

#[test]
fn files_of_two_servers_in_one_folder_are_no_contender() {
    let directory = tempfile::tempdir().unwrap();
    write(
        directory.path(),
        &[
            ("a/run1/variables.txt", &variables("5.6.24")),
            ("a/run2/variables.txt", &variables("8.0.33")),
            ("b/variables.txt", &variables("5.6.24")),
        ],
    );
    let found = read(directory.path(), None).unwrap();
    assert!(found.contests.is_empty());
    assert!(
        found.left_out[0].contains("5.6.24 and 8.0.33"),
        "{:?}",
        found.left_out
    );
}

const WRONG: &str = "[mysqld]\ninnodb_buffer_pool_size=1G\naria_pagecache_buffer_size=64M\n";

fn contest_of(directory: &Path) -> Gathered {
    let mut found = read(directory, None).unwrap();
    assert_eq!(found.contests.len(), 1, "{:?}", found.left_out);
    found.contests.remove(0)
}

/// A server's folder with one for each point, all of which archive the same file.
#[test]
fn runs_with_the_same_settings_are_one_contender_each() {
    let directory = tempfile::tempdir().unwrap();
    for server in ["mysql-8.4.8", "mariadb-11.8.2", "percona-server-8.0.33"] {
        for point in [
            "tier2/8-threads",
            "tier2/64-threads",
            "tier12/8-threads",
            "tier12/64-threads",
        ] {
            let port = point.len();
            let content = format!(
                "{WRONG}port={port}\nsocket=/tmp/{port}.sock\ndatadir=/data/{server}/{port}\n"
            );
            write(
                directory.path(),
                &[(&format!("{server}/{point}/my.cnf"), &content)],
            );
        }
    }
    let contest = contest_of(directory.path());
    let contenders = contest.case.contenders.iter();
    let shown: Vec<(&str, String)> = contenders
        .map(|one| (one.name.as_str(), one.version.to_string()))
        .collect();
    let expected = [
        ("mariadb-11.8.2", "11.8.2"),
        ("mysql-8.4.8", "8.4.8"),
        ("percona-server-8.0.33", "8.0.33"),
    ];
    assert_eq!(
        shown,
        expected.map(|(name, version)| (name, version.to_owned()))
    );
    assert_eq!(
        (contest.runs.as_slice(), contest.alike),
        (&[4, 4, 4][..], 3)
    );
    assert_eq!(contest.case.contenders[0].refused, []);
    assert_eq!(contest.case.contenders[1].refused.len(), 1);
}

/// One option file for each server, and folders of results that say nothing of servers.
#[test]
fn runs_beside_the_only_file_of_their_server_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    for server in ["mysql-8.4.8", "mariadb-11.8.2"] {
        let option_file = format!("{server}/my.cnf");
        write(
            directory.path(),
            &[(&option_file, "[mysqld]\ninnodb_buffer_pool_size=1G\n")],
        );
        for run in ["read/8-threads", "read/64-threads", "run2", "plots"] {
            let result = format!("{server}/{run}/result.txt");
            write(directory.path(), &[(&result, "transactions: 12\n")]);
        }
    }
    let contest = contest_of(directory.path());
    assert_eq!(contest.runs, [3, 3]);
}

#[test]
fn files_with_a_version_say_which_server_a_numbered_run_is_of() {
    let directory = tempfile::tempdir().unwrap();
    for run in 1..=6 {
        let (file, version) = match run {
            1..=3 => (
                "mysql_version.txt",
                "mysqld  Ver 8.4.8 for Linux on x86_64 (MySQL Community Server - GPL)\n",
            ),
            _ => ("mariadb_version.txt", "11.8.2-MariaDB-ubu2404\n"),
        };
        write(
            directory.path(),
            &[
                (&format!("run{run:02}/my.cnf"), WRONG),
                (&format!("run{run:02}/{file}"), version),
            ],
        );
    }
    let contest = contest_of(directory.path());
    assert_eq!(names(&[contest]), [["mysql-8.4.8", "mariadb-11.8.2"]]);
    assert_eq!(contest_of(directory.path()).runs, [3, 3]);
}

#[test]
fn one_folder_may_hold_server_and_point_in_its_name() {
    let directory = tempfile::tempdir().unwrap();
    for server in ["mysql-8.4.8", "mariadb-11.8.2"] {
        for (point, size) in [("tier2", "2G"), ("tier12", "12G")] {
            let content = format!("[mysqld]\ninnodb_buffer_pool_size={size}\n");
            write(
                directory.path(),
                &[(&format!("{server}_{point}/etc/my.cnf"), &content)],
            );
        }
    }
    let found = read(directory.path(), None).unwrap();
    assert_eq!(
        names(&found.contests),
        [["mariadb-11.8.2", "mysql-8.4.8"]; 2]
    );
    assert!(found.left_out.is_empty(), "{:?}", found.left_out);
}

#[test]
fn repeats_with_other_settings_are_contenders_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    for run in 1..=3 {
        let size = if run == 2 { "2G" } else { "1G" };
        let content = format!("[mysqld]\ninnodb_buffer_pool_size={size}\n");
        write(
            directory.path(),
            &[(&format!("mysql-8.0.33/run{run}/my.cnf"), &content)],
        );
    }
    let contest = contest_of(directory.path());
    assert_eq!(contest.runs, [2, 1]);
    assert_eq!(
        names(&[contest]),
        [["mysql-8.0.33", "mysql-8.0.33 (mysql-8.0.33/run2)"]]
    );
}

#[test]
fn what_cannot_be_used_is_one_line_for_each_reason() {
    let directory = tempfile::tempdir().unwrap();
    for run in 1..=36 {
        write(directory.path(), &[(&format!("point{run}a/my.cnf"), WRONG)]);
    }
    write(
        directory.path(),
        &[("README.md", "# Results\n\n[mysqld]\nport=1\n")],
    );
    let found = read(directory.path(), None).unwrap();
    assert_eq!(found.left_out.len(), 1, "{:?}", found.left_out);
    let expected = "`point10a` and 35 more: an option file whose server is unknown";
    assert!(
        found.left_out[0].starts_with(expected),
        "{:?}",
        found.left_out
    );
}

/// Option files of tiers in the folder of a server, each with a setting.
fn tiers(server: &str, tiers: &[(&str, &str)]) -> Vec<(String, String)> {
    let tier = |(name, setting): &(&str, &str)| {
        let file = format!("{server}/{name}.cnf");
        (file, format!("[mysqld]\n{setting}\n"))
    };
    tiers.iter().map(tier).collect()
}

#[test]
fn tiers_in_the_folder_of_a_version_are_paired_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let mysql = tiers(
        "mysql/8.4.8",
        &[
            ("tier1", "back_log=1"),
            ("tier2", "back_log=2"),
            ("tier9", "back_log=9"),
        ],
    );
    let mariadb = tiers(
        "mariadb/11.8.2",
        &[
            ("tier1", "back_log=1"),
            ("tier2", "back_log=2"),
            ("tier7", "back_log=7"),
        ],
    );
    for (name, content) in mysql.iter().chain(&mariadb) {
        write(directory.path(), &[(name, content)]);
    }
    write(
        directory.path(),
        &[("mysql/8.4.8/vars.txt", &variables("8.4.8"))],
    );
    let found = read(directory.path(), None).unwrap();
    let pairs: Vec<Vec<(&str, &str)>> = found
        .contests
        .iter()
        .map(|contest| {
            let contenders = contest.case.contenders.iter();
            contenders
                .map(|one| (one.name.as_str(), one.asked["back_log"].as_str()))
                .collect()
        })
        .collect();
    let expected = [
        vec![("mariadb-11.8.2", "1"), ("mysql-8.4.8", "1")],
        vec![("mariadb-11.8.2", "2"), ("mysql-8.4.8", "2")],
    ];
    assert_eq!(pairs, expected);
    let [alone, of_one] = found.left_out.as_slice() else {
        panic!("{:?}", found.left_out);
    };
    assert!(
        alone.contains("vars.txt") && alone.contains("one of several runs"),
        "{alone}"
    );
    assert!(
        of_one.contains("and 1 more: nothing to compare it with"),
        "{of_one}"
    );
}

#[test]
fn what_an_option_file_includes_and_what_lies_beside_its_runs_is_no_other_server() {
    let directory = tempfile::tempdir().unwrap();
    let files = |server: &str, version: &str| {
        let file = |name: &str, content: &str| (format!("{server}/{name}"), content.to_owned());
        [
            file(
                "my.cnf",
                "[mysqld]\nback_log=80\n!includedir /etc/mysql/conf.d/\n",
            ),
            file("conf.d/a.cnf", "[mysqld]\nport=1\n"),
            file("conf.d/b.cnf", "[mysqld]\ninnodb_io_capacity=900\n"),
            file("8-threads/vars.txt", &variables(version)),
            file("64-threads/vars.txt", &variables(version)),
        ]
    };
    for (name, content) in [
        files("mysql-8.4.8", "8.4.8"),
        files("mariadb-11.8.2", "11.8.2-MariaDB"),
    ]
    .concat()
    {
        write(directory.path(), &[(&name, &content)]);
    }
    let found = read(directory.path(), None).unwrap();
    assert_eq!(found.left_out, [] as [String; 0]);
    let [contest] = found.contests.as_slice() else {
        panic!("{:?}", names(&found.contests));
    };
    assert_eq!(contest.runs, [2, 2]);
    for contender in &contest.case.contenders {
        assert_eq!(contender.asked["innodb_io_capacity"], "900");
        assert_eq!(contender.variables["innodb_io_capacity"], "200");
    }
    // The file asks for 900 and the run shows 200.
    let found = dbduel_audit::audit(&contest.case);
    let doubt = found
        .findings
        .iter()
        .find(|finding| finding.rule == "R17")
        .unwrap();
    assert!(doubt.severity >= Severity::Doubt, "{doubt:?}");
    assert!(
        doubt.claim.contains("innodb_io_capacity = 900 became 200"),
        "{}",
        doubt.claim
    );
}
