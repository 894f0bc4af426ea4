//! `dbduel run` and `dbduel attribute`: an experiment file, or a record to resume.

mod extension;
mod new_record;
mod outcome;
mod plan_text;
mod planning;
mod run_contest;
mod second_stage;
pub mod server_dump;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use dbduel_experiment::expand::{Surroundings, expand};
use dbduel_experiment::{EXPERIMENT_BYTES_MAX, Experiment, ExperimentFile};
use dbduel_judge as judge;
use dbduel_lab::busy_poll;
use dbduel_lab::combinations::combinable;
use dbduel_lab::contest::board::Board;
use dbduel_lab::contest::{Machines, Provider};
use dbduel_lab::drive::HostAccess;
use dbduel_lab::interpreted;
use dbduel_machine::interrupt;
use dbduel_record::event::EndReason;
use dbduel_record::foreign::read_text;
use dbduel_record::record_set::bisection_of;
use dbduel_record::store::{EXPERIMENT, PLAN};
use dbduel_record::sweep::SWEEP;
use dbduel_record::{Plan, Record};
use dbduel_server::Home;
use dbduel_workloads::parameters::ScriptAccess;
use serde_json::json;

use super::fail_if::{self, FailIf};
#[cfg(not(feature = "fleet"))]
use super::features::AbsentNatsArguments;
use super::http::Loopback;
#[cfg(feature = "fleet")]
use super::nats::OptionalNatsArguments;
use super::positive_duration;
use super::report::LengthArguments;
use super::{metrics, sweep, watch};
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::home;
pub use extension::{extend, may_be_extended};
pub use new_record::{create, create_at, new_place};
pub use outcome::{exit_of, is_undecided};
use outcome::{finish, show};
pub use plan_text::audit_command;
pub use run_contest::{clear_leftovers, run_on_console, seal_ended};

/// Options of `dbduel run` and of `dbduel attribute`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// An experiment file (TOML), or the directory of a record to resume.
    pub target: PathBuf,
    /// Directory in which the record's directory is created.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
    /// Print the plan and stop; starts nothing.
    #[arg(long)]
    pub plan: bool,
    /// With --plan, print JSON: every default resolved, every seed.
    #[arg(long, requires = "plan")]
    pub json: bool,
    /// With --plan, run the top level of a workload script with the permissions of this process, to read its options. Without
    /// this flag the script has no os, io or ffi library.
    #[arg(long, requires = "plan")]
    pub run_script: bool,
    /// Keep the servers' sandboxes after the contest.
    #[arg(long)]
    pub keep: bool,
    /// After the last block, load every server at every load level (in a suite, with every workload) for a few more
    /// seconds and sample its stacks with `perf`, for flame graphs in the report. This takes about ten seconds each and
    /// is not part of the measurement.
    #[arg(long)]
    pub stacks: bool,
    /// Extend a record by this time. Verdicts of the extension use the error probability that the plan reserved for it.
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub budget: Option<Duration>,
    /// Exit with 5 when the rule matches: `slower than 3 %` when the whole interval is beyond 3 %, `possibly slower
    /// than 3 %` when part of it is. The contest continues until each interval lies on one side of its limit; if the
    /// budget ends first, exit with 3. Quantities: throughput by default, or `p99 higher than 10 %` (p50, p95, p99,
    /// cpu, written; class: the mean latency of each compared class of captured statements). Repeatable.
    #[arg(long, value_name = "RULE")]
    pub fail_if: Vec<FailIf>,
    /// Serve the state of the running contest as OpenMetrics text at http://ADDRESS/metrics. Loopback addresses only;
    /// port 0 takes a free one. To collect from another machine, use a tunnel.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_addr: Option<Loopback>,
    /// Serve the growing report to a browser on this machine, as `dbduel watch` does, and print the address. While a page
    /// is open it is rendered at most every 10 s, which takes processor time during the contest.
    #[arg(long)]
    pub live: bool,
    #[command(flatten)]
    pub length: LengthArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub nats: OptionalNatsArguments,
    #[cfg(not(feature = "fleet"))]
    #[command(flatten)]
    pub nats: AbsentNatsArguments,
}
pub use planning::{plan_of, refuse_in_plan, refuse_void, surroundings};

