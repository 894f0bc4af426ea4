//! Continuity check: does frequent switching change a contender's throughput? Compares its load in turns with its load
//! without a switch.
//!
//! Before the first block of a level with piloted turns, both are rehearsed in random order, because the machine
//! drifts; turns are lengthened while a contender's throughput in turns departs from that without a switch. Between
//! blocks there are rounds of long turns, drawn before the first block and no part of the verdict. Contenders are never
//! compared here.

use std::collections::BTreeMap;

use anyhow::Result;
use dbduel_experiment::expand::{LONG_TURNS_SHARE_MAX, LongTurns, long_turns};
use dbduel_load::order::{SliceAnswer, SliceOrder};
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_record::event::{ContinuityRound, Event, LoadStretch};
use dbduel_record::plan::{TurnChoice, TurnReason};
use dbduel_record::rows::ALL_CLASSES;
use dbduel_record::seed::named_seed;
use dbduel_record::{Plan, Record};
use dbduel_text::percent;

use super::phases::Part;
use super::warm_up::workload_at;
use super::{Contest, DepartureStanding};
use crate::observe::Used;

/// Rounds of a rehearsal; fewer than the minimum give no conclusion.
const ROUNDS: u32 = 6;
const ROUNDS_MIN: u32 = 3;
/// Rounds after which a rehearsal ends once a departure is excluded for every contender.
const ROUNDS_ENOUGH: u32 = 4;
/// Least length of a stretch of turns, and of load without a switch, in seconds, and its least number of turns.
const STRETCH_S_MIN: f64 = 0.8;
const TURNS_MIN: f64 = 4.0;
/// Least uncounted load before a stretch without a switch, seconds.
const LEAD_S_MIN: f64 = 0.2;
/// Share of a level's part of the budget that its rehearsals may take.
const BUDGET_SHARE_MAX: f64 = 0.2;
/// Factor by which turns are lengthened after a departure.
const LONGER: f64 = 4.0;
/// Measured time of a level's blocks before its first long turns, seconds.
const BLOCKS_S_MIN: f64 = 60.0;

/// The long turns of a level and how many of their rounds have run.
#[derive(Debug, Clone)]
pub(super) struct LongRounds {
    turns: LongTurns,
    done: usize,
    used_s: f64,
}

/// The rounds that an earlier run drew and ran.
pub(super) fn long_rounds(past: &Record) -> BTreeMap<usize, LongRounds> {
    let mut all: BTreeMap<usize, LongRounds> = BTreeMap::new();
    for event in &past.events {
        match &event.what {
            Event::LongTurnsDrawn {
                level,
                turn_s,
                guard_s,
                rounds,
            } => {
                let turns = LongTurns {
                    turn_s: *turn_s,
                    guard_s: *guard_s,
                    rounds: rounds.clone(),
                };
                let (done, used_s) = (0, 0.0);
                all.insert(
                    *level,
                    LongRounds {
                        turns,
                        done,
                        used_s,
                    },
                );
            }
            Event::ContinuityRound(round) if round.in_turns.is_empty() => {
                if let Some(own) = all.get_mut(&round.level) {
                    own.done += 1;
                    own.used_s += round.seconds;
                }
            }
            _ => {}
        }
    }
    all
}

/// A contender's stretch while it is assembled.
#[derive(Debug, Default)]
struct Stretch {
    turns: u32,
    seconds: f64,
    transactions: u64,
    /// Including those in guards, which cost the server as much.
    all_transactions: u64,
    latencies: Option<hdrhistogram::Histogram<u64>>,
    /// What the server used in its turns; absent before the first one.
    used: Option<Used>,
}

