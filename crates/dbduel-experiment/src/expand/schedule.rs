//! Divides the budget into warm-ups, slices and guards, and computes how many blocks fit.

use dbduel_record::Plan;
use dbduel_record::plan::{Arrival, Block, BlockForm, Epochs, LoadLevel, Pilot, Schedule};

use dbduel_stats::sequential::unit_length_s;

use crate::experiment::{self, Experiment};

/// Default budget, seconds.
pub(super) const BUDGET_S: f64 = 1200.0;
/// Default measured part of a slice, seconds.
const SLICE_S: f64 = 15.0;
/// Shortest default slice, seconds.
const SLICE_S_MIN: f64 = 1.0;
/// Blocks per level for which a short budget shortens its slices.
const BLOCKS_WANTED: f64 = 12.0;
/// The same of a designed contest, whose effects share the error probability.
const BLOCKS_WANTED_OF_DESIGN: f64 = 36.0;
/// Guard as a share of the slice, and its largest default, seconds.
const GUARD_SHARE: f64 = 0.2;
const GUARD_S_MAX: f64 = 2.0;
/// Retained time after which a steady state may be certified, seconds (White, Cobb and Spratt's
/// MSER-5 with a hold, see the statistics crate).
const WARM_UP_HOLD_S: f64 = 120.0;
/// The same where a pilot follows, whose rehearsals load each contender for ten more seconds: slower movements affect
/// all contenders alike, and the judge looks for them in the whole contest.
const PILOT_HOLD_S: f64 = 5.0;
/// Shortest turn that a pilot may choose, seconds.
const TURN_S_MIN: f64 = 0.05;
/// Turn length that a pilot may choose even with a short budget, seconds.
const TURN_S_WANTED: f64 = 0.25;
/// Pilot load per contender at a level without a warm-up: a share of the budget for all contenders together, and its
/// bounds per contender in seconds.
const STEADY_SHARE: f64 = 0.05;
const STEADY_S_MIN: f64 = 1.0;
const STEADY_S_MAX: f64 = 10.0;
/// Approximate load of the switches to a contender at a level, seconds.
const REHEARSED_S: f64 = 2.4;
/// Switches to each contender for measuring the guard.
const SWITCHES: u32 = 8;
/// Share of the budget for the warm-up of all contenders together.
const WARM_UP_SHARE: f64 = 0.15;
/// Time of freezing, thawing and draining per slice, seconds; only used to fit blocks into the budget.
const SWITCH_S: f64 = 0.1;

