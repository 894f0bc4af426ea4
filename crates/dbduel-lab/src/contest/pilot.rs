//! The pilot: chooses the length of a level's turns before its first block.
//!
//! Measures two things of each contender by itself. Contenders are never compared, so the choice reveals nothing about
//! which is faster. First, how throughput scatters without switches, where blocks of every length are marked out;
//! second, how long throughput after a switch differs from its later level.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::Result;
use dbduel_experiment::expand::chosen_blocks;
use dbduel_load::order::{SliceAnswer, SliceOrder, Tick};
use dbduel_machine::interrupt;
use dbduel_record::Plan;
use dbduel_record::event::Event;
use dbduel_record::latency;
use dbduel_record::plan::{Pilot, TurnChoice, TurnLength, TurnReason};
use dbduel_record::rows::ALL_CLASSES;
use dbduel_record::seed::named_seed;
use dbduel_stats::guard::guard_length;
use dbduel_stats::median;
use dbduel_stats::slice_length::{
    BLOCKS_MIN, SliceCandidate, SliceReason, SliceRule, choose_slice_length,
};

use super::Contest;
use super::backend::Health;
use super::board::Phase;
use super::events::ContestEvent;
use super::round_trip::shortest_turn_s;
use super::warm_up::rate;
use crate::drive::SliceEnd;

/// Resolution of the series that predicts the scatter, seconds.
pub const TICK_S: f64 = 0.02;
/// Resolution for measuring the guard, seconds.
const GUARD_TICK_S: f64 = 0.01;
/// Least guard, seconds: for the first hundredths caches are cold and threads wake up, whether or not the pilot can
/// show it.
const GUARD_S_MIN: f64 = 0.03;
/// Probability of taking a window without a transient for one with a transient.
const TRANSIENT_ALPHA: f64 = 0.02;
/// Turns in which the transient after a switch is measured, seconds. The second length follows where the first was too
/// short for the transient to end.
const REHEARSED_S: [f64; 2] = [0.3, 1.5];
/// Share of the budget that the longer turns of a level may take.
const REHEARSED_SHARE_MAX: f64 = 0.1;
/// A transient that takes more than this share of a rehearsed turn may not have ended in it.
const TRANSIENT_SHARE_MAX: f64 = 0.3;
/// Least transactions per turn.
const TRANSACTIONS_MIN: f64 = 100.0;
/// Least transactions of the rarest class per turn, unless that needs turns above the limit in seconds.
const OF_RAREST_CLASS_MIN: f64 = 2.0;
const RAREST_CLASS_S_MAX: f64 = 1.0;
/// Limit of the share of client time after the planned ends of turns, in transactions that outlast them.
pub(super) const DRAINED_SHARE_MAX: f64 = 0.02;
/// Factor on the transactions that a limit needs per slice, as rates vary: one slice with too few leaves a quantile
/// unmeasured.
const SPARE: f64 = 2.0;
/// Blocks that must fit into the budget before blocks are lengthened for a limit: fewer decide nothing at its
/// confidence.
const BLOCKS_FOR_LIMITS: f64 = 15.0;
/// Least turn length in guards: the remainder of the transient after the guard is then small.
const GUARDS_MIN: f64 = 5.0;
/// Turns of at least this length are recorded in ten ticks; shorter ones in ticks of a tenth of a second or as one.
const TICK_S_MIN: f64 = 0.1;

/// Series of a contender at a level without switches.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadySeries {
    pub level: usize,
    pub contender: usize,
    /// Committed transactions in each tick of [`TICK_S`].
    pub per_tick: Vec<f64>,
    /// Committed transactions per second, of each class that had any.
    pub classes_per_s: Vec<f64>,
    /// Mean residual time of the transaction that a client is in at a random instant, over all instants and clients,
    /// seconds; 0 s where it is in none.
    pub residual_s: f64,
}

impl SteadySeries {
    /// From a slice without a switch; the first `from` ticks do not count.
    pub fn of(
        level: usize,
        contender: usize,
        clients: u32,
        answer: &SliceAnswer,
        from: usize,
    ) -> Self {
        let ticks = answer.ticks.iter().filter(|tick| tick.offset_s >= 0.0);
        let full = ticks.filter(|tick| tick.length_s >= 0.99 * TICK_S);
        let classes = answer.classes.iter().filter(|class| class.counts.ok > 0);
        Self {
            level,
            contender,
            per_tick: full.skip(from).map(|tick| tick.ok as f64).collect(),
            classes_per_s: classes
                .map(|class| class.counts.ok as f64 / answer.measured_s.max(f64::EPSILON))
                .collect(),
            residual_s: residual_s(answer, clients),
        }
    }

