//! Throughput over the number of clients: the Universal Scalability Law of every contender, and where two
//! curves cross.
//!
//! The law is fitted to rounds in which every level has a complete block. It covers closed load levels without think
//! time only; elsewhere throughput does not follow the number of clients.

use dbduel_record::plan::{Arrival, Plan};
use dbduel_stats::Estimate;
use dbduel_stats::scaling::{self, fit_scaling};

use super::crossing::{Size, certain_crossings};
use crate::evidence::Evidence;
use crate::evidence::blocks::CompleteBlock;
use crate::summary::{
    Bounds, Comparison, ContenderCrossings, ContenderScaling, CrossingPoint, Crossings, Duel,
    Scaling,
};

/// Levels from which a law of three coefficients can be tested.
const LEVELS_MIN: usize = 4;

/// The levels when they are numbers of clients alone, ascending; empty otherwise.
fn over_clients(plan: &Plan) -> Vec<usize> {
    let is_closed = plan
        .levels
        .iter()
        .all(|level| matches!(level.arrival, Arrival::Closed { think_ms: 0.0 }));
    let mut levels: Vec<usize> = (0..plan.levels.len()).collect();
    levels.sort_by_key(|&level| plan.levels[level].clients);
    let ascends = levels
        .windows(2)
        .all(|pair| plan.levels[pair[0]].clients < plan.levels[pair[1]].clients);
    match plan.suite.is_none() && is_closed && ascends && levels.len() >= 2 {
        true => levels,
        false => Vec::new(),
    }
}

/// The law of every contender; empty below four levels.
pub fn scaling(evidence: &Evidence<'_>) -> Vec<ContenderScaling> {
    let plan = evidence.plan();
    let levels = over_clients(plan);
    if levels.len() < LEVELS_MIN {
        return Vec::new();
    }
    let clients: Vec<f64> = levels
        .iter()
        .map(|&level| f64::from(plan.levels[level].clients))
        .collect();
    let alpha = 1.0 - plan.decision.confidence;
    let fitted = plan.contenders.iter().enumerate().map(|(who, contender)| {
        let rounds = rounds(evidence, &levels, who);
        let outcome = match fit_scaling(&clients, &rounds, alpha) {
            Ok(scaling::Scaling::Described { fit, lack_of_fit_p }) => Scaling::Described {
                per_client_per_s: bounds(&fit.lambda),
                contention: fit.sigma.as_ref().map(bounds),
                crosstalk: fit.kappa.as_ref().map(bounds),
                peak_clients: fit.peak.as_ref().map(bounds),
                lack_of_fit_p,
            },
            Ok(scaling::Scaling::NotDescribed {
                lack_of_fit_p,
                worst_level,
            }) => Scaling::NotDescribed {
                lack_of_fit_p,
                worst_clients: worst_level as u32,
            },
            Err(error) => Scaling::NotFitted {
                why: error.to_string(),
            },
        };
        ContenderScaling {
            contender: contender.name.clone(),
            rounds: rounds.len() as u32,
            outcome,
        }
    });
    fitted.collect()
}

/// Throughput of one contender, round by round and level by level.
fn rounds(evidence: &Evidence<'_>, levels: &[usize], contender: usize) -> Vec<Vec<f64>> {
    let of_round = |level: usize, round: u32| {
        let blocks = &evidence.levels[level].complete;
        let block = blocks.iter().find(|block| block.block.round == round)?;
        throughput(block, contender)
    };
    let rounds = evidence.levels[levels[0]].complete.iter();
    rounds
        .filter_map(|block| {
            let round = block.block.round;
            levels.iter().map(|&level| of_round(level, round)).collect()
        })
        .collect()
}

/// Geometric mean of the contender's two slices; `None` when one of them has no commit.
fn throughput(block: &CompleteBlock<'_>, contender: usize) -> Option<f64> {
    let logs: Vec<f64> = block
        .slices_of(contender)
        .map(|row| (row.ok as f64 / row.measured_s).ln())
        .collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    Some(mean.exp()).filter(|rate| *rate > 0.0 && rate.is_finite())
}

