//! Rules about ids in place of distributions: which node is requested, and how many links it has.
//!
//! They are the original's of the same names, and as there nothing is shuffled: the hot ids follow from the rule
//! alone. Roots and powers are whole numbers here, where logarithms of floating-point numbers miss some.

use dbduel_client::random::Random;

use super::degrees::Stair;

/// How an id follows from a uniformly drawn one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessFunction {
    /// The number of nodes divided by the drawn id: id k with probability 1 / (k·(k − 1)), when ids begin at 1.
    Reciprocal,
    /// The next multiple.
    Multiple(u64),
    /// The next power of this base, which is at least 2.
    Power(u64),
    /// The next number that is a perfect power with this exponent: square, cube and so on.
    PerfectPower(u64),
}

/// An access function over the nodes of a graph. Where the function leaves the graph, its last valid node is taken;
/// the original program then requests nodes that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AccessRule {
    pub function: AccessFunction,
    /// The first node's id.
    pub start: u64,
    pub nodes: u64,
}

impl AccessRule {
    /// A node, counted from the first.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        self.id(self.start + random.below(self.nodes)) - self.start
    }

    /// The id requested for the drawn id.
    fn id(&self, drawn: u64) -> u64 {
        let last = self.start + self.nodes - 1;
        let id = match self.function {
            AccessFunction::Reciprocal => self.nodes.div_ceil(drawn.max(1)),
            AccessFunction::Multiple(of) => {
                drawn.div_ceil(of).saturating_mul(of).min(last / of * of)
            }
            AccessFunction::Power(base) => match power_from(drawn, base) {
                beyond if beyond > last => power_up_to(last, base),
                power => power,
            },
            AccessFunction::PerfectPower(exponent) => {
                let root = root_from(drawn, exponent);
                match power(root, exponent) {
                    beyond if beyond > last => power(root - 1, exponent),
                    power => power,
                }
            }
        };
        id.clamp(self.start, last)
    }
}

/// Links of a node beyond the common minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DegreeFunction {
    /// The number of nodes divided by the node's number. The first one's would be infinite; it gets as many as the
    /// second.
    Reciprocal,
    /// This many for multiples of that number.
    Multiples(u64),
    /// For k to this power, the difference to k − 1 to this power.
    PerfectPowers(u64),
    /// For a power of this base, which is at least 2, the difference to the power before.
    Exponential(u64),
}

/// A degree function over the nodes of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DegreeRule {
    pub function: DegreeFunction,
    /// The first node's id.
    pub start: u64,
    pub nodes: u64,
    /// Fewest links of a node.
    pub least: u64,
    /// Maximum number of links of a node.
    pub most: u64,
}

impl DegreeRule {
    /// Links of the node with this id.
    pub(super) fn of(&self, id: u64) -> u64 {
        let extra = match self.function {
            DegreeFunction::Reciprocal => self.nodes.div_ceil((id - self.start).max(1)),
            DegreeFunction::Multiples(of) => of * u64::from(id.is_multiple_of(of)),
            DegreeFunction::PerfectPowers(exponent) => {
                let root = root_from(id, exponent);
                let before = power(root.saturating_sub(1), exponent);
                (id - before.min(id)) * u64::from(power(root, exponent) == id)
            }
            DegreeFunction::Exponential(base) => {
                (id - id / base) * u64::from(power_from(id, base) == id)
            }
        };
        self.least.saturating_add(extra).min(self.most)
    }

    /// Degrees with their number of nodes; a degree may occur more than once.
    pub(super) fn stairs(&self) -> Vec<Stair> {
        let (start, end) = (self.start, self.start + self.nodes);
        // The few ids that have other degrees than the rest.
        let special: Vec<u64> = match self.function {
            DegreeFunction::Reciprocal => return self.reciprocal_stairs(),
            DegreeFunction::Multiples(of) => {
                let multiples = (end - 1) / of - (start - 1) / of;
                let others = self.nodes - multiples;
                return vec![self.stair(multiples, of), self.stair(others, 0)];
            }
            DegreeFunction::PerfectPowers(1) => return vec![self.stair(self.nodes, 1)],
            DegreeFunction::PerfectPowers(exponent) => (root_from(start, exponent)..)
                .map(|root| power(root, exponent))
                .take_while(|id| *id < end)
                .collect(),
            DegreeFunction::Exponential(base) => {
                std::iter::successors(Some(power_from(start, base)), |id| id.checked_mul(base))
                    .take_while(|id| *id < end)
                    .collect()
            }
        };
        let rest = self.stair(self.nodes - special.len() as u64, 0);
        let of_special = special.iter().map(|id| Stair {
            ranks: 1,
            degree: self.of(*id),
        });
        of_special.chain([rest]).collect()
    }

