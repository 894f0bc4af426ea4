//! Passes through a capture: which quantum of a trace each contender runs next, how much of a mix was drawn, and when the tables are
//! restored for another pass.
//!
//! A contender runs the quanta of a trace in their order, one per slice, from the first after its tables were restored. In a mirrored
//! block A B B A both therefore run one quantum and then both the next one. Clients of a mix draw every transaction once before they draw
//! one again, and a write does only once what it did when it was captured: before a block that would draw again the tables are restored
//! and warmed up. Where a warm-up draws most of the capture, passes would be warm-ups alone, so there the draws go on.

use anyhow::Result;
use dbduel_load::order::Tick;
use dbduel_record::event::{Notice, Severity};
use dbduel_record::plan::{Block, Parameters};
use dbduel_text::counts;

use super::Contest;
use super::board::Phase;
use super::events::ContestEvent;
use super::phases::Part;
use super::warm_up::workload_at;

/// Largest share of a pass that its warm-up may draw.
const WARM_UP_SHARE_MAX: f64 = 0.5;
/// Rule of the notices about draws.
const RULE: &str = "load.capture-drawn";

/// Draws from a mix since the tables were restored. Contenders begin each half of a block after the furthest draw of any, so the furthest
/// counts.
#[derive(Debug, Default)]
pub(super) struct DrawCount {
    /// Draws before the slices that have this seed.
    before: u64,
    seed: u64,
    /// Most draws of one of these slices.
    most: u64,
    /// Draws of the warm-up.
    warm_up: u64,
    /// Most draws per second of a slice.
    per_s: f64,
    /// What was said about draws: that tables are restored, that they are not.
    said: [bool; 2],
}

/// What a mix has for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Supply {
    /// It draws nothing again.
    Enough,
    /// It draws again, unless the tables are restored first.
    Exhausted,
    /// It draws again, and a warm-up would leave too little of another pass.
    TooSmall,
}

impl DrawCount {
    /// Counts the draws of a slice, guard included.
    pub(super) fn add(&mut self, seed: u64, ticks: &[Tick]) {
        let drawn = ticks.iter().map(|tick| tick.ok + tick.failed).sum();
        let length_s: f64 = ticks.iter().map(|tick| tick.length_s).sum();
        if seed != self.seed {
            self.before = self.total();
            (self.seed, self.most) = (seed, 0);
        }
        self.most = self.most.max(drawn);
        if length_s > 0.0 {
            self.per_s = self.per_s.max(drawn as f64 / length_s);
        }
    }

    fn total(&self) -> u64 {
        self.before + self.most
    }

    /// What slices of `load_s` in all, one after the other on one contender, need of a pass of `all` draws.
    fn supply(&self, all: u64, load_s: f64) -> Supply {
        let needed = self.per_s * load_s;
        let all = all as f64;
        if self.total() as f64 + needed <= all {
            return Supply::Enough;
        }
        let warm_up = self.warm_up as f64;
        match warm_up <= WARM_UP_SHARE_MAX * all && warm_up + needed <= all {
            true => Supply::Exhausted,
            false => Supply::TooSmall,
        }
    }
}

impl Contest<'_, '_> {
    /// Number of the quantum that a contender runs next; `None` where the workload of the level is no trace.
    pub(super) fn next_quantum(&self, contender: usize, level: usize) -> Result<Option<u32>> {
        let run = self.progress.quanta_run[contender];
        Ok(self.quanta(contender, level)?.map(|_| run))
    }

    /// True where the workload is a trace, whose tables are restored for every pass.
    pub(super) fn is_trace(&self) -> Result<bool> {
        Ok(self.quanta(0, 0)?.is_some())
    }

    /// Begins another pass on restored tables where a block needs one. Returns false when the budget has no time for it.
    ///
    /// # Errors
    /// When a contender cannot be recovered, or the user interrupts.
    pub(super) fn begin_pass_for(&mut self, part: &Part, block: &Block) -> Result<bool> {
        let has_time = self.has_time_for_a_pass(part, block);
        if !self.needs_pass(block, has_time)? {
            return Ok(true);
        }
        if has_time {
            self.begin_epoch(true)?;
            self.config
                .emit(&ContestEvent::PhaseBegun(Phase::Measuring));
        }
        Ok(has_time)
    }

    /// True when a block needs restored tables.
    fn needs_pass(&mut self, block: &Block, has_time: bool) -> Result<bool> {
        if !self.has_quanta_for(block)? {
            return Ok(true);
        }
        let Some(all) = self.draws_per_pass(block)? else {
            return Ok(false);
        };
        let plan = &self.config.plan;
        let turn_s = block.slice_s + plan.guard_s(block.level);
        let slices = block.order.first().map_or(0, |one| slices_of(block, *one));
        // Planned restarts have their own blocks, and cells of a suite their own tables.
        let is_planned = plan.schedule.epochs.is_some() || plan.suite.is_some();
        // A contest that has blocks ends early rather than with repeated writes.
        let may_end = has_time || !self.progress.in_epoch.is_empty();
        let supply = self.progress.draws.supply(all, turn_s * slices as f64);
        let restores = match supply {
            Supply::Enough => return Ok(false),
            Supply::Exhausted => may_end && !is_planned,
            Supply::TooSmall => false,
        };
        if has_time || !restores {
            self.note_drawn(all, restores)?;
        }
        Ok(restores)
    }

