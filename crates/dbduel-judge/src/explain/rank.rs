//! Ranks costs for an explanation: first those that can be most of the difference in time.
//!
//! A sync, a read of the device, a wait for a lock and processor time are time of a transaction. Bytes and pages are not:
//! they differ along with a cause, or take time by way of a resource that is counted itself.

use dbduel_audit::TELLING_RATIO;
use serde::Serialize;

use super::relevance::{is_negligible, telling};
use super::resources::carries;
use super::{Cost, Division, Doing, Group, Latency, Moved, Part, Unit};
use crate::summary::Figure;

/// How much a detail weighs against a main resource that moved as far.
const DETAIL: f64 = 0.2;
/// Ratios beyond this are all alike: a hundred times nothing is still little.
const FAR: f64 = 8.0;
/// Share of the difference in time below which a resource carries none of it.
const SHARE_MIN: f64 = 0.01;

/// The same, in what is named first, of what takes a transaction's time or is waited for.
const FAR_IN_TIME: f64 = 1000.0;
/// Share of the largest part below which a resource is not named with it.
const LEADING_SHARE_MIN: f64 = 0.25;

/// Costs that are never named first: consequences of a difference in speed, costs that save work (more of them
/// explains no slower contender), parts of the server's processor time, and activity of the whole disk, which others
/// use as well.
const NOT_FIRST: &[&str] = &[
    "server-cpu-user",
    "server-cpu-system",
    "connection-cpu",
    "disk-read",
    "disk-written",
    "disk-reads",
    "disk-writes",
    "disk-discards",
    "voluntary-switches",
    "involuntary-switches",
    "server-read-calls",
    "server-write-calls",
    "adaptive-hash-hits",
    "compression-saved",
    "holes-punched",
    "server-run-queue",
    "client-run-queue",
    "disk-queue",
];

/// The part of the time and the cost that an explanation names first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leading {
    /// The largest part of the difference in time, whether its interval excludes zero or not; absent where the time
    /// could not be divided. A wait for a processor is named only where no other part is a quarter as large and, if
    /// there are other parts, its interval excludes zero.
    pub part: Option<Doing>,
    /// Another part of at least a quarter of its size: the one that a transaction spends with what is behind the difference.
    pub lengthened: Option<Doing>,
    /// Index into `costs` of a cost that differs beyond doubt, in the direction of the time, and can be behind it:
    /// the one that differs by the largest factor. Bytes and pages, which take time only by way of other resources,
    /// count as a factor of eight at most.
    pub cost: Option<usize>,
}

/// Indices of costs, in the order in which they are named.
pub struct Ranked {
    pub leading: Leading,
    /// Costs that moved, the most telling first.
    pub moved: Vec<usize>,
    /// Main resources that are the same.
    pub same: Vec<usize>,
    /// Main resources that are unclear.
    pub unclear: Vec<usize>,
}

