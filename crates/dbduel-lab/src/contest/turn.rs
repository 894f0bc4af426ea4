//! One turn: the order to the load process, the samplers around its measured part, and the answer.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::Result;
use dbduel_driver::Dialect;
use dbduel_load::order::{SliceAnswer, SliceOrder, Tick};
use dbduel_record::Verdict;
use dbduel_record::plan::Block;
use dbduel_record::seed::named_seed;

use super::events::ContestEvent;
use super::injector::InjectedTime;
use super::observers::TurnWatch;
use super::warm_up::{rate, workload_at};
use super::{ComparisonStanding, Contest, LevelStanding};
use crate::drive::SliceEnd;
use crate::observe::Observed;

/// Limit of the share of a turn in which load threads stalled within the measured time; above it the slice is lost.
const STALLED_SHARE_MAX: f64 = 0.05;
/// Limit of the share of a turn that may be left out because no load thread ran.
const LEFT_OUT_SHARE_MAX: f64 = 0.5;
/// Limit of comparisons named on the progress line; with more it shows only their number.
const NAMED_MAX: usize = 2;

/// Least suspension of the machine that is distinguishable from the time between reading two clocks.
const SUSPENDED_MIN: Duration = Duration::from_millis(100);

/// Position of a turn in its block.
#[derive(Debug, Clone, Copy)]
pub struct TurnPlace {
    /// Number of the repeat of the block's running order, from 0.
    pub repeat: u32,
    /// Position in the running order.
    pub position: usize,
    /// True when samplers watch it.
    pub is_watched: bool,
}

/// Result of a turn.
#[derive(Debug)]
pub struct Turn {
    pub answer: SliceAnswer,
    /// Load before the measured part, seconds.
    pub guard_s: f64,
    /// Time excluded from the measured part because no load thread ran, seconds.
    pub left_out_s: f64,
    /// Readings of the samplers; empty when the turn was not watched.
    pub observed: Observed,
    /// Time stopped by injection; absent without one.
    pub injected: Option<InjectedTime>,
}

/// How a turn ended.
pub enum Outcome {
    Finished(Box<Turn>),
    /// Lost because of the server; the reason.
    Lost(String),
    /// Unusable because the load process or a machine stalled, or the work of the slice was not done; the reason.
    /// Clients are still connected.
    Stalled(String),
}

impl Contest<'_, '_> {
    /// Resumes the handicap of a contender where the plan gives it one.
    pub(super) fn resume_injection(&mut self, contender: usize) -> Result<()> {
        let plan = self.plan();
        let injection = plan.injection.as_ref();
        match injection.filter(|injection| injection.contender == contender) {
            Some(injection) => {
                let resident = &mut self.arena.resident(contender).backend;
                resident.resume_injection(injection, plan.seed)
            }
            None => Ok(()),
        }
    }

    /// Pauses the handicap and leaves the server awake; `None` without one.
    pub(super) fn pause_injection(&mut self, contender: usize) -> Option<InjectedTime> {
        let injection = self.config.plan.injection.as_ref()?;
        let resident = &mut self.arena.resident(contender).backend;
        (injection.contender == contender).then(|| resident.pause_injection())
    }

