//! Experiments become plans, or errors that say where and what to do.

use std::path::{Path, PathBuf};

use dbduel_record::Plan;

use super::harness::skip;
use super::lab::{
    self, Lab, plan_of, program, shipped, shipped_suites, short_experiment, with_budget,
};

/// Every shipped experiment.
pub fn experiments() -> Vec<PathBuf> {
    let folders = [shipped(), shipped_suites()];
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 8, "the shipped experiments are there");
    files
}

/// The plan of an experiment that must have one.
#[track_caller]
pub fn plan(path: &Path) -> Plan {
    let output = plan_of(path);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", path.display());
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Of a sweep, that of its first cell.
    let plan = plan.get("cells").map_or(&plan, |cells| &cells[0]);
    serde_json::from_value(plan.clone()).unwrap()
}

#[test]
fn every_shipped_experiment_has_a_plan() {
    for path in experiments() {
        let plan = plan(&path);
        assert!(plan.contenders.len() >= 2, "{}", path.display());
        assert!(
            plan.decision.blocks_max >= plan.decision.blocks_min,
            "{}",
            path.display()
        );
        assert!(!plan.question.is_empty(), "{}", path.display());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with('#'),
            "{} begins by saying what it is",
            path.display()
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    let lab = Lab::new(&short_experiment(["mariadb-10.11", "mariadb-10.11"], ""));
    let path = lab.experiment();
    let (mut first, mut second) = (plan(&path), plan(&path));
    first.created.clear();
    second.created.clear();
    assert_eq!(first, second);
    assert_eq!(first.seed, 7);
    assert!(!lab.has_results(), "planning starts nothing");
}

#[test]
fn without_a_seed_every_plan_draws_its_own() {
    let lab = Lab::new(
        &short_experiment(["mariadb-10.11", "mariadb-10.11"], "").replace("seed = 7\n", ""),
    );
    let path = lab.experiment();
    assert_ne!(plan(&path).seed, plan(&path).seed);
}

#[test]
fn mistakes_are_said_with_line_column_and_a_suggestion() {
    let experiment = short_experiment(["mariadb-10.11", "mariadb-10.11"], "");
    let check = |old: &str, new: &str, place: &str, part: &str| {
        lab::check_refused(&experiment, old, new, place, part);
    };
    check("tables = 2", "tabels = 2", "12:1", "did you mean `tables`?");
    check("tables = 2", "tables = 0", "12:1", "from 1");
    check(
        "oltp-point-select",
        "oltp-point-selekt",
        "11:8",
        "did you mean `oltp-point-select`?",
    );
    check(
        "\"mariadb-10.11\"",
        "\"mariadb-10.12\"",
        "5:10",
        "did you mean `mariadb-10.11",
    );
    check("\"8 s\"", "\"3 s\"", "1:10", "a verdict at 95");
    check("clients = 4", "clients = -4", "15:11", "from 1 to");
    let (line, missing) = ("clients = 4", "there is no processor 4000 here");
    check(line, "clients = 4\ncores = [0, 4000]", "16:9", missing);
    check(line, "clients = 4\nserver_cores = [4000]", "16:16", missing);
    let too_long = "at most 100 ms, found `1 s`";
    check(line, "clients = 4\nbusy_poll = \"1 s\"", "16:13", too_long);
    check("[load]\n", "[laod]\n", "14:2", "did you mean `load`?");
}

#[test]
fn polling_on_every_processor_is_told_before_anything_starts() {
    let with_load = |more: &str| {
        let text = short_experiment(["mariadb-10.11", "mariadb-10.11"], "");
        Lab::new(&text.replace("clients = 4", &format!("clients = 2_000\n{more}")))
    };
    let planned = |more: &str| {
        let lab = with_load(more);
        let output = plan_of(&lab.experiment());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (plan(&lab.experiment()).load.busy_poll_us, said)
    };
    assert_eq!(planned("threads = 1024"), (0, String::new()));
    let (busy_poll_us, said) = planned("threads = 1024\nbusy_poll = \"0.5 ms\"");
    assert_eq!(busy_poll_us, 500);
    assert!(
        said.contains("Busy polling by 1,024 load threads"),
        "{said}"
    );
}

#[test]
fn a_sweep_tells_before_it_starts_which_cell_polls_on_every_processor() {
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        return skip("a sweep over processors needs two of them");
    }
    let swept = short_experiment(["path:/nowhere"; 2], "[sweep]\nserver_cores = [[1], [0]]\n");
    let swept = with_budget(&swept, "16 s").replace(
        "clients = 4",
        "clients = 4\nthreads = 1\ncores = [0]\nbusy_poll = \"0.5 ms\"",
    );
    let lab = Lab::new(&swept);
    let told = "With server_cores = 1 (processor 0): Busy polling by 1 load thread";
    for output in [plan_of(&lab.experiment()), lab.run()] {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.matches("Busy polling").count(), 1, "{said}");
        assert!(said.starts_with(told), "{said}");
    }
}

#[test]
fn what_is_not_there_is_said() {
    let output = program()
        .args(["run", "no-such-file.toml"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no-such-file.toml"), "{said}");

    let lab = Lab::new(&short_experiment(["path:/nowhere"; 2], ""));
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no server at `/nowhere`"), "{said}");
    // A report on nothing would only hide the reason, and a record of nothing cannot be resumed.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(!lab.has_results(), "{said}");
    let lab = Lab::new(&short_experiment(["mariadb-10.11"; 2], ""));
    let mut command = program();
    let elsewhere = lab.experiment().join("results");
    let output = command.arg("run").arg(lab.experiment());
    let output = output.arg("--results").arg(elsewhere).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("`--results` names another place"), "{said}");

    let dir = tempfile::tempdir().unwrap();
    let check = |arguments: [&str; 2], part: &str| {
        let mut command = program();
        let output = command.args(arguments).arg(dir.path().join("sub"));
        let output = output.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    };
    check(["report", "--disclosure"], "there is no directory");
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    check(["run", "--plan"], "is not a record");
    let record = dir.path().join("sub/20261120-143000-duel");
    std::fs::create_dir(&record).unwrap();
    std::fs::write(record.join("plan.json"), "").unwrap();
    check(["run", "--keep"], "20261120-143000-duel`");
}

#[test]
fn the_tables_of_what_there_is_are_printed() {
    for arguments in [
        &["workloads"][..],
        &["servers", "list"],
        &["datasets", "list"],
        &["workloads", "oltp-read-write"],
    ] {
        let output = program().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
    for arguments in [
        &["workloads", "--json"][..],
        &["servers", "list", "--json"],
        &["datasets", "list", "--json"],
    ] {
        let output = program().args(arguments).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    }
}
