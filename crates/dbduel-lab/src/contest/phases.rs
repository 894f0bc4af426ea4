//! The phases of a suite: which workloads run in each, and how servers change state between them.
//!
//! Reads of fresh tables come first, then changes, then reads after the changes. Where all reads are decided before the
//! budget is spent, undecided changes run again. Changes of the number of rows come last, with a reserved time. A
//! contest of one workload has one part with all its levels.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_experiment::expand::load_s;
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_record::event::{EndReason, Event};
use dbduel_record::plan::SuitePhase;
use dbduel_record::{Plan, Record};
use dbduel_workloads::fill;

use super::board::Phase;
use super::events::ContestEvent;
use super::{Contest, LevelStanding};
use crate::dataset;

/// The phases as they follow each other.
const ORDER: [SuitePhase; 5] = [
    SuitePhase::Fresh,
    SuitePhase::Write,
    SuitePhase::Read,
    SuitePhase::Write,
    SuitePhase::Last,
];
/// Interval at which waits check for an interrupt.
const LOOK: Duration = Duration::from_millis(100);

/// A part of the contest: the levels that take turns in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Its phase; absent in a contest of one workload.
    phase: Option<SuitePhase>,
    /// Indices into `Plan::levels`.
    pub levels: Vec<usize>,
    /// Load reserved for the levels of later phases, seconds.
    pub reserved_s: f64,
}

/// The parts of a contest in order, from the one that an earlier run had reached.
pub(super) fn parts(plan: &Plan, reached: Option<SuitePhase>) -> Vec<Part> {
    if plan.suite.is_none() {
        return vec![Part {
            phase: None,
            levels: (0..plan.levels.len()).collect(),
            reserved_s: 0.0,
        }];
    }
    let phase_of = |level: usize| Some(plan.levels[level].cell.as_ref()?.phase);
    let part = |phase: SuitePhase| {
        let levels = 0..plan.levels.len();
        let later = levels
            .clone()
            .filter(|&level| phase_of(level) > Some(phase));
        Part {
            phase: Some(phase),
            levels: levels
                .filter(|&level| phase_of(level) == Some(phase))
                .collect(),
            reserved_s: later.map(|level| share_s(plan, level)).sum(),
        }
    };
    let mut parts: Vec<Part> = ORDER.map(part).into();
    // The second time all but the last phase have had their time.
    let last_s = parts[2].reserved_s;
    parts[3].reserved_s = last_s;
    let first = ORDER.iter().position(|phase| Some(*phase) == reached);
    parts.drain(..first.unwrap_or(0));
    parts.retain(|part| !part.levels.is_empty());
    parts
}

/// A level's share of the budget, seconds: its warm-ups, and all other load in proportion to its planned blocks.
fn share_s(plan: &Plan, level: usize) -> f64 {
    let promised_s = |level: usize| -> f64 {
        let own = plan.blocks.iter().filter(|block| block.level == level);
        let promised = own.take(plan.blocks_max(level) as usize);
        promised.map(|block| load_s(plan, block)).sum()
    };
    let all_s: f64 = (0..plan.levels.len()).map(promised_s).sum();
    let contenders = plan.contenders.len() as f64;
    let blocks_s = plan.schedule.budget_s - plan.schedule.warm_up_cap_s * contenders;
    let part = promised_s(level) / all_s.max(f64::EPSILON);
    blocks_s.max(0.0) * part + warm_up_s(plan) * contenders
}

/// Longest warm-up of a contender at one level, seconds.
pub(super) fn warm_up_s(plan: &Plan) -> f64 {
    let levels = match plan.suite {
        Some(_) => plan.levels.len().max(1),
        None => 1,
    };
    plan.schedule.warm_up_cap_s / levels as f64
}

/// The phase that an interrupted run of this record had reached with the data in place. A finished contest has removed
/// its data, so its extension begins with the first phase.
pub(super) fn reached(past: &Record) -> Option<SuitePhase> {
    let over = past.events.iter().rposition(|event| {
        let what = &event.what;
        matches!(
            what,
            Event::Ended {
                reason: EndReason::Decided | EndReason::BudgetSpent
            }
        )
    });
    let since = &past.events[over.map_or(0, |over| over + 1)..];
    since.iter().rev().find_map(|event| match event.what {
        Event::PhaseStarted { phase } => Some(phase),
        _ => None,
    })
}

