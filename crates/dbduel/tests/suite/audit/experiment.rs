//! The audit of an experiment file, before anything is started.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::lab::{program, shipped};
use super::super::plans::experiments;
use super::{audit, check_error, json, text};

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

/// What a server refuses, or makes the contest void, shows here and not when it is run.
#[test]
fn every_shipped_experiment_is_comparable_and_asks_for_what_its_servers_take() {
    let mut audited = 0;
    // Those of crash tests compare nothing: each of their contenders is judged by itself.
    let is_crash_test = |path: &std::path::PathBuf| text(path).contains("crash-test-");
    for path in experiments()
        .into_iter()
        .filter(|path| !is_crash_test(path))
    {
        let output = audit(&[text(&path), "--dry"]);
        let said = String::from_utf8_lossy(&output.stderr);
        // That of a server that is not installed here.
        let is_unknown = said.contains("is unknown until it is fetched");
        let code = output.status.code();
        assert!(is_unknown || code == Some(0), "{}: {said}", path.display());
        audited += usize::from(!is_unknown);
    }
    assert!(audited >= 10, "{audited}");
}

/// The capture and the dump that experiments of the documents name.
fn write_own_workload(directory: &Path) {
    let log = "/usr/sbin/mariadbd, Version: 10.11.19-MariaDB (Debian). started with:\nTcp port: 0  Unix socket: s\n\
               Time\t\t    Id Command\tArgument\n261129 16:22:01\t    41 Connect\tapp@localhost on shop using Socket\n\
               \t\t    41 Query\tSELECT c FROM t WHERE id = 1\n\t\t    41 Quit\t\n";
    fs::write(directory.join("general.log"), log).unwrap();
    let import = program()
        .args(["capture", "import"])
        .arg(directory.join("general.log"))
        .arg("-o")
        .arg(directory.join("shop.cap"))
        .output()
        .unwrap();
    assert!(import.status.success(), "{import:?}");
    let dump = "CREATE TABLE `t` (`id` int PRIMARY KEY, `c` int);\nINSERT INTO `t` VALUES (1,2);\n";
    fs::write(directory.join("shop.sql.gz"), dump).unwrap();
}

/// The experiments that documents show, which readers copy: each is comparable by its file.
#[test]
fn every_experiment_of_the_documents_is_comparable() {
    let directory = tempfile::tempdir().unwrap();
    write_own_workload(directory.path());
    let experiment = directory.path().join("duel.toml");
    let mut audited = 0;
    for page in pages() {
        let content = fs::read_to_string(&page).unwrap();
        for part in content.split("```toml\n").skip(1) {
            let (block, _) = part.split_once("```").unwrap();
            let contenders = block.matches("[contenders.").count();
            if contenders < 2 || !block.contains("[workload]") {
                continue;
            }
            fs::write(&experiment, block).unwrap();
            let output = audit(&[text(&experiment), "--dry"]);
            let said = String::from_utf8_lossy(&output.stderr);
            // Builds of the reader's own.
            if said.contains("there is no server at") {
                continue;
            }
            assert_eq!(output.status.code(), Some(0), "{page:?}: {said}\n{block}");
            audited += 1;
        }
    }
    assert!(audited >= 3, "{audited}");
}

/// README and the pages below `docs/`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/tutorial"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    pages
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
        said.contains("D1: Commit durability")
            && said.contains("about = [\"innodb_flush_log_at_trx_commit\""),
        "{said}"
    );
    let (code, said) = run(&format!("{duel}[sweep]\ntable_size = [1000, 2000]\n"));
    assert_eq!(code, Some(4), "{said}");
    let (code, said) = run(&duel.replace("trx_commit = 2", "trx_commit = \"two\""));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("duel.toml:5:14: contender `b`"), "{said}");
}
