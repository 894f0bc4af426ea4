//! Expands an experiment with `[sweep]` into its cells: one experiment for every combination of levels.
//!
//! Cells run in an order drawn from the seed, so that drift of the machine does not appear as an effect of a factor.
//! Every cell is expanded before the first one starts, so that a mistake costs no time.

use std::collections::BTreeSet;
use std::time::Duration;

use dbduel_audit::option_value;
use dbduel_machine::host;
use dbduel_record::plan::IoLimit;
use dbduel_record::seed::named_seed;
use dbduel_record::sweep::{Factor, FactorKind, FactorLevel, SweepCell, SweepPlan};
use dbduel_record::{FormatVersion, Plan};
use dbduel_server::{Meaning, ServerName};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use super::blocks::permutation;
use super::schedule::BUDGET_S;
use super::{Surroundings, counted, expand, product};
use crate::experiment::document::{Located, Report, Trouble, Troubles};
use crate::experiment::sweep::CELLS_MAX;
use crate::experiment::{
    Experiment, ExperimentFile, ServerCores, Setting, SweptFactor, SweptLevel, SweptTarget,
};

/// Characters of a cell's levels in the name of its folder.
const FOLDER_CHARACTERS: usize = 80;
/// Seeds stay below 2^53, so that every JSON reader keeps all their digits.
const SEED_BITS: u32 = 53;

/// The cells of the sweep in `file`, each with its plan for an equal share of the budget.
///
/// # Errors
/// Levels that contradict each other or do not exist, with line and column.
pub fn expand_sweep(
    file: &ExperimentFile<'_>,
    surroundings: &Surroundings,
) -> Result<(SweepPlan, Vec<Plan>), Troubles> {
    let ExperimentFile {
        path,
        text,
        experiment,
    } = *file;
    let report = Report::new(path, text);
    let factors: Vec<Factor> = experiment
        .sweep
        .iter()
        .map(|written| factor(&report, experiment, written, &surroundings.processors))
        .collect();
    let count = product(factors.iter().map(|factor| factor.levels.len()));
    if !(1..=CELLS_MAX).contains(&count) {
        let message = format!(
            "the levels of [sweep] make {} combinations; a sweep has at most {CELLS_MAX}; list fewer levels",
            counted(count)
        );
        let span = experiment.sweep.first();
        report.add(
            &span.map_or(0..0, |factor| factor.name.span.clone()),
            message,
        );
    }
    let factors = report.finish(factors)?;
    let seed = experiment.seed.unwrap_or(surroundings.fresh_seed);
    let budget_s = experiment
        .budget
        .as_ref()
        .map_or(BUDGET_S, |budget| budget.value.as_secs_f64());
    let mut sweep = SweepPlan {
        format: FormatVersion::CURRENT,
        dbduel: env!("CARGO_PKG_VERSION").to_owned(),
        created: surroundings.created.clone(),
        experiment: std::path::absolute(path)
            .unwrap_or_else(|_| path.to_owned())
            .display()
            .to_string(),
        question: String::new(),
        seed,
        budget_s,
        cells: cells(seed, &factors, count),
        factors,
    };
    let plans = try_all(file, &sweep, surroundings)?;
    sweep.question = experiment.question.clone().unwrap_or_else(|| {
        let workload = plans.first().map_or("", |plan| plan.workload.name.as_str());
        let names: Vec<&str> = sweep.factors.iter().map(|one| one.name.as_str()).collect();
        format!(
            "How do the contenders compare over {} on {workload}?",
            names.join(" and ")
        )
    });
    Ok((sweep, plans))
}

/// The plan of one cell with the remaining `budget_s`, and its experiment.
///
/// # Errors
/// As [`expand`].
pub fn expand_cell(
    file: &ExperimentFile<'_>,
    sweep: &SweepPlan,
    cell: &SweepCell,
    budget_s: f64,
    surroundings: &Surroundings,
) -> Result<(Experiment, Plan), Troubles> {
    let own = experiment_of(file.experiment, sweep, cell, budget_s);
    let own_file = ExperimentFile {
        experiment: &own,
        ..*file
    };
    let mut plan = expand(&own_file, surroundings)?;
    plan.question = format!("{} ({})", plan.question, sweep.label(cell));
    Ok((own, plan))
}

