//! Long turns between the blocks of a level: their length and running order.

use dbduel_record::Plan;
use dbduel_record::plan::Arrival;
use dbduel_record::seed::named_seed;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use super::blocks::permutation;

/// Length of a long turn, unless the budget needs shorter ones, seconds.
const TURN_S: f64 = 8.0;
/// Least length of a long turn, seconds.
const TURN_S_MIN: f64 = 1.0;
/// Least length of a long turn, as a multiple of the turns of the blocks.
const TIMES_MIN: f64 = 4.0;
/// Share of the measured time of a level that its long turns may take.
pub const LONG_TURNS_SHARE_MAX: f64 = 0.25;
/// Rounds that this share of the whole budget should hold.
const ROUNDS_WANTED: f64 = 6.0;
/// Limit of the guard as a share of a long turn.
const GUARD_SHARE_MAX: f64 = 0.25;
/// Limit of drawn rounds.
const ROUNDS_MAX: usize = 64;

/// The long turns of a level.
#[derive(Debug, Clone, PartialEq)]
pub struct LongTurns {
    /// Measured part, seconds.
    pub turn_s: f64,
    /// Load before it, seconds: at least the measured length of a block's turn.
    pub guard_s: f64,
    /// Contenders in running order, round by round.
    pub rounds: Vec<Vec<usize>>,
}

impl LongTurns {
    /// Load of a round, seconds.
    #[must_use]
    pub fn round_s(&self) -> f64 {
        let contenders = self.rounds.first().map_or(0, Vec::len);
        (self.turn_s + self.guard_s) * contenders as f64
    }
}

/// Draws the long turns of a level whose turns are chosen. `None` where its blocks have long turns already, where the
/// arrivals determine throughput, or where the budget is too small.
#[must_use]
pub fn long_turns(plan: &Plan, level: usize) -> Option<LongTurns> {
    let is_closed = matches!(plan.levels[level].arrival, Arrival::Closed { .. });
    let contenders = plan.contenders.len();
    if !is_closed || contenders < 2 || plan.variants.is_some() {
        return None;
    }
    let short_s = match plan.turns.get(&level) {
        Some(choice) => choice.turn_s,
        None => plan.schedule.at(&plan.levels[level]).slice_s,
    };
    let share_s = plan.schedule.budget_s / plan.levels.len() as f64 * LONG_TURNS_SHARE_MAX;
    let each_s = share_s / (ROUNDS_WANTED * contenders as f64);
    let guard_s = plan.guard_s(level).max(short_s);
    let guard_s = guard_s.min(GUARD_SHARE_MAX * each_s);
    let turn_s = ((each_s - guard_s).min(TURN_S) * 100.0).floor() / 100.0;
    if turn_s < TURN_S_MIN.max(TIMES_MIN * short_s) {
        return None;
    }
    let round_s = (turn_s + guard_s) * contenders as f64;
    // A quotient beyond any count saturates in the conversion.
    let count = ((share_s / round_s) as usize).min(ROUNDS_MAX);
    let order = |round: usize| {
        let stream = format!("long-turns/level/{level}/round/{round}");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(named_seed(plan.seed, &stream));
        permutation(contenders, &mut random)
    };
    Some(LongTurns {
        turn_s,
        guard_s,
        rounds: (0..count).map(order).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::{Scenario, turn_choice};

    #[test]
    fn six_rounds_of_them_fit_into_a_quarter_of_the_budget_and_none_replaces_a_long_slice() {
        let mut plan = Scenario::duel().record().plan;
        plan.levels.truncate(1);
        plan.turns = [(0, turn_choice(0.2, 0.05))].into();
        for (budget_s, expected_s) in [(1200.0, 8.0), (288.0, 5.8), (60.0, 1.05)] {
            plan.schedule.budget_s = budget_s;
            let long = long_turns(&plan, 0).unwrap();
            assert!((long.turn_s - expected_s).abs() < 1e-9, "{long:?}");
            let all_s = long.round_s() * long.rounds.len() as f64;
            assert!(long.rounds.len() >= 6 && all_s <= budget_s / 4.0 + 1e-9);
            assert!(long.rounds.iter().any(|order| *order == [0, 1]));
            assert!(long.rounds.iter().any(|order| *order == [1, 0]));
        }
        plan.schedule.budget_s = 30.0;
        assert_eq!(long_turns(&plan, 0), None);
        plan.schedule.budget_s = 1200.0;
        plan.turns = [(0, turn_choice(2.5, 0.05))].into();
        assert_eq!(long_turns(&plan, 0), None);
    }
}
