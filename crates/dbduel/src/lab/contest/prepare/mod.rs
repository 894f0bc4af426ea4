//! Every contender's server with its data in place, started, asked what it is, and frozen.

mod check_settings;
mod fairness;
mod in_process;
mod print_plan;
mod read_settings;
mod running;
mod sandboxed;
mod session;

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use dbduel_load::workloads::{self, Workload};
use dbduel_record::event::{Event, LoadTime, Severity};
use dbduel_record::facts::FileSizes;
use dbduel_record::foreign::read_text;
use dbduel_record::{Record, RecordError};

use super::ContestConfig;
use super::arena::{Arena, ContenderServer, Place};
use super::journal::Journal;
use super::measure::finding;
use super::{conditions, durability};
use crate::interrupt;
use crate::judge::audit::ServerEvidence;
use crate::lab::dataset;
use crate::lab::experiment::EXPERIMENT_BYTES_MAX;
use crate::lab::experiment::document::{Trouble, Troubles};
use crate::lab::server::{DatabaseFile, Meaning, Sandbox, ServerName, file_sizes, runs_in_process};
use crate::report::words;

pub use check_settings::{check_settings, rehearse, rehearse_one};
pub use fairness::{NotComparable, check as check_fairness};
pub use sandboxed::loaded;
pub use session::keep_sessions;

/// A contender before its server runs.
enum Candidate {
    /// Its sandbox, with settings that the server takes.
    Sandboxed(Box<Sandbox>),
    /// Its file, which may not be there yet.
    InProcess(Box<DatabaseFile>),
    /// A running server that lets us in.
    Running(ContenderServer),
}

/// Prepares all contenders of the plan: first what can be refused at once, for all of them, then what
/// takes long, one after the other. Returns what the servers say of themselves, in the plan's order.
///
/// # Errors
/// When a server cannot be fetched, refuses a setting, does not start, or its data cannot be loaded, or
/// when contenders hold different data.
pub fn prepare(
    config: &ContestConfig<'_>,
    past: &Record,
    arena: &mut Arena,
    journal: &mut Journal,
) -> Result<Vec<ServerEvidence>> {
    let plan = config.plan;
    let workload = workloads::find(&plan.workload.name)?;
    let mut candidates = Vec::new();
    let mut connections = Vec::new();
    for (number, contender) in plan.contenders.iter().enumerate() {
        interrupt::check()?;
        let name = ServerName::parse(&contender.server)?;
        candidates.push(match &name.meaning {
            Meaning::Running(address) => {
                let statement = Duration::from_secs_f64(plan.limits.statement_s);
                let (resident, connection) = running::visit(contender, address, statement)?;
                connections.push((contender, connection));
                Candidate::Running(resident)
            }
            Meaning::InProcess => {
                Candidate::InProcess(Box::new(in_process::create(config, number, contender)?))
            }
            Meaning::Provided { .. } => {
                let (sandbox, remarks) = sandboxed::create(config, number, contender, &name)?;
                for remark in remarks {
                    journal.notice(remark)?;
                }
                Candidate::Sandboxed(Box::new(sandbox))
            }
        });
    }
    let in_process: Vec<&str> = plan
        .contenders
        .iter()
        .filter(|contender| runs_in_process(&contender.server))
        .map(|contender| contender.name.as_str())
        .collect();
    in_process::announce(&in_process, journal)?;
    running::check_distinct(config, &mut connections)?;
    drop(connections);
    print_plan::announce(config, past, workload, &mut candidates)?;
    let mut evidence = Vec::new();
    let mut restarts = 0;
    for (number, candidate) in candidates.into_iter().enumerate() {
        let placed = place(config, past, number, candidate, workload, journal);
        let (resident, answers) = placed.or_else(|failure| {
            place_again(config, number, failure, workload, journal, &mut restarts)
        })?;
        evidence.push(answers);
        arena.add(resident)?;
    }
    compare_digests(&Record::open(config.record)?)?;
    Ok(evidence)
}

/// Puts a contender in its place: its server with its data, asked what it is.
///
/// # Errors
/// [`ServerEnded`] when the server ended by itself meanwhile.
fn place(
    config: &ContestConfig<'_>,
    past: &Record,
    number: usize,
    candidate: Candidate,
    workload: &'static dyn Workload,
    journal: &mut Journal,
) -> Result<(ContenderServer, ServerEvidence)> {
    interrupt::check()?;
    let contender = &config.plan.contenders[number];
    let (mut resident, content) = match candidate {
        Candidate::Running(resident) => (resident, None),
        Candidate::Sandboxed(sandbox) => {
            let started = sandboxed::start_on_data(config, past, contender, *sandbox)?;
            (started.0, Some(started.1))
        }
        Candidate::InProcess(file) => {
            let placed = in_process::put_in_place(config, past, contender, *file)?;
            (placed.0, Some(placed.1))
        }
    };
    let settle = |resident: &mut ContenderServer| {
        match content {
            Some(content) if matches!(resident.place, Place::InProcess(_)) => {
                in_process::settle(config, contender, resident, content, workload, journal)?;
            }
            Some(content) => {
                sandboxed::settle(config, contender, resident, content, workload, journal)?;
            }
            None => running::settle(config, past, resident, workload, journal)?,
        }
        if is_dataset_known(past, &contender.name) {
            // However the last start ended, its servers may have ended with it.
            let log = past.commits_of(&contender.name);
            durability::compare_quietly(config, resident, &log, journal)?;
        }
        read_settings::interview(config, past, resident, workload, journal)
    };
    match settle(&mut resident) {
        Ok(answers) => Ok((resident, answers)),
        Err(failure) => Err(match resident.ended_by_itself() {
            Some(how) => failure.context(ServerEnded { how }),
            None => failure,
        }),
    }
}

