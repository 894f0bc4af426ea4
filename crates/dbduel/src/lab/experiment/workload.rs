//! `[workload]`: its name or script, and parameters, which any table of parameters is read like.

use toml::Spanned;
use toml::de::DeValue;

use super::document::{Located, Report, Section, describe, integer, number, string};
use super::{Workload, WrittenParameter};
use dbduel_load::workloads::script::{NAME, OPTION};

pub(super) fn read_workload(report: &Report<'_>, root: &Section<'_, '_>) -> Workload {
    let nowhere = || Located {
        value: String::new(),
        span: 0..0,
    };
    let Some(section) = root.section("workload") else {
        report.add(
            &(0..0),
            "there is no [workload]; see `dbduel workloads` for what there is",
        );
        return Workload {
            name: nowhere(),
            parameters: Vec::new(),
        };
    };
    let script = section.get("script", string);
    let name = section.get("name", string);
    match (&name, &script) {
        (Some(_), Some(script)) => report.add(
            &script.span,
            "[workload] has a `name` and a `script`; it can only be one of them",
        ),
        (None, None) if section.value("name").is_none() && section.value("script").is_none() => {
            report.add(
                &section.span(),
                "[workload] has neither `name` nor `script`; see `dbduel workloads` for what there is",
            );
        }
        _ => {}
    }
    // A workload may take a line of options; those of a script are a table.
    let options = section
        .value("options")
        .filter(|options| options.get_ref().is_table());
    let written = section
        .entries()
        .filter(|(key, _)| key.value != "name" && !(key.value == "options" && options.is_some()));
    let mut parameters = read_parameters(report, "workload", written);
    if options.is_some()
        && let Some(options) = section.section("options")
    {
        if script.is_none() {
            report.add(
                &options.span(),
                "a table of `options` in [workload] goes with `script`",
            );
        }
        let named = options.entries().map(|(mut key, value)| {
            key.value = format!("{OPTION}{}", key.value);
            (key, value)
        });
        parameters.extend(read_parameters(report, "workload", named));
    }
    let by_script = script.map(|script| Located {
        value: NAME.to_owned(),
        span: script.span,
    });
    Workload {
        name: name.or(by_script).unwrap_or_else(nowhere),
        parameters,
    }
}

/// Parameters of a workload under `[title]`.
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
                format!("`{}` in [{title}]: {message}", key.value),
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
