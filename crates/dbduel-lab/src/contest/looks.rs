//! Looks at the whole record once the blocks of a level decide: limits of `--fail-if` and doubts about a verdict keep a
//! contest going.

use anyhow::Result;
use dbduel_record::Record;

use super::{Contest, LevelStanding};

/// Blocks between two looks, as a share of the complete blocks. A look reads the whole record; its timing does not matter
/// for limits, since the intervals hold at every moment.
const LOOK_SHARE: f64 = 0.05;

/// A look at a level.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Complete blocks that it saw.
    blocks: u32,
    has_open: bool,
}

impl Contest<'_, '_> {
    /// Looks at a level whose blocks decide, when enough blocks have come since the last look; before the end (`is_last`)
    /// any new block is enough.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(super) fn look(&mut self, decision: &LevelStanding, is_last: bool) -> Result<()> {
        if !self.has_questions() || !decision.is_settled() {
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
        let open = self.referee.open_questions(&record, level);
        if last.is_none() && !open.is_empty() {
            let label = self.config.plan.levels[level].label();
            self.config.remark(&format!(
                "{label}: the blocks decide after {blocks} of them; measuring continues: {}",
                open.join("; ")
            ));
        }
        let has_open = !open.is_empty();
        self.progress.looks.insert(level, Look { blocks, has_open });
        Ok(())
    }

    /// True when no question needs more blocks of a level.
    pub(super) fn questions_are_answered(&self, level: usize) -> bool {
        !self.has_questions()
            || (self.progress.looks.get(&level)).is_some_and(|look| !look.has_open)
    }

    /// True where a look may keep a level open. Without limits, the many cells of a suite or a search share their time by
    /// their blocks alone.
    fn has_questions(&self) -> bool {
        let plan = &self.config.plan;
        self.referee.has_limits() || (plan.suite.is_none() && plan.search.is_none())
    }
}
