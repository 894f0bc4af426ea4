//! `[sweep]`: factors besides the contenders and the load, each with its levels.
//!
//! Whether a parameter or a setting exists and accepts a value is checked by the workload and the server when the cells
//! are expanded or checked; their errors use the positions kept here.

use std::borrow::Cow;

use dbduel_record::plan::IoLimit;
use dbduel_text::nearest;
use dbduel_workloads::script::OPTION;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::contenders::{setting_text, unusable};
use super::document::{Located, Report, Section, describe, string};
use super::value::{integers, io_limit};
use super::workload::parameter;
use super::{
    Contender, ServerCores, SweptFactor, SweptLevel, SweptTarget, Workload, normalised_name,
};

/// Limit of cells of one sweep, and so of levels of one factor.
pub(crate) const CELLS_MAX: usize = 200;
/// Keys of `[load]` that make load levels, which every cell has without a sweep.
const LOAD_KEYS: [&str; 3] = ["clients", "rate", "arrival"];

pub(super) fn read_sweep(
    report: &Report<'_>,
    section: &Section<'_, '_>,
    workload: &Workload,
    contenders: &[Contender],
) -> Vec<SweptFactor> {
    let mut factors = Vec::new();
    for (name, value) in section.entries() {
        match (name.value.as_str(), value.get_ref()) {
            // Those of a script, as in [workload].
            ("options", DeValue::Table(options)) => {
                for (key, value) in options {
                    let name = Located {
                        value: format!("{OPTION}{}", key.get_ref()),
                        span: key.span(),
                    };
                    factors.extend(factor(report, name, SweptTarget::Parameter, value));
                }
            }
            ("settings", DeValue::Table(settings)) => {
                factors.extend(settings_factors(report, None, settings));
            }
            ("contenders", DeValue::Table(named)) => {
                for (key, value) in named {
                    factors.extend(contender_factors(report, contenders, key, value));
                }
            }
            (key, _) => {
                let target = match key {
                    "server_cores" => SweptTarget::ServerCores,
                    "server_io" => SweptTarget::ServerIo,
                    _ => SweptTarget::Parameter,
                };
                factors.extend(factor(report, name, target, value));
            }
        }
    }
    if factors.is_empty() && section.entries().next().is_none() {
        let message = "[sweep] has no factor; add one, such as `table_size = [10_000, 100_000]`";
        report.add(&section.span(), message);
    }
    check_names(report, &factors, workload, contenders);
    factors
}

