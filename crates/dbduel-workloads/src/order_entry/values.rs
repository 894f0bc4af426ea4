//! The specification's random values: non-uniform numbers, last names, strings.
//!
//! Clause numbers are those of TPC-C revision 5.11.

use dbduel_client::random::Random;

/// Uniform on the closed range.
#[inline]
pub(super) fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    low + random.below(high - low + 1)
}

/// True in this percentage of cases.
#[inline]
pub(super) fn percent(random: &mut Random, share: u64) -> bool {
    random.below(100) < share
}

/// The skewed distribution of clause 2.1.6: `(((0..=mask | low..=high) + constant) mod span) + low`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NonUniform {
    pub mask: u64,
    pub low: u64,
    pub high: u64,
    pub constant: u64,
}

impl NonUniform {
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let bits = random.below(self.mask + 1) | between(random, self.low, self.high);
        (bits + self.constant) % (self.high - self.low + 1) + self.low
    }
}

/// Mask of the distribution of last names.
pub(super) const LAST_NAME_MASK: u64 = 255;

/// Whether a run may draw last names with constant `run` from data that was filled with constant `load`
/// (clause 2.1.6.1).
pub(super) fn constants_fit(load: u64, run: u64) -> bool {
    let distance = load.abs_diff(run);
    (65..=119).contains(&distance) && distance != 96 && distance != 112
}

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// A last name of clause 4.3.2.3: three syllables, one for each digit of a number below 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastName {
    bytes: [u8; 15],
    length: usize,
}

