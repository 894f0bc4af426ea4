//! Captured statements wherever an experiment goes: as a workload of a suite, divided among settings, swept, and with rules for the
//! exit code. The experiment, its capture and its dump are in one folder and named relative to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;

use dbduel_record::event::Event;
use dbduel_record::plan::{Plan, SuitePhase};
use dbduel_record::sweep::{SweepPlan, cell_dir};
use dbduel_record::{FormatVersion, Record};
use dbduel_testkit::captures::import_below;

use super::lab::{
    Lab, assert_verified, contender_names, plan_of, program, program_in, published, servers_left,
};
use super::on_server::captured::general_log;

/// Sessions of a shop: reads by the key and by a column without an index, and a change.
const SESSIONS: [&[&str]; 3] = [
    &[
        "SELECT name FROM item WHERE id = 5",
        "SELECT name FROM item WHERE id = 6",
        "SELECT id FROM item WHERE name = 'ada@example.org'",
    ],
    &["SELECT name FROM item WHERE id = 7"],
    &[
        "BEGIN",
        "SELECT price FROM item WHERE id = 8",
        "UPDATE item SET price = price + 1 WHERE id = 8",
        "COMMIT",
    ],
];
/// A value of the statements, which no file of a record may have.
const VALUE: &str = "ada@example.org";
/// Rows of the shop.
const ROWS: u64 = 40;

/// A contender of each of these contests.
const CONTENDER: &str = "server = \"mariadb-10.11\"\nsettings = { innodb_buffer_pool_size = \"32M\", innodb_log_file_size = \"8M\", \
                         innodb_flush_log_at_trx_commit = 2 }";
const SCHEDULE: &str = "[load]\nclients = 2\n[schedule]\nslice = \"100 ms\"\nguard = \"10 ms\"\nwarm_up = \"200 ms\"\n";

/// An experiment on the shop, which is beside it.
fn shop(experiment: &str) -> Lab {
    let lab = Lab::new(experiment);
    let _ = import_below(lab.path(), &general_log(&SESSIONS), None);
    let rows: Vec<String> = (1..=ROWS)
        .map(|id| format!("({id},'item {id}',{})", 10 * id))
        .collect();
    let dump = format!(
        "-- MySQL dump 10.13  Distrib 8.0.33, for Linux (x86_64)\nDROP TABLE IF EXISTS `item`;\n\
         CREATE TABLE `item` (`id` int NOT NULL, `name` varchar(40) NOT NULL, `price` int NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB;\n\
         INSERT INTO `item` VALUES {};\n-- Dump completed on 2026-11-28 12:00:00\n",
        rows.join(",")
    );
    fs::write(lab.path().join("shop.sql"), dump).unwrap();
    lab
}

/// Two equal contenders on the shop, with these further lines of `[workload]`.
fn duel(workload: &str) -> String {
    format!(
        "budget = \"6 s\"\nhorizon = \"25 %\"\nseed = 7\n[contenders.first]\n{CONTENDER}\n[contenders.second]\nlike = \"first\"\n\
         [workload]\nname = \"captured\"\ncapture = \"a.cap\"\n{workload}[data]\ndump = \"shop.sql\"\n{SCHEDULE}"
    )
}

