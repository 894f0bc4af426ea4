//! Limits of `--fail-if`: a contest continues until these are decided, too.

use anyhow::Result;
use dbduel_record::Record;

use super::{Contest, LevelStanding};

/// Blocks between two evaluations of the limits, as a share of the complete blocks. An evaluation reads the whole
/// record; its timing does not matter, since the intervals hold at every moment.
const LOOK_SHARE: f64 = 0.05;

/// An evaluation of a level's limits.
#[derive(Debug, Clone, Copy)]
pub struct LimitLook {
    /// Complete blocks that it used.
    blocks: u32,
    has_open: bool,
}

impl Contest<'_, '_> {
    /// Evaluates the limits of a level whose verdicts are settled, when enough blocks have come since the last
    /// evaluation; before the end (`is_last`) any new block is enough.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(super) fn look_at_limits(&mut self, decision: &LevelStanding, is_last: bool) -> Result<()> {
        if !self.referee.has_limits() || !decision.is_settled() {
            return Ok(());
        }
        let (level, blocks) = (decision.level, decision.blocks_complete);
        let last = self.progress.looks.get(&level).copied();
        let is_due = last.is_none_or(|last| {
            let pause = match is_last {
                true => 1.0,
                false => (f64::from(last.blocks) * LOOK_SHARE).ceil().max(1.0),
            };
            last.has_open && f64::from(blocks) >= f64::from(last.blocks) + pause
        });
        if !is_due {
            return Ok(());
        }
        let record = Record::open(self.config.record)?;
        let open = self.referee.open_limits(&record, level);
        if last.is_none() && !open.is_empty() {
            let label = self.config.plan.levels[level].label();
            self.config.remark(&format!(
                "{label}: verdict decided after {blocks} blocks; measuring continues until the limit of {} is decided",
                open.join(" and of ")
            ));
        }
        let has_open = !open.is_empty();
        self.progress
            .looks
            .insert(level, LimitLook { blocks, has_open });
        Ok(())
    }

    /// True when no limit needs more blocks of a level.
    pub(super) fn limits_are_decided(&self, level: usize) -> bool {
        !self.referee.has_limits()
            || (self.progress.looks.get(&level)).is_some_and(|look| !look.has_open)
    }
}