    /// How much clients draw at a block's level before they draw again.
    fn draws_per_pass(&self, block: &Block) -> Result<Option<u64>> {
        let Some(&first) = block.order.first() else {
            return Ok(None);
        };
        let workload = workload_at(&self.config.plan, block.level)?;
        Ok(workload.draws_per_pass(&self.parameters_at(first, block.level)))
    }

    /// True when no contender reaches the end of its trace in a block.
    fn has_quanta_for(&self, block: &Block) -> Result<bool> {
        for &contender in &block.order {
            let needed = slices_of(block, contender);
            let run = u64::from(self.progress.quanta_run[contender]);
            let quanta = self.quanta(contender, block.level)?;
            if quanta.is_some_and(|quanta| run + needed > u64::from(quanta)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Journals once that all transactions were drawn, and what follows.
    fn note_drawn(&mut self, all: u64, restores: bool) -> Result<()> {
        let said = &mut self.progress.draws.said[usize::from(restores)];
        if std::mem::replace(said, true) {
            return Ok(());
        }
        let all = counts::of(all);
        let notice = match restores {
            true => Notice::new(
                RULE,
                Severity::Note,
                &[],
                format!(
                    "Clients have drawn the whole capture ({all} draws). Whenever they have, all contenders get restored tables and are warmed up \
                     before the next block."
                ),
                "Nothing to do; with a longer capture less of the budget is warm-up.",
            ),
            false => Notice::new(
                RULE,
                Severity::Note,
                &[],
                format!(
                    "Clients have drawn the whole capture ({all} draws), and draw it again on tables that have its rows: writes find keys that \
                     exist or nothing to change."
                ),
                "Capture for a longer time, or shorten `warm_up` in [schedule]: where a warm-up draws at most half of the capture, tables \
                 are restored when all is drawn.",
            ),
        };
        Ok(self.journal.notice(notice)?)
    }

    /// The load since the tables were last restored warmed the contenders up.
    pub(super) fn note_warmed_up(&mut self) {
        let draws = &mut self.progress.draws;
        draws.warm_up = draws.total();
    }

    /// The tables of all contenders were restored.
    pub(super) fn note_restored(&mut self) {
        self.progress.quanta_run.fill(0);
        let DrawCount { per_s, said, .. } = self.progress.draws;
        self.progress.draws = DrawCount {
            per_s,
            said,
            ..DrawCount::default()
        };
    }

    /// True when the budget has time for the warm-ups of another pass and for a block after them.
    fn has_time_for_a_pass(&self, part: &Part, block: &Block) -> bool {
        let plan = self.plan();
        let left_s = plan.schedule.budget_s - part.reserved_s - self.progress.used_s;
        self.progress.warmed_s + self.expected_load_s(block) <= left_s
    }

    /// Quanta of a contender's trace.
    fn quanta(&self, contender: usize, level: usize) -> Result<Option<u32>> {
        let workload = workload_at(&self.config.plan, level)?;
        Ok(workload.quanta(&self.parameters_at(contender, level)))
    }

    /// Parameters of a contender's workload at a level.
    pub(super) fn parameters_at(&self, contender: usize, level: usize) -> Parameters {
        let plan = &self.config.plan;
        plan.workload_at(level, &plan.contenders[contender])
            .parameters
    }
}

/// Slices of a contender in a block, those of its repeats apart.
fn slices_of(block: &Block, contender: usize) -> u64 {
    let slices = block.order.iter().filter(|other| **other == contender);
    slices.count() as u64 * u64::from(block.repeats)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ticks of a slice of a second with so many draws.
    fn ticks(drawn: u64) -> [Tick; 2] {
        let tick = Tick {
            length_s: 0.5,
            failed: drawn / 4,
            ..Tick::default()
        };
        let ok = drawn - 2 * tick.failed;
        [Tick { ok, ..tick }, tick]
    }

    #[test]
    fn the_furthest_contender_of_each_half_counts() {
        let mut draws = DrawCount::default();
        for (seed, drawn) in [(1, 100), (1, 300), (2, 200), (2, 250), (3, 50)] {
            draws.add(seed, &ticks(drawn));
        }
        assert_eq!(draws.total(), 300 + 250 + 50);
        assert!((draws.per_s - 300.0).abs() < 1e-9, "{draws:?}");
    }

    #[test]
    fn a_pass_is_for_blocks_and_not_for_warm_ups() {
        let mut draws = DrawCount::default();
        draws.add(1, &ticks(400));
        draws.warm_up = draws.total();
        // Two slices of a second may draw 800.
        assert_eq!(draws.supply(1_200, 2.0), Supply::Enough);
        assert_eq!(draws.supply(1_199, 2.0), Supply::TooSmall);
        draws.add(2, &ticks(400));
        assert_eq!(draws.supply(1_599, 2.0), Supply::Exhausted);
        // A warm-up draws more than half of it.
        assert_eq!(draws.supply(799, 0.5), Supply::TooSmall);
        assert_eq!(draws.supply(800, 0.5), Supply::Exhausted);
        assert_eq!(draws.supply(1_000, 0.5), Supply::Enough);
    }
}
