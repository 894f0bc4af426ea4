//! From an experiment to a plan: every default is applied here and nowhere else.
//!
//! Knows the clock only through `created`, and chance only through the seed that it is given.

mod blocks;
mod extras;

use std::path::Path;

use dbduel_load::executor::policy::threads_beside_a_server;
use dbduel_load::workloads::completion::{self, CompletionError};
use dbduel_load::workloads::{self, parameters, script};
use dbduel_record::plan::{
    Arrival, Contender, DecisionRule, Epochs, Limits, LoadLevel, LoadProcess, Objective,
    Parameters, Schedule, Setting, Workload,
};
use dbduel_record::{FormatVersion, Plan};
use dbduel_stats::sequential::SequentialPlan;

use super::experiment::document::{Report, Troubles};
use super::experiment::{self, ArrivalKind, Experiment, normalised_name};
use super::server::{Meaning, ServerName};
use extras::{check_epochs, check_running_once, complete_injection};

pub use extras::more_blocks;

/// Clients when nobody says how many.
const CLIENTS: u32 = 16;
/// What a budget is when the experiment names none, seconds.
const BUDGET_S: f64 = 1200.0;
/// Measured part of a slice when the budget leaves the choice, seconds.
const SLICE_S: f64 = 15.0;
/// Shortest slice that is chosen by default, seconds.
const SLICE_S_MIN: f64 = 1.0;
/// Blocks per level that a short budget is cut into.
const BLOCKS_WANTED: f64 = 12.0;
/// Guard as a share of the slice, and its largest default, seconds.
const GUARD_SHARE: f64 = 0.2;
const GUARD_S_MAX: f64 = 2.0;
/// Retained time after which a steady state may be certified, seconds (White, Cobb and Spratt's
/// MSER-5 with a hold, see the statistics crate).
const WARM_UP_HOLD_S: f64 = 120.0;
/// Share of the budget that the warm-up of all contenders together may take.
const WARM_UP_SHARE: f64 = 0.15;
/// What freezing, thawing and draining add to a slice, seconds; only used to fit blocks into the budget.
const SWITCH_S: f64 = 0.1;
/// Simulated sign paths per error probability, so that a strict confidence still has paths to give up.
const PATHS_PER_ALPHA: f64 = 40.0;
/// Every contest fills its tables alike, so that a snapshot serves the next one.
const DATASET_SEED: u64 = 1;
/// Most blocks of one level in a plan.
const BLOCKS_CAP: u32 = 5000;

/// What the surroundings contribute to a plan.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The current time, RFC 3339, UTC.
    pub created: String,
    /// The seed when the experiment names none.
    pub fresh_seed: u64,
    /// Processors of this machine.
    pub cpus: u32,
}

/// Completes `experiment`, which was read from `text` at `path`.
///
/// # Errors
/// Values that contradict each other or do not exist, with line and column.
pub fn expand(
    path: &Path,
    text: &str,
    experiment: &Experiment,
    surroundings: &Surroundings,
) -> Result<Plan, Troubles> {
    let report = Report::new(path, text);
    let contenders: Vec<Contender> = experiment
        .contenders
        .iter()
        .map(|contender| complete_contender(&report, path, experiment, contender))
        .collect();
    let baseline = experiment.baseline.as_ref().map_or(0, |name| {
        contenders
            .iter()
            .position(|contender| contender.name == name.value)
            .unwrap_or(0)
    });
    let (workload, asked) = complete_workload(&report, path, experiment);
    let contenders: Vec<Contender> = contenders
        .into_iter()
        .zip(&experiment.contenders)
        .map(|(contender, written)| with_tables(&report, experiment, &workload, contender, written))
        .collect();
    let levels = complete_levels(&experiment.load, &asked);
    check_clients(&report, experiment, &workload, &levels);
    let load = LoadProcess {
        threads: experiment
            .load
            .threads
            .unwrap_or_else(|| threads_beside_a_server(surroundings.cpus)),
        cores: experiment.load.cores.clone().unwrap_or_default(),
        server_cores: experiment.load.server_cores.clone().unwrap_or_default(),
    };
    check_running_once(&report, experiment, &contenders);
    let seed = experiment.seed.unwrap_or(surroundings.fresh_seed);
    let schedule = complete_schedule(experiment, contenders.len(), levels.len());
    let decision = complete_decision(
        &report,
        experiment,
        &schedule,
        contenders.len(),
        levels.len(),
    );
    let rounds = rounds_within(&schedule, contenders.len(), 1)
        .min(BLOCKS_CAP)
        .max(decision.blocks_max);
    let blocks = blocks::draw(seed, contenders.len(), levels.len(), rounds, &schedule);
    let injection = experiment
        .injection
        .as_ref()
        .and_then(|written| complete_injection(&report, written, &contenders));
    let question = experiment
        .question
        .clone()
        .unwrap_or_else(|| default_question(&contenders, &workload));
    report.finish(Plan {
        format: FormatVersion::CURRENT,
        dbduel: env!("CARGO_PKG_VERSION").to_owned(),
        created: surroundings.created.clone(),
        question,
        seed,
        dataset_seed: DATASET_SEED,
        contenders,
        baseline,
        workload,
        levels,
        load,
        schedule,
        decision,
        limits: complete_limits(&experiment.limits),
        injection,
        objective: experiment.load.objective.as_ref().map(|written| Objective {
            share: written.value.share,
            latency_us: written.value.latency.as_secs_f64() * 1e6,
        }),
        waivers: experiment
            .waivers
            .iter()
            .map(|(class, reason)| (class.value.clone(), reason.value.clone()))
            .collect(),
        blocks,
    })
}

