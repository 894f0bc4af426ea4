//! Extension of a record by more time, and which records allow it.

use std::path::Path;

use anyhow::{Result, bail};
use dbduel_experiment::expand::more_blocks;
use dbduel_record::event::Event;
use dbduel_record::{Plan, Record, RecordWriter};

use dbduel_lab::contest;

/// True when a record of this plan may be extended. The number of starts that a verdict on servers rests on is fixed
/// beforehand.
#[must_use]
pub fn may_be_extended(plan: &Plan) -> bool {
    plan.schedule.epochs.is_none()
}

/// Adds `budget_s` seconds of load to a record, and blocks that fill all the budget it then has left. The journal notes
/// this before anything runs.
///
/// # Errors
/// When its plan allows no extension, or the record cannot be written.
pub fn extend(record: &Path, budget_s: f64) -> Result<()> {
    // Locked before it is read, so that no other process numbers the same blocks.
    let mut writer = RecordWriter::open(record, contest::now_ms())?;
    let past = Record::open(record)?;
    if !may_be_extended(&past.plan) {
        bail!(
            "`{}` compares servers over a fixed number of starts, so it cannot be extended; make a \
             new record with more `epochs`",
            record.display()
        );
    }
    let left_s = past.plan.schedule.budget_s + budget_s - past.used_s();
    let blocks = more_blocks(&past.plan, &past.begun_blocks(), left_s);
    writer.event(contest::now_ms(), Event::Extended { budget_s, blocks })?;
    Ok(())
}