impl Stretch {
    fn add(&mut self, answer: &SliceAnswer, used: Used) {
        self.turns += 1;
        self.used = Some(self.used.map_or(used, |sum| sum.and(used)));
        self.seconds += answer.measured_s;
        let guards = answer.ticks.iter().filter(|tick| tick.offset_s < 0.0);
        let in_guards: u64 = guards.map(|tick| tick.ok).sum();
        // A histogram that cannot be read is not the check's to report.
        if let Ok((total, latencies)) = answer.total(ALL_CLASSES) {
            self.transactions += total.counts.ok;
            self.all_transactions += total.counts.ok + in_guards;
            match &mut self.latencies {
                // Histograms of one kind can be added.
                Some(sum) => drop(sum.add(latencies)),
                None => self.latencies = Some(latencies),
            }
        }
    }

    fn finish(self, contender: &str) -> LoadStretch {
        let used = self.used.unwrap_or_default();
        let each = |total: Option<f64>| {
            let each = total? / self.all_transactions as f64;
            each.is_finite().then_some(each.max(0.0))
        };
        let latencies = self.latencies.filter(|latencies| !latencies.is_empty());
        LoadStretch {
            contender: contender.to_owned(),
            turns: self.turns,
            seconds: self.seconds,
            transactions: self.transactions,
            latency_us_p99: latencies.map_or(0.0, |all| all.value_at_quantile(0.99) as f64 / 1e3),
            cpu_us_per_transaction: each(used.cpu_s).map(|seconds| seconds * 1e6),
            written_bytes_per_transaction: each(used.written_bytes),
            disk_flushes_per_transaction: each(used.disk_flushes),
        }
    }
}

impl Contest<'_, '_> {
    /// Rehearses turns of the chosen length, and longer ones while a contender's throughput in turns departs from that
    /// without a switch and the budget allows. Returns the choice with the resulting length.
    ///
    /// # Errors
    /// When a contender cannot be recovered, the record cannot be written, or the user interrupts.
    pub(super) fn without_departure(
        &mut self,
        level: usize,
        mut choice: TurnChoice,
    ) -> Result<TurnChoice> {
        let schedule = &self.config.plan.schedule;
        let (longest_s, levels) = (schedule.slice_s, self.config.plan.levels.len());
        let mut left_s = BUDGET_SHARE_MAX * schedule.budget_s / levels.max(1) as f64;
        if has_fixed_work(&self.plan(), level)? {
            return Ok(choice);
        }
        loop {
            let before_s = self.progress.used_s;
            let rounds = self.rehearse_turns(level, &choice, left_s)?;
            left_s -= self.progress.used_s - before_s;
            let Some((contender, log_ratio)) = self.departed(&rounds) else {
                return Ok(choice);
            };
            let longer_s = (LONGER * choice.turn_s).min(longest_s);
            self.config.remark(&format!(
                "{}: throughput of {contender} in turns of {} is {} of that without a switch{}",
                self.config.plan.levels[level].label(),
                dbduel_text::duration(choice.turn_s),
                percent::of(log_ratio.exp()),
                match longer_s > choice.turn_s {
                    true => format!("; turns of {} next", dbduel_text::duration(longer_s)),
                    false => String::new(),
                }
            ));
            if longer_s <= choice.turn_s {
                return Ok(choice);
            }
            choice = TurnChoice {
                turn_s: longer_s,
                tick_s: super::pilot::tick_s(longer_s, self.config.plan.schedule.jitter),
                reason: TurnReason::Continuity,
                ..choice
            };
        }
    }

