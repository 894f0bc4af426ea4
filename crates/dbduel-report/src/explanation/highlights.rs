//! Selection of the costs that get a sentence: few, none that another sentence covers, none too small to matter.

use std::collections::BTreeMap;

use dbduel_judge::explain::{
    Cost, Division, Doing, Explanation, Group, Latency, Moved, is_negligible,
};

use super::is_certain;

/// Maximum number of costs with a sentence; the table has all of them.
const HIGHLIGHTS: usize = 7;

/// Maximum number of costs of one group with a sentence.
const HIGHLIGHTS_OF_GROUP: usize = 2;

/// Costs with those that cover them: writes of the server are most of the writes that reach the disk.
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

/// Costs with one cause, such as the disk cache flush after a sync. They share a sentence where they moved in one
/// direction.
const ONE_FACT: &[&[&str]] = &[&["redo-syncs", "data-syncs", "disk-flushes"]];

/// Costs that a part of the latency covers, when that part changed beyond its interval in the same direction.
const IN_LATENCY: &[(&str, Doing)] = &[
    ("connection-cpu", Doing::Running),
    ("server-run-queue", Doing::Runnable),
    ("row-lock-time", Doing::RowLock),
    ("row-lock-waits", Doing::RowLock),
    ("client-run-queue", Doing::ClientRunnable),
];

/// A cost that has a sentence, and those that share it.
pub(super) struct Highlight<'e> {
    pub(super) cost: &'e Cost,
    pub(super) joined: Vec<&'e Cost>,
}

/// The costs with a sentence: those that moved, the largest first, and few of each group, because details of one
/// group mostly repeat each other.
pub(super) fn select_highlights(explanation: &Explanation) -> Vec<Highlight<'_>> {
    let covered_by_latency = |cost: &Cost| match &explanation.latency {
        Latency::Divided(division) => IN_LATENCY
            .iter()
            .any(|(id, doing)| *id == cost.resource && part_moved(division, *doing, cost.moved)),
        Latency::NotDivided { .. } => false,
    };
    let candidates: Vec<&Cost> = explanation
        .moved
        .iter()
        .map(|&index| &explanation.costs[index])
        .filter(|cost| !is_negligible(cost) && !covered_by_latency(cost))
        .collect();
    let (heads, joined) = joined(candidates);
    let mut selection = Selection::default();
    for cost in &heads {
        selection.add(cost, &heads);
    }
    let selected = heads.into_iter().filter(|cost| selection.has(cost));
    selected
        .map(|cost| {
            let with_it = joined
                .iter()
                .filter(|(head, _)| head.resource == cost.resource);
            Highlight {
                cost,
                joined: with_it.map(|(_, other)| *other).collect(),
            }
        })
        .collect()
}

/// The costs without those that share a sentence with an earlier one, and these with that earlier one.
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

/// The costs selected so far.
#[derive(Default)]
struct Selection<'e> {
    resources: Vec<&'e str>,
    by_group: BTreeMap<Group, usize>,
}

impl<'e> Selection<'e> {
    fn has(&self, cost: &Cost) -> bool {
        self.resources.contains(&cost.resource.as_str())
    }

    /// Adds `cost` if there is room, unless another of `candidates` that has or can have a sentence covers it.
    fn add(&mut self, cost: &'e Cost, candidates: &[&'e Cost]) {
        for other in candidates {
            if covers(other, cost) {
                self.add(other, candidates);
                if self.has(other) {
                    return;
                }
            }
        }
        let of_group = self.by_group.entry(cost.group).or_default();
        let is_new = !self.resources.contains(&cost.resource.as_str());
        if is_new && *of_group < HIGHLIGHTS_OF_GROUP && self.resources.len() < HIGHLIGHTS {
            *of_group += 1;
            self.resources.push(&cost.resource);
        }
    }
}

fn covers(other: &Cost, cost: &Cost) -> bool {
    let is_of_it =
        |(id, general): &(&str, &str)| *id == cost.resource && *general == other.resource;
    SUBSUMED_BY.iter().any(is_of_it) && moved_alike(cost, other)
}

/// True when both differ in one direction, and by ratios that the blocks cannot distinguish.
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

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::explain::resource_ids;
    use dbduel_judge::summarise;
    use dbduel_record::rows::ReadingRow;
    use dbduel_testkit::synthetic::{Observation, Scenario};

    /// Resources with a sentence, of a duel in which the disk writes `factor` times what the server writes, or nothing.
    fn highlighted(disk_factor: Option<[f64; 2]>) -> Vec<String> {
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
        let highlights = select_highlights(&summary.explanations[0]);
        highlights
            .iter()
            .map(|one| one.cost.resource.clone())
            .collect()
    }

    #[test]
    fn writes_of_the_disk_have_a_sentence_where_they_differ_from_the_servers() {
        let alone = highlighted(None);
        assert!(alone.contains(&"server-written".to_owned()), "{alone:?}");
        assert_eq!(highlighted(Some([1.0, 1.0])), alone);
        let apart = highlighted(Some([1.0, 4.0]));
        assert!(apart.contains(&"disk-written".to_owned()), "{apart:?}");
    }

    #[test]
    fn costs_that_the_latency_covers_have_no_sentence() {
        // Connections run 8 % shorter there, which the latency has as running in the database.
        assert!(!highlighted(None).contains(&"connection-cpu".to_owned()));
    }

    #[test]
    fn every_name_is_that_of_a_resource() {
        let named = SUBSUMED_BY.iter().flat_map(|(one, other)| [*one, *other]);
        let named = named.chain(IN_LATENCY.iter().map(|(id, _)| *id));
        let named = named.chain(ONE_FACT.iter().copied().flatten().copied());
        for id in named {
            assert!(resource_ids().any(|one| one == id), "`{id}`");
        }
    }

    #[test]
    fn no_cost_covers_itself() {
        for (start, _) in SUBSUMED_BY {
            let mut covering = vec![*start];
            for _ in 0..SUBSUMED_BY.len() {
                let of_them = |(id, _): &&(&str, &str)| covering.contains(id);
                let next = SUBSUMED_BY.iter().filter(of_them).map(|(_, other)| *other);
                covering = next.collect();
            }
            assert_eq!(covering, Vec::<&str>::new(), "`{start}`");
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
            let highlights = select_highlights(&explanation).into_iter();
            highlights
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
    fn a_covered_cost_has_a_sentence_where_the_covering_one_has_none() {
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
        let mut highlighted_of = |costs: Vec<Cost>| -> Vec<String> {
            explanation.moved = (0..costs.len()).collect();
            explanation.costs = costs;
            let highlights = select_highlights(&explanation);
            highlights
                .iter()
                .map(|one| one.cost.resource.clone())
                .collect()
        };
        let (written, disk) = (
            of("server-written", Group::Storage),
            of("disk-written", Group::Disk),
        );
        assert_eq!(
            highlighted_of(vec![disk.clone(), written.clone()]),
            ["server-written"]
        );
        // Two of its group are before it.
        let others = ["server-read", "server-read-syncs"].map(|id| of(id, Group::Storage));
        let [one, two] = others;
        assert_eq!(
            highlighted_of(vec![one, two, written, disk]),
            ["server-read", "server-read-syncs", "disk-written"]
        );
    }
}
