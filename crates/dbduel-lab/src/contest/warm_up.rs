//! Warm-up: each contender runs under full load until its throughput is steady or the cap ends it.
//!
//! Of the levels of one workload only the heaviest is warmed up. Whether the others settle in their own slices is for
//! the judge to report, from the course of every cell. The workloads of a suite are warmed up phase by phase.

use std::ops::ControlFlow;

use anyhow::{Context as _, Result, bail};
use dbduel_load::order::{SliceAnswer, SliceOrder, Tick};
use dbduel_machine::interrupt;
use dbduel_record::Plan;
use dbduel_record::event::Event;
use dbduel_record::plan::Arrival;
use dbduel_record::seed::named_seed;
use dbduel_stats::steady::{SteadyDetector, SteadyRule, SteadyState};
use dbduel_workloads::Workload;

use super::Contest;
use super::backend::Health;
use super::board::Phase;
use super::events::ContestEvent;
use super::phases::warm_up_s;
use super::pilot::{self, SteadySeries};
use crate::drive::SliceEnd;

/// Limit of recorded steps of a warm-up.
const STEPS_MAX: usize = 120;

impl Contest<'_, '_> {
    /// Warms up every contender in turn, unless the phases of a suite do.
    ///
    /// # Errors
    /// When a contender cannot be recovered, or the user interrupts.
    pub fn warm_up(&mut self) -> Result<()> {
        match self.config.plan.suite {
            Some(_) => Ok(()),
            None => self.warm_up_all(),
        }
    }

    /// Warms up every contender in turn.
    ///
    /// # Errors
    /// When a contender cannot be recovered, or the user interrupts.
    pub fn warm_up_all(&mut self) -> Result<()> {
        for contender in 0..self.config.plan.contenders.len() {
            if let Err(error) = self.warm_up_one(contender) {
                // Its tables are no longer those of the others.
                if self.is_trace()? {
                    return Err(error);
                }
                self.allow_failure(contender, error)?;
                self.recover(contender, true)?;
            }
        }
        self.note_warmed_up();
        self.arena.freeze_active().map(drop)
    }

    /// Warms up one contender.
    ///
    /// # Errors
    /// When it cannot be loaded, or the user interrupts; an interrupted warm-up leaves no trace.
    pub fn warm_up_one(&mut self, contender: usize) -> Result<()> {
        let levels = self.progress.warmed.clone();
        levels
            .into_iter()
            .try_for_each(|level| self.warm_up_at(contender, level))
    }

