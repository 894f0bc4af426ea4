//! The loaded graph: its links, found by node and by number.
//!
//! Only sums over blocks of ids are stored; a node's links follow from its rank.

use std::sync::OnceLock;

use super::arithmetic::{DegreeFunction, DegreeRule};
use super::degrees::{Degrees, Model, Stair};
use super::shuffle::Shuffle;

/// Ids between two sums.
const BLOCK: u64 = 256;

/// Rule for a node's number of links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Law {
    /// By the node's rank, from a permutation.
    ByRank(Model),
    /// By the node's id, with a minimum.
    ById(DegreeFunction, u64),
}

/// Parameters that determine the size of the graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// The first node's id.
    pub start: u64,
    pub nodes: u64,
    pub link_types: u64,
    pub law: Law,
    pub degree_max: u64,
    /// Seed of the ranking by degree.
    pub seed: u64,
    /// Whether the remainder of the split over types is computed as in the original program.
    pub split_bug: bool,
}

/// The graph.
#[derive(Debug)]
pub(super) struct Graph {
    shape: Shape,
    outgoing: Outgoing,
    sums: OnceLock<Vec<Sums>>,
}

/// The law with its precomputed tables.
#[derive(Debug)]
enum Outgoing {
    ByRank { degrees: Degrees, ranking: Shuffle },
    ById(DegreeRule),
}

/// Sums before a block of ids.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    links: u64,
    /// Pairs of a node and a type with links.
    lists: u64,
}

/// The links of one node and one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct List {
    /// The node's id.
    pub id: u64,
    /// Number of the type, from 0.
    pub kind: u64,
    /// Number of links, at least 1.
    pub links: u64,
}

impl Graph {
    pub(super) fn new(shape: Shape) -> Self {
        let Shape {
            start,
            nodes,
            degree_max: most,
            seed,
            ..
        } = shape;
        let outgoing = match shape.law {
            Law::ByRank(model) => Outgoing::ByRank {
                degrees: Degrees::new(model, nodes, most),
                ranking: Shuffle::new(seed, nodes),
            },
            Law::ById(function, least) => Outgoing::ById(DegreeRule {
                function,
                start,
                nodes,
                least,
                most,
            }),
        };
        Graph {
            outgoing,
            shape,
            sums: OnceLock::new(),
        }
    }

    /// Links of the node, all types together, before they are split.
    #[inline]
    pub(super) fn degree(&self, id: u64) -> u64 {
        let index = (id - self.shape.start) % self.shape.nodes;
        match &self.outgoing {
            Outgoing::ByRank { degrees, ranking } => degrees.of_rank(ranking.rank(index)),
            Outgoing::ById(rule) => rule.of(self.shape.start + index),
        }
    }

    /// Links that a node of this degree has in type number `kind`.
    #[inline]
    fn share(&self, degree: u64, kind: u64) -> u64 {
        let types = self.shape.link_types;
        let each = degree / types;
        let left = if self.shape.split_bug {
            degree - each
        } else {
            degree % types
        };
        each + u64::from(kind < left)
    }

    /// Loaded links of a node in type number `kind`.
    #[inline]
    pub(super) fn loaded(&self, id: u64, kind: u64) -> u64 {
        self.share(self.degree(id), kind)
    }

    /// Number of all links.
    pub(super) fn links(&self) -> u64 {
        self.total(|links| links)
    }

    /// Number of pairs of a node and a type with links.
    pub(super) fn lists(&self) -> u64 {
        self.total(|links| u64::from(links > 0))
    }

    fn total(&self, of_list: impl Fn(u64) -> u64) -> u64 {
        let of_node = |degree| {
            let lists = 0..self.shape.link_types;
            lists
                .map(|kind| of_list(self.share(degree, kind)))
                .sum::<u64>()
        };
        let of_stair = |stair: Stair| stair.ranks * of_node(stair.degree);
        match &self.outgoing {
            Outgoing::ByRank { degrees, .. } => degrees.stairs().map(of_stair).sum(),
            Outgoing::ById(rule) => rule.stairs().into_iter().map(of_stair).sum(),
        }
    }

    /// The block with item `number` of the items that `of_block` counts, and the item's position in the block. Item 0
    /// needs no sums.
    fn block(&self, number: u64, of_block: impl Fn(&Sums) -> u64) -> (usize, u64) {
        if number == 0 {
            return (0, 0);
        }
        let sums = self.sums();
        let reached = sums.partition_point(|sums| of_block(sums) <= number);
        let block = reached.max(1) - 1;
        (block, number - of_block(&sums[block]))
    }

    fn sums(&self) -> &[Sums] {
        self.sums.get_or_init(|| {
            let mut sums = Vec::with_capacity((self.shape.nodes / BLOCK + 1) as usize);
            let mut before = Sums::default();
            for index in 0..self.shape.nodes {
                if index % BLOCK == 0 {
                    sums.push(before);
                }
                let degree = self.degree(self.shape.start + index);
                for kind in 0..self.shape.link_types {
                    let links = self.share(degree, kind);
                    before.links += links;
                    before.lists += u64::from(links > 0);
                }
            }
            sums
        })
    }

