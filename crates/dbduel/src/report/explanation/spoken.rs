//! Which costs get a sentence: few, none that says again what another has said, none that no transaction notices.

use std::collections::BTreeMap;

use super::is_certain;
use crate::judge::explain::{Cost, Division, Doing, Explanation, Group, Latency, Moved, Unit};

/// Costs that are spoken of; the table has all of them.
const SPOKEN: usize = 7;

/// Costs of one group that are spoken of.
const SPOKEN_OF_GROUP: usize = 2;

/// Costs, and those that tell the same from another side: what the server writes is most of what reaches the disk.
const SUBSUMED_BY: &[(&str, &str)] = &[
    ("server-cpu-user", "server-cpu"),
    ("server-cpu-system", "server-cpu"),
    ("connection-cpu", "server-cpu"),
    ("server-read-calls", "server-read"),
    ("server-write-calls", "server-written"),
    ("disk-read", "server-read"),
    ("disk-reads", "server-read"),
    ("disk-written", "server-written"),
    ("disk-writes", "server-written"),
    ("pages-flushed-lru", "pages-flushed"),
    ("pages-flushed-adaptive", "pages-flushed"),
    ("pages-flushed-background", "pages-flushed"),
    ("doublewrite-pages", "pages-flushed"),
    ("doublewrite-batches", "pages-flushed"),
    ("doublewrite-batches", "doublewrite-pages"),
    ("row-lock-waits", "row-lock-time"),
];

/// Costs that are one fact seen from several places: a sync of a file makes the disk flush its cache. They share a sentence
/// where they moved in one direction.
const ONE_FACT: &[&[&str]] = &[&["redo-syncs", "data-syncs", "disk-flushes"]];

/// Costs that a part of the latency tells already, when that part got certainly shorter or longer with them.
const IN_LATENCY: &[(&str, Doing)] = &[
    ("connection-cpu", Doing::Running),
    ("server-run-queue", Doing::Runnable),
    ("row-lock-time", Doing::RowLock),
    ("row-lock-waits", Doing::RowLock),
    ("client-run-queue", Doing::ClientRunnable),
];

/// Counts of waits, which are never too rare to be told.
const WAITS: &[&str] = &["free-page-waits", "redo-waits", "row-lock-waits"];

/// A cost that has a sentence, and those that share it.
pub(super) struct SpokenCost<'e> {
    pub(super) cost: &'e Cost,
    pub(super) joined: Vec<&'e Cost>,
}

/// The costs that are worth a sentence: what moved, the most telling first, and few of each group, because
/// details of one group mostly repeat each other.
pub(super) fn select_highlights(explanation: &Explanation) -> Vec<SpokenCost<'_>> {
    let said_by_latency = |cost: &Cost| match &explanation.latency {
        Latency::Divided(division) => IN_LATENCY
            .iter()
            .any(|(id, doing)| *id == cost.resource && part_moved(division, *doing, cost.moved)),
        Latency::NotDivided { .. } => false,
    };
    let candidates: Vec<&Cost> = explanation
        .moved
        .iter()
        .map(|&index| &explanation.costs[index])
        .filter(|cost| !is_trifle(cost) && !said_by_latency(cost))
        .collect();
    let (heads, joined) = joined(candidates);
    let mut spoken = Spoken::default();
    for cost in &heads {
        spoken.add(cost, &heads);
    }
    let is_spoken_of = |cost: &&Cost| spoken.has(cost);
    let select_highlights = heads.into_iter().filter(is_spoken_of);
    select_highlights
        .map(|cost| {
            let with_it = joined
                .iter()
                .filter(|(head, _)| head.resource == cost.resource);
            SpokenCost {
                cost,
                joined: with_it.map(|(_, other)| *other).collect(),
            }
        })
        .collect()
}

/// The costs without those that are one fact with an earlier one, and these with that earlier one.
fn joined(candidates: Vec<&Cost>) -> (Vec<&Cost>, Vec<(&Cost, &Cost)>) {
    let mut heads: Vec<&Cost> = Vec::new();
    let mut joined = Vec::new();
    for cost in candidates {
        let is_one_fact = |head: &&&Cost| {
            let has = |fact: &[&str], one: &Cost| fact.contains(&one.resource.as_str());
            let mut facts = ONE_FACT.iter();
            head.moved == cost.moved && facts.any(|fact| has(fact, head) && has(fact, cost))
        };
        match heads.iter().find(is_one_fact).copied() {
            Some(head) => joined.push((head, cost)),
            None => heads.push(cost),
        }
    }
    (heads, joined)
}

