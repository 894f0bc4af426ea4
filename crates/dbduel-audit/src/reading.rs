//! Facts read from evidence: the value, and the variables that it followed from.
//!
//! Evaluates the tables; compares nothing.

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::evidence::ServerEvidence;
use super::expression;
use super::forms;
use super::predict::has_option;
use super::table::{Fact, Row, table};
use super::value::Value;

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Read {
    /// Variable, counter or other name of the tables' notation.
    pub name: String,
    /// As the server writes it.
    pub value: String,
}

/// Outcome of reading a fact.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Known(Value),
    /// This server has nothing of the kind.
    NotThere,
    /// Its source was not examined, for example a connection of the load.
    NotSeen,
    /// Expected, but missing: the names that were not found.
    Unreadable(Vec<String>),
}

/// A fact of one contender.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading<'t> {
    /// The value, or why there is none.
    pub state: State,
    /// The names that it was computed from.
    pub from: Vec<Read>,
    /// The row of the table that applies.
    pub row: Option<&'t Row>,
    /// True when it rests on a default that is inferred from other versions.
    pub is_inferred: bool,
    /// True when it is not known because the machine or the build is not described.
    pub is_undetermined: bool,
    /// True when it rests on an assumption about storage that is not described.
    pub is_assumed: bool,
}

impl Reading<'_> {
    /// The value, when it is known.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        match &self.state {
            State::Known(value) => Some(value),
            _ => None,
        }
    }
}

/// The parameter of the workload by which its clients set a fact of the contender `index` themselves, so that no setting of the
/// server changes it.
#[must_use]
pub fn set_by_clients(reading: &Reading<'_>, case: &Case, index: usize) -> Option<&'static str> {
    let mut names = reading.from.iter().map(|read| read.name.as_str());
    names.find_map(|name| {
        let variable = name.strip_prefix("session.")?;
        let set = case.contenders[index].set_by_clients(variable)?;
        Some(set.parameter)
    })
}

/// Reads a fact of the contender `index`.
#[must_use]
pub fn read<'t>(fact: &'t Fact, case: &Case, index: usize) -> Reading<'t> {
    let contender = &case.contenders[index];
    let Some(row) = fact.row(contender.product, contender.version) else {
        return Reading {
            state: State::NotThere,
            from: Vec::new(),
            row: None,
            is_inferred: false,
            is_undetermined: false,
            is_assumed: false,
        };
    };
    let mut trace = Trace::default();
    let value = evaluate(&row.value, case, contender, &mut trace, None);
    let inferred = &contender.basis.inferred;
    let read = trace.from.iter().map(|read| &read.name);
    let is_inferred = read
        .chain(&trace.missing)
        .any(|name| inferred.contains(name));
    let undetermined = &contender.basis.undetermined;
    let misses_what_is_open = trace.missing.iter().any(|name| undetermined.contains(name));
    let is_undetermined = value.is_none() && misses_what_is_open;
    let is_assumed = trace.missing.iter().any(|name| name == "host.rotational");
    let state = match value {
        Some(value) => State::Known(value),
        None if is_undetermined => State::NotSeen,
        None if fact.is_plain && !contender.variables.is_empty() => State::NotThere,
        None if trace
            .missing
            .iter()
            .all(|name| is_out_of_sight(name, case, contender)) =>
        {
            State::NotSeen
        }
        None => State::Unreadable(trace.missing),
    };
    Reading {
        state,
        from: trace.from,
        row: Some(row),
        is_inferred,
        is_undetermined,
        is_assumed,
    }
}

/// The settings that bring a fact to `target` on the contender `index`; empty when nothing can. A
/// setting whose value is unknown for this target is not needed for it.
#[must_use]
pub fn settings_for(
    reading: &Reading<'_>,
    target: &Value,
    case: &Case,
    index: usize,
) -> Vec<(String, String)> {
    let Some(row) = reading.row else {
        return Vec::new();
    };
    let contender = &case.contenders[index];
    let there = row
        .set
        .iter()
        .filter(|(name, _)| has_option(contender, name));
    let settings = there.filter_map(|(name, value)| {
        let value = evaluate(value, case, contender, &mut Trace::default(), Some(target))?;
        let written = match value {
            Value::Switch(on) => if on { "ON" } else { "OFF" }.to_owned(),
            other => other.to_string(),
        };
        let written = forms::written(contender.product, name, &written, contender.version);
        Some((name.clone(), written))
    });
    settings.collect()
}

/// The value of a constant expression, such as a fact's target.
#[must_use]
pub fn constant(expression: &expression::Expression) -> Option<Value> {
    expression::evaluate(expression, &mut |_| None)
}

#[derive(Default)]
struct Trace {
    from: Vec<Read>,
    missing: Vec<String>,
}

impl Trace {
    fn keep(&mut self, name: &str, value: String) {
        if self.from.iter().all(|read| read.name != name) {
            self.from.push(Read {
                name: name.to_owned(),
                value,
            });
        }
    }

    fn miss(&mut self, name: &str) {
        if self.missing.iter().all(|missing| missing != name) {
            self.missing.push(name.to_owned());
        }
    }
}

fn evaluate(
    expression: &expression::Expression,
    case: &Case,
    contender: &ServerEvidence,
    trace: &mut Trace,
    target: Option<&Value>,
) -> Option<Value> {
    expression::evaluate(expression, &mut |name| {
        if name == "target" {
            return target.cloned();
        }
        if let Some(other) = name.strip_prefix("fact.") {
            // Facts refer to facts that refer to none; a test of the tables keeps it so.
            let row = table()
                .fact(other)?
                .row(contender.product, contender.version)?;
            return evaluate_plainly(&row.value, case, contender, trace);
        }
        look_up(name, case, contender, trace)
    })
}

fn evaluate_plainly(
    expression: &expression::Expression,
    case: &Case,
    contender: &ServerEvidence,
    trace: &mut Trace,
) -> Option<Value> {
    expression::evaluate(expression, &mut |name| {
        look_up(name, case, contender, trace)
    })
}

fn look_up(
    name: &str,
    case: &Case,
    contender: &ServerEvidence,
    trace: &mut Trace,
) -> Option<Value> {
    let found = match name.strip_prefix("host.") {
        Some(key) => of_host(case, key).map(|value| (value.to_string(), value)),
        None => contender.look_up(name),
    };
    match found {
        Some((raw, value)) => {
            trace.keep(name, raw);
            Some(value)
        }
        None => {
            trace.miss(name);
            None
        }
    }
}

fn of_host(case: &Case, key: &str) -> Option<Value> {
    let host = case.host.as_ref()?;
    match key {
        "rotational" => host.rotational.map(Value::Switch),
        "sockets" => host
            .sockets
            .map(|sockets| Value::Number(f64::from(sockets))),
        _ => None,
    }
}

fn is_out_of_sight(name: &str, case: &Case, contender: &ServerEvidence) -> bool {
    match name.split_once('.') {
        Some(("host", _)) => case.host.is_none(),
        Some((place, _)) => contender.knows_nothing_of(place),
        None => false,
    }
}