    /// A stair of this many nodes with `extra` links beyond the common minimum.
    fn stair(&self, ranks: u64, extra: u64) -> Stair {
        Stair {
            ranks,
            degree: self.least.saturating_add(extra).min(self.most),
        }
    }

    /// The quotients have few distinct values: consecutive nodes share theirs.
    fn reciprocal_stairs(&self) -> Vec<Stair> {
        let mut stairs = vec![self.stair(1, self.nodes)];
        let mut first = 1;
        while first < self.nodes {
            // ⌈nodes / number⌉ is one more than this, and stays so up to `last`.
            let quotient = (self.nodes - 1) / first;
            let last = (self.nodes - 1) / quotient;
            stairs.push(self.stair(last - first + 1, quotient + 1));
            first = last + 1;
        }
        stairs
    }
}

/// The smallest power of `base` that is not below `value`.
fn power_from(value: u64, base: u64) -> u64 {
    let mut power = 1_u64;
    while power < value {
        power = power.saturating_mul(base.max(2));
    }
    power
}

/// The largest power of `base` that is not above `value`, which is at least 1.
fn power_up_to(value: u64, base: u64) -> u64 {
    let mut power = 1_u64;
    while power <= value / base.max(2) {
        power *= base.max(2);
    }
    power
}

/// The smallest whole number that, to this power, is not below `value`.
fn root_from(value: u64, exponent: u64) -> u64 {
    // Near enough that few steps are left.
    let mut root = (value as f64).powf(1.0 / exponent as f64) as u64;
    while power(root, exponent) < value {
        root += 1;
    }
    while root > 0 && power(root - 1, exponent) >= value {
        root -= 1;
    }
    root
}

