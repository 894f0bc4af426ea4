//! Choice of the node of an operation.
//!
//! A distribution draws a rank, a permutation maps it to a node. The ranking of a correlated draw is the ranking by
//! degree, so that the most requested node is the one with most links. Rules about ids need no ranking.

mod traces;
mod zipf;

use std::sync::Arc;

use dbduel_client::random::Random;

use super::arithmetic::AccessRule;
use super::degrees::interpolate;
use super::shuffle::Shuffle;
pub(super) use traces::{Accesses, LINK_READS, LINK_WRITES, NODE_READS, NODE_WRITES};
pub(super) use zipf::{GrayZipf, zeta};

/// Distribution of the requested ranks.
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
    /// In sequence.
    RoundRobin {
        count: u64,
    },
    /// By a rule about ids.
    Arithmetic(AccessRule),
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

    /// One rank, or node where these [are nodes](Ranks::are_nodes); `previous` is the last result of a round robin.
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
            Ranks::Arithmetic(rule) => rule.draw(random),
        }
    }

    /// True when draws are nodes, counted from the first, instead of ranks.
    fn are_nodes(&self) -> bool {
        matches!(self, Ranks::RoundRobin { .. } | Ranks::Arithmetic(_))
    }
}

/// Ranks with their mapping to nodes.
#[derive(Debug, Clone)]
pub(super) struct Ranked {
    pub ranks: Ranks,
    pub ranking: Arc<Shuffle>,
}

/// Choice of nodes for one purpose.
#[derive(Debug)]
pub(super) struct Access {
    /// The first node's id.
    pub start: u64,
    pub main: Ranked,
    /// Percentage of the draws that another distribution makes.
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
            + if ranks.are_nodes() {
                rank
            } else {
                ranking.place(rank)
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