    /// The lists from the one that holds link `number`, counted from 0 over all links in the order of
    /// ids, types and their own order; with it, the link's number within its list.
    pub(super) fn lists_from_link(&self, number: u64) -> (Lists<'_>, u64) {
        let (block, mut left) = self.block(number, |sums| sums.links);
        let mut lists = Lists::from_block(self, block as u64);
        while let Some(list) = lists.peek() {
            if left < list.links {
                break;
            }
            left -= list.links;
            lists.next();
        }
        (lists, left)
    }

    /// The lists from the one with this number, counted from 0 in the order of ids and types.
    pub(super) fn lists_from(&self, number: u64) -> Lists<'_> {
        let (block, left) = self.block(number, |sums| sums.lists);
        let mut lists = Lists::from_block(self, block as u64);
        for _ in 0..left {
            lists.next();
        }
        lists
    }
}

/// The lists that are not empty, in the order of ids and types.
#[derive(Debug)]
pub(super) struct Lists<'a> {
    graph: &'a Graph,
    index: u64,
    kind: u64,
    degree: u64,
}

impl<'a> Lists<'a> {
    fn from_block(graph: &'a Graph, block: u64) -> Self {
        let index = block * BLOCK;
        Lists {
            graph,
            index,
            kind: 0,
            degree: graph.degree(graph.shape.start + index),
        }
    }

    /// The next list, without consuming it.
    pub(super) fn peek(&mut self) -> Option<List> {
        let Shape {
            start,
            nodes,
            link_types,
            ..
        } = self.graph.shape;
        while self.index < nodes {
            if self.kind < link_types {
                let links = self.graph.share(self.degree, self.kind);
                if links > 0 {
                    return Some(List {
                        id: start + self.index,
                        kind: self.kind,
                        links,
                    });
                }
                self.kind += 1;
                continue;
            }
            self.index += 1;
            self.kind = 0;
            self.degree = self.graph.degree(start + self.index);
        }
        None
    }
}

impl Iterator for Lists<'_> {
    type Item = List;

    fn next(&mut self) -> Option<List> {
        let list = self.peek()?;
        self.kind += 1;
        Some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::super::degrees::DEGREE_MAX;
    use super::*;

    fn graph(nodes: u64, split_bug: bool) -> Graph {
        Graph::new(Shape {
            start: 5,
            nodes,
            link_types: 2,
            law: Law::ByRank(Model::Knots),
            degree_max: DEGREE_MAX,
            seed: 3,
            split_bug,
        })
    }

    #[test]
    fn the_lists_add_up_to_what_the_degrees_say() {
        for split_bug in [false, true] {
            let graph = graph(3_000, split_bug);
            let lists: Vec<List> = graph.lists_from(0).collect();
            assert_eq!(lists.len() as u64, graph.lists());
            assert_eq!(
                lists.iter().map(|list| list.links).sum::<u64>(),
                graph.links()
            );
            assert!(
                lists
                    .windows(2)
                    .all(|two| (two[0].id, two[0].kind) < (two[1].id, two[1].kind))
            );
            let largest = lists.iter().map(|list| list.links).max();
            assert_eq!(largest, Some(DEGREE_MAX / 2 + 1));
        }
    }

    #[test]
    fn a_graph_by_ids_has_the_links_of_its_rule() {
        for function in [
            DegreeFunction::Reciprocal,
            DegreeFunction::Multiples(10),
            DegreeFunction::PerfectPowers(2),
            DegreeFunction::Exponential(3),
        ] {
            let graph = Graph::new(Shape {
                law: Law::ById(function, 0),
                ..graph(3_000, false).shape
            });
            let lists: Vec<List> = graph.lists_from(0).collect();
            assert_eq!(lists.len() as u64, graph.lists(), "{function:?}");
            let links: u64 = lists.iter().map(|list| list.links).sum();
            assert_eq!(links, graph.links(), "{function:?}");
            assert!(links > 0);
        }
    }

    #[test]
    fn lists_are_found_by_their_number_and_by_the_number_of_a_link() {
        let graph = graph(3_000, false);
        let all: Vec<List> = graph.lists_from(0).collect();
        let mut link = 0;
        for (number, list) in all
            .iter()
            .enumerate()
            .filter(|(number, _)| number % 13 == 0)
        {
            assert_eq!(graph.lists_from(number as u64).next(), Some(*list));
            link = all[..number].iter().map(|list| list.links).sum::<u64>();
            let (mut lists, within) = graph.lists_from_link(link + list.links - 1);
            assert_eq!((lists.next(), within), (Some(*list), list.links - 1));
        }
        assert!(link > 0);
        assert_eq!(graph.lists_from(graph.lists()).next(), None);
    }

    #[test]
    fn the_remainder_goes_to_the_first_types_and_the_original_adds_a_link_too_many() {
        let right = graph(1_000, false);
        let original = graph(1_000, true);
        for (degree, split, with_bug) in [
            (0, [0, 0], [0, 0]),
            (1, [1, 0], [1, 0]),
            (2, [1, 1], [2, 1]),
            (5, [3, 2], [3, 3]),
            (6, [3, 3], [4, 4]),
        ] {
            assert_eq!([0, 1].map(|kind| right.share(degree, kind)), split);
            assert_eq!([0, 1].map(|kind| original.share(degree, kind)), with_bug);
        }
        // Published with the bug: 963 868 links of 1000 nodes.
        assert!((original.links() as f64 / 963_868.0 - 1.0).abs() < 0.01);
    }
}
