//! The contest: resident servers, one active at a time, slices in blocks.
//!
//! Reads as its own summary: prove durability where that is asked for, prepare the arena, warm up, measure block by block until every duel is
//! decided or the budget is spent, close. Whatever happens is in the journal before anything else
//! is done about it.

mod arena;
pub mod board;
mod close;
mod conditions;
pub mod durability;
mod epoch;
mod injector;
mod journal;
mod measure;
mod observers;
mod phases;
mod pilot;
mod prepare;
mod prove;
mod recover;
mod search;
mod slice;
mod stacks;
mod statements;
mod turn;
mod warm_up;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use dbduel_record::event::{EndReason, Event, Finding, Severity};
use dbduel_record::statements::ContenderStatements;
use dbduel_record::{Plan, Record};

use super::busy_poll;
use super::experiment::Experiment;
use super::experiment::document::Troubles;
use super::host;
use super::interpreted;
use super::load_processes::LoadProcesses;
use super::server::{Home, orphans};
use crate::console::Console;
use crate::interrupt;
use arena::Arena;
pub use arena::{ContenderServer, run_name};
use board::{Board, Phase};
pub use conditions::facts as condition_facts;
use journal::Journal;
pub use journal::now_ms;
use measure::Progress;
use observers::Observers;
use pilot::SteadySeries;
pub use prepare::{NotComparable, check_settings, loaded, rehearse, rehearse_one};

/// Everything that a contest needs from outside.
#[derive(Debug)]
pub struct ContestConfig<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// Where the plan came from, for places in messages and for passwords.
    pub experiment: &'a Experiment,
    /// The experiment file.
    pub experiment_path: &'a Path,
    /// The record's directory; it exists and holds the plan.
    pub record: &'a Path,
    /// Where servers, datasets and sandboxes are.
    pub home: &'a Home,
    /// Where progress is shown.
    pub console: &'a Console,
    /// Where others read how it stands.
    pub board: &'a Board,
    /// Keep the sandboxes after the contest.
    pub keep: bool,
    /// Sample the servers' stacks after the last block.
    pub stacks: bool,
}

/// Conducts the contest, or what is left of it.
///
/// # Errors
/// When it could not be conducted; the journal then says so too, and the record can be resumed.
pub fn run_contest(config: &ContestConfig<'_>) -> Result<EndReason> {
    config.board.begin(config.plan);
    let past = Record::open(config.record)?;
    let epoch = past
        .events
        .iter()
        .filter(|event| {
            matches!(
                event.what,
                Event::Started { .. } | Event::EpochStarted { .. }
            )
        })
        .count() as u32;
    let mut journal = Journal::open(config.record)?;
    journal.event(Event::Started {
        pid: std::process::id(),
        dbduel: env!("CARGO_PKG_VERSION").to_owned(),
        epoch,
    })?;
    match stage(config, &past, epoch, &mut journal) {
        Ok(reason) => {
            journal.event(Event::Ended { reason })?;
            journal.seal()?;
            Ok(reason)
        }
        // After an interrupt, later failures are its consequence.
        Err(_) if interrupt::check().is_err() => {
            journal.event(Event::Ended {
                reason: EndReason::Interrupted,
            })?;
            journal.seal()?;
            Ok(EndReason::Interrupted)
        }
        Err(error) => {
            // The first error is the one to report, also when the record cannot be written any more.
            let _ = journal.event(Event::Noticed {
                finding: failure(&error),
            });
            let _ = journal.event(Event::Ended {
                reason: EndReason::Failed,
            });
            let _ = journal.seal();
            // A mistake in the experiment is corrected there, and then makes a new record.
            if error.is::<Troubles>() {
                return Err(error);
            }
            Err(error.context(Stopped {
                record: config.record.to_owned(),
            }))
        }
    }
}

/// The contest could not go on; what was measured is safe.
#[derive(Debug, thiserror::Error)]
#[error("the contest stopped; the record keeps what was measured; resume with `dbduel run {}`", record.display())]
struct Stopped {
    record: PathBuf,
}

/// The contest itself. The arena's servers stop when it is dropped, on every way out.
fn stage(
    config: &ContestConfig<'_>,
    past: &Record,
    epoch: u32,
    journal: &mut Journal,
) -> Result<EndReason> {
    prove::prove(config, past, journal)?;
    let record = std::path::absolute(config.record)?;
    orphans::note_record(config.home, &arena::run_name(config), &record)?;
    // A record may have come from another machine.
    for cores in [&config.plan.load.cores, &config.plan.load.server_cores] {
        host::find_processors(cores, &host::processors())
            .context("the plan confines processes to processors that this machine does not have")?;
    }
    let doubts = [
        busy_poll::doubt(config.plan),
        interpreted::doubt(config.plan),
    ];
    for finding in doubts.into_iter().flatten() {
        journal.notice(finding)?;
    }
    let observers = Observers::new(config);
    if let Some(caveat) = observers.caveat() {
        journal.notice(caveat)?;
    }
    let mut arena = Arena::empty();
    let mut evidence = prepare::prepare(config, past, &mut arena, journal)?;
    let mut contest = Contest {
        config,
        arena,
        load: LoadProcesses::start(config.plan)?,
        journal: &mut *journal,
        progress: Progress::resume(past, epoch),
        observers,
        warm: Vec::new(),
        statements: kept_statements(past),
    };
    let sessions = contest.connect_clients()?;
    prepare::keep_sessions(sessions, &mut evidence, contest.journal)?;
    prepare::check_fairness(config, evidence, contest.journal)?;
    let (arena, load, result) = search::warm_up_and_measure(contest);
    drop(load);
    config.board.enter(Phase::Closing);
    close::close(config, arena, journal, result.as_ref().ok().copied())?;
    result
}

/// A contest with everything in place. What it does is in the modules `warm_up`, `measure` and
/// `slice`.
struct Contest<'c> {
    config: &'c ContestConfig<'c>,
    arena: Arena,
    load: LoadProcesses,
    journal: &'c mut Journal,
    progress: Progress,
    observers: Observers,
    /// What the warm-up of each contender showed of the heaviest level.
    warm: Vec<SteadySeries>,
    /// What the record has of each contender's statements.
    statements: Vec<ContenderStatements>,
}

fn kept_statements(past: &Record) -> Vec<ContenderStatements> {
    let files = past.contenders.iter();
    files
        .map(|files| files.statements.clone().unwrap_or_default())
        .collect()
}

fn failure(error: &anyhow::Error) -> Finding {
    Finding {
        rule: "run.failed".to_owned(),
        severity: Severity::Doubt,
        about: Vec::new(),
        claim: format!("the run ended early: {error:#}"),
        remedy: "fix the cause, then resume with `dbduel run` on this directory".to_owned(),
    }
}
