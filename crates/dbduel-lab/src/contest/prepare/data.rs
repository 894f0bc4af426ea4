//! The data of a contender: loaded or restored, kept as a snapshot, digested, and equal for all contenders.

use std::time::Instant;

use anyhow::{Result, bail};
use dbduel_machine::clock;
use dbduel_record::Record;
use dbduel_record::event::{Event, LoadTime, Notice, Severity};
use dbduel_record::facts::FileSizes;
use dbduel_record::plan::Contender;
use dbduel_text::counts;
use dbduel_workloads::Workload;

use crate::contest::backend::ContenderServer;
use crate::contest::journal::Journal;
use crate::contest::{ContestConfig, conditions};
use crate::dataset;
use crate::snapshots::Description;

/// Data of a contender before its workload's tables are checked.
pub enum Content {
    /// Data of an earlier start of this run, which stay in use.
    InUse,
    /// A snapshot, or a new data directory without tables.
    Fresh {
        /// Description of the snapshot; absent without one.
        restored: Option<Box<Description>>,
        /// When the data began to be put in place.
        begun: Instant,
        /// What was wrong with the data of an earlier start of this run, which these replace.
        damage: Option<String>,
    },
}

/// True when an earlier start of this run put the contender's data in place. Later changes belong to the contest, so
/// the data are neither loaded nor digested again.
pub fn is_dataset_known(past: &Record, contender: &str) -> bool {
    past.events.iter().any(|event| matches!(&event.what, Event::DatasetReady { contender: known, .. } if known == contender))
}

/// Source of a contender's data.
#[derive(Debug, Clone)]
pub struct Origin {
    /// They existed before: in a snapshot, or on a running server.
    pub is_restored: bool,
    /// Load time, where known.
    pub load: Option<LoadTime>,
    /// What was changed of a dump when it was loaded.
    pub remarks: Vec<String>,
}

/// Loads missing data, and keeps them as a snapshot.
///
/// # Errors
/// When the data cannot be loaded, copied or read.
pub fn settle(
    config: &ContestConfig<'_>,
    contender: &Contender,
    resident: &mut ContenderServer,
    content: Content,
    workload: &'static dyn Workload,
    journal: &mut Journal<'_>,
) -> Result<()> {
    let Content::Fresh {
        restored,
        begun,
        damage,
    } = content
    else {
        return Ok(());
    };
    if let Some(damage) = damage {
        journal.notice(replaced(&contender.name, &damage))?;
    }
    let origin = match restored {
        Some(snapshot) => Origin {
            is_restored: true,
            load: snapshot.load_of(contender),
            remarks: snapshot.remarks().to_vec(),
        },
        None => {
            let load = dataset::fill(&config.plan, workload, resident, config.console)?;
            resident
                .backend
                .keep_data(config, contender, load.clone())?;
            Origin {
                is_restored: false,
                remarks: load.remarks.clone(),
                load: Some(load),
            }
        }
    };
    ready(config, resident, workload, origin, begun, journal)
}

/// Journals rows, digest and sizes of the data.
///
/// # Errors
/// When they cannot be read.
pub fn ready(
    config: &ContestConfig<'_>,
    resident: &mut ContenderServer,
    workload: &'static dyn Workload,
    origin: Origin,
    begun: Instant,
    journal: &mut Journal<'_>,
) -> Result<()> {
    let seconds = clock::since(begun).as_secs_f64();
    conditions::before(config, resident, workload, origin.is_restored, journal)?;
    let digest = dataset::digest(&config.plan, workload, resident, config.console)?;
    let files = resident.backend.sizes()?;
    let size = files.unwrap_or_default().total();
    let Origin {
        is_restored: restored,
        load,
        remarks,
    } = origin;
    let verb = match restored {
        false => "loaded",
        true if resident.backend.is_ours() => "restored",
        true => "found",
    };
    config.remark(&format!(
        "{}: {} rows {verb} in {seconds:.1} s{}",
        resident.name,
        counts::of(digest.rows),
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
    if !remarks.is_empty() {
        journal.notice(rewritten(&resident.name, &remarks))?;
    }
    Ok(())
}

/// The finding that a contender alone began again with its first data.
fn replaced(contender: &str, damage: &str) -> Notice {
    Notice::new(
        "data.replaced",
        Severity::Doubt,
        &[contender],
        format!(
            "The database file of `{contender}` was damaged outside of the contest ({damage}) and replaced by the data \
             that the contest began with: it lacks the changes of earlier blocks, which the others have."
        ),
        "Find the program or the disk that damaged it; start the contest again for a verdict without this doubt.",
    )
}

/// The finding that a dump was not loaded unchanged.
fn rewritten(contender: &str, remarks: &[String]) -> Notice {
    Notice::new(
        "data.dump-rewritten",
        Severity::Note,
        &[contender],
        format!(
            "Rules fitted the dump to the server of `{contender}`: {}",
            remarks.join("; ")
        ),
        "where one of these matters to your statements, change the dump itself, equally for all contenders",
    )
}

/// Size of the data, which is what was forecast, and of all files.
fn on_disk(files: FileSizes) -> String {
    format!(
        ", {} of data on disk ({} with redo, undo, temporary, log and system files)",
        dbduel_text::bytes(files.data.allocated_bytes),
        dbduel_text::bytes(files.total().allocated_bytes)
    )
}

/// Stops when contenders hold different data.
///
/// # Errors
/// When digests differ.
pub fn compare_digests(past: &Record) -> Result<()> {
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
            "`{}` and `{}` hold different data ({} rows, digest {}; {} rows, digest {}), so a comparison is \
             meaningless; drop the tables of a running server, or remove the snapshots with `dbduel datasets remove all`",
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