/// Options of `dbduel attribute`.
#[derive(Debug, Args)]
pub struct AttributeArguments {
    #[command(flatten)]
    pub run: Arguments,
    /// Start the second stage of the finished record in TARGET, with new data. Its factors are those not shown to be
    /// within the horizon; all others are combined into one.
    #[arg(long, conflicts_with = "budget")]
    pub second_stage: bool,
}

/// The question that an experiment file is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The experiment's own question.
    Run,
    /// Which of the differing settings of its contenders causes their difference.
    Attribute,
}

/// Runs an attribution as [`run`] does, or the second stage of a record.
///
/// # Errors
/// As [`run`]; when there is no second stage.
pub fn attribute(home: Option<PathBuf>, arguments: &AttributeArguments) -> Result<Exit> {
    let purpose = Purpose::Attribute;
    if !arguments.second_stage {
        return run(home, &arguments.run, purpose);
    }
    let options = options_of(&arguments.run)?;
    let (path, text) = second_stage::experiment(&arguments.run.target)?;
    begin(home, &arguments.run, (&path, &text), purpose, &options)
}

/// Runs an experiment or resumes a record.
///
/// # Errors
/// When the experiment is wrong or the contest cannot be conducted.
pub fn run(home: Option<PathBuf>, arguments: &Arguments, purpose: Purpose) -> Result<Exit> {
    let options = options_of(arguments)?;
    let path = &arguments.target;
    if path.is_dir() {
        return resume_target(home, arguments, &options);
    }
    if arguments.budget.is_some() {
        return Err(NotARecord(path.clone()).into());
    }
    let text = read_text(path, EXPERIMENT_BYTES_MAX)
        .map_err(|source| Unreadable::new(path.clone(), source))?;
    begin(home, arguments, (path, &text), purpose, &options)
}

/// The run's options; starts serving the metrics if they are requested.
fn options_of(arguments: &Arguments) -> Result<RunOptions<'_>> {
    let options = RunOptions {
        keep: arguments.keep,
        stacks: arguments.stacks,
        fail_if: &arguments.fail_if,
        board: Arc::default(),
        live: arguments.live,
        length: arguments.length,
        host_access: host_access(arguments)?,
        provider: &Machines,
        is_of_candidate: false,
    };
    if let (Some(address), false) = (arguments.metrics_addr, arguments.plan) {
        let address = metrics::serve(address, Arc::clone(&options.board))?;
        console::status_line(&format!("metrics: http://{address}{}", metrics::PATH));
    }
    Ok(options)
}

/// Access to the agents of hosts, if an address of NATS was given.
#[cfg(feature = "fleet")]
fn host_access(arguments: &Arguments) -> Result<Option<Arc<dyn HostAccess>>> {
    let access = arguments.nats.access()?;
    Ok(access.map(|access| Arc::new(access) as Arc<dyn HostAccess>))
}

/// No agent is reached by this build.
#[cfg(not(feature = "fleet"))]
fn host_access(arguments: &Arguments) -> Result<Option<Arc<dyn HostAccess>>> {
    arguments.nats.check()?;
    Ok(None)
}

/// Resumes the record or sweep in a directory.
fn resume_target(
    home: Option<PathBuf>,
    arguments: &Arguments,
    options: &RunOptions<'_>,
) -> Result<Exit> {
    let target = &arguments.target;
    if sweep::is_sweep(target) {
        if arguments.plan || arguments.budget.is_some() {
            bail!(
                "`{}` is a sweep: its plan is `{}`; to add time, extend one of its cells with \
                 `dbduel run {} --budget …`",
                target.display(),
                target.join(SWEEP).display(),
                target.join("cells").join("CELL").display()
            );
        }
        return sweep::resume(&home::find(home)?, target, options);
    }
    if let Some(bisection) = bisection_of(target) {
        bail!(
            "`{}` is a step of a bisection; resume that with `dbduel bisect {}`",
            target.display(),
            bisection.display()
        );
    }
    if arguments.plan {
        Record::open(target)?;
        bail!(
            "`{}` is a record; its plan is `{}`",
            target.display(),
            target.join(PLAN).display()
        );
    }
    resume(&home::find(home)?, target, arguments.budget, options)
}

