//! Zipf's law as the original program draws it.

use dbduel_client::random::Random;

/// Zipf's law over `count` ranks, 0 the hottest, as Gray et al. (1994) draw it: two ranks exactly, the
/// others by the inverse of the integral. The exact sampler of [`dbduel_client::distributions`] would give other
/// frequencies to the ranks behind the second.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct GrayZipf {
    count: f64,
    zeta: f64,
    /// Below this, rank 1; below 1, rank 0.
    second: f64,
    alpha: f64,
    eta: f64,
}

/// Ranks from which on, for exponents below 1, the sum is approximated.
const ZETA_EXACT_MAX: u64 = 100_000;
/// Constants of that approximation.
const ZETA_OFFSET: f64 = 0.58;
const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;

impl GrayZipf {
    pub(in super::super) fn new(count: u64, shape: f64) -> Self {
        let zeta = zeta(count, shape);
        let two = 1.0 + 0.5_f64.powf(shape);
        let n = count as f64;
        GrayZipf {
            count: n,
            zeta,
            second: two,
            alpha: 1.0 / (1.0 - shape),
            eta: (1.0 - (2.0 / n).powf(1.0 - shape)) / (1.0 - two / zeta),
        }
    }

    #[inline]
    pub(super) fn rank(&self, random: &mut Random) -> u64 {
        let uniform = random.uniform();
        let reached = uniform * self.zeta;
        if reached < 1.0 {
            return 0;
        }
        if reached < self.second {
            return 1.min(self.count as u64 - 1);
        }
        let rank = self.count * (self.eta * uniform - self.eta + 1.0).powf(self.alpha);
        rank.min(self.count - 1.0) as u64
    }
}

/// The sum of k^-shape over 1..=count.
pub(in super::super) fn zeta(count: u64, shape: f64) -> f64 {
    let n = count as f64;
    if count < ZETA_EXACT_MAX || shape > 1.0 {
        return (1..=count).map(|k| (k as f64).powf(-shape)).sum();
    }
    if shape == 1.0 {
        return n.ln() + EULER_GAMMA;
    }
    n.powf(1.0 - shape) / (1.0 - shape) + ZETA_OFFSET - 1.0 / (1.0 - shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: u64 = 10_000_000;

    #[test]
    fn zipf_has_the_published_sums_and_hottest_shares() {
        for (shape, sum, hottest, tenth) in [
            (0.8, 121.2, 0.00825, 0.618),
            (0.741, 247.7, 0.00404, 0.545),
            (0.625, 1_122.0, 0.00089, 0.421),
            (0.606, 1_452.0, 0.00069, 0.403),
        ] {
            let zipf = GrayZipf::new(NODES, shape);
            assert!(
                (zipf.zeta / sum - 1.0).abs() < 0.001,
                "{shape}: {}",
                zipf.zeta
            );
            let mut random = Random::new(1);
            let draws = 400_000;
            let (mut first, mut top) = (0, 0);
            for _ in 0..draws {
                let rank = zipf.rank(&mut random);
                assert!(rank < NODES);
                first += u32::from(rank == 0);
                top += u32::from(rank < NODES / 10);
            }
            let share = |count: u32| f64::from(count) / f64::from(draws);
            let deviation = |share: f64| 4.0 * (share / f64::from(draws)).sqrt();
            assert!(
                (share(first) - hottest).abs() < deviation(hottest) + 5e-6,
                "{shape}: {first}"
            );
            assert!(
                (share(top) - tenth).abs() < 0.005,
                "{shape}: {}",
                share(top)
            );
        }
    }

    #[test]
    fn the_approximated_sum_is_close_to_the_exact_one() {
        for shape in [0.606, 0.8, 1.0] {
            let exact: f64 = (1..=200_000).map(|k| f64::from(k).powf(-shape)).sum();
            assert!(
                (zeta(200_000, shape) / exact - 1.0).abs() < 0.002,
                "{shape}"
            );
        }
    }
}