fn default_question(contenders: &[Contender], workload: &Workload) -> String {
    let names: Vec<&str> = contenders
        .iter()
        .map(|contender| contender.name.as_str())
        .collect();
    let work = script::file_name(workload).unwrap_or(&workload.name);
    format!("Which is faster on {work}: {}?", names.join(", "))
}

fn complete_contender(
    report: &Report<'_>,
    path: &Path,
    experiment: &Experiment,
    written: &experiment::Contender,
) -> Contender {
    let chain = experiment::chain(&experiment.contenders, written);
    let server = chain.iter().find_map(|contender| contender.server.as_ref());
    let password_file = chain
        .iter()
        .find_map(|contender| contender.password_file.as_ref());
    let mut settings: Vec<Setting> = Vec::new();
    for setting in chain.iter().rev().flat_map(|contender| &contender.settings) {
        let (name, value) = (setting.name.value.clone(), setting.value.value.clone());
        match settings
            .iter_mut()
            .find(|known| normalised_name(&known.name) == normalised_name(&name))
        {
            Some(known) => known.value = value,
            None => settings.push(Setting { name, value }),
        }
    }
    if let Some(server) = server {
        match ServerName::parse(&server.value) {
            Ok(ServerName {
                meaning: Meaning::Running { .. },
                ..
            }) => {
                if let Some(setting) = chain
                    .iter()
                    .flat_map(|contender| &contender.settings)
                    .next()
                {
                    let message = "settings of a running server cannot be changed from here; set them where it is configured";
                    report.add(&setting.name.span, message);
                }
            }
            Ok(_) => {
                if let Some(file) = password_file {
                    let message = "`password_file` goes with a running server; dbduel makes the accounts of its own";
                    report.add(&file.span, message);
                }
            }
            Err(error) => report.add(&server.span, error.to_string()),
        }
    } else {
        report.add(
            &written.name.span,
            format!(
                "contender `{}` has no `server`, and none of those that it is like has one",
                written.name.value
            ),
        );
    }
    Contender {
        name: written.name.value.clone(),
        server: server
            .map(|server| server.value.clone())
            .unwrap_or_default(),
        settings,
        password_file: password_file.map(|file| beside(path, &file.value)),
        tables: Parameters::new(),
    }
}