pub(super) fn complete_schedule(
    experiment: &Experiment,
    contenders: usize,
    arrivals: &[LoadLevel],
    levels: usize,
    mirrored: bool,
    depends_on_past_work: bool,
) -> Schedule {
    let seconds = |duration: &experiment::document::Located<std::time::Duration>| {
        duration.value.as_secs_f64()
    };
    let written = &experiment.schedule;
    let budget_s = experiment.budget.as_ref().map_or(BUDGET_S, seconds);
    let epochs = written.epochs.as_ref().map_or(1, |epochs| epochs.value);
    let warm_ups = contenders as f64 * f64::from(epochs);
    // A queue that begins empty in every turn, and its end that no turn measures, say little of a rate: only closed loops have
    // short turns. Of the starts of servers there is no pilot yet, and for a suite or the many contenders of a design it would take
    // longer than its blocks.
    // Where each transaction depends on those before, all contenders have to do the same.
    let is_closed = arrivals
        .iter()
        .all(|level| matches!(level.arrival, Arrival::Closed { think_ms } if think_ms == 0.0));
    let has_pilot = written.slice.is_none()
        && epochs <= 1
        && is_closed
        && experiment.load.objective.is_none()
        && experiment.suite.is_none()
        && experiment.attribute.is_none()
        && !experiment.has_variants()
        && !depends_on_past_work;
    let pilot = has_pilot.then(|| {
        let cells = (contenders * levels).max(1) as f64;
        Pilot {
            turn_s_min: TURN_S_MIN,
            steady_s: (budget_s * STEADY_SHARE / cells).clamp(STEADY_S_MIN, STEADY_S_MAX),
            switches: match written.guard {
                Some(_) => 0,
                None => SWITCHES,
            },
        }
    });
    let warm_up_cap_s = written.warm_up.as_ref().map_or_else(
        || (budget_s * WARM_UP_SHARE / warm_ups.max(1.0)).clamp(2.0, 300.0),
        seconds,
    );
    let measuring_s = budget_s - warm_up_cap_s * warm_ups - pilot_s(pilot, contenders, levels);
    let (slices, guards) = slices_and_guards(contenders, mirrored);
    let default_slice_s = {
        let parts = slices + GUARD_SHARE * guards;
        let has_many_contenders = experiment.attribute.is_some() || experiment.has_variants();
        let wanted = match has_many_contenders {
            true => BLOCKS_WANTED_OF_DESIGN,
            false => BLOCKS_WANTED,
        };
        let fitting = (measuring_s / (wanted * levels.max(1) as f64) - slices * SWITCH_S) / parts;
        let shortest_s = match (pilot, has_many_contenders) {
            (None, false) => SLICE_S_MIN,
            _ => TURN_S_WANTED,
        };
        hundredths(fitting.clamp(shortest_s, SLICE_S))
    };
    let slice_s = written.slice.as_ref().map_or(default_slice_s, seconds);
    let guard_s = written.guard.as_ref().map_or_else(
        || match depends_on_past_work {
            true => 0.0,
            false => hundredths((slice_s * GUARD_SHARE).min(GUARD_S_MAX)),
        },
        seconds,
    );
    let default_jitter = if depends_on_past_work { 0.0 } else { 0.3 };
    let mut schedule = Schedule {
        budget_s,
        slice_s,
        jitter: written.jitter.unwrap_or(default_jitter),
        guard_s,
        drain_s: 30.0,
        tick_s: match pilot {
            Some(_) => 0.1,
            None if slice_s >= 10.0 => 1.0,
            None => hundredths((slice_s / 10.0).max(0.1)),
        },
        warm_up_cap_s,
        warm_up_hold_s: match pilot {
            Some(_) => PILOT_HOLD_S,
            None => WARM_UP_HOLD_S,
        }
        .min(warm_up_cap_s * 0.6),
        epochs: None,
        pilot,
        mirrored,
    };
    if epochs > 1 {
        schedule.epochs = Some(Epochs {
            count: epochs,
            blocks: 0,
        });
        let blocks = rounds_within(&schedule, contenders, levels) / epochs;
        schedule.epochs = Some(Epochs {
            count: epochs,
            blocks,
        });
    }
    schedule
}

fn hundredths(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

/// Blocks per level that fit into the budget when `levels` share it; for turns that are not chosen yet, units of the
/// test.
pub(super) fn rounds_within(schedule: &Schedule, contenders: usize, levels: usize) -> u32 {
    let measuring_s = schedule.budget_s
        - warm_ups_s(schedule, contenders)
        - pilot_s(schedule.pilot, contenders, levels);
    let share_s = measuring_s / levels.max(1) as f64;
    if schedule.pilot.is_some() {
        return ends_of_blocks_s()
            .take_while(|ends_s| *ends_s <= share_s)
            .count() as u32;
    }
    // A negative time saturates to 0 in the conversion.
    (share_s / block_s(schedule, contenders)) as u32
}

/// Budget for `rounds` blocks per load level, seconds.
pub(super) fn budget_for(
    schedule: &Schedule,
    contenders: usize,
    levels: usize,
    blocks: usize,
) -> f64 {
    let measuring_s = match schedule.pilot {
        Some(_) => ends_of_blocks_s().nth(blocks).unwrap_or(f64::INFINITY),
        None => (blocks + 1) as f64 * block_s(schedule, contenders),
    };
    measuring_s * levels as f64
        + warm_ups_s(schedule, contenders)
        + pilot_s(schedule.pilot, contenders, levels)
}

/// End times of the blocks of a level with piloted slices, in seconds of measuring.
fn ends_of_blocks_s() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(0.0), |begun_s| Some(begun_s + unit_length_s(*begun_s))).skip(1)
}

