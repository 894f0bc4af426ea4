//! Option files that a server would not take, or that include each other.

use std::fs;

use super::{data, json, rules, text};

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
            "innodb_use_mtflush=1",
            "2:20",
            "which is for MariaDB: `innodb_use_mtflush` is an option of MariaDB",
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
            claim.contains("rejects its option file") && claim.contains(why),
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

/// Servers start with such files.
#[test]
fn option_files_that_include_each_other_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    fs::create_dir(file("all")).unwrap();
    fs::write(file("one.cnf"), "[mysqld]\n!include two.cnf\nback_log=77\n").unwrap();
    fs::write(file("two.cnf"), "[mysqld]\n!include one.cnf\nback_log=78\n").unwrap();
    fs::write(file("all/x.cnf"), "[mysqld]\n!includedir .\nback_log=77\n").unwrap();
    for name in ["one.cnf", "all/x.cnf"] {
        let sides = ["--product-a", "mysql", "--version-a", "5.6.24"];
        let targets = [
            text(&file(name)).to_owned(),
            text(&data("mariadb-10.1.8.tsv")).to_owned(),
        ];
        let arguments = [&targets.each_ref().map(String::as_str)[..], &sides].concat();
        let report = json(&arguments, 0);
        let settings = report["audit"]["contenders"][0]["file_settings"]
            .as_array()
            .unwrap();
        assert_eq!(settings.last().unwrap()["shown"], "77", "{settings:#?}");
    }
}

/// Audits a file with each line of a table of `tests/data/audit/cases` beside the same file without it. The table says what
/// the server itself made of the line.
#[track_caller]
fn check_cases(table: &str, before: &str, server: [&str; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let (plain, with) = (
        directory.path().join("plain.conf"),
        directory.path().join("with.conf"),
    );
    fs::write(&plain, before).unwrap();
    let sides = [
        "--product-a",
        server[0],
        "--version-a",
        server[1],
        "--product-b",
        server[0],
        "--version-b",
        server[1],
    ];
    let cases = fs::read_to_string(data("cases").join(table)).unwrap();
    let mut tried = 0;
    for case in cases.lines().skip(1) {
        let cells: Vec<&str> = case.split('\t').collect();
        let [line, fate, shown, code, _said] = cells[..] else {
            panic!("{case}");
        };
        fs::write(&with, format!("{before}{line}\n")).unwrap();
        let report = json(
            &[&[text(&plain), text(&with)][..], &sides].concat(),
            code.parse().unwrap(),
        );
        let rules = rules(&report);
        assert_eq!(
            rules.contains(&"R46"),
            fate == "refused",
            "{line}: {rules:?}"
        );
        assert_eq!(
            rules.contains(&"R47"),
            fate == "missing",
            "{line}: {rules:?}"
        );
        let settings = report["audit"]["contenders"][1]["file_settings"].as_array();
        let last = settings.and_then(|settings| settings.last());
        let last = last.filter(|last| {
            line.starts_with(last["name"].as_str().unwrap()) || line.starts_with("FSYNC")
        });
        if !shown.is_empty() {
            let last = last.unwrap_or_else(|| panic!("{line}: {report:#}"));
            assert_eq!(
                (&last["fate"], &last["shown"]),
                (&fate.into(), &shown.into()),
                "{line}"
            );
        } else if let Some(last) = last {
            assert_eq!(last["fate"], fate, "{line}");
        }
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn every_line_of_the_cases_of_mariadb_is_what_the_server_makes_of_it() {
    check_cases("mariadb-lines.tsv", "[mysqld]\n", ["mariadb", "10.11.19"]);
}

#[test]
fn every_line_of_the_cases_of_postgresql_is_what_the_server_makes_of_it() {
    check_cases("postgresql-lines.tsv", "", ["postgresql", "15.19"]);
}

#[test]
fn files_outside_of_the_given_directory_are_included_from_a_root_that_is_named_only() {
    let given = tempfile::tempdir().unwrap();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("etc/mysql/conf.d");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.cnf"), "[mysqld]\nback_log=77\n").unwrap();
    let (one, other) = (given.path().join("one.cnf"), given.path().join("other.cnf"));
    fs::write(&one, "[mysqld]\nback_log=77\n").unwrap();
    let absolute = folder.display();
    for target in [
        "/etc/mysql/conf.d/",
        &absolute.to_string(),
        "../../../../../../../../etc/mysql/conf.d",
    ] {
        fs::write(&other, format!("[mysqld]\n!includedir {target}\n")).unwrap();
        let sides = [
            "--product-a",
            "mysql",
            "--version-a",
            "8.0.33",
            "--product-b",
            "mysql",
            "--version-b",
            "8.0.33",
        ];
        let pair = [&[text(&one), text(&other)][..], &sides].concat();
        let alone = json(&pair, 0);
        assert!(rules(&alone).contains(&"R47"), "{target}: {alone:#}");
        let named = json(&[&pair[..], &["--root", text(root.path())]].concat(), 0);
        assert!(!rules(&named).contains(&"R47"), "{target}: {named:#}");
        let read = &named["audit"]["contenders"][1]["file_settings"][0];
        assert_eq!(
            (&read["name"], &read["shown"]),
            (&"back_log".into(), &"77".into())
        );
    }
}
