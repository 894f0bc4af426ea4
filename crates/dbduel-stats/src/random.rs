//! Seeded random numbers whose values never change: xoshiro256++ (Blackman & Vigna 2019), seeded through SplitMix64.
//!
//! Verdicts are recomputed from records years later, so neither the generator nor the conversion of its bits to
//! numbers may change.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers, identified by a seed and a stream number.
#[derive(Debug, Clone)]
pub struct RandomStream {
    generator: Xoshiro256PlusPlus,
    spare_normal: Option<f64>,
}

impl RandomStream {
    /// The stream `stream` of `seed`; different streams of one seed are independent for all our purposes.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        // The odd multiplier (2^64 / golden ratio) keeps neighbouring stream numbers far apart in seed space.
        let mixed = seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        RandomStream {
            generator: Xoshiro256PlusPlus::seed_from_u64(mixed),
            spare_normal: None,
        }
    }

    /// 64 fair bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform on [0, 1), a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Standard normal (Marsaglia's polar method, 1964).
    pub fn normal(&mut self) -> f64 {
        if let Some(value) = self.spare_normal.take() {
            return value;
        }
        loop {
            let u = 2.0 * self.uniform() - 1.0;
            let v = 2.0 * self.uniform() - 1.0;
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare_normal = Some(v * factor);
                return u * factor;
            }
        }
    }

    /// Uniform on `0..count`; 0 when `count` is 0.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the product of 64 bits and a count, shifted by 64, is below the count"
    )]
    pub fn below(&mut self, count: usize) -> usize {
        // Multiply-shift; its bias of count / 2^64 is far below anything a permutation test can see.
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// Puts the values into random order (Fisher & Yates 1938).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_never_change() {
        let mut stream = RandomStream::new(42, 0);
        let first = [stream.bits(), stream.bits()];
        let mut again = RandomStream::new(42, 0);
        assert_eq!(first, [again.bits(), again.bits()]);
        assert_eq!(first, [FIRST, SECOND]);
        assert_ne!(RandomStream::new(42, 1).bits(), FIRST);
    }

    const FIRST: u64 = 17_283_472_583_437_600_544;
    const SECOND: u64 = 8_370_042_955_726_067_862;

    #[test]
    fn normals_have_mean_zero_and_unit_variance() {
        let mut stream = RandomStream::new(7, 3);
        let values: Vec<f64> = (0..100_000).map(|_| stream.normal()).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let square = values.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(
            mean.abs() < 0.015 && (square - 1.0).abs() < 0.02,
            "{mean} {square}"
        );
    }

    #[test]
    fn shuffling_reaches_every_order_equally_often() {
        let mut stream = RandomStream::new(1, 1);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut order = [0, 1, 2];
            stream.shuffle(&mut order);
            *counts.entry(order).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(
            counts.values().all(|count| (870..1130).contains(count)),
            "{counts:?}"
        );
    }
}