    /// Runs a turn of `block` on the awake contender.
    ///
    /// # Errors
    /// When its samplers cannot be started.
    pub fn run_turn(
        &mut self,
        block: &Block,
        place: TurnPlace,
        decision: &LevelStanding,
    ) -> Result<Outcome> {
        let TurnPlace {
            repeat,
            position,
            is_watched,
        } = place;
        let plan = self.plan();
        let used_s = self.progress.used_s;
        let (contender, level) = (block.order[position], &plan.levels[block.level]);
        let name = &plan.contenders[contender].name;
        let guard_s = match plan.is_guarded(block, position) {
            true => plan.guard_s(block.level),
            false => 0.0,
        };
        // Both halves of a mirrored order have keys of their own, so that no contender meets its own keys again;
        // within a half every contender gets the same.
        let half = block.slices_before(position) + 2 * repeat as usize;
        let order = SliceOrder {
            contender: name.clone(),
            clients: level.clients,
            arrival: level.arrival,
            guard_s,
            measured_s: block.slice_s,
            tick_s: plan.tick_s(block.level),
            drain_s: plan.schedule.drain_s,
            until_halted: self.arena.resident(contender).backend.freezes(),
            quantum: self.next_quantum(contender, block.level)?,
            seed: named_seed(plan.seed, &format!("keys/block/{}/half/{half}", block.id)),
        };
        let seed = order.seed;
        let watch = match is_watched {
            true => {
                Some(
                    self.observers
                        .watch(&self.config, &mut self.arena, contender, &*self.load)?,
                )
            }
            false => None,
        };
        let standing = standing(decision);
        if let Err(error) = self.resume_injection(contender) {
            if let Some(watch) = watch {
                self.observers.end(contender, watch);
            }
            return Ok(Outcome::Lost(format!("{error:#}")));
        }
        let suspended = self.journal.clock().suspended();
        let length = Duration::from_secs_f64(block.slice_s);
        let mut on_begin = |opens: Instant| {
            if let Some(watch) = &watch {
                watch.measure(opens..opens + length);
            }
        };
        let config = &self.config;
        let end = self.load.slice(order, &mut on_begin, &mut |tick: &Tick| {
            let ends_at = tick.offset_s + tick.length_s;
            let number = decision.blocks_complete + 1;
            let message = format!(
                "{}, block {number}, {name}: {}{standing}",
                level.label(),
                rate(tick)
            );
            config.emit(&ContestEvent::Tick {
                contender,
                level: block.level,
                tick,
                used_s: used_s + guard_s + ends_at,
                message: &message,
            });
            ControlFlow::Continue(())
        });
        // Ended before anything else, so that the server is awake whatever comes.
        let injected = self.pause_injection(contender);
        let suspended = self.journal.clock().suspended().saturating_sub(suspended);
        let asks_host = watch.as_ref().is_some_and(TurnWatch::asks_host);
        let observed = watch.map(|watch| self.observers.end(contender, watch));
        let mut observed = observed.unwrap_or_default();
        self.say_what_is_missing(name, &observed)?;
        let silence = self.arena.resident(contender).backend.silence(!asks_host);
        let mut answer = match (end, silence) {
            (SliceEnd::Finished(answer), None) => *answer,
            // Connections may wait for TCP to repeat packets that were lost, for as long as the break was.
            (SliceEnd::Finished(_), Some(silence)) => return Ok(Outcome::Lost(silence)),
            (SliceEnd::Lost { why, .. }, None) => return Ok(Outcome::Lost(why)),
            (SliceEnd::Lost { why, .. }, Some(silence)) => {
                return Ok(Outcome::Lost(format!("{silence}; {why}")));
            }
        };
        self.progress.draws.add(seed, &answer.ticks);
        let whole_s = answer.measured_s;
        let left_out_s = answer.leave_out_gaps();
        if let Some(why) = stall(&answer, whole_s, left_out_s, suspended) {
            let was_cut_off = answer.orchestration.as_ref();
            return Ok(match was_cut_off.is_some_and(|one| one.was_cut_off) {
                true => Outcome::Lost(why),
                false => Outcome::Stalled(why),
            });
        }
        let workload = workload_at(&plan, block.level)?;
        let parameters = &plan
            .workload_at(block.level, &plan.contenders[contender])
            .parameters;
        if workload.has_fixed_work(parameters) && !answer.is_finished {
            return Ok(Outcome::Stalled(format!(
                "its clients did not finish the work of the slice in {}; raise `slice`",
                dbduel_text::duration(answer.measured_s)
            )));
        }
        if is_watched && plan.turns.contains_key(&block.level) {
            observed.watched(answer.measured_s);
        }
        if is_watched && self.arena.resident(contender).dialect == Dialect::PostgreSql {
            observed.reported(answer.reported);
        }
        Ok(Outcome::Finished(Box::new(Turn {
            injected,
            answer,
            guard_s,
            left_out_s,
            observed,
        })))
    }
}

/// Reports that the machine was suspended, or that the load process stalled for so much of a turn of `whole_s` that the
/// turn shows nothing of the server. `left_out_s` of it is not in the answer.
fn stall(
    answer: &SliceAnswer,
    whole_s: f64,
    left_out_s: f64,
    suspended: Duration,
) -> Option<String> {
    if suspended >= SUSPENDED_MIN {
        let suspended = dbduel_text::duration(suspended.as_secs_f64());
        return Some(format!("the machine was suspended for {suspended}"));
    }
    if let Some(why) = answer
        .orchestration
        .as_ref()
        .and_then(|one| one.trouble.clone())
    {
        return Some(why);
    }
    let is_lost =
        answer.stalled_s > STALLED_SHARE_MAX * whole_s || left_out_s > LEFT_OUT_SHARE_MAX * whole_s;
    is_lost.then(|| {
        format!(
            "the load process stalled for {:.1} s of {whole_s:.1} s and sent nothing in that time",
            answer.stalled_s + left_out_s
        )
    })
}

/// Standing of the level, for the progress line.
fn standing(decision: &LevelStanding) -> String {
    let comparisons = &decision.comparisons;
    let mut text = match comparisons.len() {
        0..=NAMED_MAX => comparisons.iter().filter_map(compared).collect(),
        _ => decided("comparisons", comparisons.iter().map(|one| one.verdict)),
    };
    if !decision.effects.is_empty() {
        let effects = decision.effects.iter().copied();
        text.push_str(&decided("factors", effects));
    }
    text
}

fn compared(comparison: &ComparisonStanding) -> Option<String> {
    let (low, high) = comparison.interval?;
    let value = comparison.ratio?;
    let name = &comparison.contender;
    Some(format!(", {name} ×{value:.3} [{low:.3}, {high:.3}]"))
}

/// Number of decided verdicts among several.
fn decided(what: &str, verdicts: impl ExactSizeIterator<Item = Verdict>) -> String {
    let all = verdicts.len();
    let decided = verdicts.filter(|verdict| *verdict != Verdict::Undecided);
    format!(", {} of {all} {what} decided", decided.count())
}
