//! Lengthens turns while the contest runs, until transactions that outlast their turn are a small share.
//!
//! A pilot sees only what happens in its seconds. A rarer stall, such as a checkpoint, first shows in a turn, and the
//! shorter turns are, the more often a server is frozen in one. The choice ignores which contender stalls, and the
//! blocks keep their planned weights, so the error probability of the verdict does not change.

use std::collections::BTreeMap;

use anyhow::Result;
use dbduel_experiment::expand::load_s;
use dbduel_record::event::Event;
use dbduel_record::plan::Block;
use dbduel_record::rows::{ALL_CLASSES, SliceRow};
use dbduel_record::{Plan, Record};

use super::Contest;
use super::pilot::DRAINED_SHARE_MAX;

/// Blocks of one turn length before a share is computed: a single stall is no rate.
const BLOCKS_MIN: usize = 3;
/// A share that is acted on after one block: three more would take many times their planned time.
const LARGE_SHARE: f64 = 0.3;

/// Turns of a level that were made longer than planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengthened {
    /// Length as a multiple of the planned one.
    times: u32,
    /// Rows of the record with another turn length.
    before: usize,
}

/// Lengthened turns of an earlier run, by level.
pub(super) fn lengthened(past: &Record) -> BTreeMap<usize, Lengthened> {
    let chosen = past.events.iter().filter_map(|event| match event.what {
        Event::TurnsLengthened { level, times, .. } => Some((
            level,
            Lengthened {
                times: times.max(1),
                before: past.slices.len(),
            },
        )),
        _ => None,
    });
    chosen.collect()
}

impl Contest<'_, '_> {
    /// The block with turns of the present length, and proportionally fewer of them.
    pub(super) fn as_long_as_it_is(&self, block: &Block) -> Block {
        let lengthened = self.progress.lengthened.get(&block.level);
        let times = lengthened.map_or(1, |own| own.times);
        Block {
            slice_s: block.slice_s * f64::from(times),
            repeats: block.repeats.div_ceil(times),
            ..block.clone()
        }
    }

    /// Centre of the range of a level's present turn lengths, seconds.
    pub(super) fn turn_s(&self, level: usize) -> f64 {
        let plan = self.plan();
        let planned_s = match plan.turns.get(&level) {
            Some(choice) => choice.turn_s,
            None => plan.schedule.at(&plan.levels[level]).slice_s,
        };
        let lengthened = self.progress.lengthened.get(&level);
        planned_s * f64::from(lengthened.map_or(1, |own| own.times))
    }

    /// Expected load of a block with the present turn length and the level's mean drain so far, seconds.
    pub(super) fn expected_load_s(&self, block: &Block) -> f64 {
        let block = self.as_long_as_it_is(block);
        let (planned_s, measured_s) = self
            .progress
            .turns_s
            .get(&block.level)
            .copied()
            .unwrap_or_default();
        let drains = match planned_s > 0.0 {
            true => (measured_s / planned_s).max(1.0),
            false => 1.0,
        };
        load_s(&self.plan(), &block) * drains
    }

    /// Lengthens the piloted turns of a level where transactions outlast them for too large a share of a contender's
    /// time.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(super) fn lengthen_turns(&mut self, level: usize) -> Result<()> {
        let plan = self.plan();
        let Some(choice) = plan.turns.get(&level) else {
            return Ok(());
        };
        let now = self.progress.lengthened.get(&level).copied();
        let Lengthened { times, before } = now.unwrap_or(Lengthened {
            times: 1,
            before: 0,
        });
        let rows = &self.progress.rows[before.min(self.progress.rows.len())..];
        let Some(drained_share) = drained_share(&plan, rows, level) else {
            return Ok(());
        };
        let most = (plan.schedule.slice_s / choice.turn_s).floor().max(1.0) as u32;
        // What outlasts a turn does not depend on the turn's length, which its share is of with it.
        let parts = |share: f64| share / (1.0 - share).max(f64::EPSILON);
        let longer = parts(drained_share) / parts(DRAINED_SHARE_MAX);
        let wanted = (f64::from(times) * longer).ceil() as u32;
        let longer = wanted.min(most);
        if drained_share <= DRAINED_SHARE_MAX || longer <= times {
            return Ok(());
        }
        self.journal.event(Event::TurnsLengthened {
            level,
            times: longer,
            drained_share,
        })?;
        let lengthened = Lengthened {
            times: longer,
            before: self.progress.rows.len(),
        };
        self.progress.lengthened.insert(level, lengthened);
        // Longer turns drain for a smaller part of their time.
        self.progress.turns_s.remove(&level);
        Ok(())
    }
}

/// Share of the clients' time after the planned ends of turns, of the contender with the largest share; `None` with too
/// few blocks.
fn drained_share(plan: &Plan, rows: &[SliceRow], level: usize) -> Option<f64> {
    let is_of_level = |row: &&SliceRow| {
        let block = plan.blocks.get(row.block as usize);
        row.class == ALL_CLASSES && block.is_some_and(|block| block.level == level)
    };
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut blocks: Vec<u32> = Vec::new();
    for row in rows.iter().filter(is_of_level) {
        let (drained_s, measured_s) = sums.entry(&row.contender).or_default();
        *drained_s += row.drained_s.unwrap_or_default();
        *measured_s += row.measured_s;
        blocks.push(row.block);
    }
    blocks.dedup();
    let shares = sums
        .values()
        .map(|(drained_s, measured_s)| drained_s / measured_s);
    let share = shares.fold(0.0, f64::max);
    let is_enough = blocks.len() >= BLOCKS_MIN || !blocks.is_empty() && share >= LARGE_SHARE;
    is_enough.then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn the_share_is_that_of_the_contender_that_drains_longest_and_needs_some_blocks() {
        let mut record = Scenario::duel().record();
        let slow = record.plan.contenders[1].name.clone();
        for row in &mut record.slices {
            let drained = if row.contender == slow { 0.1 } else { 0.01 };
            row.drained_s = Some(drained * row.measured_s);
        }
        let level = record.plan.blocks[0].level;
        let of = |rows: &[SliceRow]| drained_share(&record.plan, rows, level);
        let share = of(&record.slices).unwrap();
        assert!((share - 0.1).abs() < 1e-9, "{share}");
        let two_blocks: Vec<SliceRow> = record
            .slices
            .iter()
            .filter(|row| row.block < 2)
            .cloned()
            .collect();
        assert_eq!(of(&two_blocks), None);
        let mut much = two_blocks;
        for row in &mut much {
            row.drained_s = Some(0.4 * row.measured_s);
        }
        assert!(of(&much).is_some_and(|share| (share - 0.4).abs() < 1e-9));
    }
}