/// Where the curves of every contender and of the baseline cross; empty for a single level.
pub fn crossings(evidence: &Evidence<'_>, duels: &[Duel]) -> Vec<ContenderCrossings> {
    let plan = evidence.plan();
    let levels = over_clients(plan);
    if levels.is_empty() {
        return Vec::new();
    }
    let others = plan.challengers();
    let found = others.enumerate().map(|(number, contender)| {
        let name = &plan.contenders[contender].name;
        let sizes: Vec<Size<'_>> = levels
            .iter()
            .map(|&level| Size {
                size: f64::from(plan.levels[level].clients),
                evidence,
                level,
                log_ratios: duels[level]
                    .comparisons
                    .get(number)
                    .map(Comparison::log_ratios)
                    .unwrap_or_default(),
            })
            .collect();
        let outcome = match certain_crossings(&sizes, contender, plan.decision.confidence) {
            Err(error) => Crossings::NotKnown {
                why: error.to_string(),
            },
            Ok(crossings) if crossings.is_empty() => Crossings::NoneDemonstrated {
                from_clients: plan.levels[levels[0]].clients,
                to_clients: plan.levels[levels[levels.len() - 1]].clients,
            },
            Ok(crossings) => Crossings::Found {
                points: crossings
                    .iter()
                    .map(|crossing| CrossingPoint {
                        clients: bounds(&crossing.at),
                        is_faster_above: crossing.rising,
                    })
                    .collect(),
            },
        };
        ContenderCrossings {
            contender: name.clone(),
            outcome,
        }
    });
    found.collect()
}

pub(crate) fn bounds(estimate: &Estimate) -> Bounds {
    Bounds {
        value: estimate.value,
        low: estimate.low,
        high: estimate.high,
    }
}

#[cfg(test)]
mod tests {
    use crate::summarise;
    use crate::summary::{Crossings, Scaling};
    use dbduel_testkit::synthetic::{Scenario, Side};

    fn curves(speed: &[f64]) -> Scenario {
        Scenario {
            sides: vec![
                Side::new("a", &vec![1.0; speed.len()]),
                Side::new("b", speed),
            ],
            clients: [1, 4, 16, 64, 128][..speed.len()].to_vec(),
            ..Scenario::duel()
        }
    }

    #[test]
    fn curves_that_cross_are_said_to_cross_between_the_levels_where_they_do() {
        let (summary, _) = summarise(&curves(&[0.8, 0.9, 1.1, 1.3]).record());
        let Crossings::Found { points } = &summary.crossings[0].outcome else {
            panic!("{:?}", summary.crossings)
        };
        assert_eq!(points.len(), 1);
        let at = points[0].clients;
        assert!(
            points[0].is_faster_above && at.low >= 1.0 && at.high <= 64.0,
            "{at:?}"
        );
        assert!(at.low <= 8.0 && 8.0 <= at.high, "{at:?}");
    }

    #[test]
    fn curves_that_do_not_cross_are_said_not_to_within_the_range() {
        let (summary, _) = summarise(&curves(&[1.05, 1.06, 1.05, 1.07]).record());
        assert_eq!(
            summary.crossings[0].outcome,
            Crossings::NoneDemonstrated {
                from_clients: 1,
                to_clients: 64
            }
        );
    }

    #[test]
    fn the_law_is_tested_before_a_coefficient_is_named() {
        // The synthetic servers follow a power of the clients, which no law of this kind describes.
        let (summary, _) = summarise(&curves(&[1.0; 5]).record());
        assert_eq!(summary.scaling.len(), 2);
        assert!(
            matches!(summary.scaling[0].outcome, Scaling::NotDescribed { lack_of_fit_p, .. } if lack_of_fit_p < 0.05),
            "{:?}",
            summary.scaling
        );
        // One whose throughput is made to follow the law exactly, up to rounding and a little noise.
        let mut record = curves(&[1.0; 5]).record();
        for row in &mut record.slices {
            let n = f64::from(row.clients);
            let law = 900.0 * n / (1.0 + 0.03 * (n - 1.0) + 0.0005 * n * (n - 1.0));
            let noise = 1.0 + 0.004 * (f64::from((row.block * 13 + row.position * 5) % 7) - 3.0);
            row.ok = (law * noise * row.measured_s).round() as u64;
        }
        let (summary, _) = summarise(&record);
        let Scaling::Described {
            contention: Some(contention),
            peak_clients: Some(peak),
            ..
        } = &summary.scaling[0].outcome
        else {
            panic!("{:?}", summary.scaling[0])
        };
        assert!(
            contention.low < 0.03 && 0.03 < contention.high,
            "{contention:?}"
        );
        assert!(peak.low < 44.0 && 44.0 < peak.high, "{peak:?}");
    }

    #[test]
    fn three_levels_are_too_few_for_the_law_and_one_for_a_crossing() {
        let (summary, _) = summarise(&Scenario::duel().record());
        assert!(summary.scaling.is_empty() && summary.crossings.len() == 1);
        let one = Scenario {
            clients: vec![16],
            ..Scenario::duel()
        };
        assert!(summarise(&one.record()).0.crossings.is_empty());
    }
}
