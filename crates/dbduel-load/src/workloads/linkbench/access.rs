//! Which node an operation is about.
//!
//! A distribution draws a rank, a permutation says which node has it. The ranking of a correlated draw is
//! the ranking by degree, so that there the node asked for most is the one with most links.

use std::sync::Arc;

use super::degrees::interpolate;
use super::shuffle::Shuffle;
use crate::random::Random;

/// Zipf's law over `count` ranks, 0 the hottest, as Gray et al. (1994) draw it: two ranks exactly, the
/// others by the inverse of the integral. The exact sampler of [`crate::distributions`] would give other
/// frequencies to the ranks behind the second.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GrayZipf {
    count: f64,
    zeta: f64,
    /// Below this, rank 1; below 1, rank 0.
    second: f64,
    alpha: f64,
    eta: f64,
}

/// From so many ranks on, for exponents below 1, the sum is approximated.
const ZETA_EXACT_MAX: u64 = 100_000;
/// Constants of that approximation.
const ZETA_OFFSET: f64 = 0.58;
const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;

impl GrayZipf {
    pub(super) fn new(count: u64, shape: f64) -> Self {
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
    fn rank(&self, random: &mut Random) -> u64 {
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
fn zeta(count: u64, shape: f64) -> f64 {
    let n = count as f64;
    if count < ZETA_EXACT_MAX || shape > 1.0 {
        return (1..=count).map(|k| (k as f64).powf(-shape)).sum();
    }
    if shape == 1.0 {
        return n.ln() + EULER_GAMMA;
    }
    n.powf(1.0 - shape) / (1.0 - shape) + ZETA_OFFSET - 1.0 / (1.0 - shape)
}

/// How often ids were seen to be accessed: t and P(accesses ≥ t).
pub(super) type Accesses = &'static [(f64, f64)];

/// Link reads of the published trace.
pub(super) const LINK_READS: Accesses = &[
    (1.0, 0.04425),
    (2.0, 0.02645),
    (3.0, 0.0186),
    (4.0, 0.01551),
    (6.0, 0.01168),
    (10.0, 6.957e-3),
    (16.0, 4.171e-3),
    (32.0, 2.156e-3),
    (64.0, 1.172e-3),
    (128.0, 6.885e-4),
    (256.0, 4.252e-4),
    (500.0, 2.489e-4),
    (1_000.0, 1.083e-4),
    (2_000.0, 2.285e-5),
    (3_000.0, 5.009e-6),
    (5_000.0, 6.257e-7),
    (10_000.0, 8.56e-8),
    (95_718.0, 3.3e-9),
];
/// Link writes of the published trace.
pub(super) const LINK_WRITES: Accesses = &[
    (1.0, 0.03246),
    (2.0, 0.01126),
    (3.0, 6.786e-3),
    (4.0, 5.119e-3),
    (6.0, 3.103e-3),
    (10.0, 1.608e-3),
    (16.0, 9.923e-4),
    (32.0, 5.489e-4),
    (64.0, 3.575e-4),
    (128.0, 2.325e-4),
    (256.0, 1.383e-4),
    (500.0, 7.215e-5),
    (1_000.0, 2.995e-5),
    (2_000.0, 9.64e-6),
    (5_000.0, 1.755e-6),
    (10_000.0, 5.039e-7),
    (20_000.0, 1.614e-7),
    (75_879.0, 3.3e-9),
];
/// Node reads of the published trace.
pub(super) const NODE_READS: Accesses = &[
    (1.0, 0.04797),
    (2.0, 0.02633),
    (3.0, 0.01772),
    (4.0, 0.01204),
    (5.0, 7.911e-3),
    (6.0, 4.942e-3),
    (8.0, 1.939e-3),
    (10.0, 1.102e-3),
    (16.0, 5.361e-4),
    (32.0, 2.27e-4),
    (64.0, 1.049e-4),
    (128.0, 4.034e-5),
    (256.0, 1.279e-5),
    (500.0, 3.59e-6),
    (1_000.0, 8.53e-7),
    (2_000.0, 2.371e-7),
    (5_000.0, 4.61e-8),
    (23_831.0, 3.3e-9),
];
/// Node writes of the published trace.
pub(super) const NODE_WRITES: Accesses = &[
    (1.0, 0.04777),
    (2.0, 0.01417),
    (3.0, 4.636e-3),
    (4.0, 3.066e-3),
    (6.0, 1.848e-3),
    (10.0, 1.003e-3),
    (16.0, 6.36e-4),
    (32.0, 3.266e-4),
    (64.0, 1.892e-4),
    (128.0, 1.048e-4),
    (256.0, 4.601e-5),
    (500.0, 1.441e-5),
    (1_000.0, 2.487e-6),
    (2_000.0, 1.713e-7),
    (5_000.0, 6.6e-9),
    (25_125.0, 3.3e-9),
];

/// Which ranks are asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ranks {
    Uniform {
        count: u64,
    },
    Zipf(GrayZipf),
    /// Rank k with probability p·(1−p)^k.
    Geometric {
        count: u64,
        log_miss: f64,
    },
    /// Ranks in proportion to the accesses that the trace saw. The layers of the staircase "so many ids
    /// were accessed at least t times" are equally often hit per id: first a layer, then an id of it.
    Traced {
        layers: Vec<(u64, u64)>,
    },
    /// One after another.
    RoundRobin {
        count: u64,
    },
}

impl Ranks {
    /// Ranks in proportion to a trace.
    pub(super) fn traced(accesses: Accesses, count: u64) -> Self {
        let most = accesses.last().map_or(1.0, |last| last.0) as u64;
        let mut sum = 0;
        let layers = (1..=most).map(|times| {
            let ids = ((count as f64 * interpolate(accesses, times as f64)).ceil() as u64)
                .clamp(1, count);
            sum += ids;
            (sum, ids)
        });
        Ranks::Traced {
            layers: layers.collect(),
        }
    }

    /// One rank; `previous` is the last one that a round robin gave.
    #[inline]
    fn draw(&self, random: &mut Random, previous: &mut u64) -> u64 {
        match self {
            Ranks::Uniform { count } => random.below(*count),
            Ranks::Zipf(zipf) => zipf.rank(random),
            Ranks::Geometric { count, log_miss } => {
                let rank = ((1.0 - random.uniform()).ln() / log_miss) as u64;
                rank.min(count - 1)
            }
            Ranks::Traced { layers } => {
                let hit = random.below(layers.last().map_or(1, |last| last.0));
                let layer = layers.partition_point(|layer| layer.0 <= hit);
                random.below(layers.get(layer).map_or(1, |layer| layer.1))
            }
            Ranks::RoundRobin { count } => {
                *previous = (*previous + 1) % count;
                *previous
            }
        }
    }
}

/// Ranks with the nodes that have them.
#[derive(Debug, Clone)]
pub(super) struct Ranked {
    pub ranks: Ranks,
    pub ranking: Arc<Shuffle>,
}

/// How nodes are chosen for one purpose.
#[derive(Debug)]
pub(super) struct Access {
    /// The first node's id.
    pub start: u64,
    pub main: Ranked,
    /// Of so many percent of the draws another distribution decides.
    pub blended: Option<(f64, Ranked)>,
}

impl Access {
    /// A node's id; `previous` as a round robin needs it.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random, previous: &mut u64) -> u64 {
        let Ranked { ranks, ranking } = match &self.blended {
            Some((percent, other)) if random.uniform() * 100.0 < *percent => other,
            _ => &self.main,
        };
        let rank = ranks.draw(random, previous);
        self.start
            + match ranks {
                Ranks::RoundRobin { .. } => rank,
                _ => ranking.place(rank),
            }
    }
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

    #[test]
    fn traced_ranks_fall_in_proportion_to_the_trace() {
        let count = 1_000_000;
        let ranks = Ranks::traced(LINK_READS, count);
        let Ranks::Traced { layers } = &ranks else {
            panic!("{ranks:?}")
        };
        // Mean accesses per id of the trace: 0.6476, of the knots 1.3 % less; and the ids of the last
        // layers, which are never less than one, add 0.1 per id to a graph as small as this.
        let mean = layers.last().unwrap().0 as f64 / count as f64;
        assert!((0.62..0.76).contains(&mean), "{mean}");
        let (mut random, mut previous) = (Random::new(2), 0);
        let hits = (0..100_000)
            .filter(|_| ranks.draw(&mut random, &mut previous) < 44_250)
            .count();
        assert_eq!(
            hits, 100_000,
            "ids that the trace did not see are never asked for"
        );
    }

    #[test]
    fn every_distribution_stays_among_the_nodes() {
        for count in [1, 2, 3, 1_000] {
            let ranking = Arc::new(Shuffle::new(9, count));
            for ranks in [
                Ranks::Uniform { count },
                Ranks::Zipf(GrayZipf::new(count, 0.8)),
                Ranks::Geometric {
                    count,
                    log_miss: 0.5_f64.ln(),
                },
                Ranks::traced(NODE_WRITES, count),
                Ranks::RoundRobin { count },
            ] {
                let access = Access {
                    start: 7,
                    main: Ranked {
                        ranks,
                        ranking: Arc::clone(&ranking),
                    },
                    blended: None,
                };
                let (mut random, mut previous) = (Random::new(3), 0);
                for _ in 0..1_000 {
                    let id = access.draw(&mut random, &mut previous);
                    assert!((7..7 + count).contains(&id), "{access:?}: {id}");
                }
            }
        }
    }
}