/// After the server of a contender ended while it was put in its place: once more, from the beginning unless its data were
/// complete.
///
/// # Errors
/// `failure` when the server did not end by itself, or the plan's number of restarts is used up.
fn place_again(
    config: &ContestConfig<'_>,
    number: usize,
    mut failure: anyhow::Error,
    workload: &'static dyn Workload,
    journal: &mut Journal,
    restarts: &mut u32,
) -> Result<(ContenderServer, ServerEvidence)> {
    let contender = &config.plan.contenders[number];
    let name = ServerName::parse(&contender.server)?;
    while let Some(ServerEnded { how }) = failure.downcast_ref()
        && *restarts < config.plan.limits.server_restarts
        && !failure.is::<RecordError>()
    {
        interrupt::check()?;
        *restarts += 1;
        config.console.say(&format!(
            "{}: its server ended by itself ({how}); preparing it again",
            contender.name
        ));
        journal.notice(finding(
            "prepare.repeated",
            Severity::Note,
            &[&contender.name],
            format!(
                "The server of `{}` ended while the contest was prepared and was prepared again: {how}",
                contender.name
            ),
            "look for what ended it: its log, and the kernel's, which names processes that were killed for want of memory",
        ))?;
        let past = Record::open(config.record)?;
        let (sandbox, _) = sandboxed::create(config, number, contender, &name)?;
        let candidate = Candidate::Sandboxed(Box::new(sandbox));
        match place(config, &past, number, candidate, workload, journal) {
            Ok(placed) => return Ok(placed),
            Err(again) => failure = again,
        }
    }
    Err(failure)
}

/// The server of a contender ended by itself while the contest was prepared.
#[derive(Debug, thiserror::Error)]
#[error("the server ended by itself ({how})")]
struct ServerEnded {
    how: String,
}

/// A mistake at a place of the experiment; `None` without the place or the text.
fn trouble(
    config: &ContestConfig<'_>,
    span: Option<Range<usize>>,
    message: &str,
) -> Option<Troubles> {
    let text = read_text(config.experiment_path, EXPERIMENT_BYTES_MAX).unwrap_or_default();
    let span = span.filter(|span| span.end <= text.len() && !text.is_empty())?;
    Some(Troubles {
        path: config.experiment_path.to_owned(),
        list: vec![Trouble::at(&text, span.start, message.to_owned())],
    })
}

/// True when an earlier start of this run put the contender's data in place. What it did to them since
/// belongs to the contest, so they are neither loaded nor summed up again.
fn is_dataset_known(past: &Record, contender: &str) -> bool {
    past.events.iter().any(|event| matches!(&event.what, Event::DatasetReady { contender: known, .. } if known == contender))
}

/// Where a contender's data come from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    /// They were there before: in a snapshot, or on a running server.
    is_restored: bool,
    /// What loading them took, as far as that is known.
    load: Option<LoadTime>,
}

/// Says in the journal what the data are.
fn ready(
    config: &ContestConfig<'_>,
    resident: &mut ContenderServer,
    workload: &'static dyn Workload,
    origin: Origin,
    begun: Instant,
    journal: &mut Journal,
) -> Result<()> {
    let seconds = begun.elapsed().as_secs_f64();
    conditions::before(config, resident, workload, origin.is_restored, journal)?;
    let digest = dataset::digest(config.plan, workload, resident, config.console)?;
    let files = match &resident.place {
        Place::Sandboxed(own) => Some(file_sizes(&own.sandbox.data())?),
        Place::InProcess(file) => Some(file_sizes(&file.data())?),
        Place::Running { .. } => None,
    };
    let size = files.unwrap_or_default().total();
    let Origin {
        is_restored: restored,
        load,
    } = origin;
    let verb = match (&resident.place, restored) {
        (_, false) => "loaded",
        (Place::Sandboxed(_) | Place::InProcess(_), true) => "restored",
        (Place::Running { .. }, true) => "found",
    };
    config.console.say(&format!(
        "{}: {} rows {verb} in {seconds:.1} s{}",
        resident.name,
        words::count(digest.rows),
        files.map_or_else(String::new, on_disk)
    ));
    journal.event(Event::DatasetReady {
        contender: resident.name.clone(),
        restored,
        rows: digest.rows,
        seconds,
        digest: digest.hex,
        bytes: size.bytes,
        allocated_bytes: size.allocated_bytes,
        files,
        load,
    })?;
    Ok(())
}

/// The room that data take, which is what was forecast, and that of all files.
fn on_disk(files: FileSizes) -> String {
    format!(
        ", {} of data on disk ({} with redo, undo, temporary, log and system files)",
        words::bytes(files.data.allocated_bytes),
        words::bytes(files.total().allocated_bytes)
    )
}

/// Refuses to go on when contenders hold different data.
///
/// # Errors
/// When digests differ.
fn compare_digests(past: &Record) -> Result<()> {
    let digests = past.events.iter().filter_map(|event| match &event.what {
        Event::DatasetReady {
            contender,
            digest,
            rows,
            ..
        } => Some((contender, digest, rows)),
        _ => None,
    });
    let digests: Vec<_> = digests.collect();
    if let Some((first, rest)) = digests.split_first()
        && let Some(other) = rest.iter().find(|other| other.1 != first.1)
    {
        bail!(
            "`{}` and `{}` hold different data ({} rows, digest {}; {} rows, digest {}), so a contest would compare \
             nothing; remove the tables of a running server, or the snapshots with `dbduel datasets remove all`",
            first.0,
            other.0,
            first.2,
            first.1,
            other.2,
            other.1
        );
    }
    Ok(())
}
