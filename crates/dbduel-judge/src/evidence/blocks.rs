//! Which slices count: the rows of a record, sorted into mirrored blocks.
//!
//! A block counts when each of its slices is in the record and all of them come from one epoch, since a pair that
//! straddles a restart compares two different sets of instances.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_record::Plan;
use dbduel_record::event::SliceId;
use dbduel_record::plan::Block;
use dbduel_record::rows::{ALL_CLASSES, SliceRow};

#[derive(Debug, Clone)]
pub struct LevelBlocks<'a> {
    /// Blocks that count, in the order of the plan.
    pub complete: Vec<CompleteBlock<'a>>,
    /// Blocks that were begun and do not count.
    pub incomplete: Vec<&'a Block>,
}

/// A block with all its slices.
#[derive(Debug, Clone)]
pub struct CompleteBlock<'a> {
    /// The block as planned.
    pub block: &'a Block,
    /// One row per position, all classes together.
    pub rows: Vec<&'a SliceRow>,
}

impl<'a> CompleteBlock<'a> {
    /// The slices of one contender, two in a mirrored block.
    pub fn slices_of(&self, contender: usize) -> impl Iterator<Item = &'a SliceRow> {
        let positions = self.block.order.iter().zip(&self.rows);
        positions
            .filter(move |(who, _)| **who == contender)
            .map(|(_, row)| *row)
    }
}

impl<'a> LevelBlocks<'a> {
    /// Sorts `rows` into the blocks of `level`.
    ///
    /// A block counts only with all its slices, from one epoch; a block is never begun twice.
    #[must_use]
    pub fn sort(plan: &'a Plan, rows: &'a [SliceRow], level: usize) -> Self {
        let by_slice: BTreeMap<SliceId, &SliceRow> = rows
            .iter()
            .filter(|row| {
                row.class == ALL_CLASSES && row.measured_s > 0.0 && row.measured_s.is_finite()
            })
            .map(|row| {
                (
                    SliceId {
                        block: row.block,
                        position: row.position,
                    },
                    row,
                )
            })
            .collect();
        let mut sorted = Self {
            complete: Vec::new(),
            incomplete: Vec::new(),
        };
        for block in plan.blocks.iter().filter(|block| block.level == level) {
            let positions = 0..block.order.len();
            let found: Vec<&SliceRow> = positions
                .filter_map(|position| {
                    by_slice
                        .get(&SliceId {
                            block: block.id,
                            position: position as u32,
                        })
                        .copied()
                })
                .collect();
            let is_one_epoch = found.windows(2).all(|pair| pair[0].epoch == pair[1].epoch);
            if found.len() == block.order.len() && is_one_epoch {
                sorted.complete.push(CompleteBlock { block, rows: found });
            } else if !found.is_empty() {
                sorted.incomplete.push(block);
            }
        }
        sorted
    }

    /// Adds to the blocks that do not count those of `level` that were begun and have no rows.
    pub fn leave_out(&mut self, plan: &'a Plan, begun: &BTreeSet<u32>, level: usize) {
        let counted = self.complete.iter().map(|complete| complete.block.id);
        let known: BTreeSet<u32> = counted
            .chain(self.incomplete.iter().map(|block| block.id))
            .collect();
        let of_level = plan.blocks.iter().filter(|block| block.level == level);
        self.incomplete.extend(
            of_level.filter(|block| begun.contains(&block.id) && !known.contains(&block.id)),
        );
    }

    /// All counted slices of one contender, in the order of the plan.
    pub fn slices_of(&self, contender: usize) -> impl Iterator<Item = &'a SliceRow> + '_ {
        self.complete
            .iter()
            .flat_map(move |block| block.slices_of(contender))
    }
}
