//! A contender that runs in its load process: its file, given its data.

use anyhow::{Context as _, Result};
use dbduel_load::driver::{Dialect, Settings, sqlite_version};
use dbduel_record::Record;
use dbduel_record::event::{LoadTime, Severity};
use dbduel_record::plan::{Contender, Plan};

use super::data::{Content, is_dataset_known};
use super::sandboxed::{check_workload, folder};
use crate::lab::clock;
use crate::lab::contest::ContestConfig;
use crate::lab::contest::arena::{ContenderServer, Place, run_name};
use crate::lab::contest::journal::Journal;
use crate::lab::contest::measure::finding;
use crate::lab::server::{DATABASE, DatabaseFile, database_file_id};
use crate::lab::snapshots::{self, Description, Snapshots};

/// What loading the file of a contender depends on, as a name.
pub fn key(contender: &Contender, plan: &Plan) -> String {
    snapshots::key(&database_file_id(), sqlite_version(), contender, plan)
}

/// Makes the contender's folder, and looks whether the workload can run on SQLite.
///
/// # Errors
/// When it cannot, or the folder cannot be made.
pub fn create(
    config: &ContestConfig<'_>,
    number: usize,
    contender: &Contender,
) -> Result<DatabaseFile> {
    check_workload(config.plan, contender, Dialect::Sqlite, sqlite_version())?;
    let settings: Settings = contender
        .settings
        .iter()
        .map(|setting| (setting.name.replace('-', "_"), setting.value.clone()))
        .collect();
    DatabaseFile::create(
        config.home,
        &run_name(config),
        &folder(number, contender),
        settings,
    )
    .with_context(|| format!("contender `{}`", contender.name))
}

/// Puts the file in place.
///
/// # Errors
/// When it cannot be written.
pub fn put_in_place(
    config: &ContestConfig<'_>,
    past: &Record,
    contender: &Contender,
    file: DatabaseFile,
) -> Result<(ContenderServer, Content)> {
    let content = match file.data().is_dir() && is_dataset_known(past, &contender.name) {
        true => Content::InUse,
        false => {
            file.clear()?;
            let begun = clock::now();
            let key = key(contender, config.plan);
            let snapshots = Snapshots::new(config.home);
            let restored = snapshots.restore(&key, &file.data(), config.console)?;
            if restored.is_none() {
                file.make()?;
            }
            Content::Fresh { restored, begun }
        }
    };
    Ok((resident(contender, file), content))
}

/// A file of its own without tables.
///
/// # Errors
/// When it cannot be written.
pub fn empty(contender: &Contender, file: DatabaseFile) -> Result<ContenderServer> {
    file.make()?;
    Ok(resident(contender, file))
}

fn resident(contender: &Contender, file: DatabaseFile) -> ContenderServer {
    ContenderServer {
        name: contender.name.clone(),
        dialect: Dialect::Sqlite,
        database: DATABASE.to_owned(),
        place: Place::InProcess(Box::new(file)),
    }
}

/// Keeps the data as a snapshot. The last connection that was closed has left nothing in a journal.
///
/// # Errors
/// When they cannot be copied.
pub fn keep_snapshot(
    config: &ContestConfig<'_>,
    contender: &Contender,
    file: &DatabaseFile,
    load: LoadTime,
) -> Result<()> {
    Snapshots::new(config.home).keep(
        &key(contender, config.plan),
        &file.data(),
        Description::of(&database_file_id(), contender, config.plan, load),
        config.console,
    )
}

/// Says what a contest with such contenders measures.
///
/// # Errors
/// When the record cannot be written.
pub fn announce(contenders: &[&str], journal: &mut Journal) -> Result<()> {
    if contenders.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = contenders.iter().map(|name| format!("`{name}`")).collect();
    Ok(journal.notice(finding(
        "contest.in-process",
        Severity::Note,
        contenders,
        format!(
            "SQLite has no server and runs in a load process of its own, for each of {}: client CPU, bytes, syncs and memory are those of \
             clients and database together, and server CPU is not measured. A statement costs no round trip. Clients that write \
             wait in a queue of dbduel, first come, first served, instead of SQLite's own busy handler. Nothing is frozen: turns \
             alternate, a write-ahead log is emptied in the guard before a turn, and the system may write pages of one file \
             in another's turn.",
            names.join(" and ")
        ),
        "Compare it with a server at few clients, and say that the one is a library and the other a server.",
    ))?)
}
