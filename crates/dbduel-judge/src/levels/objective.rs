//! Which load levels meet the latency objective, and between which rates the highest one lies.
//!
//! The share of late transactions is a number per slice; its interval over slices shows that the level meets the
//! objective, misses it, or neither. [`super::search`] defines lateness. Open arrivals are rates; closed levels are
//! only met or missed.

use dbduel_record::plan::LoadLevel;

use super::search::{late_shares_of, rate, state};
use crate::evidence::Evidence;
use crate::summary::{ContenderObjective, LevelObjective, ObjectiveState, RateBracket};

/// Every contender against the objective; empty when the plan has none.
pub fn objectives(evidence: &Evidence<'_>) -> Vec<ContenderObjective> {
    let plan = evidence.plan();
    if plan.objective.is_none() {
        return Vec::new();
    }
    let late = late_shares_of(evidence);
    let contenders = plan.contenders.iter().enumerate().map(|(who, contender)| {
        let levels: Vec<LevelObjective> = plan
            .levels
            .iter()
            .enumerate()
            .map(|(level, load)| {
                let (state, late) = state(plan, &evidence.levels[level], who, &late);
                LevelObjective {
                    level,
                    label: load.label(),
                    state,
                    late,
                }
            })
            .collect();
        ContenderObjective {
            contender: contender.name.clone(),
            highest_rate: bracket(&plan.levels, &levels),
            levels,
        }
    });
    contenders.collect()
}

/// Between which rates the highest one that meets the objective lies: from the highest that is met below
/// every missed one, up to the lowest that is missed. `None` for closed levels.
fn bracket(plan: &[LoadLevel], levels: &[LevelObjective]) -> Option<RateBracket> {
    let mut rates: Vec<(f64, ObjectiveState)> = plan
        .iter()
        .zip(levels)
        .map(|(load, level)| Some((rate(load)?, level.state)))
        .collect::<Option<_>>()?;
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    let missed_from = rates
        .iter()
        .find(|(_, state)| *state == ObjectiveState::Missed)
        .map(|(rate, _)| *rate);
    let met_up_to = rates
        .iter()
        .filter(|(rate, state)| {
            *state == ObjectiveState::Met && missed_from.is_none_or(|missed| *rate < missed)
        })
        .map(|(rate, _)| *rate)
        .next_back();
    Some(RateBracket {
        met_up_to,
        missed_from,
    })
}

#[cfg(test)]
mod tests {
    use dbduel_record::plan::{Arrival, Objective};

    use crate::summarise;
    use crate::summary::ObjectiveState;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn the_highest_rate_lies_between_the_last_that_meets_and_the_first_that_misses() {
        // The synthetic latencies grow with the clients, so the levels stand for rising rates.
        let mut record = Scenario::duel().record();
        for (level, rate) in record.plan.levels.iter_mut().zip([500.0, 1000.0, 2000.0]) {
            level.arrival = Arrival::Poisson { per_second: rate };
        }
        let p99_us = |clients: u32| {
            let rows = record.slices.iter().filter(|row| row.clients == clients);
            let quantiles: Vec<f64> = rows.map(|row| row.latency_us_p99).collect();
            quantiles.iter().sum::<f64>() / quantiles.len() as f64
        };
        let (low, high) = (p99_us(16), p99_us(64));
        assert!(low * 1.5 < high, "{low} {high}");
        record.plan.objective = Some(Objective {
            share: 0.99,
            latency_us: (low * high).sqrt(),
        });
        let (summary, _) = summarise(&record);
        for contender in &summary.objectives {
            let states: Vec<ObjectiveState> =
                contender.levels.iter().map(|level| level.state).collect();
            let expected = [
                ObjectiveState::Met,
                ObjectiveState::Met,
                ObjectiveState::Missed,
            ];
            assert_eq!(states, expected, "{contender:?}");
            let bracket = contender.highest_rate.unwrap();
            assert_eq!(
                (bracket.met_up_to, bracket.missed_from),
                (Some(1000.0), Some(2000.0))
            );
        }
    }

    #[test]
    fn transactions_that_were_never_done_are_late() {
        let mut record = Scenario {
            clients: vec![16],
            ..Scenario::duel()
        }
        .record();
        record.plan.objective = Some(Objective {
            share: 0.99,
            latency_us: 1e5,
        });
        assert_eq!(
            summarise(&record).0.objectives[0].levels[0].state,
            ObjectiveState::Met
        );
        for row in &mut record.slices {
            row.skipped = row.due / 10;
            row.due += row.skipped;
        }
        let (summary, _) = summarise(&record);
        let level = &summary.objectives[0].levels[0];
        assert_eq!(level.state, ObjectiveState::Missed);
        assert!((level.late.unwrap().value - 1.0 / 11.0).abs() < 0.02);
        // Closed clients have no rate to bracket.
        assert!(summary.objectives[0].highest_rate.is_none());
    }
}