/// A suite of sysbench's points beside the shop.
fn suite() -> String {
    format!(
        "budget = \"8 s\"\nhorizon = \"25 %\"\nseed = 7\n[contenders.first]\n{CONTENDER}\n[contenders.second]\nlike = \"first\"\n\
         [workload]\ntables = 1\ntable_size = 500\ncapture = \"a.cap\"\n[data]\ndump = \"shop.sql\"\n{SCHEDULE}\
         [suite]\nmirrored = false\nsettle = \"100 ms\"\n\
         [[suite.workload]]\nname = \"points\"\nworkload = \"oltp-point-select\"\ngroup = \"point\"\n\
         [[suite.workload]]\nname = \"our shop\"\nworkload = \"captured\"\nphase = \"write\"\n"
    )
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Rows and digests of the contenders' data.
fn data_of(record: &Record) -> BTreeSet<(u64, &str)> {
    let ready = record.events.iter().filter_map(|event| match &event.what {
        Event::DatasetReady { rows, digest, .. } => Some((*rows, digest.as_str())),
        _ => None,
    });
    ready.collect()
}

/// Files below a directory that have the value.
fn files_with_value(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with_value(&path));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let mut parts = bytes.windows(VALUE.len());
        if parts.any(|part| part == VALUE.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test(needs = &["mariadb-10.11"])]
fn a_suite_has_captured_statements_beside_other_workloads() {
    let lab = shop(&suite());
    lab.run_to_the_end();
    let record = lab.record();
    assert_eq!(record.complaints, []);
    assert_eq!(record.plan.workload.name, "oltp-point-select");
    let cell = record.plan.levels[1].cell.as_ref().unwrap();
    assert_eq!(
        (cell.workload.name.as_str(), cell.phase),
        ("captured", SuitePhase::Write)
    );
    let data = data_of(&record);
    let rows: Vec<u64> = data.iter().map(|(rows, _)| *rows).collect();
    assert_eq!(rows, [500 + ROWS], "one digest of all tables");

    // Single statements are measured at the captured level alone.
    assert_eq!(record.statement_classes.classes.len(), 6);
    assert!(!record.statements.is_empty());
    let level = |block: u32| record.plan.blocks[block as usize].level;
    let levels: BTreeSet<usize> = record
        .statements
        .iter()
        .map(|row| level(row.block))
        .collect();
    assert_eq!(levels, BTreeSet::from([1]));
    let measured: BTreeSet<usize> = record.slices.iter().map(|row| level(row.block)).collect();
    assert_eq!(measured, BTreeSet::from([0, 1]));

    // Both have plans of their own, those of captured statements without a text.
    for files in &record.contenders {
        let statements = files.statements.as_ref().unwrap();
        let [points, shop] = [0, 1].map(|level| &statements.at(level).unwrap().statements);
        assert_eq!(points.len(), 1);
        assert!(points.iter().all(|one| one.example.text.is_some()));
        assert_eq!(shop.len(), 4, "{shop:?}");
        for one in shop {
            assert_eq!(one.because, None);
            assert!(one.example.id.is_some() && one.example.text.is_none());
        }
    }
    let report = &published(&lab.record_dir())["summary"];
    assert_eq!(report["duels"][1]["label"], "our shop");
    assert_eq!(
        report["duels"][1]["statements"].as_array().unwrap().len(),
        4
    );
    let classes = report["statement_classes"].as_array().unwrap();
    assert_eq!(classes.len(), 1);
    assert_eq!(classes[0]["level"], 1);
    assert!(!report["answers"]["classes"].as_array().unwrap().is_empty());
    let page = fs::read_to_string(lab.record_dir().join("report.html")).unwrap();
    for part in ["id=\"statements\"", "id=\"answers\"", "our shop"] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(files_with_value(&lab.record_dir()), Vec::<String>::new());
    assert_verified(&lab.record_dir());
}

#[test]
fn a_suite_of_captured_statements_alone_has_the_tables_of_their_dump() {
    let all = suite().replace("tables = 1\ntable_size = 500\n", "");
    let all = all.replace(
        "workload = \"oltp-point-select\"\n",
        "workload = \"captured\"\nclients = 1\n",
    );
    let planned = |text: &str| {
        let output = plan_of(&shop(text).experiment());
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice::<Plan>(&output.stdout).unwrap()
    };
    let plan = planned(&all);
    assert_eq!(plan.format, FormatVersion::CURRENT);
    assert_eq!(plan.workload.name, "captured");
    assert!(plan.dump_beside().is_none());
    let cells = plan.levels.iter().map(|level| level.cell.as_ref().unwrap());
    let phases: Vec<SuitePhase> = cells.map(|cell| cell.phase).collect();
    // The capture writes.
    assert_eq!(phases, [SuitePhase::Last, SuitePhase::Write]);
    let mixed = planned(&suite());
    let beside = mixed.dump_beside().unwrap();
    assert_eq!(
        beside.parameters["dump_digest"],
        plan.workload.parameters["dump_digest"]
    );
}

#[test]
fn captured_workloads_that_a_suite_cannot_have_are_refused() {
    let refused = |old: &str, new: &str, part: &str| {
        let text = suite();
        assert!(text.contains(old), "{old}");
        let output = plan_of(&shop(&text.replacen(old, new, 1)).experiment());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(part), "{}", said(&output));
    };
    refused(
        "[data]\ndump = \"shop.sql\"\n",
        "",
        "`captured` needs the tables of its statements",
    );
    refused(
        "workload = \"captured\"\n",
        "workload = \"oltp-update-index\"\n",
        "which is not in this suite: remove [data]",
    );
    refused(
        "phase = \"write\"\n",
        "phase = \"write\"\nmode = \"trace\"\ntransactions_per_slice = 1\n",
        "`our shop` is a trace, which restores the tables of all workloads",
    );
    refused(
        "workload = \"oltp-point-select\"\n",
        "workload = \"captured\"\ndraw = \"sessions\"\n",
        "`points` and `our shop` differ in `draw`",
    );
    refused(
        "[workload]\ntables = 1\ntable_size = 500\n",
        "[workload]\nname = \"captured\"\n",
        "put `captured` into [[suite.workload]]",
    );
    refused(
        "[contenders.second]\nlike = \"first\"\n",
        "[contenders.second]\nserver = \"tcp://u@db\"\n",
        "`captured` does not run on running servers",
    );
}