    /// Committed transactions per second.
    fn per_s(&self) -> f64 {
        self.classes_per_s.iter().sum()
    }

    /// The shortest turn with enough of this contender's transactions, seconds.
    fn shortest_s(&self) -> f64 {
        let rarest_per_s = self
            .classes_per_s
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        (TRANSACTIONS_MIN / self.per_s())
            .max(self.residual_s / DRAINED_SHARE_MAX)
            .max((OF_RAREST_CLASS_MIN / rarest_per_s).min(RAREST_CLASS_S_MAX))
    }
}

/// Mean residual time of the transaction that a client is in at a random instant, seconds: half the sum of the squared
/// service times over the clients' time, waits between transactions included (mean residual life: Cox 1962). This is
/// the time per client after the end of a turn, for turns of any length.
fn residual_s(answer: &SliceAnswer, clients: u32) -> f64 {
    let all = match &answer.service_times {
        Some(encoded) => latency::decode(encoded),
        None => answer.total(ALL_CLASSES).map(|(_, merged)| merged),
    };
    // A histogram that cannot be read is not the pilot's to report.
    let squares_s = all.map_or(0.0, |histogram| {
        let values = histogram.iter_recorded();
        let squares = values.map(|value| {
            let seconds = value.value_iterated_to() as f64 / 1e9;
            value.count_at_value() as f64 * seconds * seconds
        });
        squares.sum()
    });
    squares_s / 2.0 / (f64::from(clients) * answer.measured_s).max(f64::EPSILON)
}

/// Result of rehearsed switches.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Switches {
    guard_s: f64,
    /// Duration of a switch's effect on throughput, the longest of all contenders, seconds.
    transient_s: f64,
    /// Median time between turns, seconds.
    between_s: f64,
}

impl Contest<'_, '_> {
    /// Chooses the turns of every level whose turns are open, and adds them and their blocks to the plan.
    ///
    /// # Errors
    /// When a contender cannot be recovered, the record cannot be written, or the user interrupts.
    pub(super) fn choose_turns(&mut self) -> Result<()> {
        let plan = self.plan();
        let Some(pilot) = plan.schedule.pilot else {
            return Ok(());
        };
        let shortest_s = shortest_turn_s(self.round_trip_s, plan.schedule.jitter);
        let pilot = Pilot {
            turn_s_min: pilot.turn_s_min.max(shortest_s),
            ..pilot
        };
        let open = (0..plan.levels.len()).filter(|level| !plan.turns.contains_key(level));
        let open: Vec<usize> = open.collect();
        if open.is_empty() {
            return Ok(());
        }
        self.config
            .emit(&ContestEvent::PhaseBegun(Phase::WarmingUp));
        let mut choices = Vec::new();
        for level in open {
            choices.push((level, self.choose_turns_of(&plan, level, pilot)?));
        }
        let left_s = plan.schedule.budget_s - self.progress.used_s;
        for (level, choice) in choices {
            let (blocks, blocks_max) = chosen_blocks(&self.config.plan, level, &choice, left_s);
            let choice = TurnChoice {
                blocks_max,
                ..choice
            };
            self.journal.event(Event::TurnsChosen {
                level,
                choice: choice.clone(),
                blocks: blocks.clone(),
            })?;
            self.grow_plan(|plan| {
                plan.turns.insert(level, choice);
                plan.blocks.extend(blocks);
            });
        }
        Ok(())
    }

    /// Turns of a level: as short as scatter and switches allow, without a departure from load without a switch, and long enough for
    /// the limits that are to be decided.
    fn choose_turns_of(&mut self, plan: &Plan, level: usize, pilot: Pilot) -> Result<TurnChoice> {
        let steady = self.steady_series(level, pilot)?;
        let switches = self.rehearse_switches(level, pilot)?;
        let seconds = std::mem::take(&mut self.progress.apart_s);
        let choice = choose(plan, &steady, switches, pilot);
        let mut choice = self.without_departure(level, choice)?;
        choice.seconds = seconds;
        let needed = self.referee.transactions_needed();
        let left_s = plan.schedule.budget_s - self.progress.used_s;
        let held = repeats_holding(needed, plan, &steady, &choice);
        if needed == 0.0 || held.blocks_s <= left_s {
            choice.repeats_min = held.repeats;
        } else if held.blocks_s.is_finite() {
            self.config.remark(&format!(
                "{}: a `--fail-if` limit needs {needed:.0} transactions per slice; {BLOCKS_FOR_LIMITS:.0} blocks of such slices take \
                 {}, but the budget has {} left, so the limit may stay undecided",
                plan.levels[level].label(),
                dbduel_text::duration(held.blocks_s),
                dbduel_text::duration(left_s.max(0.0))
            ));
        }
        Ok(choice)
    }

