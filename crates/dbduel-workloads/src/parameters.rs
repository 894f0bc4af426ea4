//! Parameters of workloads: names, allowed values and defaults.
//!
//! After [`resolve`] every parameter has a value and no default is applied again.

use std::fmt;

use dbduel_driver::Dialect;
use dbduel_record::plan::Parameters;
pub(crate) use dbduel_record::plan::Resolved;
use dbduel_text::nearest;
use serde_json::Value;

use super::Workload;

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParameterSpec {
    /// Name, with underscores. `-` is accepted for `_` wherever parameters are read.
    pub name: &'static str,
    /// Allowed values.
    pub kind: Kind,
    /// Default value.
    pub default: Default,
    /// Description, one sentence.
    pub about: &'static str,
}

/// Allowed values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A number.
    Number {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// On or off.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
}

/// A default value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// On or off.
    Switch(bool),
    /// A word or text.
    Text(&'static str),
}

impl Default {
    /// The default as it is written in a plan.
    #[must_use]
    pub fn value(&self) -> Value {
        match *self {
            Default::Integer(number) => number.into(),
            Default::Number(number) => number.into(),
            Default::Switch(on) => on.into(),
            Default::Text(text) => text.into(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Integer { min, max: i64::MAX } => write!(out, "a whole number from {min}"),
            Kind::Integer { min, max } => write!(out, "a whole number from {min} to {max}"),
            Kind::Number { min, max } => write!(out, "a number from {min} to {max}"),
            Kind::Switch => write!(out, "true or false"),
            Kind::Choice(words) => write!(out, "one of `{}`", words.join("`, `")),
            Kind::Text => write!(out, "a text"),
        }
    }
}

/// A parameter that is invalid or unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{parameter}` {why}{}", suggestion(*nearest))]
pub struct ParameterError {
    /// Its name, as it was given.
    pub parameter: String,
    /// The problem, as the end of a sentence that begins with the parameter.
    pub why: String,
    /// The most similar name or word, when there is one.
    pub nearest: Option<&'static str>,
}

/// End of a message with the most similar name; empty without one.
pub(super) fn suggestion(nearest: Option<&'static str>) -> String {
    nearest
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}

impl ParameterSpec {
    /// The value in the parameter's own type, when it is allowed. Text that parses as a number or switch is accepted,
    /// since values from a command line are text.
    ///
    /// # Errors
    /// Says what is allowed.
    pub fn check(&self, value: &Value) -> Result<Value, ParameterError> {
        let refuse = |nearest| ParameterError {
            parameter: self.name.to_owned(),
            why: format!("cannot be `{}`; it takes {}", display(value), self.kind),
            nearest,
        };
        let converted: Option<Value> = match self.kind {
            Kind::Integer { min, max } => {
                let number = value
                    .as_i64()
                    .or_else(|| value.as_str()?.trim().replace('_', "").parse().ok());
                number
                    .filter(|number| (min..=max).contains(number))
                    .map(Value::from)
            }
            Kind::Number { min, max } => {
                let number = value
                    .as_f64()
                    .or_else(|| value.as_str()?.trim().parse().ok());
                number
                    .filter(|number| (min..=max).contains(number))
                    .map(Value::from)
            }
            Kind::Switch => match value {
                Value::Bool(on) => Some((*on).into()),
                Value::String(word) => match word.as_str() {
                    "on" | "true" => Some(true.into()),
                    "off" | "false" => Some(false.into()),
                    _ => None,
                },
                _ => None,
            },
            Kind::Choice(words) => {
                let word = value.as_str().unwrap_or_default();
                if !words.contains(&word) {
                    return Err(refuse(nearest(word, words.iter().copied())));
                }
                Some(word.into())
            }
            Kind::Text => value.as_str().map(Value::from),
        };
        converted.ok_or_else(|| refuse(None))
    }
}

fn display(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Permissions of a script that is the workload, while its options are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptAccess {
    /// Nothing outside its own state.
    Confined,
    /// Everything that a program run by the user may do.
    Full,
}

/// Every parameter of the workload, with the given values checked and the others at their defaults.
///
/// # Errors
/// The first parameter that is unknown, given twice, or out of its range.
pub fn resolve(workload: &dyn Workload, given: &Parameters) -> Result<Parameters, ParameterError> {
    workload.resolve(given)
}

/// As [`resolve`]; a script runs with the permissions of `access`.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_with(
    workload: &dyn Workload,
    given: &Parameters,
    access: ScriptAccess,
) -> Result<Parameters, ParameterError> {
    match access {
        ScriptAccess::Confined => workload.resolve_confined(given),
        ScriptAccess::Full => workload.resolve(given),
    }
}

/// Refuses a number of clients for which the workload, with resolved parameters, has no work.
///
/// # Errors
/// Says the allowed number.
pub fn check_clients(
    workload: &dyn Workload,
    parameters: &Parameters,
    clients: u32,
) -> Result<(), ParameterError> {
    let limits = [
        ("at most", workload.clients_max(parameters)),
        ("exactly", workload.clients_exactly(parameters)),
    ];
    for (word, limit) in limits {
        let Some(limit) = limit else { continue };
        let is_exact = word == "exactly";
        let clients = u64::from(clients);
        if clients > limit || (is_exact && clients != limit) {
            return Err(ParameterError {
                parameter: "clients".to_owned(),
                why: format!(
                    "cannot be {clients}; with these parameters `{}` has work for {word} {limit}",
                    workload.name()
                ),
                nearest: None,
            });
        }
    }
    Ok(())
}

/// Refuses resolved parameters that servers of this dialect do not support.
///
/// # Errors
/// What [`Workload::check_dialect`] refuses, or the first parameter of [`Workload::mysql_parameters`] that is not at its default.
pub fn check_dialect(
    workload: &dyn Workload,
    dialect: Dialect,
    parameters: &Parameters,
) -> Result<(), ParameterError> {
    workload.check_dialect(dialect, parameters)?;
    if dialect == Dialect::MySql {
        return Ok(());
    }
    let specs = workload.parameters();
    let of_mysql = |spec: &&ParameterSpec| workload.mysql_parameters().contains(&spec.name);
    for spec in specs.iter().filter(of_mysql) {
        let default = spec.default.value();
        let value = parameters.get(spec.name).unwrap_or(&default);
        if *value != default {
            return Err(ParameterError {
                parameter: spec.name.to_owned(),
                why: format!(
                    "cannot be `{}` on {}, which does not support it; leave it out",
                    display(value),
                    dialect.product()
                ),
                nearest: None,
            });
        }
    }
    Ok(())
}

/// The first major version of PostgreSQL with partitions by hash.
const HASH_PARTITIONS_SINCE: u32 = 11;

/// Refuses resolved parameters that a server of this version does not support; `version` is as the server reports it.
///
/// # Errors
/// `partitions`, on PostgreSQL before 11.
pub fn check_version(
    dialect: Dialect,
    version: &str,
    parameters: &Parameters,
) -> Result<(), ParameterError> {
    const PARTITIONS: &str = "partitions";
    let digits = |c: char| !c.is_ascii_digit();
    let major = version
        .split(digits)
        .next()
        .and_then(|text| text.parse().ok());
    let is_older = major.is_some_and(|major: u32| major < HASH_PARTITIONS_SINCE);
    let count = parameters.get(PARTITIONS).and_then(Value::as_u64);
    match count {
        Some(count @ 2..) if dialect == Dialect::PostgreSql && is_older => Err(ParameterError {
            parameter: PARTITIONS.to_owned(),
            why: format!(
                "cannot be {count} on PostgreSQL {version}: partitions by hash need version {HASH_PARTITIONS_SINCE}; \
                 set `{PARTITIONS} = 1`, best for all contenders"
            ),
            nearest: None,
        }),
        _ => Ok(()),
    }
}

/// As [`resolve`], for those parameters that the workload lists.
pub(super) fn check_all(
    workload: &(impl Workload + ?Sized),
    given: &Parameters,
) -> Result<Parameters, ParameterError> {
    let specs = workload.parameters();
    let mut resolved = Parameters::new();
    for (name, value) in given {
        let canonical = name.replace('-', "_");
        let Some(spec) = specs.iter().find(|spec| spec.name == canonical) else {
            return Err(ParameterError {
                parameter: name.clone(),
                why: format!("is unknown to workload `{}`", workload.name()),
                nearest: nearest(&canonical, specs.iter().map(|spec| spec.name)),
            });
        };
        if resolved.insert(canonical, spec.check(value)?).is_some() {
            let why = "is given twice, once with `-` and once with `_`".to_owned();
            return Err(ParameterError {
                parameter: name.clone(),
                why,
                nearest: None,
            });
        }
    }
    for spec in &specs {
        resolved
            .entry(spec.name.to_owned())
            .or_insert_with(|| spec.default.value());
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    fn resolve_one(name: &str, value: impl Into<Value>) -> Result<Value, ParameterError> {
        let workload = find("oltp-read-write").unwrap();
        let given = Parameters::from([(name.to_owned(), value.into())]);
        let resolved = resolve(workload, &given)?;
        Ok(resolved[&name.replace('-', "_")].clone())
    }

    #[test]
    fn both_spellings_and_textual_values_are_accepted() {
        assert_eq!(resolve_one("table-size", 500), Ok(500.into()));
        assert_eq!(resolve_one("table_size", "1_000_000"), Ok(1_000_000.into()));
        assert_eq!(resolve_one("skip-trx", "on"), Ok(true.into()));
        assert_eq!(resolve_one("rand_pareto_h", "0.3"), Ok(0.3.into()));
    }

    #[test]
    fn what_is_out_of_range_or_misspelt_is_refused_with_a_hint() {
        assert_eq!(
            resolve_one("table_sise", 1).unwrap_err().nearest,
            Some("table_size")
        );
        assert_eq!(
            resolve_one("rand_type", "parato").unwrap_err().nearest,
            Some("pareto")
        );
        for (name, value) in [
            ("tables", Value::from(0)),
            ("tables", 1.5.into()),
            ("tables", "many".into()),
            ("skip_trx", 1.into()),
            ("rand_pareto_h", 0.into()),
            ("engine", 7.into()),
        ] {
            assert!(
                resolve_one(name, value.clone()).is_err(),
                "{name} = {value}"
            );
        }
    }

    #[test]
    fn an_error_reads_as_a_sentence() {
        let error = resolve_one("table-sise", 1).unwrap_err().to_string();
        assert_eq!(
            error,
            "parameter `table-sise` is unknown to workload `oltp-read-write` (did you mean `table_size`?)"
        );
        let error = resolve_one("tables", 0).unwrap_err().to_string();
        assert_eq!(
            error,
            "parameter `tables` cannot be `0`; it takes a whole number from 1 to 10000"
        );
    }

    #[test]
    fn partitions_by_hash_are_refused_where_postgresql_has_none() {
        let check = |dialect, version, count: u64| {
            let parameters = Parameters::from([("partitions".to_owned(), count.into())]);
            check_version(dialect, version, &parameters)
        };
        for version in ["9.6.24", "10.23", "10.23.0"] {
            let error = check(Dialect::PostgreSql, version, 16).unwrap_err();
            let said = error.to_string();
            assert!(
                said.contains("set `partitions = 1`") && said.contains(version),
                "{said}"
            );
            assert_eq!(check(Dialect::PostgreSql, version, 1), Ok(()));
        }
        assert_eq!(check(Dialect::PostgreSql, "11.22 (Debian)", 16), Ok(()));
        assert_eq!(check(Dialect::MySql, "5.6.24", 16), Ok(()));
    }

    #[test]
    fn the_same_parameter_in_both_spellings_is_refused() {
        let given = Parameters::from([
            ("table-size".to_owned(), 1.into()),
            ("table_size".to_owned(), 2.into()),
        ]);
        assert!(resolve(find("oltp-delete").unwrap(), &given).is_err());
    }
}
