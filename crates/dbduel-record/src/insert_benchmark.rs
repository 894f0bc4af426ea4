//! Requirements of the Insert Benchmark on its steps: rows per statement, and the rate of changes beside queries.
//!
//! Defined here because both halves need it: the clients keep the rates, and the judge checks that they were kept.

use serde_json::Value;

use crate::plan::Parameters;

/// Name of the workload.
pub const NAME: &str = "insert-benchmark";

/// The classes that must keep the rate.
pub const BACKGROUND: [&str; 2] = ["insert", "delete"];

/// Share of the rate from which it counts as kept (Callaghan).
pub const KEPT_SHARE: f64 = 0.95;

/// Rows per second of a step that sets no rate.
const RATE: u64 = 100;

fn count(parameters: &Parameters, name: &str) -> Option<u64> {
    let given = parameters.get(name).and_then(Value::as_u64);
    given.filter(|count| *count > 0)
}

/// The name of the step.
#[must_use]
pub fn step(parameters: &Parameters) -> &str {
    let step = parameters.get("step").and_then(Value::as_str);
    step.unwrap_or_default()
}

/// Rows of an INSERT or DELETE.
#[must_use]
pub fn rows_per_statement(parameters: &Parameters) -> u64 {
    count(parameters, "rows_per_statement").unwrap_or(match step(parameters) {
        "l.i0" | "l.x" => 100,
        "l.i2" => 5,
        _ => 50,
    })
}

/// Rows per second and table that are inserted, and as many deleted; `None` in steps without queries, whose changes
/// have no limit.
#[must_use]
pub fn rate(parameters: &Parameters) -> Option<u64> {
    let name = step(parameters);
    let named = name
        .strip_prefix("qr")
        .or_else(|| name.strip_prefix("qp"))?;
    count(parameters, "rate").or_else(|| Some(named.parse().unwrap_or(RATE)))
}

/// INSERTs per second of all tables, and as many DELETEs, that a step with queries requires.
#[must_use]
pub fn required_per_s(parameters: &Parameters) -> Option<f64> {
    let tables = count(parameters, "tables").unwrap_or(1);
    let rows = rate(parameters)? * tables;
    Some(rows as f64 / rows_per_statement(parameters) as f64)
}

/// True when slices of the step are fixed work instead of fixed time: the index step, and load steps with
/// `rows_per_slice`.
#[must_use]
pub fn has_fixed_work(parameters: &Parameters) -> bool {
    let is_load = rate(parameters).is_none() && step(parameters).starts_with("l.");
    is_load && (step(parameters) == "l.x" || count(parameters, "rows_per_slice").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(&str, Value)]) -> Parameters {
        let given = given.iter();
        given
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect()
    }

    #[test]
    fn the_name_of_a_step_says_the_rate_unless_another_is_given() {
        for (given, per_s) in [
            (of(&[("step", "qr100".into())]), Some(2.0)),
            (
                of(&[("step", "qp1000".into()), ("tables", 3.into())]),
                Some(60.0),
            ),
            (
                of(&[("step", "qr500".into()), ("rate", 25.into())]),
                Some(0.5),
            ),
            (of(&[("step", "l.i1".into())]), None),
            (Parameters::new(), None),
        ] {
            assert_eq!(required_per_s(&given), per_s, "{given:?}");
        }
    }

    #[test]
    fn statements_have_the_rows_of_their_step() {
        for (step, rows) in [
            ("l.i0", 100),
            ("l.x", 100),
            ("l.i1", 50),
            ("l.i2", 5),
            ("qr100", 50),
        ] {
            assert_eq!(rows_per_statement(&of(&[("step", step.into())])), rows);
        }
        let given = of(&[("step", "l.i2".into()), ("rows_per_statement", 7.into())]);
        assert_eq!(rows_per_statement(&given), 7);
    }
}
