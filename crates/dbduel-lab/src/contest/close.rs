//! End of a contest: final counters, sizes, and a clean shutdown of the servers.

use std::time::Duration;

use anyhow::Result;
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_record::captured::is_trace;
use dbduel_record::event::{EndReason, Event, Notice, Severity};
use dbduel_record::facts::Size;
use dbduel_record::{Plan, Record};
use dbduel_text::counts;
use dbduel_workloads::fill::Digest;

use super::arena::Arena;
use super::backend::{ContenderServer, Health};
use super::journal::Journal;
use super::{ContestConfig, conditions, durability, journal};
use crate::server_host::ServerHostMissing;
use crate::{coverage, dataset};
use dbduel_inspect::facts::{Moment, keep};

/// Wakes one server after the other, records its final counters, stops it when it is ours, and removes its sandbox, or
/// the tables that were loaded into a server that is not ours, unless the contest can be resumed with them. `reason` is
/// why the contest ended; `None` when it failed.
///
/// A server that no longer answers does not keep the others from a clean shutdown. On a second interrupt, servers are
/// killed as the arena is dropped; they recover when the contest is resumed.
///
/// # Errors
/// When the record cannot be written or a server cannot be stopped.
pub fn close(
    config: &ContestConfig<'_>,
    mut arena: Arena,
    journal: &mut Journal<'_>,
    reason: Option<EndReason>,
) -> Result<()> {
    if interrupt::urgency() == Urgency::Stop {
        return Ok(());
    }
    let is_over = matches!(reason, Some(EndReason::Decided | EndReason::BudgetSpent));
    for contender in 0..config.plan.contenders.len() {
        if let Health::Dead { how } = arena.health(contender) {
            let contender = config.plan.contenders[contender].name.clone();
            journal.event(Event::ServerDied { contender, how })?;
        }
    }
    let workload = dbduel_workloads::find(&config.plan.workload.name)?;
    let has_equal_rows = is_over
        && workload.depends_on_past_work(&config.plan.workload.parameters)
        && workload.has_fixed_work(&config.plan.workload.parameters);
    let mut digests = Vec::new();
    // One after another: many servers that have all waited for their processors would keep each other from answering.
    for mut resident in arena.into_residents()? {
        resident.backend.thaw()?;
        if has_equal_rows {
            let digest = dataset::digest(&config.plan, workload, &mut resident, config.console)?;
            digests.push((resident.name.clone(), digest));
        }
        config.step(&format!("{}: reading its counters", resident.name));
        if let Err(error) = final_counters(config, &mut resident, journal, is_over) {
            let claim = format!(
                "could not record or check the final state of `{}`: {error:#}",
                resident.name
            );
            let remedy = match coverage::is_captured(&config.plan) {
                true => {
                    "find the cause in the kernel log; the server's log may hold captured values and is not in the record"
                }
                false => "read its log in the record",
            };
            journal.notice(Notice::new(
                "server.no-last-words",
                Severity::Doubt,
                &[&resident.name],
                claim,
                remedy,
            ))?;
        }
        leave(config, resident, journal, is_over)?;
    }
    compare_rows(&config.plan, &digests, journal)
}

/// Journals whether contenders that have done the same work hold the same rows.
fn compare_rows(
    plan: &Plan,
    digests: &[(String, Digest)],
    journal: &mut Journal<'_>,
) -> Result<()> {
    let Some(((first, expected), others)) = digests.split_first() else {
        return Ok(());
    };
    let other = others.iter().find(|(_, digest)| digest != expected);
    let notice = match other {
        None => Notice::new(
            "server.equal-rows-after",
            Severity::Note,
            &[],
            format!(
                "After the last slice all contenders held the same {} rows (digest {}).",
                counts::of(expected.rows),
                &expected.hex[..12.min(expected.hex.len())]
            ),
            "Nothing to do.",
        ),
        // Sessions that were open together share no order, and statements may read the clock.
        Some((name, digest)) if is_trace(&plan.workload.parameters) => Notice::new(
            "server.different-rows-after",
            Severity::Note,
            &[first.as_str(), name.as_str()],
            format!(
                "After the last quantum `{first}` held {} rows and `{name}` {}, with different digests: sessions that are open together \
                 share no order, and statements may read the clock.",
                counts::of(expected.rows),
                counts::of(digest.rows)
            ),
            "Compare the numbers of failed transactions of the contenders: they show whether the work was the same.",
        ),
        Some((name, digest)) => Notice::new(
            "server.different-rows-after",
            Severity::Doubt,
            &[first.as_str(), name.as_str()],
            format!(
                "After the last slice `{first}` held {} rows and `{name}` {}, with different digests, so their slices were not \
                 the same work.",
                counts::of(expected.rows),
                counts::of(digest.rows)
            ),
            "Look for failed transactions in the record, and run the experiment again.",
        ),
    };
    Ok(journal.notice(notice)?)
}

