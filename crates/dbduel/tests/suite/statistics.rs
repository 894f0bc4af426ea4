//! What the statistics need of the lab, on real servers: starts anew, more time, a known handicap, and
//! the lab against itself.

use std::collections::BTreeSet;
use std::time::Duration;

use dbduel_record::Record;
use dbduel_record::event::Event;
use dbduel_record::plan::LoadLevel;
use dbduel_record::rows::ReadingRow;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::lab::{
    Lab, count, lost_blocks, plan_of, program, published, servers_left, short_experiment, signal,
    with_budget, with_schedule,
};
use super::plans::plan;

const SERVERS: [&str; 2] = ["mariadb-10.11", "mariadb-10.11"];

fn has_finding(document: &Value, rule: &str) -> bool {
    let findings = document["findings"].as_array().unwrap();
    findings.iter().any(|finding| finding["rule"] == rule)
}

#[test(lab, needs = &["mariadb-10.11"])]
fn servers_are_started_anew_between_epochs() {
    let lab = Lab::new(&short_experiment(SERVERS, "epochs = 3\n"));
    let output = lab.run_to_the_end();
    let said = String::from_utf8_lossy(&output.stderr);
    let record = lab.record();
    let epochs: BTreeSet<u32> = record.slices.iter().map(|row| row.epoch).collect();
    assert_eq!(epochs, BTreeSet::from([0, 1, 2]), "{said}");
    assert_eq!(
        count(&record, |event| matches!(event, Event::EpochStarted { .. })),
        2
    );
    assert_eq!(
        count(&record, |event| matches!(event, Event::WarmedUp { .. })),
        6
    );
    let document = published(&lab.record_dir());
    assert_eq!(document["summary"]["scope"], "these-servers");
    assert!(!has_finding(&document, "run.resumed"));
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_record_gets_more_time_and_says_so_and_rules_are_asked_of_it() {
    let experiment = short_experiment(SERVERS, "").replace("25 %", "0.01 %");
    // Equal servers are not told apart by a ten-thousandth, but for one run in twenty: five in a row are not.
    let lab = (0..5)
        .find_map(|_| {
            let lab = Lab::new(&experiment);
            let output = lab.run();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
            (output.status.code() == Some(3)).then_some(lab)
        })
        .expect("an undecided record");
    let before = lab.record();
    let output = program()
        .arg("run")
        .arg(lab.record_dir())
        .args(["--budget", "4 s"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert_eq!(servers_left(), []);
    let after = lab.record();
    assert_eq!(after.complaints, []);
    assert!(after.plan.blocks.len() > before.plan.blocks.len());
    assert!((after.plan.schedule.budget_s - before.plan.schedule.budget_s - 4.0).abs() < 1e-9);
    assert!(after.slices.len() > before.slices.len(), "{said}");
    assert!(after.plan.blocks.starts_with(&before.plan.blocks));
    let document = published(&lab.record_dir());
    assert!(has_finding(&document, "run.extended"));

    let asked = |rule: &str| {
        let output = program()
            .arg("report")
            .arg(lab.record_dir())
            .args(["--fail-if", rule])
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, said) = asked("slower than 90 %");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("does not match"), "{said}");
    assert_eq!(asked("slow").0, Some(2));

    let output = program()
        .arg("history")
        .arg(lab.path().join("results"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains("1 run with a ratio") && shown.contains("second at 4 clients"),
        "{shown}"
    );

    let output = program()
        .arg("pool")
        .arg(lab.path().join("results"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let shown = String::from_utf8_lossy(&output.stdout);
    let machine = lab.record().host.machine.unwrap();
    assert!(
        shown.contains("1 record on 1 machine")
            && shown.contains("second at 4 clients")
            && shown.contains("not pooled, on one machine only: throughput")
            && shown.contains(&machine),
        "{shown}"
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_known_handicap_is_given_measured_and_told() {
    let lab = Lab::new(&short_experiment(
        SERVERS,
        "[injection]\ncontender = \"second\"\nstopped = \"60 %\"\n",
    ));
    lab.run_to_the_end();
    let record = lab.record();
    // A busy machine wakes the pulses late, so that the share is not the one asked for.
    for metric in ["server_stopped_s", "server_awake_s"] {
        assert!(sum_of(&record, "second", metric) > 0.0, "{metric}");
        assert_eq!(sum_of(&record, "first", metric), 0.0);
    }
    let document = published(&lab.record_dir());
    assert!(has_finding(&document, "lab.injected"));
}

/// The second server hangs for 1 s after every 4 s awake: a fifth of the time.
const STALLS: &str = "[injection]\ncontender = \"second\"\nstall = \"1 s\"\nevery = \"4 s\"\n";

/// Sum of a reading of the lab over the slices of a contender.
fn sum_of(record: &Record, contender: &str, metric: &str) -> f64 {
    let readings = record.readings.iter();
    let own = readings.filter(|one| one.contender == contender && one.metric == metric);
    own.map(|reading| reading.value).sum()
}

#[test(lab, needs = &["mariadb-10.11"])]
fn stalls_outlast_turns_and_come_after_the_time_awake_that_was_asked_for() {
    let text = short_experiment(SERVERS, STALLS).replace("25 %", "0.1 %");
    let schedule = "slice = \"300 ms\"\nguard = \"50 ms\"\nwarm_up = \"300 ms\"\n";
    let lab = Lab::new(&with_budget(&with_schedule(&text, schedule), "40 s"));
    lab.run_to_the_end();
    let record = lab.record();
    let outlasts = |reading: &&ReadingRow| {
        let mut rows = record.slices.iter();
        let row = rows.find(|row| (row.block, row.position) == (reading.block, reading.position));
        let planned_s = record.plan.blocks[reading.block as usize].slice_s;
        let row = row.unwrap();
        // Some of it may be the rest of a stall that the turn before has cut.
        let is_longer = reading.value > row.guard_s + planned_s;
        assert!(
            !is_longer || row.measured_s > reading.value - row.guard_s,
            "{row:?}"
        );
        is_longer
    };
    let stopped = record.readings.iter();
    let longer = stopped
        .filter(|reading| reading.metric == "server_stopped_s")
        .filter(outlasts);
    let longer = longer.count();
    assert!(
        longer >= 2,
        "{longer} slices with a stall longer than planned"
    );
    let longest_us = record.slices.iter().map(|row| row.latency_us_max);
    let longest_us = longest_us.fold(0.0, f64::max);
    assert!(longest_us >= 0.9e6, "{longest_us} us");
    let stopped_s = sum_of(&record, "second", "server_stopped_s");
    let awake_s = sum_of(&record, "second", "server_awake_s");
    // The first time awake is a part of one, so that there may be a stall less than fits, or one more, and a busy machine ends
    // them late. Slices that are lost are not in the record, with their stalls.
    assert_eq!(lost_blocks(&record), BTreeSet::new());
    assert!(
        (stopped_s - awake_s / 4.0).abs() < 1.25,
        "stopped for {stopped_s} s, awake for {awake_s} s"
    );
    assert_eq!(sum_of(&record, "first", "server_stopped_s"), 0.0);
    let document = published(&lab.record_dir());
    let findings = document["findings"].to_string();
    assert!(findings.contains("1 s every 4 s awake"), "{findings}");
    assert_eq!(servers_left(), []);
}

/// A duel that leaves a transaction out which waits for the end of a stall calls these servers equivalent.
#[test(soak, may_fail = 0.05, needs = &["mariadb-10.11"])]
fn a_server_that_hangs_for_longer_than_a_turn_is_slower_by_the_time_that_it_hangs() {
    let text = short_experiment(SERVERS, STALLS).replace("25 %", "2 %");
    let text = with_schedule(&text, "warm_up = \"1 s\"\n");
    let lab = Lab::new(&with_budget(&text, "4 min"));
    lab.run_to_the_end();
    let document = published(&lab.record_dir());
    let comparison = &document["summary"]["duels"][0]["comparisons"][0];
    let ratio = &comparison["ratio"];
    assert_eq!(comparison["verdict"], "slower", "{ratio}");
    let end = |name: &str| ratio[name].as_f64().unwrap();
    // What a switch of servers costs is another percent or two than without stalls.
    let truth = 0.78..0.82;
    assert!(
        end("low") < truth.end && end("high") > truth.start,
        "{ratio}"
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn the_lab_is_tested_against_itself_and_later_reports_cite_it() {
    let lab = Lab::new(&short_experiment(SERVERS, ""));
    let output = program()
        .args([
            "selftest",
            "--server",
            "mariadb-10.11",
            "--budget",
            "40 s",
            "--json",
        ])
        .arg("--results")
        .arg(lab.path().join("selftests"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["resolution"][0]["half_width"].as_f64().unwrap() > 0.0);
    let null = &found["null_server"];
    assert!(
        null["client_cpu_us_per_transaction"].as_f64().unwrap() > 0.0,
        "{found}"
    );
    // The report of an interrupted duel cites it like any other.
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 1);
    signal(&run, Signal::SIGINT);
    assert_eq!(lab.exit_code(&mut run, Duration::from_secs(60)), Some(130));
    let shown = lab.said();
    assert!(
        shown.contains("Resolution of the lab on this machine"),
        "{shown}"
    );
    assert!(lab.record_dir().join("selftest.json").is_file());
    assert_eq!(servers_left(), []);
}

#[test]
fn a_self_test_that_could_prove_nothing_is_refused() {
    for (options, expected) in [
        (["--inject", "2 %"].as_slice(), "rightly called equivalent"),
        (&["--stall", "50 ms every 4 s"], "rightly called equivalent"),
        (
            &["--stall", "1 s"],
            "expected stalls such as `1 s every 4 s`",
        ),
        (
            &["--stall", "1 min every 4 min"],
            "expected stalls of 0.05 s to 10 s, found 60 s",
        ),
        (
            &["--stall", "1 s every 4 s", "--inject", "10 %"],
            "cannot be used with",
        ),
    ] {
        let output = program()
            .args(["selftest", "--duels", "3", "--horizon", "5 %"])
            .args(["--server", "mariadb-10.11"])
            .args(options)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// Exit code and words of `run --plan`.
fn planned(load: &str, schedule: &str) -> (Option<i32>, String, Vec<u8>) {
    let experiment = short_experiment(SERVERS, schedule).replace("clients = 4\n", load);
    let lab = Lab::new(&experiment);
    let output = plan_of(&lab.experiment());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said, output.stdout)
}

#[test]
fn rates_make_levels_and_an_objective_goes_into_the_plan() {
    let load =
        "clients = 4\narrival = \"poisson\"\nrate = [100, 200]\nobjective = \"p99 < 20 ms\"\n";
    let (code, said, printed) = planned(load, "");
    // Two levels in this budget hold too few blocks, and the plan says what would do.
    assert_eq!(code, Some(2), "{said}");
    assert!(printed.is_empty(), "{said}");
    let advice = said.split_once("use a budget of ").unwrap().1;
    let enough = advice.split_once(" or more").unwrap().0;
    let text = short_experiment(SERVERS, "").replace("clients = 4\n", load);
    let lab = Lab::new(&with_budget(&text, enough));
    let plan = plan(&lab.experiment());
    let labels: Vec<String> = plan.levels.iter().map(LoadLevel::label).collect();
    assert_eq!(
        labels,
        ["4 clients, 100/s Poisson", "4 clients, 200/s Poisson"]
    );
    let objective = plan.objective.unwrap();
    assert_eq!((objective.share, objective.latency_us), (0.99, 20_000.0));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    for (load, schedule, expected) in [
        (
            "clients = 4\nobjective = \"p99\"\n",
            "",
            "expected an objective such as",
        ),
        (
            "clients = 4\nobjective = \"p100 < 5 ms\"\n",
            "",
            "expected an objective such as",
        ),
        (
            "clients = 4\narrival = \"poisson\"\nrate = [200, 100]\n",
            "",
            "ascending order",
        ),
        ("clients = 4\n", "epochs = 2\n", "from 3 to 100"),
        ("clients = 4\n", "epochs = 50\n", "less than one block"),
        (
            "clients = 4\n",
            "[injection]\ncontender = \"nobody\"\nstopped = \"10 %\"\n",
            "there is no contender `nobody`",
        ),
        (
            "clients = 4\n",
            "[injection]\nstopped = \"10 %\"\n",
            "needs `contender`",
        ),
        (
            "clients = 4\n",
            "[injection]\ncontender = \"second\"\nstall = \"1 s\"\n",
            "`stall` and `every`, the lengths",
        ),
        (
            "clients = 4\n",
            "[injection]\ncontender = \"second\"\nstopped = \"10 %\"\nstall = \"1 s\"\nevery = \"4 s\"\n",
            "either `stopped`",
        ),
        (
            "clients = 4\n",
            "[injection]\ncontender = \"second\"\nstall = \"1 min\"\nevery = \"4 min\"\n",
            "`stall` in [injection]: expected between 0.05 s and 10 s, found 60 s",
        ),
        (
            "clients = 4\n",
            "[injection]\ncontender = \"second\"\nstall = \"1 s\"\nevery = \"6 s to 2 s\"\n",
            "the smaller bound first",
        ),
        (
            "clients = 4\n",
            "[injection]\ncontender = \"second\"\nstall = \"100 ms\"\nevery = \"10 min\"\n",
            "from 0.1 % to less than 90 %",
        ),
    ] {
        let (code, said, _) = planned(load, schedule);
        assert_eq!(code, Some(2), "{load}{schedule}: {said}");
        assert!(
            said.contains("duel.toml:") && said.contains(expected),
            "{load}{schedule}: {said}"
        );
    }
}
