//! The search for the highest rate that meets an objective, on real servers.

use dbduel_record::Event;
use dbduel_record::plan::Arrival;

use super::lab::{
    Lab, check_refused, count, follows_the_plan, program, servers_left, short_experiment,
    with_budget, with_schedule,
};

/// A search that is certain to go up at first: one transaction in a hundred is always in time.
fn search() -> String {
    let text = short_experiment(
        ["mariadb-10.11", "mariadb-10.11"],
        "[search]\nfrom = 50\nrates = 4\n",
    );
    let text = text.replace(
        "clients = 4\n",
        "clients = 4\narrival = \"poisson\"\nrate = \"search\"\nobjective = \"p1 < 100 ms\"\n",
    );
    // Slices of five times the limit of the objective, as a search demands.
    let schedule = "slice = \"500 ms\"\nguard = \"50 ms\"\nwarm_up = \"300 ms\"\n";
    with_budget(&with_schedule(&text, schedule), "28 s")
        .replace("\nhorizon", "\nconfidence = 0.8\nhorizon")
}

#[test(lab, needs = &["mariadb-10.11"])]
fn rates_are_added_while_the_contest_runs_and_the_record_has_them_all() {
    let lab = Lab::new(&search());
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    // The highest rate is known only where one was missed, which a busy machine may do.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    let record = lab.record();
    let added = count(&record, |event| matches!(event, Event::RateAdded { .. }));
    assert!(added >= 1, "{said}");
    assert_eq!(record.plan.levels.len(), 1 + added);
    let rates: Vec<f64> = record
        .plan
        .levels
        .iter()
        .map(|level| match level.arrival {
            Arrival::Poisson { per_second } => per_second,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(rates[..2], [50.0, 200.0]);
    assert!(follows_the_plan(&record, &record.plan));
    let at_second = |level: usize| record.plan.blocks.iter().any(|block| block.level == level);
    assert!((0..rates.len()).all(at_second));

    let report = program()
        .arg("report")
        .arg(lab.record_dir())
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&report.stdout).replace('\n', " ");
    assert!(report.contains("Search for the highest rate"), "{report}");
    assert_eq!(servers_left(), []);
}

#[test]
fn a_search_needs_an_objective_and_a_single_number_of_clients() {
    for (old, new, place, part) in [
        (
            "objective = \"p1 < 100 ms\"\n",
            "",
            "18:8",
            "needs an `objective`",
        ),
        (
            "clients = 4",
            "clients = [4, 8]",
            "16:11",
            "one number of clients",
        ),
        (
            "rate = \"search\"",
            "rate = \"serach\"",
            "18:8",
            "numbers or \"search\"",
        ),
        (
            "rate = \"search\"",
            "rate = 7",
            "24:1",
            "[search] goes with",
        ),
        ("rates = 4", "rates = 1", "26:9", "from 3"),
        ("p1 < 100 ms", "p1 < 1 s", "19:13", "needs slices of 5 s"),
    ] {
        check_refused(&search(), old, new, place, part);
    }
}
