//! The search for the highest rate that meets the objective: adds rates to the plan one by one, each chosen by the
//! results of the previous ones, until the referee ends it.

use anyhow::Result;
use dbduel_experiment::expand::blocks_at_rate;
use dbduel_record::event::{EndReason, Event};

use super::Contest;
use super::measure::Progress;

impl Contest<'_, '_> {
    /// Measures the levels of the plan, and then one further rate after the other.
    ///
    /// # Errors
    /// When the contest cannot go on.
    pub(super) fn measure_and_search(&mut self) -> Result<EndReason> {
        // Each pass adds a rate, and the plan bounds their number.
        loop {
            let reason = self.measure()?;
            if reason != EndReason::Decided || !self.add_rate()? {
                return Ok(reason);
            }
        }
    }

    /// Adds the next rate to the plan; false when none is wanted or the plan searches for none.
    fn add_rate(&mut self) -> Result<bool> {
        let plan = self.plan();
        let Progress { rows, late, .. } = &self.progress;
        let Some(rate) = self.referee.next_rate(&plan, rows, late) else {
            return Ok(false);
        };
        let (level, blocks) = blocks_at_rate(&plan, rate);
        self.journal.event(Event::RateAdded {
            level: level.clone(),
            blocks: blocks.clone(),
        })?;
        self.grow_plan(|plan| {
            plan.levels.push(level);
            plan.blocks.extend(blocks);
        });
        Ok(true)
    }
}
