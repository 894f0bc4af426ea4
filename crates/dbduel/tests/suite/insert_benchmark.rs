//! Contests of the Insert Benchmark: contenders do the same work in every slice, and hold the same rows after it.

use dbduel_record::rows::ALL_CLASSES;

use super::lab::{Lab, published, short_experiment, with_budget, with_schedule};

const SERVER: &str = "mariadb-10.11";

/// Slices of 500 rows in a table of 2,000, far shorter than the longest that they may be.
fn experiment() -> String {
    let text = short_experiment([SERVER; 2], "")
        .replace(
            "name = \"oltp-point-select\"\ntables = 2\ntable_size = 2_000\n",
            "name = \"insert-benchmark\"\nstep = \"l.i1\"\nrows = 2_000\nrows_per_slice = 500\n",
        )
        .replace("clients = 4\n", "");
    let schedule = "slice = \"5 s\"\nwarm_up = \"5 s\"\n";
    with_budget(&with_schedule(&text, schedule), "170 s")
}

#[test(lab, needs = &[SERVER])]
fn contenders_do_the_same_work_and_hold_the_same_rows() {
    let lab = Lab::new(&experiment());
    lab.run_to_the_end();
    let record = lab.record();
    assert_eq!(record.plan.levels[0].clients, 2);
    assert!(record.plan.schedule.pilot.is_none());
    let slices = record.finished_slices().count();
    assert!(slices >= 8, "at least two blocks of four slices: {slices}");
    for row in &record.slices {
        let statements = if row.class == ALL_CLASSES { 20 } else { 10 };
        assert_eq!(
            (row.ok, row.failed, row.guard_s),
            (statements, 0, 0.0),
            "{row:?}"
        );
    }
    let report = published(&lab.record_dir());
    let findings = report["findings"].as_array().unwrap();
    let has = |rule: &str| findings.iter().any(|finding| finding["rule"] == rule);
    assert!(has("server.equal-rows-after"), "{findings:?}");
    assert!(!has("server.different-rows-after"), "{findings:?}");
}

#[test]
fn slices_of_fixed_work_have_a_longest_time_and_no_guard() {
    let text = experiment();
    let place = |line: &str| {
        let number = text.lines().position(|one| one == line).unwrap() + 1;
        format!("{number}:")
    };
    let workload = place("name = \"insert-benchmark\"");
    let refused = |old: &str, new: &str, line: &str, part: &str| {
        let lab = Lab::new(&text.replacen(old, new, 1));
        let output = lab.run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("duel.toml:{line}")), "{said}");
        assert!(said.contains(part), "{said}");
    };
    refused(
        "slice = \"5 s\"\n",
        "",
        &workload,
        "set their time limit with `slice`",
    );
    refused(
        "slice = \"5 s\"\n",
        "slice = \"5 s\"\nguard = \"1 s\"\n",
        "",
        "all work of a slice counts",
    );
    refused(
        "[load]\n",
        "[load]\nclients = 3\n",
        "",
        "has work for exactly 2",
    );
}
