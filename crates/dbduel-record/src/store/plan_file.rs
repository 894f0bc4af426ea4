//! The plan of a record, with the additions in its journal.

use std::fs;
use std::path::Path;

use super::read::Complaints;
use super::{EVENTS, PLAN, RecordError};
use crate::bounds::{check_block, check_level, check_plan, check_time};
use crate::design;
use crate::event::{Event, Stamped};
use crate::foreign::{self, DOCUMENT_BYTES_MAX};
use crate::plan::{Block, LoadLevel, Plan};
use crate::record_set;
use crate::variants;

/// Why there is no plan in `dir`.
fn not_a_record(dir: &Path) -> RecordError {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return RecordError::Nowhere(dir.to_owned());
        }
        Err(source) => {
            return RecordError::File {
                action: "list",
                path: dir.to_owned(),
                source,
            };
        }
    };
    let records = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join(PLAN).is_file());
    match records.max() {
        Some(last) => RecordError::HoldsRecords {
            dir: dir.to_owned(),
            last,
        },
        None => RecordError::NotARecord(dir.to_owned()),
    }
}

/// Reads the plan of a record, without the additions in its journal.
///
/// # Errors
/// When there is none, or none that this version can read.
pub fn read_plan(dir: &Path) -> Result<Plan, RecordError> {
    let path = dir.join(PLAN);
    let malformed = |why: String| RecordError::Malformed {
        path: path.clone(),
        why,
    };
    let bytes = match foreign::read_below(dir, PLAN, DOCUMENT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(not_a_record(dir));
        }
        Err(source) => {
            return Err(RecordError::File {
                action: "read",
                path,
                source,
            });
        }
    };
    let document = serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
    let plan: Plan = record_set::of_this_format(document, dir, malformed)?;
    plan.check().map_err(malformed)?;
    Ok(plan)
}

impl Plan {
    /// Checks a plan that may come from elsewhere: numbers are within their bounds and indices are valid.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        check_plan(self)
            .and_then(|()| check_indices(self))
            .and_then(|()| design::check(self))
            .and_then(|()| variants::check(self))
    }
}

/// Applies the journal's additions to the plan. An extension that does not fit is left out.
pub(super) fn extend(plan: &mut Plan, events: &[Stamped], complaints: &mut Complaints) {
    let is_numbered = (0..).zip(&plan.blocks).all(|(id, block)| block.id == id);
    for event in events {
        let (level, budget_s, turns, blocks) = match &event.what {
            Event::Extended { budget_s, blocks } => (None, *budget_s, None, blocks),
            Event::RateAdded { level, blocks } => (Some(level), 0.0, None, blocks),
            Event::TurnsChosen {
                level,
                choice,
                blocks,
            } => (None, 0.0, Some((*level, choice)), blocks),
            _ => continue,
        };
        let chosen = turns.map(|(level, _)| level);
        let checked = match is_numbered {
            true => check_extension(plan, level, budget_s, blocks)
                .and_then(|()| check_chosen(plan, chosen, blocks)),
            false => Err("the plan's own blocks are not numbered consecutively".to_owned()),
        };
        match checked {
            Ok(()) => {
                plan.levels.extend(level.cloned());
                plan.blocks.extend(blocks.iter().cloned());
                plan.schedule.budget_s += budget_s;
                let turns = turns.map(|(level, choice)| (level, choice.clone()));
                plan.turns.extend(turns);
            }
            Err(why) => {
                let why = format!("an extension does not fit the plan: {why}");
                complaints.add(EVENTS, 0, why);
            }
        }
    }
}

/// Whether the plan can be given a level, more time and more blocks.
fn check_extension(
    plan: &Plan,
    level: Option<&LoadLevel>,
    budget_s: f64,
    blocks: &[Block],
) -> Result<(), String> {
    let is_numbered = (plan.blocks.len()..)
        .zip(blocks)
        .all(|(id, block)| block.id as usize == id);
    if !is_numbered || budget_s < 0.0 {
        return Err("its blocks are not numbered consecutively".to_owned());
    }
    check_time("budget_s", plan.schedule.budget_s + budget_s)?;
    level.map_or(Ok(()), check_level)?;
    let levels = plan.levels.len() + usize::from(level.is_some());
    for block in blocks {
        check_block(block)?;
        check_block_indices(block, levels, plan.contenders.len())?;
    }
    Ok(())
}

/// Checks that turns are chosen once, for an existing level, with blocks of that level.
fn check_chosen(plan: &Plan, level: Option<usize>, blocks: &[Block]) -> Result<(), String> {
    let Some(level) = level else { return Ok(()) };
    if level >= plan.levels.len() || plan.turns.contains_key(&level) {
        return Err(format!(
            "turns of level {level} were already chosen, or there is no such level"
        ));
    }
    match blocks.iter().all(|block| block.level == level) {
        true => Ok(()),
        false => Err(format!(
            "the turns of level {level} come with blocks of another level"
        )),
    }
}

/// Checks that every index in the plan is valid.
fn check_indices(plan: &Plan) -> Result<(), String> {
    if plan.baseline >= plan.contenders.len() {
        return Err(format!("the baseline {} is not a contender", plan.baseline));
    }
    if let Some(injection) = &plan.injection
        && injection.contender >= plan.contenders.len()
    {
        return Err(format!(
            "the injection is about contender {}, which does not exist",
            injection.contender
        ));
    }
    let (levels, contenders) = (plan.levels.len(), plan.contenders.len());
    plan.blocks
        .iter()
        .try_for_each(|block| check_block_indices(block, levels, contenders))
}

/// Checks a block's level and contenders.
fn check_block_indices(block: &Block, levels: usize, contenders: usize) -> Result<(), String> {
    if block.level >= levels {
        return Err(format!(
            "block {} is of level {}, which does not exist",
            block.id, block.level
        ));
    }
    match block
        .order
        .iter()
        .find(|&&contender| contender >= contenders)
    {
        None => Ok(()),
        Some(stranger) => Err(format!(
            "block {} names contender {stranger}, which does not exist",
            block.id
        )),
    }
}
