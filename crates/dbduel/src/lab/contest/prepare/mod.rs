//! Every contender's server with its data in place, started, asked what it is, and frozen.

mod announcement;
mod fairness;
mod interview;
mod rehearsal;
mod running;
mod sandboxed;
mod session;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use dbduel_load::workloads::{self, Workload};
use dbduel_record::Record;
use dbduel_record::event::{Event, LoadTime};
use dbduel_record::facts::FileSizes;

use super::Setting;
use super::arena::{Arena, Place, Resident};
use super::journal::Journal;
use super::{conditions, durability};
use crate::interrupt;
use crate::judge::audit::ServerEvidence;
use crate::lab::dataset;
use crate::lab::server::{Meaning, Sandbox, ServerName, file_sizes};
use crate::report::words;

pub use fairness::{NotComparable, check as check_fairness};
pub use rehearsal::rehearse;
pub use session::keep_sessions;

/// A contender before its server runs.
enum Candidate {
    /// Its sandbox, with settings that the server takes.
    Sandboxed(Box<Sandbox>),
    /// A running server that lets us in.
    Running(Resident),
}

/// Prepares all contenders of the plan: first what can be refused at once, for all of them, then what
/// takes long, one after the other. Returns what the servers say of themselves, in the plan's order.
///
/// # Errors
/// When a server cannot be had, refuses a setting, does not start, or its data cannot be loaded, or
/// when contenders hold different data.
pub fn prepare(
    setting: &Setting<'_>,
    past: &Record,
    arena: &mut Arena,
    journal: &mut Journal,
) -> Result<Vec<ServerEvidence>> {
    let plan = setting.plan;
    let workload = workloads::find(&plan.workload.name)?;
    let mut candidates = Vec::new();
    for (number, contender) in plan.contenders.iter().enumerate() {
        interrupt::check()?;
        let name = ServerName::parse(&contender.server)?;
        candidates.push(match &name.meaning {
            Meaning::Running { address, user } => {
                let statement = Duration::from_secs_f64(plan.limits.statement_s);
                let resident = running::visit(contender, address, user.as_deref(), statement)?;
                Candidate::Running(resident)
            }
            Meaning::Provided { .. } => {
                let (sandbox, remarks) = sandboxed::create(setting, number, contender, &name)?;
                for remark in remarks {
                    journal.notice(remark)?;
                }
                Candidate::Sandboxed(Box::new(sandbox))
            }
        });
    }
    announcement::announce(setting, past, workload, &mut candidates)?;
    let mut evidence = Vec::new();
    for (contender, candidate) in plan.contenders.iter().zip(candidates) {
        interrupt::check()?;
        let mut resident = match candidate {
            Candidate::Running(resident) => {
                running::settle(setting, past, resident, workload, journal)?
            }
            Candidate::Sandboxed(sandbox) => {
                sandboxed::settle(setting, past, contender, *sandbox, workload, journal)?
            }
        };
        if is_dataset_known(past, &contender.name) {
            // However the last start ended, its servers may have ended with it.
            let log = past.commits_of(&contender.name);
            durability::compare_quietly(setting, &mut resident, &log, journal)?;
        }
        evidence.push(interview::interview(
            setting,
            past,
            &mut resident,
            workload,
            journal,
        )?);
        arena.add(resident)?;
    }
    compare_digests(&Record::open(setting.record)?)?;
    Ok(evidence)
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
    setting: &Setting<'_>,
    resident: &mut Resident,
    workload: &'static dyn Workload,
    origin: Origin,
    begun: Instant,
    journal: &mut Journal,
) -> Result<()> {
    let seconds = begun.elapsed().as_secs_f64();
    conditions::before(setting, resident, workload, origin.is_restored, journal)?;
    let digest = dataset::digest(setting.plan, workload, resident, setting.console)?;
    let files = match &resident.place {
        Place::Sandboxed(own) => Some(file_sizes(&own.sandbox.data())?),
        Place::Running { .. } => None,
    };
    let size = files.unwrap_or_default().total();
    let Origin {
        is_restored: restored,
        load,
    } = origin;
    let verb = match (&resident.place, restored) {
        (_, false) => "loaded",
        (Place::Sandboxed(_), true) => "restored",
        (Place::Running { .. }, true) => "found",
    };
    setting.console.say(&format!(
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
