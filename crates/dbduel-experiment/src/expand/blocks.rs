//! Draws the blocks: the running order, by coins from the plan's seed.
//!
//! These draws are the statistical guarantee of every verdict: the test is exact because the order
//! within each block is a fair coin, independent of any noise.

use dbduel_record::Plan;
use dbduel_record::plan::{Block, Schedule, TurnChoice};
use dbduel_record::seed::named_seed;
use dbduel_stats::sequential::unit_length_s;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::schedule::block_load_s;

/// How the time of a load level is divided into blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    seed: u64,
    contenders: usize,
    level: usize,
    /// Centre of the planned turn lengths, seconds.
    turn_s: f64,
    jitter: f64,
    /// Load of a block without repeats, seconds.
    once_s: f64,
    /// Smallest difference of two lengths, seconds.
    step_s: f64,
    /// Whether later blocks have more turns.
    grows: bool,
    /// Least repeats of a block whose turns a pilot chose.
    repeats_min: u32,
    /// Whether the reverse of the order follows it.
    mirrored: bool,
}

impl Cut {
    /// With slices of one turn each, as long as the schedule says.
    pub(super) fn fixed(seed: u64, contenders: usize, level: usize, schedule: &Schedule) -> Self {
        Cut {
            seed,
            contenders,
            level,
            turn_s: schedule.slice_s,
            jitter: schedule.jitter,
            once_s: block_load_s(schedule, contenders),
            step_s: 0.01,
            grows: false,
            repeats_min: 1,
            mirrored: schedule.mirrored,
        }
    }

    /// With turns that a pilot chose.
    pub(super) fn chosen(plan: &Plan, level: usize, choice: &TurnChoice) -> Self {
        let schedule = Schedule {
            slice_s: choice.turn_s,
            guard_s: choice.guard_s,
            ..plan.schedule.clone()
        };
        Cut {
            step_s: 0.001,
            grows: true,
            repeats_min: choice.repeats_min,
            ..Self::fixed(plan.seed, plan.contenders.len(), level, &schedule)
        }
    }

    /// The cut of the blocks that `plan` has at a level; `None` before a pilot has chosen.
    pub(super) fn of(plan: &Plan, level: usize) -> Option<Self> {
        match (plan.turns.get(&level), plan.schedule.pilot) {
            (Some(choice), _) => Some(Self::chosen(plan, level, choice)),
            (None, None) => Some(Self::fixed(
                plan.seed,
                plan.contenders.len(),
                level,
                &plan.schedule.at(&plan.levels[level]),
            )),
            (None, Some(_)) => None,
        }
    }

    /// An endless sequence of blocks of the level; the caller sets their ids.
    ///
    /// Where turns are short a block is repeated until it lasts as long as a unit of the test must, which grows with
    /// the time before it: a large difference is found soon, and later blocks cover slower movements of the servers.
    pub(super) fn blocks(self) -> impl Iterator<Item = Block> {
        (0..).scan(0.0, move |elapsed_s, round| {
            let repeats = match self.grows {
                // A quotient beyond any count saturates in the conversion.
                true => {
                    let repeats = (unit_length_s(*elapsed_s) / self.once_s).ceil() as u32;
                    repeats.max(self.repeats_min).max(1)
                }
                false => 1,
            };
            *elapsed_s += self.once_s * f64::from(repeats);
            Some(self.block(round, repeats))
        })
    }

    fn block(self, round: u32, repeats: u32) -> Block {
        // One stream per block, so that neither the number of rounds nor of levels changes a draw.
        let stream = named_seed(
            self.seed,
            &format!("block/level/{}/round/{round}", self.level),
        );
        let mut random = Xoshiro256PlusPlus::seed_from_u64(stream);
        let mut order = permutation(self.contenders, &mut random);
        if self.mirrored {
            let reverse: Vec<usize> = order.iter().rev().copied().collect();
            order.extend(reverse);
        }
        let factor = 1.0 + self.jitter * (2.0 * unit(&mut random) - 1.0);
        let steps_per_s = 1.0 / self.step_s;
        Block {
            id: 0,
            level: self.level,
            round,
            order,
            slice_s: (self.turn_s * factor * steps_per_s).round() / steps_per_s,
            repeats,
        }
    }
}

/// Draws blocks of fixed slices for every level, each with its own schedule: `rounds` each, level by level.
pub(super) fn draw(
    seed: u64,
    contenders: usize,
    schedules: &[Schedule],
    rounds: u32,
) -> Vec<Block> {
    let all = schedules.iter().enumerate().flat_map(|(level, schedule)| {
        let blocks = Cut::fixed(seed, contenders, level, schedule).blocks();
        blocks.take(rounds as usize)
    });
    numbered_from(0, all)
}

/// Numbers blocks from `first`.
pub(super) fn numbered_from(first: usize, blocks: impl Iterator<Item = Block>) -> Vec<Block> {
    (first as u32..)
        .zip(blocks)
        .map(|(id, block)| Block { id, ..block })
        .collect()
}

