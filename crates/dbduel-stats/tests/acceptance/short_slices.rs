//! Duels of short turns as a contest conducts them: a pilot chooses the length, blocks repeat their order, and every block is looked
//! at. Beside them the plan of slices of 15 s on the same machines.

use dbduel_stats::StatsError;
use dbduel_stats::sequential::{Decider, SequentialPlan, Unit, unit_length_s};
use dbduel_stats::simulate::{
    DEFAULT_DESIGN, FINE_NASTY, FINE_QUIET, FINE_TYPICAL, FINE_WANDERING, FineDuel, FineNoise,
};
use dbduel_stats::slice_length::{SliceRule, choose_slice_length};

pub const MACHINES: [(&str, FineNoise); 4] = [
    ("quiet", FINE_QUIET),
    ("typical", FINE_TYPICAL),
    ("nasty", FINE_NASTY),
    ("wandering", FINE_WANDERING),
];

const ALPHA: f64 = 0.05;
const FLOOR_S: f64 = 0.1;
const GUARD_S: f64 = 0.05;
/// Seconds of each contender that the pilot looks at.
const PILOT_S: f64 = 30.0;

/// How blocks are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Turns of a chosen length in blocks that repeat their order.
    Short,
    /// The same without repeats.
    Single,
    /// Slices of 15 s.
    Long,
}

/// How a duel ended.
#[derive(Debug, Clone)]
pub struct Ended {
    pub decider: Decider,
    /// Seconds of load until the verdict, or all.
    pub seconds: f64,
    /// Length of the turns, in seconds.
    pub slice_s: f64,
}

/// How often each planned block repeats its order, with turns that take `turn_s` with their guards.
fn planned_repeats(way: Way, turn_s: f64, budget_s: f64) -> Vec<u32> {
    let mut elapsed_s = 0.0;
    let repeats = std::iter::from_fn(|| {
        let order_s = 4.0 * turn_s;
        let repeats = match way {
            Way::Single => 1.0,
            _ => (unit_length_s(elapsed_s) / order_s).ceil().max(1.0),
        };
        elapsed_s += repeats * order_s;
        (elapsed_s <= budget_s).then_some(repeats as u32)
    });
    repeats.collect()
}

/// Conducts a duel of at most `budget_s` seconds at a true effect.
pub fn conduct(
    fine: FineNoise,
    way: Way,
    effect: f64,
    budget_s: f64,
    seed: u64,
) -> Result<Ended, StatsError> {
    let mut duel = FineDuel::new(fine, effect, seed);
    if way == Way::Long {
        return conduct_long(duel, budget_s, seed);
    }
    let rule = SliceRule {
        tick_s: fine.tick_s,
        unmeasured_s: GUARD_S,
        floor_s: FLOOR_S,
        cap_s: 15.0,
        contenders: 2,
    };
    let slice_s = choose_slice_length(&duel.uninterrupted(PILOT_S), &rule)?.length_s;
    let planned = planned_repeats(way, duel.turn_s(slice_s, GUARD_S), budget_s);
    let weight_max = planned.iter().copied().map(f64::from).sum();
    let mut decider = Decider::new(SequentialPlan::new(weight_max, ALPHA, 0.0, seed))?;
    let mut seconds = 0.0;
    for repeats in planned {
        let block = duel.block(slice_s, GUARD_S, repeats);
        seconds += block.wall_s;
        decider.push(Unit::new(block.log_ratio, f64::from(repeats)))?;
        if decider.has_verdict() {
            break;
        }
    }
    Ok(Ended {
        decider,
        seconds,
        slice_s,
    })
}

fn conduct_long(mut duel: FineDuel, budget_s: f64, seed: u64) -> Result<Ended, StatsError> {
    let (slice_s, guard_s) = (DEFAULT_DESIGN.slice as f64, DEFAULT_DESIGN.guard as f64);
    let blocks = (budget_s / (4.0 * (slice_s + guard_s))).floor();
    let mut decider = Decider::new(SequentialPlan::new(blocks, ALPHA, 0.0, seed))?;
    let mut seconds = 0.0;
    for _ in 0..blocks as usize {
        let length_s = duel.jittered(slice_s, DEFAULT_DESIGN.jitter);
        let block = duel.block(length_s, guard_s, 1);
        seconds += block.wall_s;
        decider.push(Unit::new(block.log_ratio, 1.0))?;
        if decider.has_verdict() {
            break;
        }
    }
    Ok(Ended {
        decider,
        seconds,
        slice_s,
    })
}