/// Starts an experiment, or prints its plan.
fn begin(
    home: Option<PathBuf>,
    arguments: &Arguments,
    (path, text): (&Path, &str),
    purpose: Purpose,
    options: &RunOptions<'_>,
) -> Result<Exit> {
    let results = &arguments.results;
    // A plan starts nothing, a script's top level included, unless it is asked for.
    let scripts = match arguments.plan && !arguments.run_script {
        true => ScriptAccess::Confined,
        false => ScriptAccess::Full,
    };
    let mut experiment = Experiment::parse(path, text)?;
    if purpose == Purpose::Attribute {
        if !experiment.sweep.is_empty() {
            bail!(
                "`{}` has a [sweep]; leave it out to attribute the difference of two contenders",
                path.display()
            );
        }
        experiment.attribute.get_or_insert_default();
    }
    let file = ExperimentFile {
        path,
        text,
        experiment: &experiment,
    };
    if !arguments.plan && server_dump::server_of(&experiment).is_some() {
        // All that can be wrong without asking the server comes first.
        let (planned, plan) = plan_of(path, text, scripts)?;
        let found = home::find(home.clone())?;
        let whole = ExperimentFile {
            experiment: &planned,
            ..file
        };
        refuse_void(&found, &whole, &plan)?;
        if let Some(dumped) = server_dump::dumped(&found, &file)? {
            return begin(home, arguments, (path, &dumped), purpose, options);
        }
    }
    if !experiment.sweep.is_empty() {
        if arguments.plan {
            let (sweep, cells) = sweep::planned(&file, scripts)?;
            let home = home::find(home)?;
            for cell in &cells {
                refuse_in_plan(&home, &file, cell)?;
            }
            if arguments.json {
                console::print_json(&json!({ "sweep": sweep, "cells": cells }))?;
            } else {
                let text = plan_text::sweep(&home, &sweep, &cells)?;
                print_plan(&home, &experiment, text)?;
            }
            return Ok(Exit::Done);
        }
        let home = home::find(home)?;
        return sweep::start(&home, results, &file, options);
    }
    let surroundings = surroundings(scripts);
    let plan = expand(&file, &surroundings)?;
    for finding in [busy_poll::doubt(&plan), interpreted::doubt(&plan)]
        .into_iter()
        .flatten()
    {
        console::status_line(&format!("{} {}", finding.claim, finding.remedy));
    }
    let home = home::find(home)?;
    if arguments.plan {
        refuse_in_plan(&home, &file, &plan)?;
        match arguments.json {
            true => console::print_json(&plan)?,
            false => print_plan(&home, &experiment, plan_text::contest(&home, &plan)?)?,
        }
        return Ok(Exit::Done);
    }
    let plan = match plan.design {
        Some(_) => combined(&home, &file, plan, &surroundings)?,
        None => plan,
    };
    start(&home, results, &file, &plan, options)
}

/// Prints a plan's text, and the dump that a run takes before.
fn print_plan(home: &Home, experiment: &Experiment, mut text: String) -> Result<()> {
    if let Some(server) = server_dump::server_of(experiment) {
        text = format!("{text}\n{}\n", server_dump::step(home, server));
    }
    Ok(console::print(&text)?)
}

/// The plan of a designed contest, reduced to combinations with which servers start.
fn combined(
    home: &Home,
    file: &ExperimentFile<'_>,
    plan: Plan,
    surroundings: &Surroundings,
) -> Result<Plan> {
    refuse_void(home, file, &plan)?;
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let console = Console::new();
    clear_leftovers(home, &console);
    let combined = combinable(home, file, plan, surroundings, &console);
    console.finish();
    combined
}

