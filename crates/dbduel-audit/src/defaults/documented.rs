//! Defaults that are documented, and those that follow from other settings or from the machine: rows of
//! `data/documented.tsv`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dbduel_text::Version;

use super::{Defaults, Machine};
use crate::evidence::ServerEvidence;
use crate::expression::{self, Expression};
use crate::server::{Product, Servers};
use crate::value::Value;

const DOCUMENTED: &str = include_str!("../../data/documented.tsv");

/// The default of a variable on some servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Documented {
    pub variable: &'static str,
    /// Which servers.
    pub on: Servers,
    /// Its default; `None` when these servers do not have the variable.
    pub value: Option<Expression>,
    /// True when the range includes a recorded server; a test checks that this server shows the same default.
    pub is_confirmed: bool,
}

impl Documented {
    /// Inputs of the default: variables and facts of the machine.
    #[must_use]
    pub fn follows_from(&self) -> Vec<&str> {
        self.value
            .as_ref()
            .map(expression::names)
            .unwrap_or_default()
    }

    /// True when the default follows from other settings or from the machine.
    #[must_use]
    pub fn is_derived(&self) -> bool {
        !self.follows_from().is_empty()
    }

    /// Sets the default of a row that has no inputs.
    pub fn put_constant(&self, evidence: &mut ServerEvidence) {
        match self.value_of(evidence) {
            Some(value) => evidence.variables.insert(self.variable.to_owned(), value),
            None => evidence.variables.remove(self.variable),
        };
    }

    /// The default as the server would show it; `None` when it has none, or when an input is unknown.
    #[must_use]
    pub fn value_of(&self, evidence: &ServerEvidence) -> Option<String> {
        let mut look_up = |name: &str| match name.split_once('.') {
            Some(("machine", key)) => of_machine(&evidence.basis.machine, key),
            Some(("asked", key)) => evidence.asked.get(key).map(|raw| Value::read(raw)),
            _ => evidence.variables.get(name).map(|raw| Value::read(raw)),
        };
        match expression::evaluate(self.value.as_ref()?, &mut look_up)? {
            Value::Switch(on) => Some(if on { "ON" } else { "OFF" }.to_owned()),
            Value::Word(word) => Some(word),
            number @ Value::Number(_) => Some(number.to_string()),
        }
    }
}

fn of_machine(machine: &Machine, key: &str) -> Option<Value> {
    let number = match key {
        "cpus" => f64::from(machine.cpus?),
        "memory" => machine.memory_bytes? as f64,
        "files" => machine.files? as f64,
        _ => return None,
    };
    Some(Value::Number(number))
}

type Rows = BTreeMap<&'static str, Vec<Documented>>;

static ROWS: LazyLock<Rows> =
    LazyLock::new(|| parse(DOCUMENTED).expect("the table that is compiled in parses"));

pub(super) fn parse(text: &'static str) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [variable, on, value, source] = cells[..] else {
            return Err(format!("`{line}` has not four cells"));
        };
        if source.is_empty() {
            return Err(format!("`{line}` has no source"));
        }
        let on = Servers::parse(on)?;
        let row = Documented {
            variable,
            on,
            value: (value != "-")
                .then(|| expression::parse(value))
                .transpose()?,
            is_confirmed: Defaults::servers()
                .any(|(_, product, version)| on.includes(product, version)),
        };
        rows.entry(variable).or_default().push(row);
    }
    Ok(rows)
}

/// Documented default of a variable on this server.
pub(super) fn row(
    variable: &str,
    product: Product,
    version: Version,
) -> Option<&'static Documented> {
    let mut rows = ROWS.get(variable)?.iter();
    rows.find(|row| row.on.includes(product, version))
}

/// Every row of the table.
#[cfg(test)]
pub(super) fn rows() -> impl Iterator<Item = &'static Documented> {
    ROWS.values().flatten()
}

/// Variables with a documented default for a product.
pub(super) fn variables(product: Product) -> impl Iterator<Item = String> {
    let is_about = move |row: &Documented| row.on.is_about(product);
    ROWS.iter()
        .filter(move |(_, rows)| rows.iter().any(is_about))
        .map(|(variable, _)| (*variable).to_owned())
}

/// The defaults of this server that follow from the variable called `name`.
pub fn following(product: Product, version: Version, name: &str) -> Vec<&'static Documented> {
    let follows =
        |row: &&Documented| row.on.includes(product, version) && row.follows_from().contains(&name);
    ROWS.values().flatten().filter(follows).collect()
}

/// Computes derived defaults in the order of their dependencies. A default that cannot be computed is undetermined,
/// and one that depends on an inferred default is inferred.
pub(super) fn compute(evidence: &mut ServerEvidence, derived: &[&Documented]) {
    for row in derived {
        evidence.variables.remove(row.variable);
    }
    let mut open = derived.to_vec();
    while !open.is_empty() {
        let is_open = |name: &str| open.iter().any(|row| row.variable == name);
        let (now, later): (Vec<&Documented>, Vec<&Documented>) = open
            .iter()
            .partition(|row| !row.follows_from().into_iter().any(is_open));
        for row in &now {
            let inferred = &evidence.basis.inferred;
            if row
                .follows_from()
                .iter()
                .any(|name| inferred.contains(*name))
            {
                evidence.basis.inferred.insert(row.variable.to_owned());
            }
            match row.value_of(evidence) {
                Some(value) => {
                    evidence.variables.insert(row.variable.to_owned(), value);
                }
                None => {
                    evidence.basis.undetermined.insert(row.variable.to_owned());
                }
            }
        }
        if now.is_empty() {
            // Rows that follow from each other in a circle, which a test of the table excludes.
            break;
        }
        open = later;
    }
}
