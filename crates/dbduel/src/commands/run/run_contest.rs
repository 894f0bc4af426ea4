//! Runs the contest of a record, with clean-up before it and the manifest after it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_experiment::ExperimentFile;
use dbduel_lab::StatusOutput as _;
use dbduel_lab::contest::events::StatusLines;
use dbduel_lab::contest::{self, ContestConfig};
use dbduel_machine::interrupt;
use dbduel_record::event::EndReason;
use dbduel_record::{Plan, RecordWriter, manifest};
use dbduel_server::{Home, orphans};

use super::RunOptions;
use crate::commands::fail_if::FailIf;
use crate::commands::features;
use crate::console::Console;
use crate::referee::Judge;

/// Time that a server left behind by a killed run gets to end by itself.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

/// Conducts the contest of a record, or the rest of it, and reports its progress on the console.
///
/// # Errors
/// When the contest cannot be conducted.
pub fn run_on_console(
    home: &Home,
    record: &Path,
    file: &ExperimentFile<'_>,
    plan: &Plan,
    options: &RunOptions<'_>,
) -> Result<EndReason> {
    features::check(file, plan)?;
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let console = Console::new();
    clear_leftovers(home, &console);
    console.say(&format!("record: {}", record.display()));
    let plan = Arc::new(plan.clone());
    let lines = StatusLines::new(&console, &plan, record);
    let config = ContestConfig {
        plan,
        experiment: file.experiment,
        experiment_path: file.path,
        record,
        home,
        console: &console,
        followers: vec![&lines, options.board.as_ref()],
        keep: options.keep,
        stacks: options.stacks,
        host_access: options.host_access.as_ref(),
        provider: options.provider,
    };
    let judge = Judge {
        limits: FailIf::limits(options.fail_if),
        is_of_candidate: options.is_of_candidate,
    };
    let result = contest::run_contest(&config, &judge);
    console.finish();
    result
}

/// Adds the manifest line of a run that was killed after its contest had ended.
///
/// # Errors
/// When the record cannot be read or written.
pub fn seal_ended(record: &Path) -> Result<()> {
    let check = manifest::check(record)?;
    if check.digest.is_none() || check.is_open {
        let now_ms = contest::now_ms();
        RecordWriter::open(record, now_ms)?.seal(now_ms, env!("CARGO_PKG_VERSION"))?;
    }
    Ok(())
}

/// Ends servers that killed runs left behind, and removes sandboxes that cannot be resumed.
pub fn clear_leftovers(home: &Home, console: &Console) {
    for orphan in orphans::sweep(home, ORPHAN_TIMEOUT) {
        let (sandbox, pid) = (orphan.sandbox.display(), orphan.process.pid);
        let how = match orphan.end {
            orphans::End::Terminated => "ended",
            orphans::End::Killed => "killed",
            orphans::End::StillThere => "could not end",
        };
        console.say(&format!(
            "{how} a server left behind by an earlier run (process {pid} in {sandbox})"
        ));
    }
    for run in orphans::remove_leftovers(home) {
        console.say(&format!(
            "removed the sandboxes of a run whose record is gone ({})",
            run.display()
        ));
    }
}
