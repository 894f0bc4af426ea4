//! A script written for sysbench as a workload: its `event` is the transaction, its `prepare` fills the tables.
//!
//! The options that the script declares become parameters with the prefix `options.`; the digest of all its files is a
//! parameter too, so that a plan cannot run with another script.

mod client;
mod data;
mod settings;

use dbduel_client::{ClientContext, ClientTask, Clients};
use dbduel_driver::Dialect;
use dbduel_lua::{
    Host, OptionError, OptionKind, OptionValue, ScriptError, ScriptFile, Settings, Sink,
};
use dbduel_record::plan::{Parameters, Workload as PlannedWorkload};
use dbduel_record::rows::ALL_CLASSES;
use serde_json::Value;

use super::parameters::{
    Default, Kind, ParameterError, ParameterSpec, Resolved, ScriptAccess, check_all,
};
use super::{OwnData, Table, Workload};
use client::ScriptClient;
pub use settings::OPTION;
pub use settings::digest;
use settings::{classes, find, ignored_errors, settings};

/// Name of the workload; an experiment names the script instead.
pub const NAME: &str = "script";

/// The class of transactions that call no function of a class.
const OTHER: &str = "other";

/// The workload.
#[derive(Debug)]
pub struct Script;

impl Workload for Script {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "A script written for sysbench, run unmodified: its event is the transaction."
    }

    /// Parameters that do not depend on the script.
    fn parameters(&self) -> Vec<ParameterSpec> {
        let text = |name, default, about| ParameterSpec {
            name,
            kind: Kind::Text,
            default: Default::Text(default),
            about,
        };
        let number = |name, min, max, default, about| ParameterSpec {
            name,
            kind: Kind::Number { min, max },
            default: Default::Number(default),
            about,
        };
        vec![
            text(
                "script",
                "",
                "The script: a file, or the name of one installed with sysbench.",
            ),
            text(
                "digest",
                "",
                "BLAKE3 of the script and the modules that it requires.",
            ),
            ParameterSpec {
                name: "threads",
                kind: Kind::Integer {
                    min: 1,
                    max: 65_536,
                },
                default: Default::Integer(1),
                about: "Number of clients that the script sees.",
            },
            text(
                "classes",
                "",
                "Functions of the script, each a class of transactions: those that call it.",
            ),
            text(
                "ignore_errors",
                "1213,1020,1205",
                "MySQL errors after which an event is retried, or `all`. With PostgreSQL they are always 40P01, 23505 and 40001.",
            ),
            ParameterSpec {
                name: "statements",
                kind: Kind::Choice(&["prepared", "text"]),
                default: Default::Text("prepared"),
                about: "How prepared statements are sent.",
            },
            ParameterSpec {
                name: "rand_type",
                kind: Kind::Choice(&["uniform", "gaussian", "special", "pareto", "zipfian"]),
                default: Default::Text("special"),
                about: "The distribution behind sysbench.rand.default.",
            },
            number(
                "rand_pareto_h",
                0.000_001,
                0.999_999,
                0.2,
                "Share of the range that gets the other share of draws.",
            ),
            number("rand_zipfian_exp", 0.0, 10.0, 0.8, "Exponent of zipfian."),
            ParameterSpec {
                name: "rand_spec_iter",
                kind: Kind::Integer { min: 1, max: 1000 },
                default: Default::Integer(12),
                about: "Uniform numbers per draw of gaussian and special.",
            },
            number(
                "rand_spec_pct",
                0.0,
                100.0,
                1.0,
                "Width of the band of special, percent.",
            ),
            number(
                "rand_spec_res",
                0.0,
                99.999,
                75.0,
                "Draws of special that fall into the band, percent.",
            ),
        ]
    }

    /// Runs the script's top level to find its options.
    fn resolve(&self, given: &Parameters) -> Result<Parameters, ParameterError> {
        self.resolve_with(given, ScriptAccess::Full)
    }

    fn resolve_confined(&self, given: &Parameters) -> Result<Parameters, ParameterError> {
        self.resolve_with(given, ScriptAccess::Confined)
    }

    /// The script itself refuses servers that it does not support.
    fn speaks(&self, dialect: Dialect) -> bool {
        matches!(dialect, Dialect::MySql | Dialect::PostgreSql)
    }

    /// Empty: only the script can make its tables.
    fn tables(&self, _dialect: Dialect, _parameters: &Parameters) -> Vec<Table> {
        Vec::new()
    }

    /// Without class functions there is one class. With them, `other` is for transactions that call none.
    fn classes(&self, parameters: &Parameters) -> Vec<String> {
        let named = classes(parameters);
        let rest = if named.is_empty() {
            "transaction"
        } else {
            OTHER
        };
        std::iter::once(rest.to_owned()).chain(named).collect()
    }

    fn own_data(&self) -> Option<&dyn OwnData> {
        Some(self)
    }
}

impl Clients for Script {
    /// A script may block its thread: it may sleep, or compute in C.
    fn blocks_threads(&self) -> bool {
        true
    }

    fn client(&self, _parameters: &Parameters, client_context: ClientContext) -> ClientTask {
        client_context.boxed::<ScriptClient>(())
    }
}

