//! The random generator of clients and fillers.
//!
//! A fixed algorithm (xoshiro256++, Blackman & Vigna 2019, seeded through SplitMix64), because records and datasets
//! must be reproducible by later versions.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Digits taken from one draw: few enough that the bias, 10^8 / 2^64, is negligible.
const DIGITS_PER_DRAW: usize = 8;

/// A seeded stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    generator: Xoshiro256PlusPlus,
}

impl Random {
    /// The stream that belongs to `seed`, see [`dbduel_record::seed::named_seed`].
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Random {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// 64 fair bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform on [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform on `0..count`; 0 when `count` is 0.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        // Multiply-shift; its bias of count / 2^64 is far below anything that a workload can show.
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }

    /// Exponential with mean 1 (inversion).
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        // 1 − u lies in (0, 1], so the logarithm is finite.
        -(1.0 - self.uniform()).ln()
    }

    /// Overwrites every byte with a random decimal digit.
    pub fn fill_digits(&mut self, digits: &mut [u8]) {
        for chunk in digits.chunks_mut(DIGITS_PER_DRAW) {
            let mut fraction = self.bits();
            for digit in chunk {
                let product = u128::from(fraction) * 10;
                *digit = b'0' + (product >> 64) as u8;
                fraction = product as u64;
            }
        }
    }
}

/// The largest prime below 2^32 that is 3 modulo 4.
const PRIME: u64 = 4_294_967_291;
const OFFSET: u32 = 0x4679_0905;
const MASK: u32 = 0x5bf0_3635;

/// The n-th number of a pseudo-random sequence without repetitions, by sysbench's permutation: quadratic residues
/// modulo a prime just below 2^32, twice. A function of n, without a generator.
pub fn unique(n: u32) -> u32 {
    permute(permute(n).wrapping_add(OFFSET) ^ MASK)
}

/// Squares modulo the prime are distinct below its half; the upper half is mirrored. The five numbers from the prime
/// on map to themselves.
fn permute(x: u32) -> u32 {
    let x = u64::from(x);
    if x >= PRIME {
        return x as u32;
    }
    let residue = x * x % PRIME;
    if x <= PRIME / 2 {
        residue as u32
    } else {
        (PRIME - residue) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_first_numbers_never_change() {
        let mut random = Random::new(42);
        let first = [random.bits(), random.bits(), random.bits()];
        let recorded = [
            15_021_278_609_987_233_951,
            5_881_210_131_331_364_753,
            18_149_643_915_985_481_100,
        ];
        assert_eq!(
            first, recorded,
            "datasets of earlier versions could not be made again"
        );
    }

    #[test]
    fn digits_are_digits_and_equally_frequent() {
        let mut random = Random::new(7);
        let mut digits = vec![0; 100_000];
        random.fill_digits(&mut digits);
        let mut counts = [0_u32; 10];
        for &digit in &digits {
            counts[usize::from(digit - b'0')] += 1;
        }
        let chi_square: f64 = counts
            .iter()
            .map(|&count| (f64::from(count) - 10_000.0).powi(2) / 10_000.0)
            .sum();
        // 99.9 % quantile of chi-square with 9 degrees of freedom.
        assert!(chi_square < 27.88, "{counts:?}");
    }

    #[test]
    fn exponential_gaps_have_mean_one() {
        let mut random = Random::new(7);
        let mean = (0..100_000).map(|_| random.exponential()).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn numbers_do_not_repeat() {
        let starts = [0, 1 << 30, (PRIME / 2) as u32 - 50_000, u32::MAX - 100_000];
        let numbers: Vec<u32> = starts
            .iter()
            .flat_map(|start| (0..100_000).map(move |n| unique(start + n)))
            .collect();
        assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), numbers.len());
    }

    #[test]
    fn neighbours_lie_far_apart() {
        let near = (0..10_000)
            .filter(|&n| unique(n).abs_diff(unique(n + 1)) < 1 << 20)
            .count();
        assert!(near < 20, "{near} of 10000 neighbours are close");
    }
}