/// Approximate time of the pilots of all levels, seconds.
fn pilot_s(pilot: Option<Pilot>, contenders: usize, levels: usize) -> f64 {
    pilot.map_or(0.0, |pilot| {
        let steady_s = pilot.steady_s * levels.saturating_sub(1) as f64;
        contenders as f64 * (steady_s + REHEARSED_S * levels as f64)
    })
}

/// Longest time of the warm-ups of all contenders in all epochs, seconds.
pub(super) fn warm_ups_s(schedule: &Schedule, contenders: usize) -> f64 {
    let epochs = schedule.epochs.map_or(1, |epochs| epochs.count);
    schedule.warm_up_cap_s * contenders as f64 * f64::from(epochs)
}

/// Mean time of a block, seconds; of the first one, where turns are not chosen yet.
pub(super) fn block_s(schedule: &Schedule, contenders: usize) -> f64 {
    if schedule.pilot.is_some() {
        return unit_length_s(0.0);
    }
    let (slices, _) = slices_and_guards(contenders, schedule.mirrored);
    block_load_s(schedule, contenders) + slices * SWITCH_S
}

/// Slices of a block, and how many have a guard: in the middle of a mirrored one no contender changes.
fn slices_and_guards(contenders: usize, mirrored: bool) -> (f64, f64) {
    let each = contenders as f64;
    match mirrored {
        true => (2.0 * each, 2.0 * each - 1.0),
        false => (each, each),
    }
}

/// Whether blocks are mirrored, and why. By default they are, unless a suite's budget holds too few of them for its
/// workloads, or a design has so many contenders that blocks of one slice each are long enough.
pub(super) fn block_form(
    experiment: &Experiment,
    contenders: usize,
    levels: usize,
) -> (bool, BlockForm) {
    let Some(suite) = &experiment.suite else {
        let mirrored = experiment.attribute.is_none() && !experiment.has_variants();
        return (mirrored, BlockForm::Affordable);
    };
    if let Some(mirrored) = suite.mirrored {
        return (mirrored, BlockForm::AsWritten);
    }
    let seconds = |written: &Option<experiment::document::Located<std::time::Duration>>| {
        let written = written.as_ref();
        written.map(|duration| duration.value.as_secs_f64())
    };
    let budget_s = seconds(&experiment.budget).unwrap_or(BUDGET_S);
    let of_all = seconds(&experiment.schedule.slice).unwrap_or(SLICE_S_MIN);
    let own = suite.workloads.iter().map(|one| one.slice);
    let own_s = own.map(|slice| slice.map_or(of_all, |slice| slice.as_secs_f64()));
    let slice_s = own_s.sum::<f64>() / suite.workloads.len().max(1) as f64;
    let guard_s = seconds(&experiment.schedule.guard).unwrap_or(of_all * GUARD_SHARE);
    let (slices, guards) = slices_and_guards(contenders, true);
    let block_s = slices * (slice_s + SWITCH_S) + guards * guard_s;
    let blocks = budget_s * (1.0 - WARM_UP_SHARE) / (block_s * levels.max(1) as f64);
    match blocks >= BLOCKS_WANTED {
        true => (true, BlockForm::Affordable),
        false => (false, BlockForm::TooFewMirrored),
    }
}

/// Mean load of a block, seconds, as [`load_s`] counts it.
pub(super) fn block_load_s(schedule: &Schedule, contenders: usize) -> f64 {
    let (slices, guards) = slices_and_guards(contenders, schedule.mirrored);
    slices * schedule.slice_s + guards * schedule.guard_s
}

/// Load of a block, seconds.
#[must_use]
pub fn load_s(plan: &Plan, block: &Block) -> f64 {
    let running = plan.running_slices(block);
    let guards = (0..block.order.len()).filter(|&position| plan.is_guarded(block, position));
    let guards = guards.count().min(running);
    let once_s = block.slice_s * running as f64 + plan.guard_s(block.level) * guards as f64;
    once_s * f64::from(block.repeats)
}
