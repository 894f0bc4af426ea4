//! The search for the highest rate that meets the objective: rates are added to the plan one by one, each
//! chosen by what the ones before showed, until the judge wants no more.

use anyhow::Result;
use dbduel_experiment::expand::blocks_at_rate;
use dbduel_record::event::{EndReason, Event};
use dbduel_record::plan::Plan;

use super::load::Load;
use super::measure::Progress;
use super::stacks::no_stacks;
use super::{Contest, ContestConfig};
use crate::contest::arena::Arena;

/// Warms up and measures, the parts of the contest come back with why it ended.
pub(super) fn warm_up_and_measure(
    mut contest: Contest<'_>,
) -> (Arena, Box<dyn Load>, Result<EndReason>) {
    match contest.is_over_before_warm_up() {
        Ok(None) => {}
        Ok(Some(reason)) => return contest.taken_apart(Ok(reason)),
        Err(error) => return contest.taken_apart(Err(error)),
    }
    let chosen = contest.warm_up().and_then(|()| contest.choose_turns());
    match chosen {
        Ok(Some(longer)) => go_on(contest, &longer),
        Ok(None) => measure_and_search(contest),
        Err(error) => contest.taken_apart(Err(error)),
    }
}

/// Measures by a longer plan.
fn go_on(contest: Contest<'_>, longer: &Plan) -> (Arena, Box<dyn Load>, Result<EndReason>) {
    let config = ContestConfig {
        plan: longer,
        ..*contest.config
    };
    // As deep as there are rates, which the plan bounds.
    measure_and_search(Contest {
        config: &config,
        ..contest
    })
}

/// Measures the levels of the plan, and then one further rate after the other.
fn measure_and_search(mut contest: Contest<'_>) -> (Arena, Box<dyn Load>, Result<EndReason>) {
    let result = contest.measure();
    let next = match result {
        Ok(EndReason::Decided) => contest.next(),
        other => return contest.finished(other),
    };
    let longer = match next {
        Ok(Some(longer)) => longer,
        Ok(None) => return contest.finished(Ok(EndReason::Decided)),
        Err(error) => return contest.taken_apart(Err(error)),
    };
    go_on(contest, &longer)
}

impl Contest<'_> {
    /// The plan with the next rate; nothing when none is wanted or the plan searches for none.
    fn next(&mut self) -> Result<Option<Plan>> {
        let plan = self.config.plan;
        let Progress { rows, late, .. } = &self.progress;
        let Some(rate) = self.referee.next_rate(plan, rows, late) else {
            return Ok(None);
        };
        let (level, blocks) = blocks_at_rate(plan, rate);
        self.journal.event(Event::RateAdded {
            level: level.clone(),
            blocks: blocks.clone(),
        })?;
        let mut longer = plan.clone();
        longer.levels.push(level);
        longer.blocks.extend(blocks);
        self.config
            .console
            .say(&format!("next rate: {rate} transactions/s"));
        self.config.board.plan_grew(&longer);
        Ok(Some(longer))
    }

    /// After the last slice the stacks are sampled, when that is wished for.
    fn finished(
        mut self,
        mut result: Result<EndReason>,
    ) -> (Arena, Box<dyn Load>, Result<EndReason>) {
        let is_over = matches!(result, Ok(EndReason::Decided | EndReason::BudgetSpent));
        if self.config.stacks
            && is_over
            && let Err(error) = self.sample_stacks()
        {
            // What was measured stands without them.
            let noticed = self.journal.notice(no_stacks(&[], &format!("{error:#}")));
            result = noticed.map_err(Into::into).and(result);
        }
        self.taken_apart(result)
    }

    fn taken_apart(self, result: Result<EndReason>) -> (Arena, Box<dyn Load>, Result<EndReason>) {
        (self.arena, self.load, result)
    }
}
