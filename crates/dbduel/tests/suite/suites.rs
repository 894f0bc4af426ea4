//! Suites: several workloads on the same started servers.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;

use dbduel_record::event::Event;
use dbduel_record::plan::Plan;
use dbduel_record::plan::SuitePhase::{self, Fresh, Last, Read, Write};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::lab::{
    Lab, assert_verified, check_refused, count, plan_of, program, published, servers_left, signal,
};

/// Two equal contenders, of which the second is stopped for half of its slices, so that every workload is soon decided.
const SUITE: &str = r#"
budget = "14 s"
horizon = "25 %"
seed = 7
[contenders.whole]
server = "mariadb-10.11"
settings = { innodb_buffer_pool_size = "32M", innodb_flush_log_at_trx_commit = 2, innodb_log_file_size = "8M" }
[contenders.half]
like = "whole"
[workload]
tables = 2
table_size = 2_000
[load]
clients = 2
[schedule]
slice = "100 ms"
guard = "10 ms"
warm_up = "600 ms"
[injection]
contender = "half"
stopped = 0.6
[suite]
mirrored = false
settle = "200 ms"
[[suite.workload]]
name = "insert"
workload = "oltp-insert"
group = "write"
[[suite.workload]]
name = "point, first rows"
workload = "oltp-point-select"
group = "point"
table_size = 10
clients = 1
[[suite.workload]]
name = "update"
workload = "oltp-update-non-index"
group = "write"
[[suite.workload]]
name = "fresh points"
workload = "oltp-point-select"
group = "point"
phase = "fresh"
"#;

