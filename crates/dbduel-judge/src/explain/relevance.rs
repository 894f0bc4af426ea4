//! Selects the costs that can explain a difference, before they are ranked.
//!
//! A counter may differ beyond doubt and still explain nothing: because it counts what the transactions ask for and
//! not what they cost, because it counts nothing while a feature is off, or because the transactions do not touch
//! what it is about. Such costs stay in the table of an explanation and get no sentence.

use super::{Cost, Moved, Unit};

/// Resources that follow from the transactions themselves: the same on all sides, whatever the counters of a product
/// show.
const ASKED_FOR: &[&str] = &["rows-changed"];

/// Resources that exist for changed rows: pages to be flushed, versions to be purged, the logs. A server that only
/// reads still shows traces of loading the tables.
const OF_CHANGES: &[&str] = &[
    "free-page-waits",
    "pages-flushed",
    "pages-flushed-lru",
    "pages-flushed-adaptive",
    "pages-flushed-background",
    "pages-flushed-sync",
    "pages-flushed-neighbour",
    "doublewrite-pages",
    "doublewrite-batches",
    "dirty-pages",
    "dirty-cache",
    "redo",
    "redo-syncs",
    "redo-waits",
    "binary-log",
    "checkpoint-age",
    "history-list",
];

/// A counter, and another without which it says nothing: a server without the adaptive hash index sends all
/// lookups down the tree, and versions differ in whether they count them then.
const ONLY_WITH: &[(&str, &str)] = &[("adaptive-hash-misses", "adaptive-hash-hits")];

/// Resources that show changed rows, and bytes per transaction below which they are housekeeping: a single changed
/// row takes more redo than that, and at least a page on the device sooner or later.
const SIGNS_OF_CHANGES: &[(&str, f64)] = &[
    ("redo", 16.0),
    ("tree-log", 16.0),
    ("binary-log", 16.0),
    ("server-written", 1024.0),
];

/// Counts of waits, which are never negligible.
const WAITS: &[&str] = &["free-page-waits", "redo-waits", "row-lock-waits"];

/// So little of it on both sides that it cannot matter to a transaction; a wait always can.
#[must_use]
pub fn is_negligible(cost: &Cost) -> bool {
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

/// True for each of `costs` that can explain a difference.
pub fn telling(costs: &[Cost]) -> Vec<bool> {
    let only_reads = only_reads(costs);
    costs
        .iter()
        .map(|cost| {
            let id = cost.resource.as_str();
            let is_of_changes = OF_CHANGES.contains(&id);
            cost.moved != Moved::Still
                && !ASKED_FOR.contains(&id)
                && !(only_reads && is_of_changes)
                && has_what_it_needs(costs, id)
        })
        .collect()
}

/// True when the signs of changed rows were looked for and none is there, on either side.
fn only_reads(costs: &[Cost]) -> bool {
    let mut was_looked_at = false;
    for &(id, least) in SIGNS_OF_CHANGES {
        let Some(cost) = find(costs, id) else {
            continue;
        };
        for figure in [&cost.baseline, &cost.contender] {
            match figure.value() {
                Some(bytes) if bytes >= least => return false,
                Some(_) => was_looked_at = true,
                None => {}
            }
        }
    }
    was_looked_at
}

fn has_what_it_needs(costs: &[Cost], id: &str) -> bool {
    let needs = ONLY_WITH.iter().find(|(one, _)| *one == id);
    let is_counted = |cost: &Cost| {
        [&cost.baseline, &cost.contender]
            .iter()
            .all(|figure| figure.value().is_some_and(|value| value > 0.0))
    };
    needs.is_none_or(|(_, other)| find(costs, other).is_some_and(is_counted))
}

fn find<'c>(costs: &'c [Cost], id: &str) -> Option<&'c Cost> {
    costs.iter().find(|cost| cost.resource == id)
}

#[cfg(test)]
mod tests {
    use super::super::resources;
    use super::*;
    use crate::summary::{Figure, How};

    fn cost(id: &str, baseline: f64, contender: f64) -> Cost {
        let resource = resources::all().find(|one| one.id == id).unwrap();
        let figure = |value| Figure::Bare {
            value,
            n: 7,
            how: How::Readings,
            why: "in a test".to_owned(),
        };
        Cost {
            resource: id.to_owned(),
            name: resource.name.to_owned(),
            unit: resource.unit,
            group: resource.group,
            is_main: false,
            is_level: false,
            baseline: figure(baseline),
            contender: figure(contender),
            ratio: figure(contender / baseline),
            moved: Moved::Less,
        }
    }

    #[track_caller]
    fn check(costs: &[(&str, f64, f64)], told: &[&str]) {
        let costs: Vec<Cost> = costs.iter().map(|&(id, b, c)| cost(id, b, c)).collect();
        let telling = telling(&costs);
        let told_of: Vec<&str> = costs
            .iter()
            .zip(&telling)
            .filter(|(_, is_telling)| **is_telling)
            .map(|(cost, _)| cost.resource.as_str())
            .collect();
        assert_eq!(told_of, told);
    }

    #[test]
    fn every_name_is_that_of_a_resource() {
        let named = ASKED_FOR.iter().chain(OF_CHANGES).chain(WAITS).copied();
        let named = named.chain(ONLY_WITH.iter().flat_map(|(one, other)| [*one, *other]));
        for id in named.chain(SIGNS_OF_CHANGES.iter().map(|(id, _)| *id)) {
            assert!(resources::all().any(|one| one.id == id), "`{id}`");
        }
    }

    #[test]
    fn what_only_changed_rows_move_tells_nothing_of_readers() {
        let left_over = [("dirty-pages", 1.0, 435.0), ("history-list", 15.0, 0.0)];
        let of_readers = [("redo", 0.04, 0.0), ("server-written", 74.0, 17.9)];
        check(
            &[left_over.as_slice(), &of_readers].concat(),
            &["server-written"],
        );
        let of_writers = [("redo", 3_900.0, 6_600.0)];
        check(
            &[left_over.as_slice(), &of_writers].concat(),
            &["dirty-pages", "history-list", "redo"],
        );
        // Nothing says whether rows changed.
        check(&left_over, &["dirty-pages", "history-list"]);
    }

    #[test]
    fn lookups_down_the_tree_tell_something_where_both_sides_have_the_other_way() {
        let misses = ("adaptive-hash-misses", 22.1, 0.0);
        check(&[misses], &[]);
        check(
            &[misses, ("adaptive-hash-hits", 30.0, 0.0)],
            &["adaptive-hash-hits"],
        );
        check(
            &[
                ("adaptive-hash-misses", 22.1, 4.0),
                ("adaptive-hash-hits", 30.0, 48.0),
            ],
            &["adaptive-hash-misses", "adaptive-hash-hits"],
        );
    }

    #[test]
    fn what_transactions_ask_for_and_what_stood_still_tell_nothing() {
        check(
            &[("rows-changed", 100.0, 0.0), ("server-cpu", 5.0, 4.0)],
            &["server-cpu"],
        );
        let still = Cost {
            moved: Moved::Still,
            ..cost("dirty-pages", 1.0, 435.0)
        };
        assert_eq!(telling(&[still]), [false]);
    }
}