impl Contest<'_, '_> {
    /// True when a part has an undecided level and time for one of its blocks.
    pub(super) fn has_work(&self, part: &Part, decisions: &[LevelStanding]) -> bool {
        let mut open = part.levels.iter().filter(|&&level| {
            !self.is_settled(level, &decisions[level]) && self.has_time(part, level)
        });
        open.next().is_some()
    }

    /// Prepares the servers for a part: settling time before reads that follow changes, then a warm-up at each open
    /// level. Does nothing in a contest of one workload, which is already warm.
    ///
    /// # Errors
    /// When a contender cannot be recovered, the record cannot be written, or the user interrupts.
    pub(super) fn begin_part(&mut self, part: &Part, decisions: &[LevelStanding]) -> Result<()> {
        let Some(phase) = part.phase else {
            return Ok(());
        };
        self.journal.event(Event::PhaseStarted { phase })?;
        let has_writes = || {
            let mut cells = self
                .config
                .plan
                .levels
                .iter()
                .filter_map(|level| level.cell.as_ref());
            cells.any(|cell| cell.phase == SuitePhase::Write)
        };
        if phase == SuitePhase::Read && has_writes() {
            for contender in 0..self.config.plan.contenders.len() {
                if let Err(error) = self.settle(contender) {
                    self.allow_failure(contender, error)?;
                    self.recover(contender, false)?;
                }
            }
        }
        let open: BTreeSet<usize> = part
            .levels
            .iter()
            .copied()
            .filter(|&level| !self.is_settled(level, &decisions[level]))
            .collect();
        self.progress.warmed = open.into_iter().collect();
        self.warm_up_all()?;
        self.config
            .emit(&ContestEvent::PhaseBegun(Phase::Measuring));
        Ok(())
    }

    /// Updates a server's table statistics, then leaves it without load to flush and purge after changes. Every server
    /// gets the same time.
    fn settle(&mut self, contender: usize) -> Result<()> {
        let plan = self.plan();
        let Some(suite) = plan.suite else {
            return Ok(());
        };
        let name = &plan.contenders[contender].name;
        interrupt::check()?;
        self.config.step(&format!("{name}: settling"));
        self.arena.activate(contender)?;
        let begun = clock::now();
        let mut connection = self
            .arena
            .connect(contender, Duration::from_secs_f64(plan.limits.dataset_s))?;
        let workload = dbduel_workloads::find(&plan.workload.name)?;
        for table in dataset::tables(&plan, workload, &mut connection)? {
            fill::gather_statistics(&mut connection, &table)
                .with_context(|| format!("`{name}` could not gather statistics of `{table}`"))?;
        }
        drop(connection);
        let statements_s = clock::since(begun).as_secs_f64();
        let until = clock::now() + Duration::from_secs_f64(suite.settle_s);
        loop {
            interrupt::check()?;
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                break;
            }
            clock::sleep(left.min(LOOK));
        }
        self.arena.freeze_active()?;
        self.journal.event(Event::Settled {
            contender: name.clone(),
            statements_s,
            seconds: suite.settle_s,
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::suite::suite_record;

    #[test]
    fn changes_come_before_reads_and_again_after_them_and_shares_are_kept() {
        let plan = suite_record().plan;
        let all = parts(&plan, None);
        let phases: Vec<Option<SuitePhase>> = all.iter().map(|part| part.phase).collect();
        let [write, read] = [SuitePhase::Write, SuitePhase::Read].map(Some);
        assert_eq!(phases, [write, read, write]);
        assert_eq!((&all[0].levels, &all[1].levels), (&vec![2], &vec![0, 1]));
        let shares: Vec<f64> = (0..3).map(|level| share_s(&plan, level)).collect();
        let budget_s = plan.schedule.budget_s;
        assert!((shares.iter().sum::<f64>() - budget_s).abs() < 1e-6 * budget_s);
        assert_eq!(all[0].reserved_s, shares[0] + shares[1]);
        assert_eq!((all[1].reserved_s, all[2].reserved_s), (0.0, 0.0));
        assert_eq!(parts(&plan, read).len(), 2);
    }

    #[test]
    fn a_phase_is_reached_until_the_contest_is_over() {
        let mut record = suite_record();
        let phase = SuitePhase::Read;
        record.events.push(dbduel_record::event::Stamped {
            at_ms: 0,
            what: Event::PhaseStarted { phase },
        });
        assert_eq!(reached(&record), Some(phase));
        let reason = EndReason::BudgetSpent;
        record.events.push(dbduel_record::event::Stamped {
            at_ms: 0,
            what: Event::Ended { reason },
        });
        assert_eq!(reached(&record), None);
    }
}