/// The costs that have their sentence.
#[derive(Default)]
struct Spoken<'e> {
    resources: Vec<&'e str>,
    by_group: BTreeMap<Group, usize>,
}

impl<'e> Spoken<'e> {
    fn has(&self, cost: &Cost) -> bool {
        self.resources.contains(&cost.resource.as_str())
    }

    /// Adds `cost` if there is room, unless another of `candidates` that is spoken of, or can be, tells the same.
    fn add(&mut self, cost: &'e Cost, candidates: &[&'e Cost]) {
        for other in candidates {
            if tells(other, cost) {
                self.add(other, candidates);
                if self.has(other) {
                    return;
                }
            }
        }
        let of_group = self.by_group.entry(cost.group).or_default();
        let is_new = !self.resources.contains(&cost.resource.as_str());
        if is_new && *of_group < SPOKEN_OF_GROUP && self.resources.len() < SPOKEN {
            *of_group += 1;
            self.resources.push(&cost.resource);
        }
    }
}

/// True when `other` tells the tale of `cost`.
fn tells(other: &Cost, cost: &Cost) -> bool {
    let is_of_it =
        |(id, general): &(&str, &str)| *id == cost.resource && *general == other.resource;
    SUBSUMED_BY.iter().any(is_of_it) && moved_alike(cost, other)
}

/// True when both moved in one direction, and as far as far as the blocks can tell.
fn moved_alike(cost: &Cost, other: &Cost) -> bool {
    let is_as_far = match (cost.ratio.interval(), other.ratio.interval()) {
        (Some((low, high)), Some((other_low, other_high))) => {
            low <= other_high && other_low <= high
        }
        (None, None) => true,
        _ => false,
    };
    cost.moved == other.moved && is_as_far
}

fn part_moved(division: &Division, doing: Doing, moved: Moved) -> bool {
    let part = division.parts.iter().find(|part| part.doing == doing);
    let difference = part.map(|part| &part.difference_us);
    difference.filter(|us| is_certain(us)).is_some_and(|us| {
        let is_less = us.value().is_some_and(|us| us < 0.0);
        moved == if is_less { Moved::Less } else { Moved::More }
    })
}