#[test(needs = &["mariadb-10.11"])]
fn the_difference_on_captured_statements_is_divided_among_settings() {
    let text = duel("").replace("\"6 s\"", "\"10 s\"").replace(
        "like = \"first\"\n",
        "like = \"first\"\nsettings = { innodb_flush_log_at_trx_commit = 1, innodb_lru_scan_depth = 512 }\n",
    );
    let lab = shop(&format!(
        "about = [\"innodb_flush_log_at_trx_commit\", \"innodb_lru_scan_depth\"]\n{text}"
    ));
    let output = program()
        .arg("attribute")
        .arg(lab.experiment())
        .arg("--results")
        .arg(lab.results())
        .args(["--fail-if", "slower than 95 %"])
        .output()
        .unwrap();
    assert!(
        matches!(output.status.code(), Some(0 | 3 | 5)),
        "{}",
        said(&output)
    );
    assert!(
        said(&output).contains("`slower than 95 %` "),
        "{}",
        said(&output)
    );
    assert_eq!(servers_left(), []);
    let record = lab.record();
    assert_eq!(record.complaints, []);
    assert_eq!(contender_names(&record), ["first", "second", "a", "b"]);
    assert_eq!(record.answers.as_ref().unwrap().classes.len(), 4);
    assert!(!record.statements.is_empty());
    let report = &published(&lab.record_dir())["summary"];
    let effects = &report["duels"][0]["attribution"]["effects"];
    assert_eq!(effects.as_array().unwrap().len(), 2, "{report}");
    assert_verified(&lab.record_dir());
}

#[test(needs = &["mariadb-10.11"])]
fn an_index_of_one_contender_is_the_declared_difference() {
    let text = duel("").replace(
        "like = \"first\"\n",
        "like = \"first\"\ntables = { ddl = \"index.sql\" }\n",
    );
    let lab = shop(&text);
    let index = "-- Names are looked up.\nCREATE INDEX named ON item (name);\n";
    fs::write(lab.path().join("index.sql"), index).unwrap();
    lab.run_to_the_end();
    let record = lab.record();
    assert_eq!(record.complaints, []);
    assert_eq!(record.plan.contenders[1].tables["ddl"], index);
    let data = data_of(&record);
    assert_eq!(data.len(), 1, "the rows are equal: {data:?}");
    let report = &published(&lab.record_dir());
    let classes = report["summary"]["duels"][0]["statements"]
        .as_array()
        .unwrap();
    let by_name = classes
        .iter()
        .find(|class| class["class"].as_str().unwrap().contains("where name ="));
    let plans = by_name.unwrap()["plans"].as_array().unwrap();
    let steps: Vec<&str> = plans
        .iter()
        .map(|plan| plan["steps"][0].as_str().unwrap())
        .collect();
    assert!(
        steps[0].starts_with("item: ALL") && steps[1].starts_with("item: ref named"),
        "{steps:?}"
    );
    let findings = report["findings"].as_array().unwrap();
    let changed = findings.iter().filter(|one| one["rule"] == "plan.changed");
    assert_eq!(changed.count(), 1);
    assert_verified(&lab.record_dir());
}

#[test]
fn definitions_other_than_of_storage_are_refused_before_anything_is_measured() {
    let refused = |tables: &str, part: &str| {
        let text = duel("").replace(
            "like = \"first\"\n",
            &format!("like = \"first\"\n{tables}\n"),
        );
        let output = plan_of(&shop(&text).experiment());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(part), "{}", said(&output));
    };
    refused(
        "tables = { ddl = \"none.sql\" }",
        "duel.toml:9:18: `ddl`: could not read",
    );
    refused(
        "tables = { capture = \"b.cap\" }",
        "a contender may set `ddl`",
    );
}

