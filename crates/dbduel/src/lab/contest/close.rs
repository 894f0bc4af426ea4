//! The end: what the servers have to say afterwards, their sizes, and an orderly stop.

use std::time::Duration;

use anyhow::Result;
use dbduel_load::workloads;
use dbduel_record::Record;
use dbduel_record::event::{EndReason, Event};
use dbduel_record::facts::Size;

use super::arena::{Arena, Place, Stand};
use super::journal::Journal;
use super::{Setting, journal};
use crate::lab::dataset;
use crate::lab::facts::{Moment, keep};
use crate::lab::server::{Progress as _, tree_size};

/// Wakes all servers, keeps what they say, stops ours, and removes their sandboxes, and the tables
/// that were loaded into others', unless the contest can go on with them.
///
/// # Errors
/// When the record cannot be written or a server cannot be stopped.
pub fn close(
    setting: &Setting<'_>,
    mut arena: Arena,
    journal: &mut Journal,
    reason: EndReason,
) -> Result<()> {
    arena.wake_all()?;
    let is_over = matches!(reason, EndReason::Decided | EndReason::BudgetSpent);
    for mut stand in arena.into_stands() {
        setting
            .console
            .stage(&format!("{}: reading its counters", stand.name));
        let mut connection =
            stand.connect(Duration::from_secs_f64(setting.plan.limits.statement_s))?;
        keep(
            journal.writer(),
            &stand.name,
            &mut connection,
            Moment::After,
        )?;
        drop(connection);
        let before = journal::size_before(setting.record, &stand.name);
        keep_size(journal, &mut stand, before)?;
        if is_over && !setting.keep && was_loaded_by_us(setting, &stand)? {
            let workload = workloads::find(&setting.plan.workload.name)?;
            dataset::clear(setting.plan, workload, &mut stand, setting.console)?;
        }
        leave(setting, stand, journal, is_over)?;
    }
    Ok(())
}

/// True for a server that is not ours and whose tables this run has loaded.
fn was_loaded_by_us(setting: &Setting<'_>, stand: &Stand) -> Result<bool> {
    let record = Record::open(setting.record)?;
    let is_loaded = record.events.iter().any(|event| {
        matches!(&event.what, Event::DatasetReady { contender, restored: false, .. } if *contender == stand.name)
    });
    Ok(is_loaded && matches!(stand.place, Place::Elsewhere { .. }))
}

/// Keeps the size of a private data directory: the first time as `before`, later as `after`.
///
/// # Errors
/// When the directory cannot be read or the record cannot be written.
pub fn keep_size(journal: &Journal, stand: &mut Stand, before: Option<Size>) -> Result<()> {
    let Place::Private(private) = &stand.place else {
        return Ok(());
    };
    let now = tree_size(&private.sandbox.data())?;
    let mut size = before.unwrap_or(Size {
        before_bytes: now.apparent_bytes,
        before_allocated_bytes: now.allocated_bytes,
        ..Size::default()
    });
    size.after_bytes = now.apparent_bytes;
    size.after_allocated_bytes = now.allocated_bytes;
    journal
        .writer()
        .contender_json(&stand.name, "size.json", &size)?;
    Ok(())
}

/// Stops a server of ours and keeps its log.
fn leave(setting: &Setting<'_>, stand: Stand, journal: &Journal, is_over: bool) -> Result<()> {
    let Place::Private(private) = stand.place else {
        return Ok(());
    };
    setting.console.stage(&format!("{}: stopping", stand.name));
    let super::arena::Private { sandbox, server } = *private;
    if let Some(server) = server {
        server.stop(Duration::from_secs_f64(setting.plan.limits.server_stop_s))?;
    }
    let log = std::fs::read(sandbox.log()).unwrap_or_default();
    journal
        .writer()
        .contender_file(&stand.name, "server.log", &log)?;
    if is_over && !setting.keep {
        sandbox.remove()?;
    }
    Ok(())
}