/// So little of it on both sides that no transaction notices; a wait is never too rare to be told.
pub(super) fn is_trifle(cost: &Cost) -> bool {
    let least = match (cost.unit, cost.is_level) {
        _ if WAITS.contains(&cost.resource.as_str()) => return false,
        (Unit::Microseconds, _) => 1.0,
        (Unit::Bytes, false) => 256.0,
        (Unit::Count, false) => 0.02,
        // Of memory, of dirty pages.
        (Unit::Bytes, true) => 16e6,
        (Unit::Count, true) => 100.0,
    };
    [&cost.baseline, &cost.contender]
        .iter()
        .all(|figure| figure.value().is_some_and(|value| value < least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::explain::resources;
    use crate::judge::summarise;
    use crate::judge::synthetic::{Observation, Scenario};
    use dbduel_record::rows::ReadingRow;

    /// What is told of a duel in which the disk sees `factor` times what the server writes, or not at all.
    fn told(disk_factor: Option<[f64; 2]>) -> Vec<String> {
        let mut record = Scenario::duel()
            .observed(Observation::doublewrite())
            .record();
        let written = record
            .readings
            .iter()
            .filter(|row| row.metric == "device_write_bytes");
        let of_disk = written.filter_map(|row| {
            let [baseline, other] = disk_factor?;
            let is_baseline = row.contender == "doublewrite";
            Some(ReadingRow {
                source: "host".to_owned(),
                metric: "disk_written_bytes".to_owned(),
                value: row.value * if is_baseline { baseline } else { other },
                ..row.clone()
            })
        });
        let of_disk: Vec<ReadingRow> = of_disk.collect();
        record.readings.extend(of_disk);
        let (summary, _) = summarise(&record);
        let spoken = select_highlights(&summary.explanations[0]);
        spoken.iter().map(|one| one.cost.resource.clone()).collect()
    }

    #[test]
    fn what_the_disk_sees_is_told_where_it_is_another_tale_than_the_servers() {
        let alone = told(None);
        assert!(alone.contains(&"server-written".to_owned()), "{alone:?}");
        assert_eq!(told(Some([1.0, 1.0])), alone);
        let apart = told(Some([1.0, 4.0]));
        assert!(apart.contains(&"disk-written".to_owned()), "{apart:?}");
    }

    #[test]
    fn what_the_latency_says_is_not_said_again_as_a_cost() {
        // Connections run 8 % shorter there, which the latency tells as running in the server.
        assert!(!told(None).contains(&"connection-cpu".to_owned()));
    }

    #[test]
    fn every_name_is_that_of_a_resource() {
        let named = SUBSUMED_BY.iter().flat_map(|(one, other)| [*one, *other]);
        let named = named.chain(IN_LATENCY.iter().map(|(id, _)| *id));
        let named = named.chain(ONE_FACT.iter().copied().flatten().copied());
        for id in named.chain(WAITS.iter().copied()) {
            assert!(resources::all().any(|one| one.id == id), "`{id}`");
        }
    }

    #[test]
    fn nothing_is_told_by_what_it_tells_itself() {
        for (start, _) in SUBSUMED_BY {
            let mut tellers = vec![*start];
            for _ in 0..SUBSUMED_BY.len() {
                let of_them = |(id, _): &&(&str, &str)| tellers.contains(id);
                let next = SUBSUMED_BY.iter().filter(of_them).map(|(_, other)| *other);
                tellers = next.collect();
            }
            assert_eq!(tellers, Vec::<&str>::new(), "`{start}`");
        }
    }

    #[test]
    fn syncs_and_flushes_share_a_sentence_where_they_moved_alike() {
        let record = Scenario::duel()
            .observed(Observation::doublewrite())
            .record();
        let (summary, _) = summarise(&record);
        let mut explanation = summary.explanations[0].clone();
        let template = explanation.costs[explanation.moved[0]].clone();
        let of = |id: &str, group: Group, moved: Moved| Cost {
            resource: id.to_owned(),
            group,
            moved,
            ..template.clone()
        };
        let mut joined_with = |flushes: Moved| -> Vec<(String, usize)> {
            explanation.costs = vec![
                of("redo-syncs", Group::Log, Moved::Less),
                of("disk-flushes", Group::Disk, flushes),
                of("data-syncs", Group::Log, Moved::Less),
            ];
            explanation.moved = vec![0, 1, 2];
            let spoken = select_highlights(&explanation).into_iter();
            spoken
                .map(|one| (one.cost.resource.clone(), one.joined.len()))
                .collect()
        };
        assert_eq!(joined_with(Moved::Less), [("redo-syncs".to_owned(), 2)]);
        assert_eq!(
            joined_with(Moved::More),
            [("redo-syncs".to_owned(), 1), ("disk-flushes".to_owned(), 0)]
        );
    }

    #[test]
    fn what_another_cost_would_tell_is_told_where_that_gets_no_sentence() {
        let record = Scenario::duel()
            .observed(Observation::doublewrite())
            .record();
        let (summary, _) = summarise(&record);
        let mut explanation = summary.explanations[0].clone();
        let template = {
            let mut costs = explanation.costs.iter();
            let written = costs.find(|cost| cost.resource == "server-written");
            written.unwrap().clone()
        };
        let of = |id: &str, group: Group| Cost {
            resource: id.to_owned(),
            group,
            ..template.clone()
        };
        let mut told_of = |costs: Vec<Cost>| -> Vec<String> {
            explanation.moved = (0..costs.len()).collect();
            explanation.costs = costs;
            let spoken = select_highlights(&explanation);
            spoken.iter().map(|one| one.cost.resource.clone()).collect()
        };
        let (written, disk) = (
            of("server-written", Group::Storage),
            of("disk-written", Group::Disk),
        );
        assert_eq!(
            told_of(vec![disk.clone(), written.clone()]),
            ["server-written"]
        );
        // Two of its group are told before it.
        let others = ["server-read", "server-read-syncs"].map(|id| of(id, Group::Storage));
        let [one, two] = others;
        assert_eq!(
            told_of(vec![one, two, written, disk]),
            ["server-read", "server-read-syncs", "disk-written"]
        );
    }
}
