//! Which costs to speak of first: those that can be most of the difference in time.
//!
//! A sync, a read of the device, a wait for a lock and processor time are time of a transaction. Bytes and pages are not:
//! they differ along with a cause, or take time by way of a resource that is counted itself.

use super::relevance::telling;
use super::resources::carries;
use super::{Cost, Division, Latency, Moved};
use crate::judge::summary::Figure;

/// How much a detail weighs against a main resource that moved as far.
const DETAIL: f64 = 0.2;
/// Ratios beyond this are all alike: a hundred times nothing is still little.
const FAR: f64 = 8.0;
/// Share of the difference in time below which a resource carries none of it.
const SHARE_MIN: f64 = 0.01;

/// Costs in the order in which they are to be spoken of, as indices.
pub struct Ranked {
    /// What moved, the most telling first.
    pub moved: Vec<usize>,
    /// Main resources that are the same.
    pub same: Vec<usize>,
    /// Main resources that are unclear.
    pub unclear: Vec<usize>,
}

/// Ranks `costs`. `difference_us` is the difference in the mean time of a transaction. What can tell nothing of a
/// difference is in none of the lists.
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
        moved,
        same: mains(Moved::Same),
        unclear: mains(Moved::Unclear),
    }
}

/// The difference in time that is to be carried.
struct Time<'e> {
    division: Option<&'e Division>,
    /// Contender − baseline, microseconds; `None` where it may be none.
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
            certain_us: difference_us
                .interval()
                .filter(is_certain)
                .and(difference_us.value()),
        }
    }

    /// What a cost is ranked by, the weightiest first: the time that it carries, the time that it could be by itself, and
    /// how far it moved.
    fn weight(&self, cost: &Cost) -> [f64; 3] {
        let distance = cost
            .ratio
            .value()
            .map_or(FAR.ln(), |ratio| ratio.ln().abs().min(FAR.ln()));
        let distance = distance * if cost.is_main { 1.0 } else { DETAIL };
        let [carried, by_itself] = self.carried_us(cost).unwrap_or_default();
        let least = self.certain_us.map_or(0.0, |us| SHARE_MIN * us.abs());
        match carried >= least && carried > 0.0 {
            true => [carried, by_itself, distance],
            false => [0.0, 0.0, distance],
        }
    }

    /// How much of the difference in time a cost can be, and how much time it can be by itself, microseconds; `None` where
    /// it takes no time, or moved the other way than the time did.
    fn carried_us(&self, cost: &Cost) -> Option<[f64; 2]> {
        let carries = carries(&cost.resource)?;
        let change = cost.contender.value()? - cost.baseline.value()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::explain::{Doing, Part, resources};
    use crate::judge::summary::How;

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
}
