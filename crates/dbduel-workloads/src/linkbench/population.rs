//! Initial content of the tables.
//!
//! A link follows from the graph; its time and, if asked for, its target follow from the seed and its own numbers;
//! only the payloads are drawn. So the counts, which are computed without the links, agree with them.
//!
//! One deviation: the time of loading is a constant, because all contenders must get the same rows.

use std::fmt::Write as _;
use std::sync::Arc;

use dbduel_client::random::Random;
use dbduel_driver::BytesLiteral;

use super::graph::List;
use super::payload::Payloads;
use super::settings::{LINK_TYPE, NODE_TYPE, Settings};
use crate::{RowContent, RowWriter};

/// Time of loading in the data: 1 April 2013, milliseconds.
const LOADED_AT_MS: u64 = 1_364_774_400_000;
/// Range of the ages of links at that time, milliseconds: 49.7 days.
const AGES: u64 = 1 << 32;

/// Table of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Links,
    Counts,
    Nodes,
}

/// Writes the rows of one table.
pub(super) struct Filler {
    content: Content,
    settings: Arc<Settings>,
    seed: u64,
}

impl Filler {
    pub(super) fn new(content: Content, settings: Arc<Settings>) -> Self {
        Filler {
            content,
            settings,
            seed: 0,
        }
    }

    /// Milliseconds since 1970 at which a loaded link was added.
    fn time(&self, list: List, number: u64) -> u64 {
        let age = scramble(&[self.seed, list.id, list.kind, number]) % AGES;
        LOADED_AT_MS - 1 - age
    }

    fn target(&self, list: List, number: u64) -> u64 {
        match self.settings.targets.random_below {
            0 => list.id + number,
            // Different ones for one list, or they would be one link.
            below => (scramble(&[self.seed, list.id, list.kind]) + number) % below,
        }
    }

    /// The links from number `first` on.
    fn links(&self, first: u64) -> impl FnMut(&mut Random, &mut String) + '_ {
        let (mut lists, mut number) = self.settings.graph.lists_from_link(first);
        let mut list = lists.next();
        let mut payloads = Payloads::new(self.settings.link_add);
        let mut payload = Vec::new();
        move |random, sql| {
            let Some(current) = list else { return };
            payloads.draw(random, &mut payload);
            // Writing to memory does not fail.
            let _ = write!(
                sql,
                "({},{},{},1,{},{},0)",
                current.id,
                self.target(current, number),
                LINK_TYPE + current.kind,
                BytesLiteral(&payload),
                self.time(current, number)
            );
            number += 1;
            if number == current.links {
                number = 0;
                list = lists.next();
            }
        }
    }

    /// The counts from number `first` on.
    fn counts(&self, first: u64) -> impl FnMut(&mut Random, &mut String) + '_ {
        let mut lists = self.settings.graph.lists_from(first);
        move |_, sql| {
            let Some(list) = lists.next() else { return };
            let newest = (0..list.links).map(|number| self.time(list, number)).max();
            let _ = write!(
                sql,
                "({},{},{},{},0)",
                list.id,
                LINK_TYPE + list.kind,
                list.links,
                newest.unwrap_or_default()
            );
        }
    }

    /// The nodes from number `first` on.
    fn nodes(&self, first: u64) -> impl FnMut(&mut Random, &mut String) + '_ {
        let mut id = self.settings.start + first;
        let mut payloads = Payloads::new(self.settings.node_add);
        let mut payload = Vec::new();
        move |random, sql| {
            payloads.draw(random, &mut payload);
            let (time, payload) = (LOADED_AT_MS / 1_000, BytesLiteral(&payload));
            let _ = write!(sql, "({id},{NODE_TYPE},1,{time},{payload})");
            id += 1;
        }
    }
}

impl RowContent for Filler {
    fn seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn write(&self, row: u64, random: &mut Random, sql: &mut String) {
        self.writer(row)(random, sql);
    }

    /// Payloads of one chunk share a motif, as those of one loader do in the original.
    fn writer(&self, first: u64) -> RowWriter<'_> {
        let first = first - 1;
        match self.content {
            Content::Links => Box::new(self.links(first)),
            Content::Counts => Box::new(self.counts(first)),
            Content::Nodes => Box::new(self.nodes(first)),
        }
    }
}

/// A pseudo-random 64-bit number from the words (the finaliser of SplitMix64, Steele et al. 2014).
fn scramble(words: &[u64]) -> u64 {
    words.iter().fold(0, |state: u64, word| {
        let mut bits = (state ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::test_rows::{filled, links};

    #[test]
    fn counts_are_in_step_with_links() {
        for given in [vec![], vec![("randomid2max", 1_000_000.into())]] {
            let mut given = given;
            given.extend([("maxid1", 301.into()), ("nlinks_max", 2_000.into())]);
            let tables = filled(&given);
            let mut lists: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
            let mut targets = BTreeSet::new();
            for link in links(&tables) {
                let list = lists.entry((link.id1, link.link_type)).or_default();
                *list = (list.0 + 1, list.1.max(link.time));
                assert!(
                    targets.insert((link.id1, link.link_type, link.id2)),
                    "{link:?} twice"
                );
            }
            let counts: BTreeMap<(u64, u64), (u64, u64)> = tables["counttable"]
                .iter()
                .map(|row| {
                    let number = |column: usize| row[column].parse().unwrap();
                    ((number(0), number(1)), (number(2), number(3)))
                })
                .collect();
            assert_eq!(counts, lists);
            assert_eq!(tables["nodetable"].len(), 300);
        }
    }

    #[test]
    fn without_random_targets_links_point_to_the_ids_that_follow() {
        let tables = filled(&[("maxid1", 101.into()), ("nlinks_max", 50.into())]);
        let mut expected = BTreeMap::new();
        for link in links(&tables) {
            let next = expected
                .entry((link.id1, link.link_type))
                .or_insert(link.id1);
            assert_eq!(link.id2, *next);
            *next += 1;
        }
    }
}