/// The swept settings of one contender, below `[sweep.contenders.NAME]`.
fn contender_factors(
    report: &Report<'_>,
    contenders: &[Contender],
    key: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Vec<SweptFactor> {
    let name = key.get_ref().as_ref();
    let title = format!("[sweep.contenders.{name}]");
    let mut names = contenders.iter().map(|one| one.name.value.as_str());
    if !names.clone().any(|known| known == name) {
        let hint = nearest(name, &mut names).map(|near| format!("; did you mean `{near}`?"));
        let message = format!(
            "{title}: there is no contender `{name}`{}",
            hint.unwrap_or_default()
        );
        report.add(&key.span(), message);
        return Vec::new();
    }
    let DeValue::Table(table) = value.get_ref() else {
        let message = format!(
            "expected a table {title}, found {}",
            describe(value.get_ref())
        );
        report.add(&value.span(), message);
        return Vec::new();
    };
    let section = Section::new(report, title, value.span(), table);
    let settings = section.value("settings").map(Spanned::get_ref);
    section.refuse_unknown_keys();
    match settings {
        Some(DeValue::Table(settings)) => settings_factors(report, Some(name), settings),
        _ => {
            let message = format!(
                "[sweep.contenders.{name}] has no settings; add one, such as \
                 `settings.innodb_buffer_pool_size = [\"64M\", \"128M\"]`"
            );
            report.add(&value.span(), message);
            Vec::new()
        }
    }
}

/// The swept settings of one contender or of all.
fn settings_factors(
    report: &Report<'_>,
    contender: Option<&str>,
    settings: &DeTable<'_>,
) -> Vec<SweptFactor> {
    let factors = settings.iter().filter_map(|(key, value)| {
        let setting = key.get_ref().to_string();
        let name = Located {
            value: match contender {
                Some(contender) => format!("{setting} of {contender}"),
                None => setting.clone(),
            },
            span: key.span(),
        };
        let target = SweptTarget::Setting {
            name: setting,
            contender: contender.map(str::to_owned),
        };
        factor(report, name, target, value)
    });
    factors.collect()
}

fn factor(
    report: &Report<'_>,
    name: Located<String>,
    target: SweptTarget,
    value: &Spanned<DeValue<'_>>,
) -> Option<SweptFactor> {
    if LOAD_KEYS.contains(&name.value.as_str()) {
        let message = format!(
            "`{}` defines load levels, which every cell of a sweep has; list them in [load]",
            name.value
        );
        report.add(&name.span, message);
        return None;
    }
    let list = value.get_ref().as_array().filter(|list| list.len() >= 2);
    let Some(list) = list else {
        let message = format!(
            "`{}` in [sweep]: expected a list of at least two levels, found {}",
            name.value,
            describe(value.get_ref())
        );
        report.add(&value.span(), message);
        return None;
    };
    if list.len() > CELLS_MAX {
        let message = format!(
            "`{}` in [sweep] has {} levels; a sweep has at most {CELLS_MAX} cells; list fewer levels",
            name.value,
            list.len()
        );
        report.add(&value.span(), message);
        return None;
    }
    let mut levels: Vec<Located<SweptLevel>> = Vec::new();
    for entry in list {
        match level(&target, entry.get_ref()) {
            Ok(level) if levels.iter().any(|known| known.value == level) => {
                let message = format!("a level of `{}` is listed twice", name.value);
                report.add(&entry.span(), message);
            }
            Ok(value) => levels.push(Located {
                value,
                span: entry.span(),
            }),
            Err(message) => {
                report.add(
                    &entry.span(),
                    format!("`{}` in [sweep]: {message}", name.value),
                );
            }
        }
    }
    Some(SweptFactor {
        name,
        target,
        levels,
    })
}

fn level(target: &SweptTarget, value: &DeValue<'_>) -> Result<SweptLevel, String> {
    match target {
        SweptTarget::ServerCores => cores(value).map(SweptLevel::ServerCores),
        SweptTarget::ServerIo => limit(value).map(SweptLevel::ServerIo),
        SweptTarget::Parameter => parameter(value).map(SweptLevel::Value),
        SweptTarget::Setting { name, .. } => {
            let text = setting_text(value)?;
            match unusable(name, &text) {
                Some(reason) => Err(format!("it cannot be set: {reason}")),
                None => Ok(SweptLevel::Value(text.into())),
            }
        }
    }
}

fn cores(value: &DeValue<'_>) -> Result<ServerCores, String> {
    if value.is_array() {
        let cores = integers(value, 0..=4095)?;
        return match cores.is_empty() {
            true => Err("expected at least one processor, found none".to_owned()),
            false => Ok(ServerCores::These(cores)),
        };
    }
    let count = super::document::integer(value, 1..=4096).map_err(|_| {
        format!(
            "expected a number of processors or a list of their numbers, found {}",
            describe(value)
        )
    })?;
    Ok(ServerCores::Count(count as u32))
}

fn limit(value: &DeValue<'_>) -> Result<Option<IoLimit>, String> {
    match string(value).as_deref() {
        Ok("unlimited") => Ok(None),
        _ => io_limit(value).map(Some),
    }
}

/// Refuses a factor that is given twice, or that is fixed elsewhere.
fn check_names(
    report: &Report<'_>,
    factors: &[SweptFactor],
    workload: &Workload,
    contenders: &[Contender],
) {
    for (index, factor) in factors.iter().enumerate() {
        let earlier = &factors[..index];
        let twice = earlier.iter().find(|earlier| is_same(earlier, factor));
        let fixed = match &factor.target {
            SweptTarget::Setting { name, .. } => fixed_setting(factor, name, contenders),
            SweptTarget::Parameter | SweptTarget::ServerCores | SweptTarget::ServerIo => {
                fixed_parameter(factor, workload, contenders)
            }
        };
        let message = match (twice, fixed) {
            (Some(twice), _) if twice.name.value == factor.name.value => format!(
                "`{}` is swept twice (`-` and `_` are the same)",
                factor.name.value
            ),
            (Some(twice), _) => format!(
                "`{}` and `{}` are both swept; remove one of them",
                twice.name.value, factor.name.value
            ),
            (None, Some(message)) => message,
            (None, None) => continue,
        };
        report.add(&factor.name.span, message);
    }
}

/// True when two factors change the same thing of a contender.
fn is_same(one: &SweptFactor, other: &SweptFactor) -> bool {
    let is_named = |one: &str, other: &str| normalised_name(one) == normalised_name(other);
    match (&one.target, &other.target) {
        (
            SweptTarget::Setting { name, contender },
            SweptTarget::Setting {
                name: other,
                contender: of,
            },
        ) => is_named(name, other) && (contender == of || contender.is_none() || of.is_none()),
        (SweptTarget::Setting { .. }, _) | (_, SweptTarget::Setting { .. }) => false,
        _ => is_named(&one.name.value, &other.name.value),
    }
}

fn fixed_setting(factor: &SweptFactor, name: &str, contenders: &[Contender]) -> Option<String> {
    let mut swept = contenders
        .iter()
        .filter(|contender| factor.target.is_of(contender));
    let own = swept.find(|contender| {
        let mut settings = contender.settings.iter();
        settings.any(|setting| normalised_name(&setting.name.value) == normalised_name(name))
    })?;
    Some(format!(
        "`{name}` is swept, but contender `{}` sets its own value; remove that value, or sweep the setting of the other \
         contenders only, below [sweep.contenders.NAME.settings]",
        own.name.value
    ))
}

fn fixed_parameter(
    factor: &SweptFactor,
    workload: &Workload,
    contenders: &[Contender],
) -> Option<String> {
    let name = &factor.name.value;
    let is_it = |other: &Located<String>| normalised_name(&other.value) == normalised_name(name);
    if workload.parameters.iter().any(|(key, _)| is_it(key)) {
        return Some(format!(
            "`{name}` is set in [workload] and swept; remove it from one of them"
        ));
    }
    let own = contenders
        .iter()
        .find(|contender| contender.tables.iter().any(|(key, _)| is_it(key)))?;
    Some(format!(
        "`{name}` is swept, but contender `{}` sets its own value",
        own.name.value
    ))
}
