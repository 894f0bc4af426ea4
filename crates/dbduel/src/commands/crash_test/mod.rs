//! `dbduel crash-test`: cuts the power under load and checks what survives.

mod document;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use dbduel_experiment::check_cuttable;
use dbduel_experiment::expand::expand;
use dbduel_experiment::{EXPERIMENT_BYTES_MAX, Experiment, ExperimentFile};
use dbduel_lab::StatusOutput as _;
use dbduel_lab::contest::events::StatusLines;
use dbduel_lab::contest::{ContestConfig, Machines};
use dbduel_lab::crash::{self, CrashConfig, Images};
use dbduel_machine::interrupt::{self, Interrupted};
use dbduel_powercut::{CutModel, mount};
use dbduel_record::foreign::read_text;
use dbduel_workloads::parameters::ScriptAccess;

use super::positive_duration;
use super::run::{Unreadable, clear_leftovers, new_place, surroundings};
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::home;
use document::Document;

/// Options of `dbduel crash-test`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// An experiment file (TOML) with a workload that keeps a commit log (`order-entry`). Its first load level is used; its
    /// budget is not.
    pub experiment: PathBuf,
    /// Power cuts per contender.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub cuts: u32,
    /// Fate of unsynced writes at a cut: `lose`, `reorder`, `torn-512` or `torn-4096`. Repeatable; cuts alternate
    /// between several models [default: all four].
    #[arg(long, value_name = "MODEL")]
    pub cut_model: Vec<CutModel>,
    /// Duration of the load whose writes are recorded and cut.
    #[arg(long, default_value = "20 s", value_name = "TIME", value_parser = positive_duration)]
    pub load: Duration,
    /// Seed of the load and of the cuts [default: that of the experiment, or drawn at random].
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Most server starts spent on reducing the first loss of each kind to a minimal set of lost writes.
    #[arg(long, default_value_t = 40, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub minimise: u32,
    /// Directory in which the directory of the results is created.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Cuts the power of every contender many times and prints lost commits and corruption.
///
/// # Errors
/// When the experiment is wrong, this machine has no FUSE, or a server cannot be fetched, loaded or driven.
pub fn crash_test(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let path = &arguments.experiment;
    let text = read_text(path, EXPERIMENT_BYTES_MAX)
        .map_err(|source| Unreadable::new(path.clone(), source))?;
    let experiment = Experiment::parse(path, &text)?;
    let file = ExperimentFile {
        path,
        text: &text,
        experiment: &experiment,
    };
    let mut plan = expand(&file, &surroundings(ScriptAccess::Full))?;
    plan.seed = arguments.seed.unwrap_or(plan.seed);
    check_cuttable(&plan.workload, &plan.contenders)?;
    let plan = Arc::new(plan);
    mount::check()?;
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let home = home::find(home)?;
    let console = Console::new();
    clear_leftovers(&home, &console);
    let results = new_place(&arguments.results, path)?;
    fs::write(results.join("experiment.toml"), &text)
        .with_context(|| format!("could not write to `{}`", results.display()))?;
    console.say(&format!("results: {}", results.display()));
    let lines = StatusLines::new(&console, &plan, &results);
    let contest = ContestConfig {
        plan: Arc::clone(&plan),
        experiment: &experiment,
        experiment_path: path,
        record: &results,
        home: &home,
        console: &console,
        followers: vec![&lines],
        keep: false,
        stacks: false,
        host_access: None,
        provider: &Machines,
    };
    let models = match arguments.cut_model.as_slice() {
        [] => &CutModel::ALL[..],
        some => some,
    };
    let config = CrashConfig {
        contest: &contest,
        cuts: arguments.cuts,
        models,
        load_s: arguments.load.as_secs_f64(),
        images: Some(Images {
            folder: results.clone(),
            tries: arguments.minimise,
        }),
    };
    let mut document = Document::new(&plan);
    let mut failed = None;
    for number in 0..plan.contenders.len() {
        match crash::run(&config, number) {
            Ok(outcome) => document.contenders.push(outcome),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
        // After every contender, so that an interrupt leaves what is complete.
        write(&results, &document)?;
    }
    console.finish();
    if arguments.json {
        console::print_json(&document)?;
    } else if !document.contenders.is_empty() {
        console::print(&page::text(&document, &results))?;
    }
    match failed {
        Some(error) if error.is::<Interrupted>() || interrupt::check().is_err() => {
            Ok(Exit::Interrupted)
        }
        Some(error) => Err(error),
        None if document.contenders.is_empty() => bail!("the experiment has no contender"),
        None if document.is_all_intact() => Ok(Exit::Done),
        None => Ok(Exit::Void),
    }
}

fn write(results: &Path, document: &Document) -> Result<()> {
    let files = [
        ("crash-test.json", console::json(document)?),
        ("crash-test.md", page::markdown(document)),
    ];
    for (name, text) in files {
        let path = results.join(name);
        fs::write(&path, text).with_context(|| format!("could not write `{}`", path.display()))?;
    }
    Ok(())
}