#[test(needs = &["mariadb-10.11"])]
fn captured_statements_are_swept_and_each_cell_has_its_classes() {
    let text = duel("").replace("\"6 s\"", "\"16 s\"");
    let lab = shop(&format!(
        "{text}[sweep]\ndraw = [\"transactions\", \"sessions\"]\n"
    ));
    let mut command = lab.run_command();
    let output = command
        .args(["--fail-if", "possibly slower than 90 %"])
        .output()
        .unwrap();
    assert!(
        matches!(output.status.code(), Some(0 | 3 | 5)),
        "{}",
        said(&output)
    );
    assert!(
        said(&output).contains("slower than 90 %` "),
        "{}",
        said(&output)
    );
    assert_eq!(servers_left(), []);
    let dir = lab.record_dir();
    let plan = SweepPlan::read(&dir).unwrap();
    assert_eq!(plan.cells.len(), 2);
    for cell in &plan.cells {
        let record = Record::open(&cell_dir(&dir, cell)).unwrap();
        assert_eq!(record.complaints, []);
        let draw = &record.plan.workload.parameters["draw"];
        assert_eq!(*draw, plan.factors[0].levels[cell.levels[0]].value);
        assert_eq!(record.statement_classes.classes.len(), 6);
        assert!(!record.statements.is_empty() && record.answers.is_some());
    }
    assert!(dir.join("report.html").is_file());
}

#[test]
fn a_verb_that_is_called_for_each_commit_takes_no_dump() {
    let text = duel("").replace("\n[contenders.second]\nlike = \"first\"", "");
    let text = text.replace(
        "dump = \"shop.sql\"",
        "server = \"tcp://reader@db.invalid/shop\"",
    );
    let lab = shop(&text);
    let output = program()
        .args([
            "bisect-step",
            "--good",
            "mariadb-10.6",
            "--bad",
            "mariadb-11.8",
        ])
        .args(["--server", "mariadb-10.11"])
        .arg(lab.experiment())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(128), "{}", said(&output));
    for part in [
        "duel.toml:11:10: ",
        "each call would take a dump",
        "dump `shop` once",
    ] {
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
}

#[test]
fn a_dump_in_the_home_is_listed_and_removed_unless_a_contest_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let dump = home.join("dumps/shop-1/shop.sql");
    fs::create_dir_all(dump.parent().unwrap()).unwrap();
    let datasets = |arguments: &[&str]| {
        let output = program_in(&home)
            .arg("datasets")
            .args(arguments)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), printed + &said(&output))
    };
    let lab = shop(&duel("").replace("\"shop.sql\"", &format!("\"{}\"", dump.display())));
    fs::copy(lab.path().join("shop.sql"), &dump).unwrap();
    let (_, list) = datasets(&["list"]);
    assert!(list.contains("dumps/shop-1"), "{list}");
    let (_, list) = datasets(&["list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["dump"]["path"].as_str(), dump.to_str());

    // An interrupted contest, as its home notes it.
    let record = folder.path().join("record");
    fs::create_dir(&record).unwrap();
    fs::write(record.join("plan.json"), plan_of(&lab.experiment()).stdout).unwrap();
    let run = home.join("sandboxes/run-1");
    fs::create_dir_all(run.join("0-first")).unwrap();
    fs::write(run.join("record"), record.as_os_str().as_encoded_bytes()).unwrap();
    let (is_removed, why) = datasets(&["remove", "dumps/shop-1"]);
    assert!(!is_removed && why.contains("not finished"), "{why}");
    assert!(dump.is_file());
    // What stands for all snapshots leaves what no contest can make again.
    let (is_done, text) = datasets(&["remove", "all"]);
    assert!(
        is_done && text.contains("dumps stay") && dump.is_file(),
        "{text}"
    );

    fs::remove_dir_all(&record).unwrap();
    let (is_removed, text) = datasets(&["remove", "dumps/shop-1"]);
    assert!(
        is_removed && text.contains("removed dumps/shop-1"),
        "{text}"
    );
    assert!(!dump.parent().unwrap().exists());
}