    /// The series of each contender at a level: of its warm-up, or else of load for this purpose.
    fn steady_series(&mut self, level: usize, pilot: Pilot) -> Result<Vec<SteadySeries>> {
        let mut all = Vec::new();
        for contender in 0..self.config.plan.contenders.len() {
            let is_own = |one: &&SteadySeries| one.level == level && one.contender == contender;
            if let Some(warm) = self.warm.iter().find(is_own) {
                all.push(warm.clone());
                continue;
            }
            let order = SliceOrder {
                measured_s: pilot.steady_s,
                tick_s: TICK_S,
                ..self.pilot_order(level, contender, "steady")
            };
            if let Some(answer) = self.run_pilot(level, contender, order)? {
                let clients = self.config.plan.levels[level].clients;
                all.push(SteadySeries::of(level, contender, clients, &answer, 0));
            }
        }
        self.arena.freeze_active()?;
        Ok(all)
    }

    /// Switches between the contenders in turn and measures the cost of a switch.
    fn rehearse_switches(&mut self, level: usize, pilot: Pilot) -> Result<Switches> {
        let plan = self.plan();
        let mut switches = Switches {
            guard_s: plan.schedule.guard_s,
            transient_s: 0.0,
            between_s: 0.0,
        };
        // With a guard that is given there is only the time between turns to measure.
        let lengths = match pilot.switches {
            0 => &REHEARSED_S[..1],
            _ => &REHEARSED_S,
        };
        for (stage, &turn_s) in lengths.iter().enumerate() {
            let load_s = turn_s * f64::from(pilot.switches) * plan.contenders.len() as f64;
            if stage > 0 && load_s > REHEARSED_SHARE_MAX * plan.schedule.budget_s {
                break;
            }
            let mut courses: BTreeMap<usize, Vec<Vec<f64>>> = BTreeMap::new();
            let mut spans: Vec<(u64, u64)> = Vec::new();
            for number in 0..pilot.switches.max(2) {
                for contender in 0..plan.contenders.len() {
                    let order = SliceOrder {
                        measured_s: turn_s,
                        tick_s: GUARD_TICK_S,
                        ..self.pilot_order(level, contender, &format!("switch/{stage}/{number}"))
                    };
                    let Some(answer) = self.run_pilot(level, contender, order)? else {
                        continue;
                    };
                    let length_ns = (answer.measured_s * 1e9) as u64;
                    spans.push((answer.open_ns, answer.open_ns + length_ns));
                    let full = answer
                        .ticks
                        .iter()
                        .filter(|tick| tick.length_s >= 0.99 * GUARD_TICK_S);
                    let course = full.map(|tick| tick.ok as f64).collect();
                    courses.entry(contender).or_default().push(course);
                }
            }
            switches.between_s = median_gap_s(&spans);
            if pilot.switches == 0 {
                break;
            }
            let transients: Option<Vec<usize>> = (0..plan.contenders.len())
                .map(|contender| guard_length(courses.get(&contender)?, TRANSIENT_ALPHA).ok())
                .collect();
            // What could not be measured of one leaves the guard that the plan has.
            let Some(transients) = transients else {
                continue;
            };
            let ticks = transients.into_iter().max().unwrap_or(0);
            switches.transient_s = ticks as f64 * GUARD_TICK_S;
            // Hosts begin together within half a round trip.
            let least_s = GUARD_S_MIN.max(self.round_trip_s);
            switches.guard_s = switches.transient_s.max(least_s);
            if switches.transient_s < TRANSIENT_SHARE_MAX * turn_s {
                break;
            }
        }
        Ok(switches)
    }

