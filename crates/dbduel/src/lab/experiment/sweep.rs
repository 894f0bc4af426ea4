//! `[sweep]`: factors beside the contenders and the load, each with its levels.
//!
//! Whether a parameter exists and takes a value is the workload's business and is seen when the cells are
//! expanded; the places that are kept here say then where it stands.

use dbduel_load::workloads::script::OPTION;
use dbduel_record::plan::IoLimit;
use toml::Spanned;
use toml::de::DeValue;

use super::document::{Located, Report, Section, describe, string};
use super::value::{integers, io_limit};
use super::workload::parameter;
use super::{Contender, ServerCores, SweptFactor, SweptLevel, Workload, normalised_name};

/// The factor that confines servers to processors.
pub const SERVER_CORES: &str = "server_cores";
/// The factor that limits what servers read and write.
pub const SERVER_IO: &str = "server_io";
/// Keys of `[load]` that make load levels, which every cell has anyway.
const LOAD_KEYS: [&str; 3] = ["clients", "rate", "arrival"];

pub(super) fn read_sweep(
    report: &Report<'_>,
    section: &Section<'_, '_>,
    workload: &Workload,
    contenders: &[Contender],
) -> Vec<SweptFactor> {
    let mut factors = Vec::new();
    for (name, value) in section.entries() {
        match value.get_ref() {
            // Those of a script, as in [workload].
            DeValue::Table(options) if name.value == "options" => {
                for (key, value) in options {
                    let name = Located {
                        value: format!("{OPTION}{}", key.get_ref()),
                        span: key.span(),
                    };
                    factors.extend(factor(report, name, value));
                }
            }
            _ => factors.extend(factor(report, name, value)),
        }
    }
    if factors.is_empty() && section.entries().next().is_none() {
        let message =
            "[sweep] has no factor; give it one, such as `table_size = [10_000, 100_000]`";
        report.add(&section.span(), message);
    }
    check_names(report, &factors, workload, contenders);
    factors
}

fn factor(
    report: &Report<'_>,
    name: Located<String>,
    value: &Spanned<DeValue<'_>>,
) -> Option<SweptFactor> {
    if LOAD_KEYS.contains(&name.value.as_str()) {
        let message = format!(
            "`{}` makes load levels, which every cell of a sweep has; list them in [load]",
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
    let mut levels: Vec<Located<SweptLevel>> = Vec::new();
    for entry in list {
        match level(&name.value, entry.get_ref()) {
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
    Some(SweptFactor { name, levels })
}

fn level(factor: &str, value: &DeValue<'_>) -> Result<SweptLevel, String> {
    match factor {
        SERVER_CORES => cores(value).map(SweptLevel::ServerCores),
        SERVER_IO => limit(value).map(SweptLevel::ServerIo),
        _ => parameter(value).map(SweptLevel::Parameter),
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
        let name = normalised_name(&factor.name.value);
        let is_it = |other: &Located<String>| normalised_name(&other.value) == name;
        let own = contenders
            .iter()
            .find(|contender| contender.tables.iter().any(|(key, _)| is_it(key)));
        let message = if factors[..index].iter().any(|earlier| is_it(&earlier.name)) {
            format!(
                "`{}` is swept twice (`-` and `_` are the same)",
                factor.name.value
            )
        } else if workload.parameters.iter().any(|(key, _)| is_it(key)) {
            format!(
                "`{}` is set in [workload] and swept; leave it out of one of them",
                factor.name.value
            )
        } else if let Some(own) = own {
            format!(
                "`{}` is swept, and contender `{}` has a value of its own",
                factor.name.value, own.name.value
            )
        } else {
            continue;
        };
        report.add(&factor.name.span, message);
    }
}