impl LastName {
    pub(super) fn new(number: u64) -> Self {
        let mut name = LastName {
            bytes: [0; 15],
            length: 0,
        };
        for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
            let syllable = SYLLABLES[digit as usize].as_bytes();
            name.bytes[name.length..name.length + syllable.len()].copy_from_slice(syllable);
            name.length += syllable.len();
        }
        name
    }

    pub(super) fn as_str(&self) -> &str {
        // Syllables are ASCII, so the text is always valid.
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const ALPHANUMERICS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Characters taken from one draw: few enough that the bias, 62^8 / 2^64, is negligible.
const CHARACTERS_PER_DRAW: usize = 8;

fn append(random: &mut Random, alphabet: &[u8], length: u64, out: &mut String) {
    let mut left = length as usize;
    while left > 0 {
        let mut fraction = random.bits();
        for _ in 0..left.min(CHARACTERS_PER_DRAW) {
            let product = u128::from(fraction) * alphabet.len() as u128;
            out.push(char::from(alphabet[(product >> 64) as usize]));
            fraction = product as u64;
        }
        left = left.saturating_sub(CHARACTERS_PER_DRAW);
    }
}

/// Appends this many letters.
pub(super) fn append_letters(random: &mut Random, length: u64, out: &mut String) {
    append(random, LETTERS, length, out);
}

/// Appends an a-string of clause 4.3.2.2: letters and digits, of uniform length.
pub(super) fn append_alphanumerics(random: &mut Random, low: u64, high: u64, out: &mut String) {
    let length = between(random, low, high);
    append(random, ALPHANUMERICS, length, out);
}

/// Appends this many digits.
pub(super) fn append_digits(random: &mut Random, length: u64, out: &mut String) {
    append(random, b"0123456789", length, out);
}

/// A random-looking permutation of `0..count` whose every value can be computed by itself: a Feistel
/// network over the next power of four, walked until it lands inside (Black & Rogaway 2002).
#[derive(Debug, Clone, Copy)]
pub(super) struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub(super) fn new(count: u64, random: &mut Random) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Permutation {
            count,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| random.bits()),
        }
    }

    /// Image of `index`, which is below the count.
    pub(super) fn at(&self, index: u64) -> u64 {
        let mut value = index;
        loop {
            value = self.encrypt(value);
            if value < self.count {
                return value;
            }
        }
    }

    fn encrypt(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            // Multiplying by an odd constant and keeping the high bits mixes all bits of the half.
            let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
            (left, right) = (right, left ^ (mixed & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn last_names_are_made_of_the_syllables_of_their_digits() {
        for (number, name) in [
            (0, "BARBARBAR"),
            (40, "BARPRESBAR"),
            (371, "PRICALLYOUGHT"),
            (777, "CALLYCALLYCALLY"),
            (999, "EINGEINGEING"),
        ] {
            assert_eq!(LastName::new(number).as_str(), name);
        }
        let all: BTreeSet<_> = (0..1000)
            .map(|number| LastName::new(number).as_str().to_owned())
            .collect();
        assert_eq!(all.len(), 1000);
    }

    /// The distribution, counted over all pairs of uniform numbers.
    fn exact(distribution: &NonUniform) -> Vec<f64> {
        let NonUniform {
            mask,
            low,
            high,
            constant,
        } = *distribution;
        let mut shares = vec![0.0; (high + 1) as usize];
        let weight = 1.0 / ((mask + 1) * (high - low + 1)) as f64;
        for a in 0..=mask {
            for b in low..=high {
                shares[(((a | b) + constant) % (high - low + 1) + low) as usize] += weight;
            }
        }
        shares
    }

    #[test]
    fn non_uniform_numbers_have_the_shares_that_their_definition_gives() {
        for distribution in [
            NonUniform {
                mask: 255,
                low: 0,
                high: 999,
                constant: 123,
            },
            NonUniform {
                mask: 1023,
                low: 1,
                high: 3000,
                constant: 259,
            },
        ] {
            let shares = exact(&distribution);
            let mut random = Random::new(3);
            let mut counts = vec![0_u32; shares.len()];
            let draws = 400_000;
            for _ in 0..draws {
                counts[distribution.draw(&mut random) as usize] += 1;
            }
            // Few draws per value, so values are gathered in groups of at least fifty expected ones.
            let (mut chi_square, mut groups, mut expected, mut found) = (0.0, 0_u32, 0.0, 0.0);
            for (share, count) in shares.iter().zip(&counts) {
                expected += share * f64::from(draws);
                found += f64::from(*count);
                if expected >= 50.0 {
                    chi_square += (found - expected).powi(2) / expected;
                    groups += 1;
                    (expected, found) = (0.0, 0.0);
                }
            }
            // Mean and standard deviation of chi-square are n and sqrt(2 n).
            let limit = f64::from(groups) + 4.0 * (2.0 * f64::from(groups)).sqrt();
            assert!(
                chi_square < limit,
                "{distribution:?}: {chi_square} in {groups} groups"
            );
        }
    }

    #[test]
    fn constants_of_run_and_load_keep_the_distance_of_the_specification() {
        let allowed_constants: Vec<u64> = (0..=255).filter(|&run| constants_fit(0, run)).collect();
        assert_eq!(allowed_constants.len(), 53);
        for refused in [0, 64, 96, 112, 120] {
            assert!(
                !constants_fit(refused, 0) && !constants_fit(0, refused),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_permutation_takes_every_place_once_and_leaves_few_where_they_were() {
        for count in [1, 2, 3, 30, 3000, 4096] {
            let permutation = Permutation::new(count, &mut Random::new(count));
            let places: BTreeSet<_> = (0..count).map(|index| permutation.at(index)).collect();
            assert_eq!(
                places.into_iter().collect::<Vec<_>>(),
                (0..count).collect::<Vec<_>>()
            );
        }
        let permutation = Permutation::new(3000, &mut Random::new(1));
        // A uniform permutation leaves one in its place on average.
        assert!(
            (0..3000)
                .filter(|&index| permutation.at(index) == index)
                .count()
                < 8
        );
        let rising = (1..3000)
            .filter(|&index| permutation.at(index) > permutation.at(index - 1))
            .count();
        assert!((1400..1600).contains(&rising), "{rising} neighbours rise");
    }

    #[test]
    fn strings_have_the_lengths_and_letters_asked_for() {
        let mut random = Random::new(5);
        let mut lengths = BTreeSet::new();
        let mut letters = BTreeSet::new();
        for _ in 0..2000 {
            let mut text = String::new();
            append_alphanumerics(&mut random, 14, 24, &mut text);
            lengths.insert(text.len());
            letters.extend(text.bytes());
        }
        assert_eq!(lengths, (14..=24).collect());
        assert_eq!(letters.len(), 62);
    }
}
