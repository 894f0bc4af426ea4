//! `[contenders.NAME]`: the configured servers, and references to their names.

use std::borrow::Cow;
use std::collections::BTreeSet;

use dbduel_server::{reserved, unwritable};
use dbduel_text::nearest;
use dbduel_text::visible;
use toml::de::DeValue;

use super::document::{Located, Report, Section, describe, string};
use super::hosts::agent_name;
use super::workload::read_parameters;
use super::{Contender, Setting, normalised_name};

/// Length limit of a contender's name, characters.
const NAME_CHARACTERS_MAX: usize = 60;
/// Limit of contenders of one experiment.
const CONTENDERS_MAX: usize = 16;
/// Limit of settings of one contender; servers have some 700.
const SETTINGS_MAX: usize = 1000;

/// Number of contenders that an experiment must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContenderCount {
    /// Two or more, which are compared.
    Several,
    /// One, whose server is replaced.
    One,
}

pub(super) fn read_contenders(
    report: &Report<'_>,
    root: &Section<'_, '_>,
    needed: ContenderCount,
) -> Vec<Contender> {
    let Some(section) = root.section("contenders") else {
        report.add(
            &(0..0),
            "there is no [contenders.NAME]; a duel needs at least two",
        );
        return Vec::new();
    };
    let count = section.entries().count();
    if count > CONTENDERS_MAX {
        report.add(
            &section.span(),
            format!("at most {CONTENDERS_MAX} contenders, found {count}"),
        );
        // What refers to what among so many is not looked at.
        return Vec::new();
    }
    let mut contenders = Vec::new();
    for (name, value) in section.entries() {
        let DeValue::Table(table) = value.get_ref() else {
            report.add(
                &value.span(),
                format!(
                    "expected a table [contenders.{}], found {}",
                    name.value,
                    describe(value.get_ref())
                ),
            );
            continue;
        };
        if let Some(rest) = split_name(table) {
            let message = format!(
                "a name with a dot is written in quotes: [contenders.\"{}.{rest}\"]",
                name.value
            );
            report.add(&name.span, message);
            continue;
        }
        if let Err(message) = check_name(&name.value) {
            report.add(&name.span, message);
        }
        let title = format!("[contenders.{}]", name.value);
        let section = Section::new(report, title, value.span(), table);
        contenders.push(read_contender(report, &section, name));
    }
    match needed {
        ContenderCount::Several if count < 2 => {
            let message = format!(
                "a duel needs at least two contenders, found {count}; to compare a server with itself, add a second \
                 contender with `like`"
            );
            report.add(&section.span(), message);
        }
        ContenderCount::One if count != 1 => {
            let message = format!(
                "a bisection has one contender, found {count}: its settings are those of every revision, and its server is \
                 replaced"
            );
            report.add(&section.span(), message);
        }
        ContenderCount::Several | ContenderCount::One => {}
    }
    contenders
}

/// The second half of a name that TOML split at its dot, as in `[contenders.mysql-5.6]`: a table under a key that
/// starts with a digit, which no key of the schema does.
fn split_name<'d>(table: &'d toml::de::DeTable<'_>) -> Option<&'d str> {
    let (key, _) = table.iter().find(|(key, value)| {
        value.get_ref().is_table()
            && key
                .get_ref()
                .starts_with(|first: char| first.is_ascii_digit())
    })?;
    Some(key.get_ref())
}

fn check_name(name: &str) -> Result<(), String> {
    let characters = name.chars().count();
    if characters == 0 || characters > NAME_CHARACTERS_MAX {
        return Err(format!(
            "a contender's name must have 1 to {NAME_CHARACTERS_MAX} characters, this one has {characters}"
        ));
    }
    if matches!(visible(name), Cow::Owned(_)) || name.contains(['\n', '\t']) {
        return Err(
            "a contender's name must not contain control characters or text direction marks"
                .to_owned(),
        );
    }
    Ok(())
}

fn read_contender(
    report: &Report<'_>,
    section: &Section<'_, '_>,
    name: Located<String>,
) -> Contender {
    let like = section.get("like", string);
    let server = section.get("server", string);
    let password_file = section.get("password_file", string);
    let host = section.get("host", agent_name);
    let settings = section
        .section("settings")
        .map(|settings| read_settings(report, &settings))
        .unwrap_or_default();
    let tables = section
        .section("tables")
        .map(|tables| read_parameters(report, "[tables]", tables.entries()))
        .unwrap_or_default();
    let variants = section
        .section("variants")
        .map(|variants| read_variants(report, &variants))
        .unwrap_or_default();
    let is_nowhere = section.value("like").is_none() && section.value("server").is_none();
    // A misspelt key was reported already and is probably the one that is missing.
    if section.refuse_unknown_keys() && is_nowhere {
        let message = format!(
            "contender `{}` has neither `server` nor `like`: set `server`, such as `server = \"mariadb-10.11\"`, or `like` to the \
             name of another contender",
            name.value
        );
        report.add(&name.span, message);
    }
    Contender {
        name,
        like,
        server,
        settings,
        password_file,
        host,
        tables,
        variants,
    }
}