    /// The contender whose throughput departs most, and the logarithm by which it does.
    fn departed(&self, rounds: &[ContinuityRound]) -> Option<(String, f64)> {
        let contenders = self.config.plan.contenders.iter();
        let departed = contenders.filter_map(|contender| {
            match self.referee.departure(rounds, &contender.name) {
                DepartureStanding::Shown(log_ratio) => Some((contender.name.clone(), log_ratio)),
                DepartureStanding::Excluded | DepartureStanding::Open => None,
            }
        });
        departed.max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))
    }

    /// Whether rounds exclude a departure that matters for every contender.
    fn is_continuous(&self, rounds: &[ContinuityRound]) -> bool {
        let mut contenders = self.config.plan.contenders.iter();
        contenders.all(|contender| {
            self.referee.departure(rounds, &contender.name) == DepartureStanding::Excluded
        })
    }

    /// Rounds of turns and of load without a switch, of each contender as much, until they exclude a departure; none where the
    /// remaining time holds too few.
    fn rehearse_turns(
        &mut self,
        level: usize,
        choice: &TurnChoice,
        left_s: f64,
    ) -> Result<Vec<ContinuityRound>> {
        let contenders = self.config.plan.contenders.len();
        let stretch_s = STRETCH_S_MIN.max(TURNS_MIN * choice.turn_s);
        let turns = (stretch_s / choice.turn_s).ceil();
        let lead_s = LEAD_S_MIN.max(choice.turn_s);
        let each_s = stretch_s + lead_s + turns * (choice.turn_s + choice.guard_s);
        // A quotient beyond any count saturates in the conversion.
        let fitting = (left_s / (each_s * contenders as f64)) as u32;
        let mut rounds = Vec::new();
        if fitting < ROUNDS_MIN {
            return Ok(rounds);
        }
        for number in 0..fitting.min(ROUNDS) {
            let (in_turns_first, order) = self.drawn(level, choice, number);
            let mut in_turns = Vec::new();
            let mut unswitched = Vec::new();
            for is_in_turns in [in_turns_first, !in_turns_first] {
                let (length_s, guard_s, count) = match is_in_turns {
                    true => (choice.turn_s, choice.guard_s, turns as u32),
                    false => (stretch_s, lead_s, 1),
                };
                let purpose = format!("continuity/{}/{number}/{is_in_turns}", choice.turn_s);
                let all = self.stretches(level, &purpose, &order, length_s, guard_s, count)?;
                match is_in_turns {
                    true => in_turns = all,
                    false => unswitched = all,
                }
            }
            // Rounds between blocks have no rehearsed turns; the time of this one is of the next entry.
            if in_turns.is_empty() {
                continue;
            }
            let round = ContinuityRound {
                level,
                turn_s: choice.turn_s,
                in_turns,
                unswitched,
                seconds: std::mem::take(&mut self.progress.apart_s),
            };
            self.journal.event(Event::ContinuityRound(round.clone()))?;
            rounds.push(round);
            if rounds.len() as u32 >= ROUNDS_ENOUGH && self.is_continuous(&rounds) {
                break;
            }
        }
        Ok(rounds)
    }

    /// Random draw by the plan's seed: whether turns come first in a round, and the order of the contenders.
    fn drawn(&self, level: usize, choice: &TurnChoice, number: u32) -> (bool, Vec<usize>) {
        let plan = self.plan();
        let stream = format!("continuity/level/{level}/{}/{number}", choice.turn_s);
        let coins = named_seed(plan.seed, &stream);
        let mut order: Vec<usize> = (0..plan.contenders.len()).collect();
        let first = (coins >> 1) as usize % order.len().max(1);
        order.rotate_left(first);
        (coins & 1 == 0, order)
    }

    /// Runs `count` turns of each contender of `order`, with a guard before each. Skips a contender that failed, which
    /// is then recovered.
    fn stretches(
        &mut self,
        level: usize,
        purpose: &str,
        order: &[usize],
        length_s: f64,
        guard_s: f64,
        count: u32,
    ) -> Result<Vec<LoadStretch>> {
        let mut all: BTreeMap<usize, Stretch> = BTreeMap::new();
        for number in 0..count {
            for &contender in order {
                let order = SliceOrder {
                    guard_s,
                    measured_s: length_s,
                    ..self.pilot_order(level, contender, &format!("{purpose}/{number}"))
                };
                // Turn by turn, because the disk's counters are those of the server that is awake.
                let before = self.used(contender);
                if let Some(answer) = self.run_pilot(level, contender, order)? {
                    let used = self.used(contender).since(before);
                    all.entry(contender).or_default().add(&answer, used);
                }
            }
        }
        let finished = order.iter().filter_map(|contender| {
            let stretch = all.remove(contender).filter(|own| own.turns == count)?;
            Some(stretch.finish(&self.config.plan.contenders[*contender].name))
        });
        Ok(finished.collect())
    }

    fn used(&mut self, contender: usize) -> Used {
        self.observers
            .used(&self.config, &mut self.arena, contender, &*self.load)
    }

    /// Draws the long turns of levels whose turns are chosen and that have none yet.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(super) fn draw_long_turns(&mut self) -> Result<()> {
        let plan = self.plan();
        for level in 0..plan.levels.len() {
            let is_open = plan.schedule.pilot.is_some() && !plan.turns.contains_key(&level);
            if is_open || self.progress.long_rounds.contains_key(&level) || plan.search.is_some() {
                continue;
            }
            // Blocks that have begun had none beside them.
            let mut blocks = plan.blocks.iter().filter(|block| block.level == level);
            if blocks.any(|block| self.progress.is_begun(block.id)) || has_fixed_work(&plan, level)?
            {
                continue;
            }
            let Some(turns) = long_turns(&plan, level) else {
                continue;
            };
            self.journal.event(Event::LongTurnsDrawn {
                level,
                turn_s: turns.turn_s,
                guard_s: turns.guard_s,
                rounds: turns.rounds.clone(),
            })?;
            let drawn = LongRounds {
                turns,
                done: 0,
                used_s: 0.0,
            };
            self.progress.long_rounds.insert(level, drawn);
        }
        Ok(())
    }

    /// Runs the next round of long turns of a level where one is due: its blocks have been measured for a minute, and
    /// long turns stay within their share of the time.
    ///
    /// # Errors
    /// When a contender cannot be recovered, the record cannot be written, or the user interrupts.
    pub(super) fn run_long_turns(&mut self, part: &Part, level: usize) -> Result<()> {
        let plan = self.plan();
        let Some(own) = self.progress.long_rounds.get(&level) else {
            return Ok(());
        };
        let round_s = own.turns.round_s();
        let blocks_s = self.progress.measured_s(&plan, level);
        let long_s = own.used_s + round_s;
        let left_s = plan.schedule.budget_s - part.reserved_s - self.progress.used_s;
        let is_due = blocks_s >= BLOCKS_S_MIN
            && long_s <= LONG_TURNS_SHARE_MAX * (blocks_s + long_s)
            && round_s <= left_s;
        let Some(order) = own.turns.rounds.get(own.done).cloned() else {
            return Ok(());
        };
        if !is_due || interrupt::urgency() != Urgency::None {
            return Ok(());
        }
        let (turn_s, guard_s, number) = (own.turns.turn_s, own.turns.guard_s, own.done);
        let short_s = self.turn_s(level);
        let purpose = format!("long-turn/{number}");
        let unswitched = self.stretches(level, &purpose, &order, turn_s, guard_s, 1)?;
        let seconds = std::mem::take(&mut self.progress.apart_s);
        self.journal.event(Event::ContinuityRound(ContinuityRound {
            level,
            turn_s: short_s,
            in_turns: Vec::new(),
            unswitched,
            seconds,
        }))?;
        if let Some(own) = self.progress.long_rounds.get_mut(&level) {
            own.done += 1;
            own.used_s += seconds;
        }
        Ok(())
    }
}

/// True when clients of a level do a fixed amount of work in a slice, or a transaction depends on previous ones: other
/// load in between would change what is measured.
fn has_fixed_work(plan: &Plan, level: usize) -> Result<bool> {
    let workload = workload_at(plan, level)?;
    let is_fixed = plan.contenders.iter().any(|contender| {
        let parameters = plan.workload_at(level, contender).parameters;
        workload.has_fixed_work(&parameters) || workload.depends_on_past_work(&parameters)
    });
    Ok(is_fixed)
}