/// A uniformly random permutation of `0..count` (Fisher and Yates, in Durstenfeld's form, 1964).
pub(super) fn permutation(count: usize, random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, below(last + 1, random));
    }
    order
}

/// Uniform in `0..bound`: the high half of a 128-bit product, biased by less than 2⁻⁵⁰ here.
fn below(bound: usize, random: &mut Xoshiro256PlusPlus) -> usize {
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}

/// Uniform in [0, 1).
fn unit(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::super::schedule::load_s;
    use super::*;
    use dbduel_testkit::synthetic::{Scenario, turn_choice};

    fn schedule() -> Schedule {
        Schedule {
            budget_s: 1200.0,
            slice_s: 15.0,
            jitter: 0.3,
            guard_s: 2.0,
            drain_s: 30.0,
            tick_s: 1.0,
            warm_up_cap_s: 60.0,
            warm_up_hold_s: 36.0,
            epochs: None,
            pilot: None,
            mirrored: true,
        }
    }

    #[test]
    fn a_block_is_a_permutation_and_its_mirror() {
        for block in draw(7, 4, &[schedule(), schedule()], 50) {
            let (first, second) = block.order.split_at(4);
            let mut sorted = first.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            assert!(first.iter().eq(second.iter().rev()));
            assert!((10.5..=19.5).contains(&block.slice_s));
        }
    }

    #[test]
    fn a_block_that_is_not_mirrored_is_a_permutation_and_every_place_equally_likely() {
        let once = Schedule {
            mirrored: false,
            ..schedule()
        };
        let blocks = draw(7, 4, &[once], 8_000);
        for block in &blocks {
            let mut sorted = block.order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
        for (one, other) in [(0, 1), (0, 3), (2, 1)] {
            let place = |block: &Block, who| block.order.iter().position(|&at| at == who);
            let before = blocks
                .iter()
                .filter(|block| place(block, one) < place(block, other));
            assert!((3_800..=4_200).contains(&before.count()), "{one} {other}");
        }
    }

    #[test]
    fn both_orders_of_two_are_equally_likely() {
        let blocks = draw(11, 2, &[schedule()], 10_000);
        let baseline_first = blocks.iter().filter(|block| block.order[0] == 0).count();
        assert!(
            (4_800..=5_200).contains(&baseline_first),
            "{baseline_first} of 10000"
        );
    }

    #[test]
    fn turns_that_were_chosen_make_small_blocks_first_and_then_growing_ones() {
        let plan = Scenario::duel().record().plan;
        let choice = turn_choice(0.2, 0.05);
        let cut = Cut::chosen(&plan, 0, &choice);
        let blocks: Vec<Block> = cut.blocks().take(200).collect();
        let repeats: Vec<u32> = blocks.iter().map(|block| block.repeats).collect();
        assert_eq!(repeats[0], 3);
        assert!(repeats.is_sorted() && repeats[40] > 6);
        let longer = TurnChoice {
            repeats_min: 5,
            ..choice.clone()
        };
        let longer = Cut::chosen(&plan, 0, &longer).blocks();
        let longer: Vec<u32> = longer.take(200).map(|block| block.repeats).collect();
        assert!(longer[..3] == [5, 5, 5] && longer[100..] == repeats[100..]);
        let schedule = Plan {
            turns: [(0, choice)].into(),
            ..plan.clone()
        };
        let longest_s = blocks.iter().map(|block| load_s(&schedule, block));
        let longest_s = longest_s.fold(0.0, f64::max);
        assert!((15.0..=28.0).contains(&longest_s), "{longest_s}");
        // The default budget in so many blocks that a test of them costs little.
        let elapsed = |sum: &mut f64, block: &Block| {
            *sum += load_s(&schedule, block);
            Some(*sum)
        };
        let until = blocks
            .iter()
            .scan(0.0, elapsed)
            .take_while(|sum| *sum < 1200.0);
        assert!((60..180).contains(&until.count()));
        assert!(
            blocks
                .iter()
                .all(|block| (0.14..=0.26).contains(&block.slice_s))
        );
        assert_eq!(
            blocks[..50],
            Cut::chosen(&plan, 0, &turn_choice(0.2, 0.05))
                .blocks()
                .take(50)
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_seed_decides_and_nothing_else() {
        let blocks = draw(3, 2, &[schedule(), schedule()], 20);
        assert_eq!(blocks, draw(3, 2, &[schedule(), schedule()], 20));
        assert_ne!(blocks, draw(4, 2, &[schedule(), schedule()], 20));
        // More rounds leave the earlier ones as they were.
        let longer = draw(3, 2, &[schedule()], 40);
        for (short, long) in blocks.iter().take(20).zip(&longer) {
            assert_eq!((&short.order, short.slice_s), (&long.order, long.slice_s));
        }
    }
}
