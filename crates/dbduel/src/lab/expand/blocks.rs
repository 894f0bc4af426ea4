//! Drawing the mirrored blocks: who runs when, decided by coins from the plan's seed.
//!
//! These draws are the statistical guarantee of every verdict: the test is exact because the order
//! within each block is a fair coin, independent of any noise.

use dbduel_record::plan::{Block, Schedule};
use dbduel_record::seed::named_seed;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// Every block of every level: `rounds` each, level by level.
pub fn draw(
    seed: u64,
    contenders: usize,
    levels: usize,
    rounds: u32,
    schedule: &Schedule,
) -> Vec<Block> {
    let cells = (0..levels).flat_map(|level| (0..rounds).map(move |round| (level, round)));
    cells
        .enumerate()
        .map(|(id, (level, round))| {
            // One stream per block, so that neither the number of rounds nor of levels changes a draw.
            let stream = named_seed(seed, &format!("block/level/{level}/round/{round}"));
            let mut random = Xoshiro256PlusPlus::seed_from_u64(stream);
            let mut order = permutation(contenders, &mut random);
            let mirrored: Vec<usize> = order.iter().rev().copied().collect();
            order.extend(mirrored);
            let factor = 1.0 + schedule.jitter * (2.0 * unit(&mut random) - 1.0);
            let slice_s = (schedule.slice_s * factor * 100.0).round() / 100.0;
            Block {
                id: id as u32,
                level,
                round,
                order,
                slice_s,
            }
        })
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
    use super::*;

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
        }
    }

    #[test]
    fn a_block_is_a_permutation_and_its_mirror() {
        for block in draw(7, 4, 2, 50, &schedule()) {
            let (first, second) = block.order.split_at(4);
            let mut sorted = first.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            assert!(first.iter().eq(second.iter().rev()));
            assert!((10.5..=19.5).contains(&block.slice_s));
        }
    }

    #[test]
    fn both_orders_of_two_are_equally_likely() {
        let blocks = draw(11, 2, 1, 10_000, &schedule());
        let baseline_first = blocks.iter().filter(|block| block.order[0] == 0).count();
        assert!(
            (4_800..=5_200).contains(&baseline_first),
            "{baseline_first} of 10000"
        );
    }

    #[test]
    fn the_seed_decides_and_nothing_else() {
        let blocks = draw(3, 2, 2, 20, &schedule());
        assert_eq!(blocks, draw(3, 2, 2, 20, &schedule()));
        assert_ne!(blocks, draw(4, 2, 2, 20, &schedule()));
        // More rounds leave the earlier ones as they were.
        let longer = draw(3, 2, 1, 40, &schedule());
        for (short, long) in blocks.iter().take(20).zip(&longer) {
            assert_eq!((&short.order, short.slice_s), (&long.order, long.slice_s));
        }
    }
}