/// The experiment of one cell, with its levels as if written there.
fn experiment_of(
    experiment: &Experiment,
    sweep: &SweepPlan,
    cell: &SweepCell,
    budget_s: f64,
) -> Experiment {
    let mut own = experiment.clone();
    own.sweep.clear();
    own.seed = Some(cell.seed);
    own.budget = Some(Located {
        // Bounded by what was parsed, so that the conversion cannot fail.
        value: Duration::from_secs_f64(budget_s.max(0.0)),
        span: experiment
            .budget
            .as_ref()
            .map_or(0..0, |budget| budget.span.clone()),
    });
    let chosen = sweep.factors.iter().zip(&cell.levels);
    for ((factor, &level), written) in chosen.zip(&experiment.sweep) {
        let value = &factor.levels[level].value;
        let span = written
            .levels
            .get(level)
            .map_or_else(|| written.name.span.clone(), |level| level.span.clone());
        match &written.target {
            SweptTarget::Parameter => {
                let value = value.clone();
                let parameter = (written.name.clone(), Located { value, span });
                own.workload.parameters.push(parameter);
            }
            SweptTarget::ServerCores => {
                let cores: Option<Vec<u32>> = serde_json::from_value(value.clone()).ok();
                own.load.server_cores = cores.map(|value| Located { value, span });
            }
            SweptTarget::ServerIo => {
                let limit: Option<IoLimit> = serde_json::from_value(value.clone()).ok();
                own.load.server_io = limit.map(|value| Located { value, span });
            }
            SweptTarget::Setting { name, .. } => {
                let name = Located {
                    value: name.clone(),
                    span: written.name.span.clone(),
                };
                let value = value.as_str().unwrap_or_default().to_owned();
                let value = Located { value, span };
                let contenders = own.contenders.iter_mut();
                for contender in contenders.filter(|one| written.target.is_of(one)) {
                    contender.settings.push(Setting {
                        name: name.clone(),
                        value: value.clone(),
                    });
                }
            }
        }
    }
    own
}

/// Expands every cell; errors of all cells are reported once, the others with their cell.
fn try_all(
    file: &ExperimentFile<'_>,
    sweep: &SweepPlan,
    surroundings: &Surroundings,
) -> Result<Vec<Plan>, Troubles> {
    let share_s = sweep.budget_s / sweep.cells.len() as f64;
    let mut plans = Vec::new();
    let mut found: Vec<(Trouble, usize, String)> = Vec::new();
    for cell in &sweep.cells {
        match expand_cell(file, sweep, cell, share_s, surroundings) {
            Ok((_, plan)) => plans.push(plan),
            Err(troubles) => {
                for trouble in troubles.list {
                    match found.iter_mut().find(|(known, ..)| *known == trouble) {
                        Some((_, times, _)) => *times += 1,
                        None => found.push((trouble, 1, sweep.label(cell))),
                    }
                }
            }
        }
    }
    if found.is_empty() {
        return Ok(plans);
    }
    found.sort_by_key(|(trouble, ..)| (trouble.line, trouble.column));
    let list = found.into_iter().map(|(trouble, times, label)| Trouble {
        message: match times {
            times if times == sweep.cells.len() => trouble.message,
            _ => format!("{} (with {label})", trouble.message),
        },
        ..trouble
    });
    Err(Troubles {
        path: file.path.to_owned(),
        list: list.collect(),
    })
}

/// Every combination of levels, in an order drawn from the seed.
fn cells(seed: u64, factors: &[Factor], count: usize) -> Vec<SweepCell> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(named_seed(seed, "sweep/order"));
    let order = permutation(count, &mut random).into_iter().enumerate();
    let drawn = order.map(|(place, number)| {
        let mut rest = number;
        let levels: Vec<usize> = factors
            .iter()
            .map(|factor| {
                let level = rest % factor.levels.len();
                rest /= factor.levels.len();
                level
            })
            .collect();
        let parts = factors.iter().zip(&levels);
        let parts: Vec<String> = parts
            .map(|(factor, &level)| format!("{}-{}", factor.name, factor.levels[level].label))
            .collect();
        SweepCell {
            name: format!("{:03}-{}", place + 1, folder(&parts.join("-"))),
            levels,
            seed: named_seed(seed, &format!("sweep/cell/{number}")) >> (u64::BITS - SEED_BITS),
        }
    });
    drawn.collect()
}

/// The readable part of a folder's name; the number before it makes it unique.
fn folder(label: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._".contains(c) {
            c
        } else {
            '-'
        }
    };
    let words: String = label.chars().map(plain).take(FOLDER_CHARACTERS).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-")
}

