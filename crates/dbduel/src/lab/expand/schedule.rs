//! How the budget is cut into warm-ups, slices and guards, and how many blocks fit into it.

use dbduel_record::plan::{Block, Epochs, Schedule};

use super::super::experiment::{self, Experiment};

/// What a budget is when the experiment names none, seconds.
pub(super) const BUDGET_S: f64 = 1200.0;
/// Measured part of a slice when the budget leaves the choice, seconds.
const SLICE_S: f64 = 15.0;
/// Shortest slice that is chosen by default, seconds.
const SLICE_S_MIN: f64 = 1.0;
/// Blocks per level that a short budget is cut into.
const BLOCKS_WANTED: f64 = 12.0;
/// Guard as a share of the slice, and its largest default, seconds.
const GUARD_SHARE: f64 = 0.2;
const GUARD_S_MAX: f64 = 2.0;
/// Retained time after which a steady state may be certified, seconds (White, Cobb and Spratt's
/// MSER-5 with a hold, see the statistics crate).
const WARM_UP_HOLD_S: f64 = 120.0;
/// Share of the budget that the warm-up of all contenders together may take.
const WARM_UP_SHARE: f64 = 0.15;
/// What freezing, thawing and draining add to a slice, seconds; only used to fit blocks into the budget.
const SWITCH_S: f64 = 0.1;

pub(super) fn complete_schedule(
    experiment: &Experiment,
    contenders: usize,
    levels: usize,
) -> Schedule {
    let seconds = |duration: &experiment::document::Located<std::time::Duration>| {
        duration.value.as_secs_f64()
    };
    let written = &experiment.schedule;
    let budget_s = experiment.budget.as_ref().map_or(BUDGET_S, seconds);
    let epochs = written.epochs.as_ref().map_or(1, |epochs| epochs.value);
    let warm_ups = contenders as f64 * f64::from(epochs);
    let warm_up_cap_s = written.warm_up.as_ref().map_or_else(
        || (budget_s * WARM_UP_SHARE / warm_ups.max(1.0)).clamp(2.0, 300.0),
        seconds,
    );
    let measuring_s = budget_s - warm_up_cap_s * warm_ups;
    let slices = 2.0 * contenders as f64;
    let default_slice_s = {
        let parts = slices + GUARD_SHARE * (slices - 1.0);
        let fitting =
            (measuring_s / (BLOCKS_WANTED * levels.max(1) as f64) - slices * SWITCH_S) / parts;
        hundredths(fitting.clamp(SLICE_S_MIN, SLICE_S))
    };
    let slice_s = written.slice.as_ref().map_or(default_slice_s, seconds);
    let guard_s = written.guard.as_ref().map_or_else(
        || hundredths((slice_s * GUARD_SHARE).min(GUARD_S_MAX)),
        seconds,
    );
    let mut schedule = Schedule {
        budget_s,
        slice_s,
        jitter: written.jitter.unwrap_or(0.3),
        guard_s,
        drain_s: 30.0,
        tick_s: if slice_s >= 10.0 {
            1.0
        } else {
            hundredths((slice_s / 10.0).max(0.1))
        },
        warm_up_cap_s,
        warm_up_hold_s: WARM_UP_HOLD_S.min(warm_up_cap_s * 0.6),
        epochs: None,
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

/// How many mirrored blocks per level fit into the budget when `levels` share it.
pub(super) fn rounds_within(schedule: &Schedule, contenders: usize, levels: usize) -> u32 {
    let measuring_s = schedule.budget_s - warm_ups_s(schedule, contenders);
    // A negative time saturates to 0 in the conversion.
    (measuring_s / (block_s(schedule, contenders) * levels.max(1) as f64)) as u32
}

/// Seconds that the warm-ups of all contenders take at most, in all epochs.
pub(super) fn warm_ups_s(schedule: &Schedule, contenders: usize) -> f64 {
    let epochs = schedule.epochs.map_or(1, |epochs| epochs.count);
    schedule.warm_up_cap_s * contenders as f64 * f64::from(epochs)
}

/// Seconds that a mirrored block takes on average.
pub(super) fn block_s(schedule: &Schedule, contenders: usize) -> f64 {
    block_load_s(schedule, contenders) + 2.0 * contenders as f64 * SWITCH_S
}

/// Seconds of load that a mirrored block takes on average, as [`load_s`] counts them.
pub(super) fn block_load_s(schedule: &Schedule, contenders: usize) -> f64 {
    let slices = 2.0 * contenders as f64;
    slices * schedule.slice_s + (slices - 1.0) * schedule.guard_s
}

/// Seconds of load that a block takes.
#[must_use]
pub fn load_s(schedule: &Schedule, block: &Block) -> f64 {
    let guards = (0..block.order.len())
        .filter(|&position| !block.continues(position))
        .count();
    block.slice_s * block.order.len() as f64 + schedule.guard_s * guards as f64
}