/// The settings of `[variants]`, each with a list of values.
fn read_variants(
    report: &Report<'_>,
    section: &Section<'_, '_>,
) -> Vec<(Located<String>, Vec<Located<String>>)> {
    let mut variants = Vec::new();
    for (name, value) in section.entries() {
        if let Some(reason) = unusable(&name.value, "") {
            report.add(
                &name.span,
                format!("`{}` cannot be set: {reason}", name.value.escape_debug()),
            );
            continue;
        }
        let values = value.get_ref().as_array().filter(|list| list.len() > 1);
        let Some(values) = values else {
            let message = format!(
                "variant `{}` is a list of two or more values, such as [6, 96]; found {}",
                name.value,
                describe(value.get_ref())
            );
            report.add(&value.span(), message);
            continue;
        };
        let read = |value: &toml::Spanned<DeValue<'_>>| {
            let text =
                setting_text(value.get_ref()).and_then(|text| match unusable(&name.value, &text) {
                    Some(reason) => Err(format!("invalid value: {reason}")),
                    None => Ok(text),
                });
            match text {
                Ok(text) => Some(Located {
                    value: text,
                    span: value.span(),
                }),
                Err(message) => {
                    report.add(
                        &value.span(),
                        format!("variant `{}`: {message}", name.value),
                    );
                    None
                }
            }
        };
        let values = values.iter().filter_map(read).collect();
        variants.push((name, values));
    }
    variants
}

fn read_settings(report: &Report<'_>, section: &Section<'_, '_>) -> Vec<Setting> {
    let mut seen = BTreeSet::new();
    let mut settings = Vec::new();
    let count = section.entries().count();
    if count > SETTINGS_MAX {
        report.add(
            &section.span(),
            format!("at most {SETTINGS_MAX} settings, found {count}"),
        );
        return settings;
    }
    for (name, value) in section.entries() {
        if !seen.insert(normalised_name(&name.value)) {
            report.add(
                &name.span,
                format!("`{}` is set twice (`-` and `_` are the same)", name.value),
            );
            continue;
        }
        let text = match setting_text(value.get_ref()) {
            Ok(text) => text,
            Err(message) => {
                report.add(
                    &value.span(),
                    format!("setting `{}`: {message}", name.value),
                );
                continue;
            }
        };
        if let Some(reason) = unusable(&name.value, &text) {
            report.add(
                &name.span,
                format!("`{}` cannot be set: {reason}", name.value.escape_debug()),
            );
            continue;
        }
        settings.push(Setting {
            name,
            value: Located {
                value: text,
                span: value.span(),
            },
        });
    }
    settings
}

/// Why no contender may have a setting, whatever its server; the check of the server's product follows when that is known.
pub(super) fn unusable(name: &str, value: &str) -> Option<String> {
    unwritable(name, value)
        .map(str::to_owned)
        .or_else(|| reserved(name, value))
}

/// The text of a setting's value in the configuration file.
pub(super) fn setting_text(value: &DeValue<'_>) -> Result<String, String> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(true) => "ON".to_owned(),
        DeValue::Boolean(false) => "OFF".to_owned(),
        other => {
            return Err(format!(
                "expected a string, a number or true/false, found {}",
                describe(other)
            ));
        }
    };
    if text.chars().any(char::is_control) {
        return Err("a value must not contain control characters".to_owned());
    }
    Ok(text)
}

pub(super) fn check_contender_names(
    report: &Report<'_>,
    contenders: &[Contender],
    baseline: Option<&Located<String>>,
) {
    // There are none, or too many, which is reported.
    if contenders.is_empty() {
        return;
    }
    let names = || {
        contenders
            .iter()
            .map(|contender| contender.name.value.as_str())
    };
    let references = contenders
        .iter()
        .filter_map(|contender| contender.like.as_ref())
        .chain(baseline);
    for reference in references {
        if names().any(|name| name == reference.value) {
            continue;
        }
        let hint =
            nearest(&reference.value, names()).map(|near| format!("; did you mean `{near}`?"));
        report.add(
            &reference.span,
            format!(
                "there is no contender `{}`{}",
                reference.value,
                hint.unwrap_or_default()
            ),
        );
    }
    for contender in contenders {
        let mut current = contender;
        for _ in 0..contenders.len() {
            let Some(like) = &current.like else { break };
            let Some(next) = contenders.iter().find(|c| c.name.value == like.value) else {
                break;
            };
            if next.name.value == contender.name.value {
                report.add(
                    &like.span,
                    format!(
                        "contender `{}` is `like` itself, through {}",
                        contender.name.value, current.name.value
                    ),
                );
                break;
            }
            current = next;
        }
    }
}