/// Records a server's final counters and sizes, checks the workload's conditions, and drops our tables from a server
/// that is not ours.
fn final_counters(
    config: &ContestConfig<'_>,
    resident: &mut ContenderServer,
    journal: &mut Journal<'_>,
    is_over: bool,
) -> Result<()> {
    let mut connection =
        resident.connect(Duration::from_secs_f64(config.plan.limits.statement_s))?;
    keep(
        journal.writer(),
        &resident.name,
        &mut connection,
        Moment::After,
    )?;
    drop(connection);
    let before = journal::size_before(config.record, &resident.name);
    keep_size(journal, resident, before)?;
    let workload = dbduel_workloads::find(&config.plan.workload.name)?;
    conditions::after(config, resident, workload, journal)?;
    let log = Record::open(config.record)?.commits_of(&resident.name);
    durability::compare_quietly(config, resident, &log, journal)?;
    if is_over && !config.keep && was_loaded_by_us(config, resident)? {
        dataset::clear(&config.plan, workload, resident, config.console)?;
    }
    Ok(())
}

/// True for a server that is not ours and whose tables this run loaded.
fn was_loaded_by_us(config: &ContestConfig<'_>, resident: &ContenderServer) -> Result<bool> {
    let record = Record::open(config.record)?;
    let is_loaded = record.events.iter().any(|event| {
        matches!(&event.what, Event::DatasetReady { contender, restored: false, .. } if *contender == resident.name)
    });
    Ok(is_loaded && !resident.backend.is_ours())
}

/// Records the size of a private data directory: the first time as `before`, later as `after`.
///
/// # Errors
/// When the directory cannot be read or the record cannot be written.
pub fn keep_size(
    journal: &Journal<'_>,
    resident: &mut ContenderServer,
    before: Option<Size>,
) -> Result<()> {
    let Some(files) = resident.backend.sizes()? else {
        return Ok(());
    };
    let now = files.total();
    let mut size = before.unwrap_or(Size {
        before_bytes: now.bytes,
        before_allocated_bytes: now.allocated_bytes,
        before_files: Some(files),
        ..Size::default()
    });
    size.after_bytes = now.bytes;
    size.after_allocated_bytes = now.allocated_bytes;
    size.after_files = Some(files);
    journal
        .writer()
        .contender_json(&resident.name, "size.json", &size)?;
    Ok(())
}

/// Stops a server of ours, keeps its log unless it may hold captured values, and removes its files unless the contest can be resumed with them.
fn leave(
    config: &ContestConfig<'_>,
    resident: ContenderServer,
    journal: &Journal<'_>,
    is_over: bool,
) -> Result<()> {
    let ContenderServer {
        name, mut backend, ..
    } = resident;
    if backend.is_started() {
        config.step(&format!("{name}: stopping"));
    }
    let left = backend.stop(&config.plan.limits).and_then(|()| {
        if !coverage::is_captured(&config.plan)
            && let Some(texts) = backend.texts()?
        {
            let writer = journal.writer();
            writer.contender_file(&name, "server.log", &texts.log)?;
        }
        match is_over && !config.keep {
            true => backend.remove(),
            false => Ok(()),
        }
    });
    match left {
        // That it said nothing at the end is in the journal, and its host ends it.
        Err(error) if error.is::<ServerHostMissing>() => Ok(()),
        left => left,
    }
}
