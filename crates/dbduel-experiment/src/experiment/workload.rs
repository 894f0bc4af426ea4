//! `[workload]`: its name or script, and parameters. Any table of parameters is read in the same way.

use dbduel_workloads::script::{NAME, OPTION};
use toml::Spanned;
use toml::de::DeValue;

use super::document::{Located, Report, Section, describe, integer, number, string};
use super::{Workload, WrittenParameter};

/// `[workload]`. In a suite it needs no name: its parameters are shared by the suite's workloads.
pub(super) fn read_workload(
    report: &Report<'_>,
    root: &Section<'_, '_>,
    is_suite: bool,
) -> Workload {
    match root.section("workload") {
        Some(section) if is_suite && !has_name(&section, "name") => Workload {
            name: nowhere(),
            parameters: parameters(report, &section, "[workload]", &[], true),
        },
        Some(section) => read_any(report, &section, "name", "[workload]", &["name"]),
        None => {
            if !is_suite {
                report.add(
                    &(0..0),
                    "there is no [workload]; `dbduel workloads` lists all workloads",
                );
            }
            Workload {
                name: nowhere(),
                parameters: Vec::new(),
            }
        }
    }
}

fn nowhere() -> Located<String> {
    Located {
        value: String::new(),
        span: 0..0,
    }
}

fn has_name(section: &Section<'_, '_>, name_key: &'static str) -> bool {
    section.value(name_key).is_some() || section.value("script").is_some()
}

/// A table with a workload's name under `name_key`, or its script; `own_keys` are not parameters.
pub(super) fn read_any(
    report: &Report<'_>,
    section: &Section<'_, '_>,
    name_key: &'static str,
    title: &str,
    own_keys: &[&str],
) -> Workload {
    let script = section.get("script", string);
    let name = section.get(name_key, string);
    match (&name, &script) {
        (Some(_), Some(script)) => report.add(
            &script.span,
            format!("{title} has a `{name_key}` and a `script`; use only one of them"),
        ),
        (None, None) if !has_name(section, name_key) => {
            report.add(
                &section.span(),
                format!("{title} has neither `{name_key}` nor `script`; `dbduel workloads` lists all workloads"),
            );
        }
        _ => {}
    }
    let parameters = parameters(report, section, title, own_keys, script.is_some());
    let by_script = script.map(|script| Located {
        value: NAME.to_owned(),
        span: script.span,
    });
    Workload {
        name: name.or(by_script).unwrap_or_else(nowhere),
        parameters,
    }
}

/// All keys that are parameters, including a script's options.
fn parameters(
    report: &Report<'_>,
    section: &Section<'_, '_>,
    title: &str,
    own_keys: &[&str],
    may_have_options: bool,
) -> Vec<WrittenParameter> {
    // A workload may take a line of options; those of a script are a table.
    let options = section
        .value("options")
        .filter(|options| options.get_ref().is_table());
    let written = section.entries().filter(|(key, _)| {
        !(own_keys.contains(&key.value.as_str()) || key.value == "options" && options.is_some())
    });
    let mut parameters = read_parameters(report, title, written);
    if options.is_some()
        && let Some(options) = section.section("options")
    {
        if !may_have_options {
            report.add(
                &options.span(),
                format!("a table of `options` in {title} goes with `script`"),
            );
        }
        let named = options.entries().map(|(mut key, value)| {
            key.value = format!("{OPTION}{}", key.value);
            (key, value)
        });
        parameters.extend(read_parameters(report, title, named));
    }
    parameters
}

/// Parameters of a workload in the table named `title` in messages.
pub(super) fn read_parameters<'d, 't: 'd>(
    report: &Report<'_>,
    title: &str,
    entries: impl Iterator<Item = (Located<String>, &'d Spanned<DeValue<'t>>)>,
) -> Vec<WrittenParameter> {
    let mut parameters = Vec::new();
    for (key, value) in entries {
        match parameter(value.get_ref()) {
            Ok(parameter) => parameters.push((
                key,
                Located {
                    value: parameter,
                    span: value.span(),
                },
            )),
            Err(message) => report.add(
                &value.span(),
                format!("`{}` in {title}: {message}", key.value),
            ),
        }
    }
    parameters
}

pub(super) fn parameter(value: &DeValue<'_>) -> Result<serde_json::Value, String> {
    match value {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Boolean(value) => Ok((*value).into()),
        DeValue::Integer(_) => integer(value, i64::MIN..=i64::MAX).map(Into::into),
        DeValue::Float(_) => number(value).map(Into::into),
        other => Err(format!(
            "expected a string, a number or true/false, found {}",
            describe(other)
        )),
    }
}