fn plan(experiment: &str) -> Plan {
    let lab = Lab::new(experiment);
    let output = plan_of(&lab.experiment());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_plan_of_a_suite_has_a_level_for_each_workload_and_says_how_blocks_are_made() {
    let once = plan(SUITE);
    let cells: Vec<_> = once
        .levels
        .iter()
        .map(|level| level.cell.clone().unwrap())
        .collect();
    let phases: Vec<SuitePhase> = cells.iter().map(|cell| cell.phase).collect();
    assert_eq!(phases, [Last, Read, Write, Fresh]);
    assert_eq!(once.workload.parameters["table_size"], 2_000);
    assert_eq!(cells[1].workload.parameters["table_size"], 10);
    let clients: Vec<u32> = once.levels.iter().map(|level| level.clients).collect();
    assert_eq!(clients, [2, 1, 2, 2]);
    assert!(once.blocks.iter().all(|block| block.order.len() == 2));

    // Left open, the budget decides.
    let open = SUITE.replace("mirrored = false\n", "");
    assert!(!plan(&open).schedule.mirrored);
    let rich = plan(&open.replace("\"14 s\"", "\"10 min\""));
    assert!(rich.schedule.mirrored && rich.blocks.iter().all(|block| block.order.len() == 4));
}

#[test]
fn workloads_that_cannot_share_tables_are_refused() {
    let check = |old: &str, new: &str, place: &str, part: &str| {
        check_refused(SUITE, old, new, place, part);
    };
    check(
        "table_size = 10\n",
        "table_size = 3_000\n",
        "30:8",
        "has 2000 rows, but needs 3000",
    );
    check(
        "table_size = 10\n",
        "tables = 3\n",
        "30:8",
        "there is no table `sbtest3`",
    );
    check(
        "table_size = 10\n",
        "secondary = true\n",
        "30:8",
        "has a different definition",
    );
    check(
        "tables = 2\n",
        "tabels = 2\n",
        "11:1",
        "no workload of the suite has a parameter `tabels`",
    );
    check(
        "workload = \"oltp-insert\"",
        "workload = \"oltp-insrt\"",
        "27:12",
        "there is no workload `oltp-insrt`",
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_suite_runs_phase_by_phase_survives_a_kill_and_judges_every_workload() {
    let lab = Lab::new(SUITE);
    let mut run = lab.spawn();
    // In the middle of the reads, after changes.
    lab.wait_until(&mut run, "a read after changes", || {
        let record = lab.begun();
        record.is_some_and(|record| {
            let level = |block: u32| record.plan.blocks[block as usize].level;
            record
                .finished_slices()
                .any(|slice| level(slice.block) == 1)
        })
    });
    signal(&run, Signal::SIGKILL);
    assert_eq!(run.wait().unwrap().signal(), Some(9));
    let output = lab.resume();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert_eq!(servers_left(), []);

    let record = lab.record();
    assert_eq!(record.complaints, []);
    for row in &record.slices {
        let contender = record.plan.blocks[row.block as usize].order[row.position as usize];
        assert_eq!(row.contender, record.plan.contenders[contender].name);
    }
    let phases: Vec<SuitePhase> = record
        .events
        .iter()
        .filter_map(|event| match event.what {
            Event::PhaseStarted { phase } => Some(phase),
            _ => None,
        })
        .collect();
    assert_eq!(
        phases[..4],
        [Fresh, Write, Read, Read],
        "resumed where it was killed"
    );
    assert_eq!(phases.last(), Some(&Last));
    assert!(count(&record, |event| matches!(event, Event::Settled { .. })) >= 4);
    let mut started: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for event in &record.events {
        if let Event::SliceStarted { slice, .. } = event.what {
            *started.entry((slice.block, slice.position)).or_default() += 1;
        }
    }
    assert!(
        started.values().all(|times| *times == 1),
        "no block is begun twice"
    );

    // Every workload was sampled once, before the kill or after it; an INSERT of given rows has no plan.
    for files in &record.contenders {
        let statements = files.statements.as_ref().unwrap();
        let mut levels: Vec<(usize, usize)> = (statements.levels.iter())
            .map(|own| (own.level, own.statements.len()))
            .collect();
        levels.sort_unstable();
        assert_eq!(levels, [(0, 0), (1, 1), (2, 1), (3, 1)], "{statements:?}");
    }

    let report = &published(&lab.record_dir())["summary"];
    let verdicts: Vec<&str> = report["duels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|duel| duel["comparisons"][0]["verdict"].as_str().unwrap())
        .collect();
    // What the verdicts are is up to the machine: on a busy one a server that is stopped often has more of a processor when it
    // is awake.
    assert_eq!(verdicts.len(), 4);
    assert!(!verdicts.contains(&"void"), "{verdicts:?}");
    let groups = report["suite"]["groups"].as_array().unwrap();
    let names: Vec<Option<&str>> = groups.iter().map(|group| group["name"].as_str()).collect();
    assert_eq!(names, [Some("write"), Some("point"), None]);
    assert_verified(&lab.record_dir());

    let tables = lab.path().join("tables");
    let exported = program()
        .arg("export")
        .arg(lab.record_dir())
        .arg("-o")
        .arg(&tables)
        .output()
        .unwrap();
    assert!(
        exported.status.success(),
        "{}",
        String::from_utf8_lossy(&exported.stderr)
    );
    let cells = std::fs::read_to_string(tables.join("suite.csv")).unwrap();
    assert_eq!(cells.lines().count(), 5, "{cells}");
    assert!(
        cells.contains("\"point, first rows\",1,half,whole,"),
        "{cells}"
    );
    let groups = std::fs::read_to_string(tables.join("groups.csv")).unwrap();
    assert_eq!(groups.lines().count(), 4, "{groups}");
}

/// Plans of two contenders in the published report, class by class, and the claims of findings about changed ones.
fn plans_of(experiment: &str) -> (Vec<(String, [Value; 2])>, Vec<String>) {
    let lab = Lab::new(experiment);
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    let report = published(&lab.record_dir());
    let classes = report["summary"]["duels"][0]["statements"]
        .as_array()
        .unwrap();
    let plans = classes.iter().map(|class| {
        let plans = [0, 1].map(|contender| class["plans"][contender].clone());
        (class["class"].as_str().unwrap().to_owned(), plans)
    });
    let findings = report["findings"].as_array().unwrap();
    let changed = findings.iter().filter(|one| one["rule"] == "plan.changed");
    let claims = changed.map(|one| one["claim"].as_str().unwrap().to_owned());
    (plans.collect(), claims.collect())
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_changed_plan_is_found_and_an_equal_one_is_not() {
    let mariadb = r#"
budget = "12 s"
horizon = "49 %"
[contenders.pushed]
server = "mariadb-10.11"
settings = { innodb_buffer_pool_size = "32M" }
[contenders.checked-later]
like = "pushed"
settings = { optimizer_switch = "index_condition_pushdown=off" }
[workload]
table_size = 2_000
# Rows gather around some values of k otherwise, and a range there is best read by a full scan.
rand_type = "uniform"
[load]
clients = 1
[schedule]
slice = "300 ms"
guard = "50 ms"
warm_up = "1 s"
[suite]
mirrored = false
settle = "100 ms"
[[suite.workload]]
name = "ranges"
workload = "oltp-select"
access = "range"
key = "secondary"
columns = "key-and-c"
range_size = 10
"#;
    let (plans, claims) = plans_of(mariadb);
    assert_eq!(plans.len(), 1, "{plans:?}");
    let (class, [own, other]) = &plans[0];
    assert!(
        class.contains("FROM sbtestN WHERE k BETWEEN ? AND ?"),
        "{class}"
    );
    let pushed = "sbtestN: range k_N, Using index condition";
    assert_eq!(own["steps"][0], pushed);
    assert_eq!(other["steps"][0], "sbtestN: range k_N");
    assert_eq!(claims.len(), 1, "{claims:?}");
    assert!(
        claims[0].contains("`checked-later` has a different plan from `pushed`"),
        "{claims:?}"
    );

    let (contenders, rest) = mariadb.split_once("[workload]").unwrap();
    let (budget, _) = contenders.split_once("[contenders").unwrap();
    let rest = rest.split_once("[[suite.workload]]").unwrap().0;
    let sqlite = format!(
        "{budget}[contenders.one]\nserver = \"sqlite\"\n[contenders.two]\nserver = \"sqlite\"\n[workload]{rest}\
         [[suite.workload]]\nname = \"reads\"\nworkload = \"oltp-read-only\"\n"
    );
    let (plans, claims) = plans_of(&sqlite);
    assert_eq!((plans.len(), claims.len()), (5, 0), "{plans:?}");
    for (class, [own, other]) in &plans {
        assert_eq!(own["steps"], other["steps"], "{class}");
        assert_eq!(own["form"], "sqlite");
    }
    let sorted = plans
        .iter()
        .any(|(_, [own, _])| own["steps"].to_string().contains("USE TEMP B-TREE FOR"));
    assert!(sorted, "{plans:?}");
}

/// Two equal contenders under the scripts of a directory.
const SCRIPTS: &str = r#"
budget = "24 s"
horizon = "25 %"
[contenders.one]
server = "mariadb-10.11"
settings = { innodb_buffer_pool_size = "32M", innodb_flush_log_at_trx_commit = 2, innodb_log_file_size = "8M" }
[contenders.other]
like = "one"
[workload]
options = { table_size = 300 }
[load]
clients = 1
[schedule]
slice = "250 ms"
guard = "50 ms"
warm_up = "500 ms"
[suite]
mirrored = false
settle = "100 ms"
scripts = "mine"
"#;

/// What scripts share, as those of sysbench do: options and tables.
const SHARED: &str = r#"
sysbench.cmdline.options = { table_size = {"rows", 10} }
function prepare()
    local con = sysbench.sql.driver():connect()
    con:query("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL)")
    for id = 1, sysbench.opt.table_size do con:query("INSERT INTO t VALUES (" .. id .. ", 0)") end
end
function thread_init() con = sysbench.sql.driver():connect() end
function id() return sysbench.rand.uniform(1, sysbench.opt.table_size) end
"#;
const POINTS: &str = r#"
require("shared")
function event() con:query("SELECT k FROM t WHERE id = " .. id()) end
"#;
const UPDATE: &str = r#"
require("shared")
function event() con:query("UPDATE t SET k = k + 1 WHERE id = " .. id()) end
"#;
/// It has no option.
const OTHER: &str = "function event() end";

/// A suite of the scripts in a directory beside it.
fn lab_with_scripts(experiment: &str, files: &[(&str, &str)]) -> Lab {
    let lab = Lab::new(experiment);
    let folder = lab.path().join("mine");
    std::fs::create_dir(&folder).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    lab
}

#[test]
fn each_script_of_a_directory_that_has_transactions_is_a_workload() {
    let files = [
        ("shared.lua", SHARED),
        ("update_k.lua", UPDATE),
        ("points.lua", POINTS),
        ("other.lua", OTHER),
        ("notes.txt", "no script"),
    ];
    let own =
        "[[suite.workload]]\nname = \"first\"\nscript = \"mine/other.lua\"\nphase = \"fresh\"\n";
    let lab = lab_with_scripts(&format!("{SCRIPTS}{own}"), &files);
    let output = plan_of(&lab.experiment());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let plan: Plan = serde_json::from_slice(&output.stdout).unwrap();
    let cells = plan.levels.iter().map(|level| level.cell.as_ref().unwrap());
    let cells: Vec<(&str, &str, SuitePhase, Option<u64>)> = cells
        .map(|cell| {
            let rows = cell.workload.parameters.get("options.table_size");
            let rows = rows.and_then(Value::as_u64);
            (cell.name.as_str(), cell.group.as_str(), cell.phase, rows)
        })
        .collect();
    let expected = [
        ("first", "read", Fresh, None),
        ("points", "read", Read, Some(300)),
        ("update_k", "write", Write, Some(300)),
    ];
    assert_eq!(cells, expected);
}

#[test]
fn a_directory_without_scripts_is_refused() {
    let refused = |lab: &Lab, part: &str| {
        let output = plan_of(&lab.experiment());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("duel.toml:20:11: ") && said.contains(part),
            "{said}"
        );
    };
    refused(&Lab::new(SCRIPTS), "cannot read the directory");
    refused(
        &lab_with_scripts(SCRIPTS, &[]),
        "has no script: no file `*.lua`",
    );
    refused(
        &lab_with_scripts(SCRIPTS, &[("shared.lua", SHARED)]),
        "has no script: no file `*.lua`",
    );
    let broken = [("broken.lua", "function event("), ("points.lua", OTHER)];
    refused(&lab_with_scripts(SCRIPTS, &broken), "broken.lua`: ");
    let misspelt = SCRIPTS.replace("table_size", "tabel_size");
    let lab = lab_with_scripts(&misspelt, &[("shared.lua", SHARED), ("points.lua", POINTS)]);
    let said = String::from_utf8_lossy(&plan_of(&lab.experiment()).stderr).into_owned();
    assert!(
        said.contains("no workload of the suite has a parameter `options.tabel_size`"),
        "{said}"
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn scripts_of_a_directory_are_a_suite_with_memory_and_stacks() {
    let files = [
        ("shared.lua", SHARED),
        ("points.lua", POINTS),
        ("update_k.lua", UPDATE),
    ];
    let lab = lab_with_scripts(SCRIPTS, &files);
    let output = lab.run_command().arg("--stacks").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert_eq!(servers_left(), []);

    let record = lab.record();
    assert!(!record.slices.is_empty());
    for row in &record.slices {
        // A busy machine may end a short slice without a transaction.
        assert!(row.ok + row.unfinished > 0 && row.failed == 0, "{row:?}");
    }
    let report = published(&lab.record_dir());
    let duels = report["summary"]["duels"].as_array().unwrap();
    let names: Vec<&str> = duels
        .iter()
        .map(|duel| duel["label"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["points", "update_k"]);
    for measures in duels
        .iter()
        .flat_map(|duel| duel["contenders"].as_array().unwrap())
    {
        for whose in ["server", "client"] {
            let figure = &measures[format!("{whose}_memory_bytes_max")];
            // More than a mebibyte, and no more than the machine of a test has.
            let bytes = figure["value"].as_f64().unwrap_or_default();
            assert!((1e6..64e9).contains(&bytes), "{whose}: {figure}");
            assert_eq!(figure["how"], "largest-reading");
        }
    }
    let differences = report["summary"]["flame_differences"].as_array().unwrap();
    let findings = report["findings"].as_array().unwrap();
    let is_without = findings
        .iter()
        .any(|one| one["rule"] == "observe.no-stacks");
    assert!(differences.len() == 2 || is_without, "{findings:?}");
    for difference in differences {
        assert!(difference["functions"].is_array(), "{difference}");
        let frames = difference["frames"].as_array().unwrap();
        let has_unnamed = frames
            .iter()
            .any(|one| one["name"].as_str().unwrap().starts_with('['));
        assert!(!frames.is_empty() && !has_unnamed, "{difference}");
    }
    let page = std::fs::read_to_string(lab.record_dir().join("report.html")).unwrap();
    assert!(page.contains("Largest resident memory of the server"));
}