/// Options of a run beyond its experiment.
#[derive(Debug)]
pub struct RunOptions<'a> {
    /// Keep the sandboxes after the contest.
    pub keep: bool,
    /// Sample the servers' stacks after the last block.
    pub stacks: bool,
    /// Rules that decide the exit code.
    pub fail_if: &'a [FailIf],
    /// Board with the state of the contest.
    pub board: Arc<Board>,
    /// Serve the growing report to a browser on this machine.
    pub live: bool,
    /// Length of the report at its end.
    pub length: LengthArguments,
    /// Access to the agents of hosts.
    pub host_access: Option<Arc<dyn HostAccess>>,
    /// Provider of the contest's load and servers.
    pub provider: &'a dyn Provider,
    /// The contest is over once it says which end of a bisection its baseline is like.
    pub is_of_candidate: bool,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        Self {
            keep: false,
            stacks: false,
            fail_if: &[],
            board: Arc::default(),
            live: false,
            length: LengthArguments::default(),
            host_access: None,
            provider: &Machines,
            is_of_candidate: false,
        }
    }
}

/// Starts a new record below `results`, conducts its contest and shows its report.
///
/// # Errors
/// When the contest cannot be conducted.
pub fn start(
    home: &Home,
    results: &Path,
    file: &ExperimentFile<'_>,
    plan: &Plan,
    options: &RunOptions<'_>,
) -> Result<Exit> {
    refuse_void(home, file, plan)?;
    let record = create(home, results, file, plan)?;
    show_live(&record, options)?;
    let ended = run_on_console(home, &record, file, plan, options);
    finish(&record, ended, options)
}

/// The experiment file is missing, or is not text.
#[derive(Debug, thiserror::Error)]
#[error("could not read the experiment file `{}`", .path.display())]
pub struct Unreadable {
    path: PathBuf,
    source: std::io::Error,
}

impl Unreadable {
    /// The file at this path could not be read, for this reason.
    pub fn new(path: PathBuf, source: std::io::Error) -> Self {
        Unreadable { path, source }
    }
}

/// `--budget` was given with something that is not a record.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{}` is not a record, and `--budget` extends one; the budget of an experiment is `budget` in \
     its file", .0.display()
)]
pub struct NotARecord(PathBuf);

fn resume(
    home: &Home,
    record: &Path,
    budget: Option<Duration>,
    options: &RunOptions<'_>,
) -> Result<Exit> {
    let mut past = Record::open(record)?;
    let (summary, _) = judge::summarise(&past);
    let has_open_rule = fail_if::has_open(&summary, options.fail_if);
    if let Some(budget) = budget {
        if is_undecided(&summary) || has_open_rule {
            extend(record, budget.as_secs_f64())?;
            past = Record::open(record)?;
        } else {
            console::status_line("nothing in this record is undecided; it is not extended");
        }
    }
    // A contest that was decided without a rule may have time left for it.
    if past.is_over() && !(has_open_rule && summary.run.ended == Some(EndReason::Decided)) {
        console::status_line("this contest is over; here is its report");
        seal_ended(record)?;
        return show(record, options);
    }
    let path = record.join(EXPERIMENT);
    let text = read_text(&path, EXPERIMENT_BYTES_MAX)
        .with_context(|| format!("could not read `{}`", path.display()))?;
    let file = ExperimentFile {
        path: &path,
        text: &text,
        experiment: &Experiment::parse(&path, &text)?,
    };
    show_live(record, options)?;
    let ended = run_on_console(home, record, &file, &past.plan, options);
    finish(record, ended, options)
}

/// Serves the growing report of the record or the sweep in `dir`, if the options ask for it.
///
/// # Errors
/// When the address cannot be listened on.
pub fn show_live(dir: &Path, options: &RunOptions<'_>) -> Result<()> {
    if options.live {
        console::status_line(&format!("live report: {}", watch::serve(dir, 0)?));
    }
    Ok(())
}
