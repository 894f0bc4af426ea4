//! The generator behind everything that a client or a filler draws.
//!
//! A fixed algorithm (xoshiro256++, Blackman & Vigna 2019, seeded through SplitMix64), because records
//! and datasets must be reproducible by later versions. It knows nothing of distributions.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Digits taken from one draw: few enough that the bias, 10^8 / 2^64, cannot be seen.
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

#[cfg(test)]
mod tests {
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
}