/// Ranks `costs`. `difference_us` is the difference in the mean time of a transaction. Costs that cannot explain a
/// difference are in none of the lists.
pub fn rank(costs: &[Cost], latency: &Latency, difference_us: &Figure) -> Ranked {
    let is_telling = telling(costs);
    let with = |moved: &[Moved]| -> Vec<usize> {
        (0..costs.len())
            .filter(|&index| is_telling[index] && moved.contains(&costs[index].moved))
            .collect()
    };
    let is_main = |index: &usize| costs[*index].is_main;
    let time = Time::new(latency, difference_us);
    let mut moved = with(&[Moved::Less, Moved::More]);
    let weights: Vec<[f64; 3]> = costs.iter().map(|cost| time.weight(cost)).collect();
    moved.sort_by(|one, other| {
        let pairs = weights[*other].iter().zip(&weights[*one]);
        let mut orders = pairs.map(|(other, one)| other.total_cmp(one));
        orders
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mains = |moved: Moved| with(&[moved]).into_iter().filter(is_main).collect();
    Ranked {
        leading: time.leading(costs, &moved),
        moved,
        same: mains(Moved::Same),
        unclear: mains(Moved::Unclear),
    }
}

/// Drops waits for a processor, which other programs on the machine also cause, from the front of parts in the order
/// of their size, each with whether it differs beyond doubt: a wait is dropped where another part is a quarter as
/// large, or where it may be zero and there are other parts.
fn drop_queue(parts: &mut Vec<(Doing, f64, bool)>) {
    let is_queue = |doing: Doing| matches!(doing, Doing::Runnable | Doing::ClientRunnable);
    while let [(doing, us, is_certain), rest @ ..] = parts.as_slice()
        && is_queue(*doing)
    {
        let others = || rest.iter().filter(|(doing, ..)| !is_queue(*doing));
        let is_cause = others().any(|(_, other, _)| other.abs() >= LEADING_SHARE_MIN * us.abs());
        if !is_cause && (*is_certain || others().next().is_none()) {
            break;
        }
        parts.remove(0);
    }
}

/// The difference in time to be explained.
struct Time<'e> {
    division: Option<&'e Division>,
    /// Contender − baseline, microseconds.
    whole_us: Option<f64>,
    /// The same; `None` where it may be zero.
    certain_us: Option<f64>,
}

impl<'e> Time<'e> {
    fn new(latency: &'e Latency, difference_us: &Figure) -> Self {
        let is_certain = |&(low, high): &(f64, f64)| low > 0.0 || high < 0.0;
        Self {
            division: match latency {
                Latency::Divided(division) => Some(division),
                Latency::NotDivided { .. } => None,
            },
            whole_us: difference_us.value(),
            certain_us: difference_us
                .interval()
                .filter(is_certain)
                .and(difference_us.value()),
        }
    }

    /// The part and the cost that are named first, out of `moved`.
    fn leading(&self, costs: &[Cost], moved: &[usize]) -> Leading {
        let whole_us = match self.division {
            Some(division) => division.difference_us.value(),
            None => self.whole_us,
        };
        let Some(whole_us) = whole_us.filter(|us| *us != 0.0) else {
            return Leading::default();
        };
        let parts = self.division.iter().flat_map(|division| &division.parts);
        let is_certain = |part: &Part| {
            let interval = part.difference_us.interval();
            interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
        };
        let sized = parts.filter_map(|part| {
            let us = part.difference_us.value()?;
            Some((part.doing, us, is_certain(part)))
        });
        let mut parts: Vec<(Doing, f64, bool)> =
            sized.filter(|(_, us, _)| us * whole_us > 0.0).collect();
        parts.sort_by(|(_, one, _), (_, other, _)| other.abs().total_cmp(&one.abs()));
        drop_queue(&mut parts);
        let mut parts: Vec<(Doing, f64)> = parts
            .into_iter()
            .map(|(doing, us, _)| (doing, us))
            .collect();
        let largest = parts.first().copied();
        let least_us = LEADING_SHARE_MIN * largest.map_or(whole_us, |(_, us)| us).abs();
        parts.retain(|(_, us)| us.abs() >= least_us);
        let is_behind = |index: &usize| {
            let cost = &costs[*index];
            let change = change(cost).unwrap_or(0.0);
            let is_enough = carries(&cost.resource)
                .is_none_or(|carries| change.abs() * carries.each_us >= least_us);
            change * whole_us > 0.0
                && is_enough
                && !cost.is_level
                && cost.group != Group::Waits
                && !is_negligible(cost)
                && !NOT_FIRST.contains(&cost.resource.as_str())
        };
        // The part that a resource lengthens.
        let part_of = |index: usize| {
            let carries = carries(&costs[index].resource)?;
            let is_large = |doing: &&Doing| parts.iter().any(|(one, _)| one == *doing);
            carries.parts.iter().find(is_large).copied()
        };
        let is_waited_for = |index: usize| carries(&costs[index].resource).is_some();
        let far = |index: usize| match is_waited_for(index) {
            true => distance(&costs[index], FAR_IN_TIME),
            false => distance(&costs[index], FAR),
        };
        // Time of a large part may differ by any factor.
        let is_telling = |index: &usize| match costs[*index].unit {
            Unit::Microseconds => largest.is_none() || part_of(*index).is_some(),
            Unit::Bytes | Unit::Count => far(*index) >= TELLING_RATIO.ln(),
        };
        // Of equals the one that is ranked first.
        let behind = moved.iter().copied().rev().filter(is_behind);
        let cost = behind.filter(is_telling).max_by(|&one, &other| {
            let weight = |index: usize| {
                let cost = &costs[index];
                // The whole disk has other users.
                let is_own = cost.group != Group::Disk;
                let is_part = part_of(index).is_some();
                (is_part, is_waited_for(index), is_own, cost.is_main)
            };
            let distances = far(one).total_cmp(&far(other));
            distances.then(weight(one).cmp(&weight(other)))
        });
        let part = largest.map(|(doing, _)| doing);
        Leading {
            part,
            lengthened: cost.and_then(part_of).filter(|doing| part != Some(*doing)),
            cost,
        }
    }

    /// Ranking key of a cost, in descending order of importance: the time that it carries, the time that it could be
    /// by itself, and how far it moved.
    fn weight(&self, cost: &Cost) -> [f64; 3] {
        let distance = distance(cost, FAR) * if cost.is_main { 1.0 } else { DETAIL };
        let [carried, by_itself] = self.carried_us(cost).unwrap_or_default();
        let least = self.certain_us.map_or(0.0, |us| SHARE_MIN * us.abs());
        match carried >= least && carried > 0.0 {
            true => [carried, by_itself, distance],
            false => [0.0, 0.0, distance],
        }
    }

    /// Largest part of the difference in time that a cost can be, and largest time that it can be by itself,
    /// microseconds; `None` where it takes no time, or moved in the opposite direction to the time.
    fn carried_us(&self, cost: &Cost) -> Option<[f64; 2]> {
        let carries = carries(&cost.resource)?;
        let change = change(cost)?;
        if self.certain_us.is_some_and(|us| us * change < 0.0) {
            return None;
        }
        let by_itself = change.abs() * carries.each_us;
        let most = match (self.division, self.certain_us) {
            (Some(division), _) => {
                let parts = division.parts.iter();
                let parts = parts.filter(|part| carries.parts.contains(&part.doing));
                let moved = parts.filter_map(|part| part.difference_us.value());
                moved.map(|us| (us * change.signum()).max(0.0)).sum()
            }
            (None, Some(us)) => us.abs(),
            (None, None) => by_itself,
        };
        Some([by_itself.min(most), by_itself])
    }
}

/// How far a cost moved, as the logarithm of a factor of `far` at most; a cost that one side has none of moved by
/// `far`.
fn distance(cost: &Cost, far: f64) -> f64 {
    let ratio = cost.ratio.value();
    ratio.map_or(far.ln(), |ratio| ratio.ln().abs().min(far.ln()))
}

/// True of what differs by more than a factor that may explain a result.
pub(super) fn is_telling(cost: &Cost) -> bool {
    distance(cost, FAR) > TELLING_RATIO.ln()
}

/// Contender − baseline.
fn change(cost: &Cost) -> Option<f64> {
    Some(cost.contender.value()? - cost.baseline.value()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::resources;
    use crate::summary::How;

    fn bare(value: f64) -> Figure {
        Figure::Bare {
            value,
            n: 7,
            how: How::Readings,
            why: "in a test".to_owned(),
        }
    }

    fn certain(value: f64) -> Figure {
        Figure::Estimated {
            value,
            low: value - 1.0,
            high: Some(value + 1.0),
            confidence: 0.95,
            n: 7,
            how: How::PairedTotals,
        }
    }

    fn cost(id: &str, baseline: f64, contender: f64) -> Cost {
        let resource = resources::all().find(|one| one.id == id).unwrap();
        Cost {
            resource: id.to_owned(),
            name: resource.name.to_owned(),
            unit: resource.unit,
            group: resource.group,
            is_main: resource.role == resources::Role::Main,
            is_level: false,
            baseline: bare(baseline),
            contender: bare(contender),
            ratio: bare(contender / baseline),
            moved: if contender < baseline {
                Moved::Less
            } else {
                Moved::More
            },
        }
    }

    /// A contender that does not sync at commits.
    fn costs() -> Vec<Cost> {
        vec![
            cost("server-cpu", 320.0, 250.0),
            cost("server-written", 9000.0, 3000.0),
            cost("redo-waits", 0.001, 0.0005),
            cost("redo-syncs", 0.506, 0.0002),
            cost("client-cpu", 60.0, 75.0),
        ]
    }

    fn ranked(latency: &Latency, difference_us: &Figure) -> Vec<&'static str> {
        let costs = costs();
        let ranked = rank(&costs, latency, difference_us);
        let names = ranked.moved.iter().map(|&index| {
            let name = &costs[index].resource;
            resources::all().find(|one| one.id == name).unwrap().id
        });
        names.collect()
    }

    fn not_divided() -> Latency {
        Latency::NotDivided {
            why: "in a test".to_owned(),
        }
    }

    fn divided(parts: &[(Doing, f64)]) -> Latency {
        let part = |&(doing, us): &(Doing, f64)| Part {
            doing,
            baseline_us: bare(1000.0),
            contender_us: bare(1000.0 + us),
            difference_us: certain(us),
        };
        Latency::Divided(Division {
            clients: 8,
            baseline_us: bare(1000.0),
            contender_us: bare(400.0),
            difference_us: certain(-600.0),
            identity_gap: [0.0; 2],
            parts: parts.iter().map(part).collect(),
        })
    }

    #[test]
    fn syncs_that_are_most_of_the_time_come_before_bytes_and_processor_time() {
        let order = [
            "redo-syncs",
            "server-cpu",
            "server-written",
            "client-cpu",
            "redo-waits",
        ];
        let parts = [(Doing::Commit, -530.0), (Doing::Running, -70.0)];
        assert_eq!(ranked(&divided(&parts), &certain(-600.0)), order);
        // Without the division, too: five microseconds of waits for room in the log are no hundredth of the difference.
        assert_eq!(ranked(&not_divided(), &certain(-600.0)), order);
    }

    #[test]
    fn what_moved_against_the_time_carries_none_of_it() {
        // The contender is slower although it syncs less.
        let order = ranked(&not_divided(), &certain(400.0));
        assert_eq!(order[..2], ["client-cpu", "server-written"]);
    }

    #[test]
    fn where_time_does_not_differ_every_direction_counts() {
        let equal = Figure::Estimated {
            value: -3.0,
            low: -20.0,
            high: Some(14.0),
            confidence: 0.95,
            n: 7,
            how: How::PairedTotals,
        };
        let order = ranked(&not_divided(), &equal);
        assert_eq!(order[..3], ["redo-syncs", "server-cpu", "client-cpu"]);
    }

    /// The part and the resource that are named first of a contender with these parts of a difference and these costs.
    fn leading(
        parts: &[(Doing, f64)],
        costs: &[(&str, f64, f64)],
    ) -> (Option<Doing>, Option<&'static str>) {
        let whole: f64 = parts.iter().map(|(_, us)| us).sum();
        let Latency::Divided(mut division) = divided(parts) else {
            unreachable!("divided")
        };
        division.difference_us = certain(whole);
        let costs: Vec<Cost> = costs
            .iter()
            .map(|&(id, baseline, contender)| {
                let mut cost = cost(id, baseline, contender);
                if baseline == 0.0 || contender == 0.0 {
                    cost.ratio = Figure::NotMeasured {
                        why: "none of it on one side".to_owned(),
                    };
                }
                cost
            })
            .collect();
        let Leading { part, cost, .. } =
            rank(&costs, &Latency::Divided(division), &certain(whole)).leading;
        let name = cost.and_then(|index| {
            let id = costs[index].resource.as_str();
            resources::all().find(|one| one.id == id).map(|one| one.id)
        });
        (part, name)
    }

    #[test]
    fn what_is_not_named_first_is_a_resource() {
        for id in NOT_FIRST {
            assert!(resources::all().any(|one| one.id == *id), "`{id}`");
        }
    }

    #[test]
    fn known_causes_are_named_first() {
        use Doing::{Commit, DiskRead, OtherThread, Running};
        for (parts, costs, named) in [
            // Commits that wait for no sync.
            (
                &[(Commit, -254.0), (Running, -48.0), (OtherThread, -42.0)][..],
                &[
                    ("server-cpu", 320.0, 270.0),
                    ("server-written", 9000.0, 3000.0),
                    ("redo-syncs", 0.5, 0.0002),
                    ("disk-flushes", 0.6, 0.001),
                ][..],
                (Commit, "redo-syncs"),
            ),
            // The same on a machine that others use.
            (
                &[
                    (Doing::Runnable, -1550.0),
                    (Commit, -824.0),
                    (Running, -48.0),
                ],
                &[("server-cpu", 320.0, 270.0), ("redo-syncs", 0.5, 0.0002)],
                (Commit, "redo-syncs"),
            ),
            // A small buffer pool.
            (
                &[(DiskRead, 900.0), (OtherThread, 200.0)],
                &[
                    ("server-cpu", 100.0, 150.0),
                    ("voluntary-switches", 2.0, 30.0),
                    ("server-read", 0.0, 50_000.0),
                    ("page-misses", 0.0, 3.1),
                    ("disk-reads", 0.0, 3.2),
                ],
                (DiskRead, "page-misses"),
            ),
            // No doublewrite buffer: log syncs wait for a device that writes less.
            (
                &[(Commit, -300.0), (OtherThread, -100.0)],
                &[
                    ("server-written", 50_000.0, 31_000.0),
                    ("data-syncs", 1.0, 0.7),
                    ("doublewrite-pages", 1.4, 0.0),
                ],
                (Commit, "doublewrite-pages"),
            ),
            // A small redo log.
            (
                &[(OtherThread, 400.0), (Commit, 100.0)],
                &[
                    ("server-cpu", 100.0, 115.0),
                    ("server-written", 9_000.0, 60_000.0),
                    ("pages-flushed", 0.3, 3.0),
                ],
                (OtherThread, "pages-flushed"),
            ),
            // Compiled queries.
            (
                &[(Running, 20_000.0), (OtherThread, 10.0)],
                &[
                    ("server-cpu", 3_000.0, 23_000.0),
                    ("server-cpu-user", 2_000.0, 22_000.0),
                    ("involuntary-switches", 0.1, 2.0),
                ],
                (Running, "server-cpu"),
            ),
            // A missing index.
            (
                &[(Running, 5_000.0)],
                &[
                    ("server-cpu", 50.0, 5_000.0),
                    ("page-requests", 4.0, 900.0),
                    ("client-cpu", 20.0, 22.0),
                ],
                (Running, "page-requests"),
            ),
        ] {
            let (part, resource) = named;
            assert_eq!(leading(parts, costs), (Some(part), Some(resource)));
        }
    }

    #[test]
    fn waits_for_a_processor_do_not_hide_what_was_waited_for() {
        let parts = [
            (Doing::Runnable, -908.0),
            (Doing::Commit, -866.0),
            (Doing::OtherThread, -839.0),
        ];
        let costs = [
            cost("server-written", 17_900.0, 257.0),
            cost("disk-flushes", 0.943, 0.01),
            cost("data-syncs", 0.583, 0.0),
        ];
        let Latency::Divided(mut division) = divided(&parts) else {
            unreachable!("divided")
        };
        division.difference_us = certain(-3220.0);
        let leading = rank(&costs, &Latency::Divided(division), &certain(-3220.0)).leading;
        assert_eq!(leading.part, Some(Doing::Commit));
        assert_eq!(leading.lengthened, None);
        assert_eq!(leading.cost, Some(2));
    }

    #[test]
    fn what_moved_against_the_time_or_follows_from_it_is_not_named_first() {
        let parts = [(Doing::Running, 50.0)];
        let costs = [
            ("server-written", 9_000.0, 3_000.0),
            ("voluntary-switches", 1.0, 3.0),
            ("redo-syncs", 0.0001, 0.0004),
        ];
        assert_eq!(leading(&parts, &costs), (Some(Doing::Running), None));
    }
}
