//! Option files that a server would not take, or that include each other.

use std::fs;

use super::{audit, data, json, rules, text};

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