    /// An order without guard; the caller sets its length.
    pub(super) fn pilot_order(
        &mut self,
        level: usize,
        contender: usize,
        purpose: &str,
    ) -> SliceOrder {
        let plan = self.plan();
        let epoch = self.progress.epoch;
        let until_halted = self.arena.resident(contender).backend.freezes();
        SliceOrder {
            contender: plan.contenders[contender].name.clone(),
            clients: plan.levels[level].clients,
            arrival: plan.levels[level].arrival,
            guard_s: 0.0,
            measured_s: 0.0,
            tick_s: TICK_S,
            drain_s: plan.schedule.drain_s,
            until_halted,
            quantum: None,
            seed: named_seed(plan.seed, &format!("pilot/{epoch}/level/{level}/{purpose}")),
        }
    }

    /// Runs one order outside of blocks; `None` when the contender failed, which is then recovered.
    pub(super) fn run_pilot(
        &mut self,
        level: usize,
        contender: usize,
        order: SliceOrder,
    ) -> Result<Option<Box<SliceAnswer>>> {
        interrupt::check()?;
        let plan = self.plan();
        let (name, used_s) = (order.contender.clone(), self.progress.used_s);
        let (guard_s, seed) = (order.guard_s, order.seed);
        self.arena.activate(contender)?;
        let connected = self
            .arena
            .connect_at(&plan, &mut *self.load, contender, level);
        let ready = connected.and_then(|()| self.resume_injection(contender));
        if let Err(error) = ready {
            self.lose_pilot(contender, &format!("{error:#}"))?;
            return Ok(None);
        }
        let config = &self.config;
        let end = self.load.slice(order, &mut |_| {}, &mut |tick: &Tick| {
            config.emit(&ContestEvent::Tick {
                contender,
                level,
                tick,
                used_s: used_s + tick.offset_s + tick.length_s,
                message: &format!("{name}, not counted: {}", rate(tick)),
            });
            match interrupt::check() {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        self.pause_injection(contender);
        let end = match (self.freeze_under_load(contender)?, end) {
            (Health::Dead { how }, SliceEnd::Finished(_)) => SliceEnd::lost(how),
            (_, end) => end,
        };
        self.journal.commits(&name, self.load.take_commits())?;
        interrupt::check()?;
        match end {
            SliceEnd::Finished(answer) => {
                let seconds = guard_s + answer.measured_s;
                self.progress.used_s += seconds;
                self.progress.apart_s += seconds;
                self.progress.draws.add(seed, &answer.ticks);
                Ok(Some(answer))
            }
            SliceEnd::Lost { why, .. } => {
                self.lose_pilot(contender, &why)?;
                Ok(None)
            }
        }
    }

    fn lose_pilot(&mut self, contender: usize, why: &str) -> Result<()> {
        let name = &self.config.plan.contenders[contender].name;
        let failure = anyhow::anyhow!("`{name}` failed under load outside of blocks: {why}");
        self.allow_failure(contender, failure)?;
        self.recover(contender, false)
    }
}

/// Median time between the end of one turn and the beginning of the next, seconds.
fn median_gap_s(spans: &[(u64, u64)]) -> f64 {
    let gaps = spans
        .windows(2)
        .map(|pair| pair[1].0.saturating_sub(pair[0].1) as f64 / 1e9);
    median(&mut gaps.collect::<Vec<f64>>()).unwrap_or(0.0)
}

/// The choice for one level, without its number of blocks.
fn choose(plan: &Plan, steady: &[SteadySeries], switches: Switches, pilot: Pilot) -> TurnChoice {
    let holding = steady.iter().map(SteadySeries::shortest_s);
    let holding_s = holding.filter(|s| s.is_finite()).fold(0.0, f64::max);
    let longest_s = plan.schedule.slice_s.max(pilot.turn_s_min);
    let shortest_s = holding_s
        .max(GUARDS_MIN * switches.guard_s)
        .clamp(pilot.turn_s_min, longest_s);
    let series: Vec<Vec<f64>> = steady.iter().map(|one| one.per_tick.clone()).collect();
    let rule = SliceRule {
        tick_s: TICK_S,
        unmeasured_s: switches.guard_s + switches.between_s,
        floor_s: shortest_s,
        cap_s: longest_s,
        contenders: plan.contenders.len(),
    };
    // A series that cannot be judged leaves the shortest turn, as one that is too short does.
    let (turn_s, reason, lengths) = match choose_slice_length(&series, &rule) {
        Ok(choice) => (
            choice.length_s,
            turn_reason(choice.reason),
            choice.candidates.iter().filter_map(predicted).collect(),
        ),
        Err(_) => (shortest_s, TurnReason::TooLittleData, Vec::new()),
    };
    TurnChoice {
        turn_s,
        guard_s: switches.guard_s,
        tick_s: tick_s(turn_s, plan.schedule.jitter),
        blocks_max: 0,
        reason,
        lengths,
        seconds: 0.0,
        switch_s: switches.between_s,
        transient_s: switches.transient_s,
        repeats_min: 1,
    }
}

/// Tick length of turns around `turn_s`, of which the shortest is shorter by the share `jitter`, seconds.
pub(super) fn tick_s(turn_s: f64, jitter: f64) -> f64 {
    match turn_s >= 10.0 * TICK_S_MIN {
        true => turn_s / 10.0,
        false => TICK_S_MIN.min(turn_s * (1.0 - jitter)),
    }
}

/// Blocks in which every slice holds enough transactions for the limits.
#[derive(Debug, Clone, Copy, PartialEq)]
struct HoldingBlocks {
    /// Least number of repeats of a block's order.
    repeats: u32,
    /// Time for [`BLOCKS_FOR_LIMITS`] such blocks at all levels, seconds.
    blocks_s: f64,
}

/// Blocks with `needed` transactions in every slice, at the rate of the slowest contender.
fn repeats_holding(
    needed: f64,
    plan: &Plan,
    steady: &[SteadySeries],
    choice: &TurnChoice,
) -> HoldingBlocks {
    let slowest_per_s = steady
        .iter()
        .map(SteadySeries::per_s)
        .fold(f64::INFINITY, f64::min);
    let shortest_turn_s = choice.turn_s * (1.0 - plan.schedule.jitter);
    let repeats = (SPARE * needed / (slowest_per_s * shortest_turn_s))
        .ceil()
        .max(1.0);
    let slots = plan.contenders.len() * if plan.schedule.mirrored { 2 } else { 1 };
    let block_s = repeats * slots as f64 * (choice.turn_s + choice.guard_s);
    HoldingBlocks {
        repeats: repeats as u32,
        blocks_s: block_s * BLOCKS_FOR_LIMITS * plan.levels.len() as f64,
    }
}

fn turn_reason(reason: SliceReason) -> TurnReason {
    match reason {
        SliceReason::Variance => TurnReason::Scatter,
        SliceReason::Floor => TurnReason::Shortest,
        SliceReason::Cap => TurnReason::Longest,
        SliceReason::TooLittleData => TurnReason::TooLittleData,
    }
}

/// Prediction for a candidate length; `None` where there is none.
fn predicted(candidate: &SliceCandidate) -> Option<TurnLength> {
    let could_be_chosen = candidate.is_allowed && candidate.blocks >= BLOCKS_MIN;
    could_be_chosen.then_some(())?;
    Some(TurnLength {
        turn_s: candidate.length_s,
        blocks: candidate.blocks as u32,
        block_sd: candidate.block_sd?,
        half_width_per_minute: candidate.half_width?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::{Scenario, turn_choice};

    #[test]
    fn blocks_repeat_until_their_slices_hold_what_a_limit_needs() {
        let plan = Scenario::duel().record().plan;
        let series = |contender, per_s| SteadySeries {
            level: 0,
            contender,
            per_tick: Vec::new(),
            classes_per_s: vec![per_s / 2.0; 2],
            residual_s: 0.0,
        };
        let steady = [series(0, 900.0), series(1, 500.0)];
        let choice = turn_choice(0.2, 0.05);
        let blocks = |needed| repeats_holding(needed, &plan, &steady, &choice);
        assert_eq!(blocks(0.0).repeats, 1);
        let enough = blocks(1000.0);
        let held = f64::from(enough.repeats) * 500.0 * 0.2 * (1.0 - plan.schedule.jitter);
        assert!((2000.0..2200.0).contains(&held), "{enough:?}: {held}");
        let slots = f64::from(enough.repeats) * 4.0 * plan.levels.len() as f64;
        assert!(
            (enough.blocks_s - 15.0 * slots * 0.25).abs() < 1e-9,
            "{enough:?}"
        );
        // A contender that commits nothing has no such blocks.
        let silent = [series(0, 900.0), series(1, 0.0)];
        let never = repeats_holding(1000.0, &plan, &silent, &choice);
        assert_eq!(never.blocks_s, f64::INFINITY);
    }
}