fn power(root: u64, exponent: u64) -> u64 {
    root.saturating_pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The share of draws that each id gets, from all ids that can be drawn.
    fn shares(function: AccessFunction, start: u64, nodes: u64) -> BTreeMap<u64, f64> {
        let rule = AccessRule {
            function,
            start,
            nodes,
        };
        let mut shares = BTreeMap::new();
        for drawn in start..start + nodes {
            *shares.entry(rule.id(drawn)).or_default() += 1.0 / nodes as f64;
        }
        shares
    }

    #[track_caller]
    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-5, "{found} for {expected}");
    }

    #[test]
    fn accesses_fall_as_the_functions_say() {
        let nodes = 1_000_000;
        let reciprocal = shares(AccessFunction::Reciprocal, 1, nodes);
        for id in [2, 3, 4, 10, 100] {
            close(reciprocal[&id], 1.0 / (id * (id - 1)) as f64);
        }
        let multiple = shares(AccessFunction::Multiple(1_000), 1, nodes);
        assert_eq!(multiple.len(), 1_000);
        assert!(
            multiple
                .iter()
                .all(|(id, share)| { id.is_multiple_of(1_000) && (share - 0.001).abs() < 1e-9 })
        );
        let power = shares(AccessFunction::Power(10), 1, nodes);
        assert_eq!(power.len(), 7);
        for exponent in 1..=6 {
            close(
                power[&10_u64.pow(exponent)],
                0.9 * 10_f64.powi(exponent as i32 - 6),
            );
        }
        let square = shares(AccessFunction::PerfectPower(2), 1, nodes);
        assert_eq!(square.len(), 1_000);
        for root in [1_u64, 2, 500, 1_000] {
            close(square[&(root * root)], (2 * root - 1) as f64 / nodes as f64);
        }
    }

    #[test]
    fn draws_have_the_shares_of_the_function() {
        let rule = AccessRule {
            function: AccessFunction::Reciprocal,
            start: 1,
            nodes: 10_000_000,
        };
        let mut random = Random::new(4);
        let draws = 200_000;
        let second = (0..draws).filter(|_| rule.draw(&mut random) == 1).count();
        // Half of all draws are of id 2; five standard deviations.
        let share = second as f64 / f64::from(draws);
        assert!(
            (share - 0.5).abs() < 5.0 * (0.25 / f64::from(draws)).sqrt(),
            "{share}"
        );
    }

    #[test]
    fn no_function_leaves_the_graph() {
        for (start, nodes) in [(1, 1), (1, 2), (7, 1_000), (1_000_000, 500), (3, 29)] {
            for function in [
                AccessFunction::Reciprocal,
                AccessFunction::Multiple(3),
                AccessFunction::Power(2),
                AccessFunction::Power(u64::MAX >> 2),
                AccessFunction::PerfectPower(1),
                AccessFunction::PerfectPower(3),
                AccessFunction::PerfectPower(u64::MAX >> 2),
            ] {
                let found = shares(function, start, nodes);
                let ids = start..start + nodes;
                assert!(
                    found.keys().all(|id| ids.contains(id)),
                    "{function:?}: {found:?}"
                );
            }
        }
    }

    fn rule(function: DegreeFunction, start: u64, nodes: u64) -> DegreeRule {
        DegreeRule {
            function,
            start,
            nodes,
            least: 1,
            most: 500_000,
        }
    }

    #[test]
    fn degrees_are_those_of_the_functions() {
        for (function, expected) in [
            // Ids 1, 2, 3, …; one link for everyone and then some.
            (
                DegreeFunction::Reciprocal,
                [101, 101, 51, 35, 26, 21, 18, 16, 14, 13],
            ),
            (DegreeFunction::Multiples(4), [1, 1, 1, 5, 1, 1, 1, 5, 1, 1]),
            (
                DegreeFunction::PerfectPowers(2),
                [2, 1, 1, 4, 1, 1, 1, 1, 6, 1],
            ),
            (
                DegreeFunction::PerfectPowers(3),
                [2, 1, 1, 1, 1, 1, 1, 8, 1, 1],
            ),
            (
                DegreeFunction::Exponential(2),
                [2, 2, 1, 3, 1, 1, 1, 5, 1, 1],
            ),
            (
                DegreeFunction::Exponential(3),
                [2, 1, 3, 1, 1, 1, 1, 1, 7, 1],
            ),
        ] {
            let rule = rule(function, 1, 100);
            let found: Vec<u64> = (1..=10).map(|id| rule.of(id)).collect();
            assert_eq!(found, expected, "{function:?}");
        }
        // Where a logarithm misses the power, and where a root misses the cube.
        assert_eq!(rule(DegreeFunction::Exponential(5), 1, 1_000).of(125), 101);
        assert_eq!(
            rule(DegreeFunction::PerfectPowers(3), 1, 1_000_000).of(100_u64.pow(3)),
            29_702
        );
    }

    #[test]
    fn the_stairs_say_the_same_as_the_degrees_of_all_nodes() {
        for (start, nodes) in [(1, 1), (1, 2), (1, 10_000), (900, 3_000)] {
            for function in [
                DegreeFunction::Reciprocal,
                DegreeFunction::Multiples(1),
                DegreeFunction::Multiples(7),
                DegreeFunction::PerfectPowers(1),
                DegreeFunction::PerfectPowers(2),
                DegreeFunction::PerfectPowers(90),
                DegreeFunction::Exponential(2),
                DegreeFunction::Exponential(10),
            ] {
                let rule = rule(function, start, nodes);
                let mut one_by_one = BTreeMap::new();
                for id in start..start + nodes {
                    *one_by_one.entry(rule.of(id)).or_insert(0) += 1;
                }
                let mut stairs = BTreeMap::new();
                for stair in rule.stairs().iter().filter(|stair| stair.ranks > 0) {
                    *stairs.entry(stair.degree).or_insert(0) += stair.ranks;
                }
                assert_eq!(stairs, one_by_one, "{function:?} from {start}");
            }
        }
    }

    #[test]
    fn the_cap_holds_for_all() {
        let rule = DegreeRule {
            most: 20,
            ..rule(DegreeFunction::Reciprocal, 1, 1_000)
        };
        assert!((1..=1_000).all(|id| rule.of(id) <= 20));
        assert!(rule.stairs().iter().all(|stair| stair.degree <= 20));
    }
}