fn factor(
    report: &Report<'_>,
    experiment: &Experiment,
    written: &SweptFactor,
    processors: &[u32],
) -> Factor {
    let is_running = |server: &Located<String>| {
        ServerName::parse(&server.value)
            .is_ok_and(|name| matches!(name.meaning, Meaning::Running(_)))
    };
    let mut servers = experiment.contenders.iter();
    if written.target == SweptTarget::ServerCores
        && let Some(running) =
            servers.find(|contender| contender.server.as_ref().is_some_and(is_running))
    {
        let message = format!(
            "`{}` is a running server, so dbduel cannot choose its processors",
            running.name.value
        );
        report.add(&written.name.span, message);
    }
    let levels = written.levels.iter().filter_map(|level| {
        Some(match &level.value {
            SweptLevel::Value(value) => of_value(value),
            SweptLevel::ServerCores(cores) => {
                of_cores(report, experiment, level, cores, processors)?
            }
            SweptLevel::ServerIo(limit) => of_limit(*limit),
        })
    });
    let mut levels: Vec<FactorLevel> = levels.collect();
    let limited = written.levels.iter().filter_map(|level| match level.value {
        SweptLevel::ServerIo(Some(limit)) => Some(limit.bytes_per_s.is_some()),
        _ => None,
    });
    // Bytes and requests are not on one axis.
    let kinds: BTreeSet<bool> = limited.collect();
    if kinds.len() > 1 {
        levels.iter_mut().for_each(|level| level.size = None);
    }
    Factor {
        name: written.name.value.clone(),
        kind: match written.target {
            SweptTarget::Parameter => FactorKind::Parameter,
            SweptTarget::ServerCores => FactorKind::ServerCores,
            SweptTarget::ServerIo => FactorKind::ServerIo,
            SweptTarget::Setting { .. } => FactorKind::Setting,
        },
        levels,
    }
}

fn of_value(value: &serde_json::Value) -> FactorLevel {
    FactorLevel {
        label: value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
        value: value.clone(),
        size: value.as_f64().or_else(|| size_of(value.as_str()?)),
    }
}

/// The number in a text, with the unit of a size where it has one.
fn size_of(text: &str) -> Option<f64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_size =
        ["k", "m", "g", "t", "kb", "mb", "gb", "tb"].contains(&unit.to_lowercase().as_str());
    match is_size {
        true => option_value(text).parse().ok(),
        false => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

/// The processors of a level: those named, or the first of those that the servers may use.
fn of_cores(
    report: &Report<'_>,
    experiment: &Experiment,
    level: &Located<SweptLevel>,
    cores: &ServerCores,
    processors: &[u32],
) -> Option<FactorLevel> {
    let cores: Vec<u32> = match cores {
        ServerCores::These(cores) => cores.clone(),
        ServerCores::Count(count) => {
            let of_load = experiment.load.cores.as_ref();
            let is_free = |core: &u32| of_load.is_none_or(|of_load| !of_load.value.contains(core));
            let usable: Vec<u32> = match &experiment.load.server_cores {
                Some(cores) => cores.value.clone(),
                None => processors.iter().copied().filter(is_free).collect(),
            };
            let count = *count as usize;
            if count > usable.len() {
                let message = format!(
                    "expected at most {} processors, the number that servers may use here, found {count}",
                    usable.len()
                );
                report.add(&level.span, message);
                return None;
            }
            usable[..count].to_vec()
        }
    };
    if let Err(missing) = host::find_processors(&cores, processors) {
        report.add(&level.span, missing.to_string());
        return None;
    }
    let names: Vec<String> = cores.iter().map(u32::to_string).collect();
    Some(FactorLevel {
        label: match cores.len() {
            1 => format!("1 (processor {})", names[0]),
            count => format!("{count} (processors {})", names.join(" ")),
        },
        size: Some(cores.len() as f64),
        value: cores.into(),
    })
}

fn of_limit(limit: Option<IoLimit>) -> FactorLevel {
    let Some(limit) = limit else {
        return FactorLevel {
            label: "unlimited".to_owned(),
            value: serde_json::Value::Null,
            size: None,
        };
    };
    FactorLevel {
        label: limit.label(),
        value: serde_json::json!(limit),
        // Two limits at once have no order.
        size: match (limit.bytes_per_s, limit.operations_per_s) {
            (Some(amount), None) | (None, Some(amount)) => Some(amount as f64),
            _ => None,
        },
    }
}