    /// Loads one contender at a level until it is steady or the cap is reached.
    fn warm_up_at(&mut self, contender: usize, index: usize) -> Result<()> {
        let (plan, used_s) = (self.plan(), self.progress.used_s);
        let level = &plan.levels[index];
        let is_suite = plan.suite.is_some();
        let name = plan.contenders[contender].name.clone();
        let epoch = self.progress.epoch;
        let stream = match is_suite {
            true => format!("warm-up/{epoch}/level/{index}"),
            false => format!("warm-up/{epoch}"),
        };
        let order = SliceOrder {
            contender: name.clone(),
            clients: level.clients,
            // The rates of a search begin low; caches fill as fast as the server lets them.
            arrival: match plan.search {
                Some(_) => Arrival::Closed { think_ms: 0.0 },
                None => level.arrival,
            },
            guard_s: 0.0,
            measured_s: warm_up_s(&plan),
            tick_s: match plan.schedule.pilot {
                Some(_) => pilot::TICK_S,
                None => plan.schedule.tick_s,
            },
            drain_s: plan.schedule.drain_s,
            until_halted: false,
            quantum: self.next_quantum(contender, index)?,
            seed: named_seed(plan.seed, &stream),
        };
        let seed = order.seed;
        let mut detector =
            SteadyDetector::new(rule(&plan)).context("the warm-up rule is not usable")?;
        let workload = workload_at(&plan, index)?;
        let parameters = &plan
            .workload_at(index, &plan.contenders[contender])
            .parameters;
        let has_fixed_work = workload.has_fixed_work(parameters);
        let is_equally_long = workload.depends_on_past_work(parameters);
        let mut ticks_per_s = Vec::new();
        let mut step = Tick::default();
        let mut transient = 0;
        let at = match is_suite {
            true => format!(", {}", level.label()),
            false => String::new(),
        };
        interrupt::check()?;
        self.arena.activate(contender)?;
        self.keep_statements(contender, index)?;
        self.arena
            .connect_at(&plan, &mut *self.load, contender, index)?;
        self.config
            .emit(&ContestEvent::PhaseBegun(Phase::WarmingUp));
        let config = &self.config;
        let end = self.load.slice(order, &mut |_| {}, &mut |tick: &Tick| {
            step.length_s += tick.length_s;
            step.ok += tick.ok;
            if step.length_s < 0.99 * plan.schedule.tick_s {
                return ControlFlow::Continue(());
            }
            let whole = std::mem::take(&mut step);
            let done_s = used_s + tick.offset_s + tick.length_s;
            config.emit(&ContestEvent::Tick {
                contender,
                level: index,
                tick: &whole,
                used_s: done_s,
                message: &format!("warming up {name}{at}: {}", rate(&whole)),
            });
            let per_s = whole.ok as f64 / whole.length_s.max(f64::EPSILON);
            ticks_per_s.push(per_s);
            match detector.push(per_s) {
                Ok(SteadyState::Steady {
                    transient: steps, ..
                }) => {
                    transient = steps;
                    match is_equally_long {
                        true => ControlFlow::Continue(()),
                        false => ControlFlow::Break(()),
                    }
                }
                _ if interrupt::check().is_err() => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        self.journal.commits(&name, self.load.take_commits())?;
        interrupt::check()?;
        let answer = match (end, self.arena.health(contender)) {
            (SliceEnd::Finished(answer), Health::Alive) => answer,
            (SliceEnd::Finished(_), Health::Dead { how: why })
            | (SliceEnd::Lost { why, .. }, _) => {
                bail!(
                    "`{name}` failed during its warm-up: {why}{}",
                    self.arena.log_hint(contender)
                )
            }
        };
        if has_fixed_work && !answer.is_finished {
            bail!(
                "`{name}` did not finish the work of a slice in its warm-up of {:.0} s; raise `warm_up` in [schedule]",
                answer.measured_s
            );
        }
        self.note_finished(contender);
        self.progress.draws.add(seed, &answer.ticks);
        let seconds = answer.measured_s;
        let steady = matches!(detector.state(), SteadyState::Steady { .. });
        self.keep_warm(index, contender, &answer, transient);
        self.journal.event(Event::WarmedUp {
            contender: name,
            seconds,
            steady,
            steps_per_s: in_steps(&ticks_per_s),
            level: is_suite.then_some(index),
        })?;
        self.progress.quanta_run[contender] += 1;
        self.progress.used_s += seconds;
        self.progress.warmed_s += seconds;
        Ok(())
    }
}

impl Contest<'_, '_> {
    /// Keeps the part of a warm-up after its transient for the pilot; of a warm-up without a shown steady state its
    /// last half.
    fn keep_warm(
        &mut self,
        level: usize,
        contender: usize,
        answer: &SliceAnswer,
        transient_steps: usize,
    ) {
        let ticks_of_a_step = self.config.plan.schedule.tick_s / pilot::TICK_S;
        let transient = match transient_steps {
            0 => answer.ticks.len() / 2,
            steps => (steps as f64 * ticks_of_a_step) as usize,
        };
        let clients = self.config.plan.levels[level].clients;
        let series = SteadySeries::of(level, contender, clients, answer, transient);
        self.warm.retain(|warm| warm.contender != contender);
        self.warm.push(series);
    }
}

/// The workload of a level.
pub(super) fn workload_at(plan: &Plan, level: usize) -> Result<&'static dyn Workload> {
    Ok(dbduel_workloads::find(&plan.workload_of_level(level).name)?)
}

/// The detector's rule in ticks of the plan.
fn rule(plan: &Plan) -> SteadyRule {
    let ticks = |seconds: f64| (seconds / plan.schedule.tick_s).round().max(1.0) as usize;
    let defaults = SteadyRule::default();
    let hold = ticks(plan.schedule.warm_up_hold_s).min(ticks(0.6 * warm_up_s(plan)));
    SteadyRule {
        first_look: ticks(defaults.first_look as f64).min(hold),
        look_every: ticks(plan.schedule.tick_s * 5.0),
        hold,
        // A hold shorter than the default cannot promise more cycles than fit into it.
        period_fallback: ticks(defaults.period_fallback as f64)
            .min(hold / defaults.hold_cycles.max(1))
            .max(1),
        limit: ticks(warm_up_s(plan)),
        ..defaults
    }
}

/// The throughput of ticks, merged into at most [`STEPS_MAX`] steps to keep the line of the journal readable.
fn in_steps(ticks_per_s: &[f64]) -> Vec<f64> {
    let merged = ticks_per_s.len().div_ceil(STEPS_MAX).max(1);
    let mean = |chunk: &[f64]| (chunk.iter().sum::<f64>() / chunk.len() as f64).round();
    ticks_per_s.chunks(merged).map(mean).collect()
}

/// Throughput of a tick, for display.
pub fn rate(tick: &Tick) -> String {
    format!(
        "{:.0} transactions/s",
        tick.ok as f64 / tick.length_s.max(f64::EPSILON)
    )
}
