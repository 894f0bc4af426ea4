//! Budget used by a record, in total and in its extensions, and whether any is left to use.
//!
//! Load counts: warm-ups, guards, slices and rounds of the continuity check, including lost ones. Work that a killed
//! process had begun and not recorded is not counted.

use std::collections::{BTreeMap, BTreeSet};

use crate::Record;
use crate::event::{EndReason, Event, SliceId, Stamped};
use crate::plan::Block;
use crate::rows::ALL_CLASSES;

/// Extensions of a record beyond its plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extensions {
    /// Number of extensions.
    pub count: usize,
    /// Load since the first extension, seconds.
    pub used_s: f64,
    /// Complete blocks begun since.
    pub blocks: usize,
}

impl Record {
    /// True when nothing more is to be measured: the run that began last ended by a decision or its budget.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let mut events = self.events.iter().rev();
        let last = events.find_map(|event| match event.what {
            Event::Ended { reason } => Some(Some(reason)),
            Event::Started { .. } | Event::Extended { .. } => Some(None),
            _ => None,
        });
        match last.flatten() {
            Some(EndReason::Decided | EndReason::BudgetSpent) => true,
            Some(EndReason::Interrupted | EndReason::Failed) | None => false,
        }
    }

    /// Seconds of load that were used of the budget.
    #[must_use]
    pub fn used_s(&self) -> f64 {
        used_in_s(self, &self.events)
    }

    /// The extensions; `None` without any.
    #[must_use]
    pub fn extensions(&self) -> Option<Extensions> {
        let is_one = |event: &&Stamped| matches!(event.what, Event::Extended { .. });
        let first = self.events.iter().position(|event| is_one(&event))?;
        let since = &self.events[first..];
        let finished = since.iter().filter_map(|event| match event.what {
            Event::SliceFinished { slice, .. } => Some(slice),
            _ => None,
        });
        let finished: BTreeSet<SliceId> = finished.collect();
        // No block is begun twice, so one with all its slices here was begun here.
        let is_complete = |block: &&Block| {
            let mut positions = (0..).take(block.order.len());
            positions.all(|position| {
                finished.contains(&SliceId {
                    block: block.id,
                    position,
                })
            })
        };
        Some(Extensions {
            count: since.iter().filter(is_one).count(),
            used_s: used_in_s(self, since),
            blocks: self.plan.blocks.iter().filter(is_complete).count(),
        })
    }
}

/// Seconds of load in these entries of the record's journal.
fn used_in_s(record: &Record, events: &[Stamped]) -> f64 {
    let totals = record.slices.iter().filter(|row| row.class == ALL_CLASSES);
    let slice_s: BTreeMap<SliceId, f64> = totals
        .map(|row| (row.slice(), row.guard_s + row.measured_s))
        .collect();
    let seconds = events.iter().map(|event| match &event.what {
        Event::WarmedUp { seconds, .. }
        | Event::SliceLost { seconds, .. }
        | Event::BlockAbandoned { seconds, .. } => *seconds,
        Event::TurnsChosen { choice, .. } => choice.seconds,
        Event::ContinuityRound(round) => round.seconds,
        Event::SliceFinished { slice, .. } => slice_s.get(slice).copied().unwrap_or(0.0),
        _ => 0.0,
    });
    seconds.sum()
}