/// Adds the parameters of the workload that the contender has of its own.
fn with_tables(
    report: &Report<'_>,
    experiment: &Experiment,
    workload: &Workload,
    contender: Contender,
    written: &experiment::Contender,
) -> Contender {
    let Ok(known) = workloads::find(&workload.name) else {
        return contender;
    };
    let chain = experiment::chain(&experiment.contenders, written);
    let mut tables = Parameters::new();
    for (key, value) in chain.iter().rev().flat_map(|contender| &contender.tables) {
        let name = normalised_name(&key.value);
        if known.own_parameters().contains(&name.as_str()) {
            tables.insert(name, value.value.clone());
            continue;
        }
        let own = known.own_parameters().join("`, `");
        let message = match own.as_str() {
            "" => format!(
                "contenders of `{}` have no tables of their own",
                known.name()
            ),
            own => format!(
                "`{}` would change the load and not only how tables are stored; a contender may say `{own}`",
                key.value
            ),
        };
        report.add(&key.span, message);
    }
    if tables.is_empty() {
        return contender;
    }
    let complete = Contender {
        tables,
        ..contender
    };
    let mut parameters = workload.parameters.clone();
    parameters.extend(complete.tables.clone());
    match parameters::resolve(known, &parameters) {
        // The values in the parameters' own types.
        Ok(resolved) => Contender {
            tables: complete
                .tables
                .keys()
                .filter_map(|name| Some((name.clone(), resolved.get(name)?.clone())))
                .collect(),
            ..complete
        },
        Err(error) => {
            let culprit = chain
                .iter()
                .flat_map(|contender| &contender.tables)
                .find(|(key, _)| normalised_name(&key.value) == normalised_name(&error.parameter));
            let span = culprit.map_or(&written.name.span, |(key, _)| &key.span);
            report.add(span, error.to_string());
            complete
        }
    }
}