impl Script {
    fn resolve_with(
        &self,
        given: &Parameters,
        access: ScriptAccess,
    ) -> Result<Parameters, ParameterError> {
        let (options, fixed): (Parameters, Parameters) = given
            .clone()
            .into_iter()
            .partition(|(name, _)| name.starts_with(OPTION));
        let mut resolved = check_all(self, &fixed)?;
        ignored_errors(Resolved(&resolved)).map_err(|word| {
            let why = format!("contains `{word}`; it takes error numbers, or `all`");
            refuse("ignore_errors", why)
        })?;
        let (script, mut host) = load(&resolved, access)?;
        if !host.defines("event") {
            return Err(refuse(
                "script",
                "has no function `event`, so it has no transactions".to_owned(),
            ));
        }
        let names = classes(&resolved);
        for (place, name) in names.iter().enumerate() {
            if [ALL_CLASSES, OTHER].contains(&name.as_str()) || names[..place].contains(name) {
                let why = format!("cannot name `{name}`, which is reserved or listed twice");
                return Err(refuse("classes", why));
            }
            if !host.defines(name) {
                let why = format!("names `{name}`, which is not a global function of the script");
                return Err(refuse("classes", why));
            }
        }
        let written: Vec<(String, Option<String>)> = options
            .iter()
            .map(|(name, value)| (name[OPTION.len()..].replace('-', "_"), Some(text(value))))
            .collect();
        host.set_options(&written).map_err(|error| {
            let name = match &error {
                OptionError::Unknown { name, .. } | OptionError::Invalid { name, .. } => name,
            };
            // An option of sysbench, not of the script.
            let is_parameter = self.parameters().iter().any(|one| one.name == name);
            let why = match is_parameter {
                true => format!(
                    "is not an option of the script; write `{name}` itself, outside of `options`"
                ),
                false => format!("cannot be used: {error}"),
            };
            refuse(&format!("{OPTION}{name}"), why)
        })?;
        let declared = host.declared_options().unwrap_or_default();
        for option in declared {
            let key = option.name.replace('-', "_");
            let last = written.iter().rev().find(|(name, _)| *name == key);
            let text = last.map_or_else(|| option.default.clone(), |(_, text)| text.clone());
            let value = option
                .kind
                .read(text.as_deref())
                .unwrap_or(OptionValue::Text(String::new()));
            resolved.insert(format!("{OPTION}{key}"), json(option.kind, value));
        }
        for (name, text) in &written {
            resolved
                .entry(format!("{OPTION}{name}"))
                .or_insert_with(|| text.clone().unwrap_or_default().into());
        }
        let found = digest(&script.files());
        let wanted = resolved
            .get("digest")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !wanted.is_empty() && wanted != found {
            return Err(refuse(
                "digest",
                format!(
                    "is {wanted}, but the script's files now have {found}; the plan was made for other files"
                ),
            ));
        }
        resolved.insert("digest".to_owned(), found.into());
        Ok(resolved)
    }
}

fn refuse(parameter: &str, why: String) -> ParameterError {
    ParameterError {
        parameter: parameter.to_owned(),
        why,
        nearest: None,
    }
}

/// The script that the parameters name, and its state after its top level.
fn load(
    resolved: &Parameters,
    access: ScriptAccess,
) -> Result<(dbduel_lua::Script, Host), ParameterError> {
    let broken = |error: ScriptError| refuse("script", format!("cannot be used: {error}"));
    let script = find(resolved).map_err(broken)?;
    let mut settings = settings(resolved, script.clone(), "run", None);
    if access == ScriptAccess::Confined {
        confine(&mut settings);
    }
    let host = Host::load(settings).map_err(broken)?;
    Ok((script, host))
}

/// Lets the script act on nothing outside of its state.
fn confine(settings: &mut Settings) {
    settings.limits.confined = true;
    // What it prints could be anything.
    settings.sink = Sink::new(|_| ());
}

/// Definitions of a script's top level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Whether it has transactions.
    pub has_event: bool,
    /// Names of the options that it declares, with underscores; `None` for a script that declares none and takes any, as those of
    /// sysbench 0.5.
    pub options: Option<Vec<String>>,
}

/// Runs the top level of a script, a file or the name of one that sysbench installed.
///
/// # Errors
/// When the script cannot be found or loaded.
pub fn outline(script: &str, access: ScriptAccess) -> Result<Outline, ParameterError> {
    let given = Parameters::from_iter([("script".to_owned(), script.into())]);
    let (_, host) = load(&check_all(&Script, &given)?, access)?;
    let options = host.declared_options().map(|declared| {
        let names = declared.iter().map(|option| option.name.replace('-', "_"));
        names.collect()
    });
    Ok(Outline {
        has_event: host.defines("event"),
        options,
    })
}

/// The script and all files that it requires while it is loaded, for resolved parameters.
///
/// # Errors
/// When the script cannot be found or loaded.
pub fn files(parameters: &Parameters) -> Result<Vec<ScriptFile>, ScriptError> {
    let script = find(parameters)?;
    Host::load(settings(parameters, script.clone(), "run", None))?;
    Ok(script.files())
}

/// The name of the script's file, without directories; `None` for another workload.
#[must_use]
pub fn file_name(workload: &PlannedWorkload) -> Option<&str> {
    let path = workload.parameters.get("script")?.as_str()?;
    let name = path.rsplit('/').next().unwrap_or(path);
    (workload.name == NAME).then_some(name)
}

/// An option's value as on a command line.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        value => value.to_string(),
    }
}

fn json(kind: OptionKind, value: OptionValue) -> Value {
    match value {
        OptionValue::Bool(on) => on.into(),
        // Whole numbers stay whole in a plan.
        OptionValue::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            (number as i64).into()
        }
        OptionValue::Number(number) => number.into(),
        OptionValue::List(list) => list.join(",").into(),
        OptionValue::Text(text) => {
            debug_assert!(!matches!(kind, OptionKind::Bool));
            text.into()
        }
    }
}
