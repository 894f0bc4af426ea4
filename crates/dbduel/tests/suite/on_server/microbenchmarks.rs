//! The published microbenchmarks, as docs/microbenchmarks.md lists them, on real servers.

use std::path::Path;

use dbduel_workloads::find;
use dbduel_workloads::parameters::resolve;
use serde_json::Value;

use super::server::{MARIADB, Server};
use super::workload::{Lab, WorkloadServer};
use crate::suite::lab::shipped_suites;
use crate::suite::plans::plan;

const ROWS: u64 = 20_001;

/// A row of the table in the document.
struct Microbenchmark {
    label: String,
    /// By its first letter.
    group: char,
    workload: String,
    parameters: Vec<(String, String)>,
    /// Statements of a transaction.
    statements: u64,
}

fn all() -> Vec<Microbenchmark> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/microbenchmarks.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, label, group, workload, parameters, statements, _] = cells[..] else {
            return None;
        };
        let statements = statements.parse().ok()?;
        let parameters = parameters.split_whitespace().map(|given| {
            let (name, value) = given.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        });
        Some(Microbenchmark {
            label: label.to_owned(),
            group: group.chars().next()?.to_ascii_lowercase(),
            workload: workload.to_owned(),
            parameters: parameters.collect(),
            statements,
        })
    });
    rows.flatten().collect()
}

/// Lets the clients of a lab do something else on its tables.
fn choose<'a>(lab: &mut Lab, workload: &str, given: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let of_all = [("table_size", "20001"), ("rand_type", "uniform")];
    let given = of_all.into_iter().chain(given);
    let given = given.map(|(name, value)| (name.to_owned(), Value::from(value)));
    lab.workload = find(workload).unwrap();
    lab.parameters = resolve(lab.workload, &given.collect()).unwrap();
}

/// Runs all of them, in their order, on one table.
pub fn check_all(server: &impl WorkloadServer) {
    let microbenchmarks = all();
    assert_eq!(microbenchmarks.len(), 32);
    let mut lab = Lab::new(server, "oltp-read-write", "micro", &[]);
    choose(&mut lab, "oltp-read-write", []);
    lab.fill().unwrap();
    for Microbenchmark {
        label,
        workload,
        parameters,
        statements,
        ..
    } in microbenchmarks
    {
        let given = parameters.iter();
        let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
        choose(&mut lab, &workload, given);
        let counts = lab.run_until_committed(1).classes[0].counts;
        assert_eq!(counts.statements, counts.ok * statements, "{label}");
    }
}

/// Updates reach the rows that they are meant for, and no others.
pub fn check_updates(server: &impl WorkloadServer) {
    let mut lab = Lab::new(server, "oltp-update-inlist", "updates", &[]);
    choose(&mut lab, "oltp-update-inlist", []);
    lab.fill().unwrap();
    for (workload, given, changed) in [
        ("oltp-update-non-index", vec![("id_max", "1")], "id = 1"),
        (
            "oltp-update-inlist",
            vec![("hot_points", "true"), ("random_points", "20")],
            "id BETWEEN 10001 AND 10020",
        ),
    ] {
        lab.query("UPDATE sbtest1 SET c = 'unchanged'");
        choose(&mut lab, workload, given);
        lab.run_until_committed(2);
        let mut connection = lab.connect(Some(&lab.database));
        let mut count = |condition: &str| {
            let sql = format!("SELECT COUNT(*) FROM sbtest1 WHERE {condition}");
            let answer = connection.query(&sql).unwrap();
            answer.text(0, 0).unwrap().parse::<u64>().unwrap()
        };
        let rows = count(changed);
        assert_eq!(count(&format!("{changed} AND c <> 'unchanged'")), rows);
        assert_eq!(count("c = 'unchanged'"), ROWS - rows, "{workload}");
    }
}

/// The suite is what the document says, in its order; the shorter ones are parts of it.
#[test]
fn the_suites_have_the_microbenchmarks_of_the_document() {
    let documented = all();
    for (file, count) in [
        ("small-datum.toml", 32),
        ("small-datum-24.toml", 24),
        ("ten-servers.toml", 24),
        ("six-mariadbs.toml", 20),
    ] {
        let plan = plan(&shipped_suites().join(file));
        let cells: Vec<_> = plan
            .levels
            .iter()
            .map(|level| level.cell.as_ref())
            .collect();
        assert_eq!(cells.len(), count, "{file}");
        let mut place = 0;
        for cell in cells {
            let cell = cell.unwrap();
            let of_label = |one: &Microbenchmark| one.label == cell.name;
            place += documented[place..].iter().position(of_label).unwrap();
            let Microbenchmark {
                group,
                workload,
                parameters,
                ..
            } = &documented[place];
            assert!(cell.group.starts_with(*group), "{}", cell.name);
            assert_eq!(cell.workload.name, *workload, "{}", cell.name);
            let shared = [("table_size", "1000000"), ("rand_type", "uniform")];
            let own = parameters.iter();
            let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
            let given = shared.into_iter().chain(own);
            let given = given.map(|(name, value)| (name.to_owned(), Value::from(value)));
            let resolved = resolve(find(workload).unwrap(), &given.collect()).unwrap();
            assert_eq!(cell.workload.parameters, resolved, "{}", cell.name);
        }
    }
}

#[test(on = &[MARIADB], lab)]
fn every_microbenchmark_has_the_statements_that_the_document_says(server: &Server) {
    check_all(server);
}

#[test(on = &[MARIADB], lab)]
fn updates_reach_the_rows_that_they_are_meant_for(server: &Server) {
    check_updates(server);
}
