//! Mapping between ids and ranks: a permutation without a table.
//!
//! The ranks are dealt to groups, and each group is a ring rotated by its own number. So neighbouring ranks lie on
//! unrelated ids, and both directions are computed. The rotations come from the generator of the Java library, so that
//! the hot ids are those of the original program.

/// Groups; fewer when there are fewer ids.
const GROUPS: u64 = 1_024;

/// A permutation of `0..count`.
#[derive(Debug)]
pub(super) struct Shuffle {
    count: u64,
    groups: u64,
    turns: Vec<u64>,
}

impl Shuffle {
    /// The permutation that belongs to `seed`.
    pub(super) fn new(seed: u64, count: u64) -> Self {
        let count = count.max(1);
        let groups = GROUPS.min(count);
        let mut random = JavaRandom::new(seed);
        let bound = (count / groups).min(i32::MAX as u64) as i32;
        Shuffle {
            count,
            groups,
            turns: (0..groups).map(|_| random.below(bound)).collect(),
        }
    }

    /// The position of a rank.
    #[inline]
    pub(super) fn place(&self, rank: u64) -> u64 {
        self.turn(rank, |length, turn| turn % length)
    }

    /// The rank of a position.
    #[inline]
    pub(super) fn rank(&self, place: u64) -> u64 {
        self.turn(place, |length, turn| length - turn % length)
    }

    #[inline]
    fn turn(&self, number: u64, steps: impl FnOnce(u64, u64) -> u64) -> u64 {
        let (group, position) = (number % self.groups, number / self.groups);
        let length = self.count / self.groups + u64::from(group < self.count % self.groups);
        let moved = (position + steps(length, self.turns[group as usize])) % length;
        moved * self.groups + group
    }
}

/// The linear congruential generator of `java.util.Random`: 48 bits, of which the upper ones are used
/// (Knuth, The Art of Computer Programming, volume 2, 3.2.1).
struct JavaRandom {
    state: u64,
}

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: u64) -> Self {
        JavaRandom {
            state: (seed ^ Self::MULTIPLIER) & Self::MASK,
        }
    }

    /// The next 31 bits.
    fn bits(&mut self) -> i32 {
        self.state = self.state.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xB) & Self::MASK;
        (self.state >> 17) as i32
    }

    /// Uniform on `0..bound`, by the rule of that library.
    fn below(&mut self, bound: i32) -> u64 {
        let bound = bound.max(1);
        if bound & (bound - 1) == 0 {
            return (bound as u64 * self.bits() as u64) >> 31;
        }
        loop {
            let bits = self.bits();
            let value = bits % bound;
            // Those above the last whole multiple of the bound would favour small numbers.
            if bits
                .checked_sub(value)
                .and_then(|low| low.checked_add(bound - 1))
                .is_some()
            {
                return value as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_documented_numbers() {
        // `new java.util.Random(42).nextInt()` is known to begin with -1170105035 and 234785527.
        let mut random = JavaRandom::new(42);
        assert_eq!(random.bits(), ((-1_170_105_035_i32) as u32 >> 1) as i32);
        assert_eq!(random.bits(), 234_785_527 >> 1);
        let mut random = JavaRandom::new(42);
        assert_eq!([random.below(10), random.below(100)], [0, 63]);
    }

    #[test]
    fn every_place_has_one_rank_and_the_way_back_is_the_same() {
        for count in [1, 2, 7, 1_023, 1_024, 1_025, 5_000, 100_003] {
            let shuffle = Shuffle::new(20_343_988_438_726_021, count);
            let mut seen = vec![false; count as usize];
            for rank in 0..count {
                let place = shuffle.place(rank);
                assert!(
                    !std::mem::replace(&mut seen[place as usize], true),
                    "{count}: {rank}"
                );
                assert_eq!(shuffle.rank(place), rank, "{count}");
                assert_eq!(place % shuffle.groups, rank % shuffle.groups);
            }
        }
    }

    #[test]
    fn different_seeds_give_different_permutations() {
        let places = |seed| {
            let shuffle = Shuffle::new(seed, 10_000_000);
            (0..100).map(|rank| shuffle.place(rank)).collect::<Vec<_>>()
        };
        assert_ne!(places(20_343_988_438_726_021), places(53_238_253_823_453));
        assert_eq!(places(5), places(5));
    }
}
