//! Choice of the link of a node for an operation.
//!
//! Links point to the ids after their node, so the range of drawn ids sets how many draws hit a loaded link.

use dbduel_client::random::Random;

use crate::parameters::Resolved;

/// Attempts to draw an id that is new in a multiget; after that it is requested twice.
const DISTINCT_ATTEMPTS: u32 = 100;

/// How links are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Targets {
    /// When not 0, links point to any id below it.
    pub random_below: u64,
    /// Whether clients use disjoint ids.
    pub apart: bool,
}

/// A client among others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub client: u64,
    pub clients: u64,
}

impl Targets {
    /// An id for which link `(id1, id2)` exists with about this probability, of a node with so many loaded links.
    #[inline]
    pub(super) fn draw(
        self,
        id1: u64,
        loaded: u64,
        hit_probability: f64,
        member: Member,
        random: &mut Random,
    ) -> u64 {
        let id2 = if self.random_below > 0 {
            random.below(self.random_below)
        } else {
            id1 + random.below(range(loaded, hit_probability))
        };
        if !self.apart || member.clients == 0 {
            return id2;
        }
        id2 - id2 % member.clients + member.client
    }

    /// Ids for one multiget, distinct if there are enough.
    pub(super) fn draw_several(
        self,
        id1: u64,
        loaded: u64,
        hit_probability: f64,
        count: usize,
        random: &mut Random,
        ids: &mut Vec<u64>,
    ) {
        ids.clear();
        let range = range(loaded, hit_probability);
        if self.random_below == 0 && range <= count as u64 {
            ids.extend((0..count as u64).map(|number| id1 + number));
            return;
        }
        for _ in 0..count {
            let mut draw = || self.draw(id1, loaded, hit_probability, Member::default(), random);
            let mut id2 = draw();
            for _ in 0..DISTINCT_ATTEMPTS {
                if !ids.contains(&id2) {
                    break;
                }
                id2 = draw();
            }
            ids.push(id2);
        }
    }
}

fn range(loaded: u64, hit_probability: f64) -> u64 {
    ((loaded as f64 / hit_probability).ceil() as u64).max(1)
}

/// Distribution of the number of links in a multiget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MultigetSizes {
    One,
    Uniform {
        min: u64,
        end: u64,
    },
    /// The first size, plus failures before the first success.
    Geometric {
        first: u64,
        most: u64,
        log_miss: f64,
    },
}

impl MultigetSizes {
    pub(super) fn new(resolved: Resolved<'_>, one_too_many: bool) -> Self {
        let (min, end) = (
            resolved.count("link_multiget_dist_min"),
            resolved.count("link_multiget_dist_max"),
        );
        let name = resolved.text("link_multiget_dist").to_ascii_lowercase();
        match name.rsplit('.').next() {
            Some("uniformdistribution") => MultigetSizes::Uniform { min, end },
            Some("geometricdistribution") => MultigetSizes::Geometric {
                first: min + u64::from(one_too_many),
                most: end - 1,
                log_miss: (1.0 - resolved.number("link_multiget_dist_prob")).ln(),
            },
            _ => MultigetSizes::One,
        }
    }

    #[inline]
    pub(super) fn draw(self, random: &mut Random) -> usize {
        let size = match self {
            MultigetSizes::One => 1,
            MultigetSizes::Uniform { min, end } => min + random.below(end - min),
            MultigetSizes::Geometric {
                first,
                most,
                log_miss,
            } => {
                let misses = ((1.0 - random.uniform()).ln() / log_miss) as u64;
                (first.saturating_add(misses)).min(most)
            }
        };
        size as usize
    }

    /// The mean of many.
    #[cfg(test)]
    pub(super) fn mean(self) -> f64 {
        let mut random = Random::new(10);
        let draws = 400_000;
        (0..draws)
            .map(|_| self.draw(&mut random) as f64)
            .sum::<f64>()
            / f64::from(draws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLLOWING: Targets = Targets {
        random_below: 0,
        apart: false,
    };

    #[test]
    fn about_the_wanted_share_of_draws_meets_a_loaded_link() {
        let mut random = Random::new(1);
        for probability in [0.5, 0.9, 0.05] {
            let draws = 50_000;
            let hits = (0..draws)
                .filter(|_| {
                    FOLLOWING.draw(100, 40, probability, Member::default(), &mut random) < 140
                })
                .count();
            let share = hits as f64 / f64::from(draws);
            assert!((share - probability).abs() < 0.02, "{probability}: {share}");
        }
        assert_eq!(
            FOLLOWING.draw(100, 0, 0.9, Member::default(), &mut random),
            100
        );
    }

    #[test]
    fn clients_that_keep_apart_never_share_a_link() {
        let mut random = Random::new(2);
        let targets = Targets {
            apart: true,
            ..FOLLOWING
        };
        let member = Member {
            client: 3,
            clients: 16,
        };
        assert!((0..1_000).all(|_| targets.draw(100, 500, 0.5, member, &mut random) % 16 == 3));
    }

    #[test]
    fn the_ids_of_a_multiget_are_different_ones() {
        let mut random = Random::new(3);
        let mut ids = Vec::new();
        FOLLOWING.draw_several(7, 1, 0.5, 5, &mut random, &mut ids);
        assert_eq!(ids, [7, 8, 9, 10, 11]);
        for _ in 0..1_000 {
            FOLLOWING.draw_several(7, 10, 0.5, 8, &mut random, &mut ids);
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), 8);
            assert!(ids.iter().all(|id| (7..27).contains(id)));
        }
    }
}
