//! What keeps a contest going although the blocks of a level decide: open limits of `--fail-if`, classes of captured statements with
//! too few blocks, and doubts about a verdict that only the whole record shows.

use anyhow::Result;
use dbduel_record::Record;

use super::{Contest, LevelStanding};

/// Blocks between two checks of the record, as a share of the complete blocks: a check reads all of it.
const CHECK_SHARE: f64 = 0.05;

/// What a check of the record found open at a level.
#[derive(Debug, Clone, Copy)]
pub struct OpenQuestions {
    /// Complete blocks at the check.
    blocks: u32,
    has_undecided: bool,
    has_doubts: bool,
}

impl Contest<'_, '_> {
    /// Checks the record of a level whose blocks decide, when enough blocks have come since the last check; at the end
    /// (`is_last`) wherever something was open.
    ///
    /// Limits and classes are closed by any check, since their intervals hold at every moment. A doubt is not: repeated until it is no
    /// longer significant, its test would say nothing. It lasts until the budget is spent, and is then tested once more.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(super) fn check_questions(
        &mut self,
        decision: &LevelStanding,
        is_last: bool,
    ) -> Result<()> {
        if !self.has_questions() || !decision.is_settled() {
            return Ok(());
        }
        let (level, blocks) = (decision.level, decision.blocks_complete);
        let last = self.progress.questions.get(&level).copied();
        let is_due = last.is_none_or(|last| {
            let pause = (f64::from(last.blocks) * CHECK_SHARE).ceil().max(1.0);
            let is_time = f64::from(blocks) >= f64::from(last.blocks) + pause;
            match is_last {
                true => last.has_doubts || (last.has_undecided && blocks > last.blocks),
                false => last.has_undecided && !last.has_doubts && is_time,
            }
        });
        if !is_due {
            return Ok(());
        }
        let record = Record::open(self.config.record)?;
        let undecided = self.referee.open_questions(&record, level);
        let doubts = self.referee.doubts(&record, level);
        let found = OpenQuestions {
            blocks,
            has_undecided: !undecided.is_empty(),
            has_doubts: !doubts.is_empty(),
        };
        if last.is_none() && found.are_open() {
            let label = self.config.plan.levels[level].label();
            let open: Vec<String> = undecided.into_iter().chain(doubts).collect();
            self.config.remark(&format!(
                "{label}: decided after {blocks} blocks; measuring continues: {}",
                open.join("; ")
            ));
        }
        self.progress.questions.insert(level, found);
        Ok(())
    }

    /// True when no question needs more blocks of a level.
    pub(super) fn questions_are_answered(&self, level: usize) -> bool {
        let found = self.progress.questions.get(&level);
        !self.has_questions() || found.is_some_and(|found| !found.are_open())
    }

    /// True where the record may keep a level open. Without limits, the many cells of a suite or a search share their time by
    /// their blocks alone.
    fn has_questions(&self) -> bool {
        let plan = &self.config.plan;
        self.referee.has_limits() || (plan.suite.is_none() && plan.search.is_none())
    }
}

impl OpenQuestions {
    fn are_open(self) -> bool {
        self.has_undecided || self.has_doubts
    }
}