/// A path of the experiment file, taken from the directory of that file, as an absolute one.
fn beside(experiment: &Path, file: &str) -> String {
    let path = experiment
        .parent()
        .unwrap_or_else(|| Path::new(""))
        .join(file);
    std::path::absolute(&path)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// What a configuration of the workload's own asks for beside its parameters.
#[derive(Default)]
struct Asked {
    clients: Option<u32>,
    rate_each: Option<f64>,
}

fn complete_workload(
    report: &Report<'_>,
    path: &Path,
    experiment: &Experiment,
) -> (Workload, Asked) {
    let (written, load) = (&experiment.workload, &experiment.load);
    let name = written.name.value.clone();
    let workload = match workloads::find(&name) {
        Ok(workload) => workload,
        Err(error) => {
            report.add(
                &written.name.span,
                format!("{error}; `dbduel workloads` lists them"),
            );
            let parameters = Parameters::new();
            return (Workload { name, parameters }, Asked::default());
        }
    };
    let mut given: Parameters = written
        .parameters
        .iter()
        .map(|(key, value)| (key.value.clone(), value.value.clone()))
        .collect();
    if workload.name() == script::NAME {
        complete_script(path, load, &mut given);
    }
    let directory = path.parent().unwrap_or_else(|| Path::new(""));
    let (parameters, asked) = match completion::complete(workload, &given, directory) {
        Ok(completed) => (
            completed.parameters,
            Asked {
                clients: completed.clients,
                rate_each: completed.rate_each,
            },
        ),
        Err(error) => {
            let (culprit, hint) = match &error {
                CompletionError::Parameter(error) => (
                    error.parameter.as_str(),
                    format!("; `dbduel workloads {name}` lists what it takes"),
                ),
                CompletionError::Option { .. } => (completion::OPTIONS, String::new()),
                _ => (completion::CONFIG, String::new()),
            };
            let culprit = written
                .parameters
                .iter()
                .find(|(key, _)| normalised_name(&key.value) == normalised_name(culprit));
            let span = culprit.map_or(&written.name.span, |(key, _)| &key.span);
            report.add(span, format!("{error}{hint}"));
            (Parameters::new(), Asked::default())
        }
    };
    let name = workload.name().to_owned();
    (Workload { name, parameters }, asked)
}

/// A script is a file beside the experiment, unless it is one that is installed; its tables are made for the largest
/// number of clients.
fn complete_script(path: &Path, load: &experiment::Load, given: &mut Parameters) {
    if let Some(serde_json::Value::String(script)) = given.get_mut("script") {
        let file = beside(path, script);
        if Path::new(&file).is_file() {
            *script = file;
        }
    }
    let clients = load.clients.as_ref();
    let most = clients
        .and_then(|clients| clients.value.iter().copied().max())
        .unwrap_or(CLIENTS);
    given
        .entry("threads".to_owned())
        .or_insert_with(|| most.into());
}

/// Refuses more clients than the workload's data have work for.
fn check_clients(
    report: &Report<'_>,
    experiment: &Experiment,
    workload: &Workload,
    levels: &[LoadLevel],
) {
    let Ok(known) = workloads::find(&workload.name) else {
        return;
    };
    // Parameters that were refused say nothing about clients.
    if workload.parameters.is_empty() {
        return;
    }
    let most = levels
        .iter()
        .map(|level| u64::from(level.clients))
        .max()
        .unwrap_or(0);
    if let Some(limit) = known.clients_max(&workload.parameters)
        && most > limit
    {
        let span = experiment
            .load
            .clients
            .as_ref()
            .map_or(0..0, |clients| clients.span.clone());
        let message = format!(
            "`{}` has work for at most {limit} clients with these parameters, found {most}",
            workload.name
        );
        report.add(&span, message);
    }
}

/// What `[load]` says stands before what a configuration of the workload's own asks for.
fn complete_levels(load: &experiment::Load, asked: &Asked) -> Vec<LoadLevel> {
    let rates = load
        .rate
        .as_ref()
        .map_or_else(|| vec![0.0], |rates| rates.value.clone());
    let think_ms = load
        .think_time
        .as_ref()
        .map_or(0.0, |think| think.value.as_secs_f64() * 1e3);
    let arrival = |per_second: f64| match load.arrival.as_ref().map(|arrival| arrival.value) {
        None | Some(ArrivalKind::Closed) => Arrival::Closed { think_ms },
        Some(ArrivalKind::Constant) => Arrival::Constant { per_second },
        Some(ArrivalKind::Poisson) => Arrival::Poisson { per_second },
    };
    let clients = load.clients.as_ref().map_or_else(
        || vec![asked.clients.unwrap_or(CLIENTS)],
        |clients| clients.value.clone(),
    );
    let level = |clients: u32, rate: f64| LoadLevel {
        clients,
        arrival: match asked.rate_each {
            Some(each) if load.arrival.is_none() && load.think_time.is_none() => Arrival::Poisson {
                per_second: each * f64::from(clients),
            },
            _ => arrival(rate),
        },
    };
    clients
        .into_iter()
        .flat_map(|clients| rates.iter().map(move |&rate| (clients, rate)))
        .map(|(clients, rate)| level(clients, rate))
        .collect()
}

fn complete_schedule(experiment: &Experiment, contenders: usize, levels: usize) -> Schedule {
    let seconds = |duration: &experiment::document::Located<std::time::Duration>| {
        duration.value.as_secs_f64()
    };
    let written = &experiment.schedule;
    let budget_s = experiment.budget.as_ref().map_or(BUDGET_S, seconds);
    let epochs = written.epochs.as_ref().map_or(1, |epochs| epochs.value);
    let warm_ups = contenders as f64 * f64::from(epochs);
    let warm_up_cap_s = written.warm_up.as_ref().map_or_else(
        || (budget_s * WARM_UP_SHARE / warm_ups.max(1.0)).clamp(2.0, 300.0),
        seconds,
    );
    let measuring_s = budget_s - warm_up_cap_s * warm_ups;
    let slices = 2.0 * contenders as f64;
    let default_slice_s = {
        let parts = slices + GUARD_SHARE * (slices - 1.0);
        let fitting =
            (measuring_s / (BLOCKS_WANTED * levels.max(1) as f64) - slices * SWITCH_S) / parts;
        hundredths(fitting.clamp(SLICE_S_MIN, SLICE_S))
    };
    let slice_s = written.slice.as_ref().map_or(default_slice_s, seconds);
    let guard_s = written.guard.as_ref().map_or_else(
        || hundredths((slice_s * GUARD_SHARE).min(GUARD_S_MAX)),
        seconds,
    );
    let mut schedule = Schedule {
        budget_s,
        slice_s,
        jitter: written.jitter.unwrap_or(0.3),
        guard_s,
        drain_s: 30.0,
        tick_s: if slice_s >= 10.0 {
            1.0
        } else {
            hundredths((slice_s / 10.0).max(0.1))
        },
        warm_up_cap_s,
        warm_up_hold_s: WARM_UP_HOLD_S.min(warm_up_cap_s * 0.6),
        epochs: None,
    };
    if epochs > 1 {
        schedule.epochs = Some(Epochs {
            count: epochs,
            blocks: 0,
        });
        let blocks = rounds_within(&schedule, contenders, levels) / epochs;
        schedule.epochs = Some(Epochs {
            count: epochs,
            blocks,
        });
    }
    schedule
}

fn hundredths(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

/// How many mirrored blocks per level fit into the budget when `levels` share it.
fn rounds_within(schedule: &Schedule, contenders: usize, levels: usize) -> u32 {
    let measuring_s = schedule.budget_s - warm_ups_s(schedule, contenders);
    // A negative time saturates to 0 in the conversion.
    (measuring_s / (block_s(schedule, contenders) * levels.max(1) as f64)) as u32
}

/// Seconds that the warm-ups of all contenders take at most, in all epochs.
fn warm_ups_s(schedule: &Schedule, contenders: usize) -> f64 {
    let epochs = schedule.epochs.map_or(1, |epochs| epochs.count);
    schedule.warm_up_cap_s * contenders as f64 * f64::from(epochs)
}

/// Seconds that a mirrored block takes on average.
fn block_s(schedule: &Schedule, contenders: usize) -> f64 {
    let slices = 2.0 * contenders as f64;
    slices * (schedule.slice_s + SWITCH_S) + (slices - 1.0) * schedule.guard_s
}

fn complete_decision(
    report: &Report<'_>,
    experiment: &Experiment,
    schedule: &Schedule,
    contenders: usize,
    levels: usize,
) -> DecisionRule {
    let confidence = experiment.confidence.unwrap_or(0.95);
    let horizon = experiment.horizon.unwrap_or(0.02);
    let comparisons = contenders.saturating_sub(1).max(1) as f64;
    let alpha = (1.0 - confidence) / comparisons;
    let blocks_max = match schedule.epochs {
        Some(epochs) => {
            check_epochs(report, experiment, schedule, contenders, levels);
            (epochs.blocks * epochs.count).max(1)
        }
        None => rounds_within(schedule, contenders, levels),
    };
    let mut test = SequentialPlan::new(blocks_max as usize, alpha, horizon.ln_1p(), 0);
    let alpha_within_budget = (1.0 - test.reserve) * alpha;
    test.paths = test
        .paths
        .max((PATHS_PER_ALPHA / alpha_within_budget).ceil() as usize);
    // With epochs as the units it is not the blocks that decide.
    if schedule.epochs.is_none() && test.first_possible_decision().is_none() {
        // With n fair coins the rarest outcome has probability 2^(1-n); a test needs that below its level.
        let needed = ((1.0 - alpha_within_budget.log2()).ceil() as u32).max(test.n_min as u32);
        let span = experiment
            .budget
            .as_ref()
            .map_or(0..0, |budget| budget.span.clone());
        let enough_s = f64::from(needed + 1) * block_s(schedule, contenders) * levels as f64
            + warm_ups_s(schedule, contenders);
        report.add(
            &span,
            format!(
                "the budget of {:.0} s holds {blocks_max} blocks per load level; a verdict at {:.4} % confidence between \
                 {contenders} contenders needs at least {needed}: give it {:.0} s or more, fewer load levels, or shorter \
                 slices",
                schedule.budget_s,
                confidence * 100.0,
                enough_s.ceil(),
            ),
        );
    } else if let Err(error) = test.check() {
        report.add(
            &(0..0),
            format!("`confidence` and `horizon` allow no decision: {error}"),
        );
    }
    DecisionRule {
        confidence,
        horizon,
        blocks_min: test.n_min as u32,
        blocks_max,
        reserve: test.reserve,
        paths: test.paths as u32,
    }
}

fn complete_limits(written: &experiment::Limits) -> Limits {
    let seconds = |duration: Option<std::time::Duration>, default| {
        duration.map_or(default, |d| d.as_secs_f64())
    };
    Limits {
        server_start_s: seconds(written.server_start, 120.0),
        server_stop_s: seconds(written.server_stop, 120.0),
        statement_s: seconds(written.statement, 120.0),
        dataset_s: seconds(written.dataset, 4.0 * 3600.0),
        transaction_retries: 10,
        server_restarts: 5,
        free_disk_bytes_min: written.free_disk.unwrap_or(256 << 20),
    }
}
