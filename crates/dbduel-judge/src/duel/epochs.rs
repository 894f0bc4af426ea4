//! Verdicts about servers: the log ratio of every epoch is one observation.
//!
//! An epoch counts when it has all its planned blocks, or when a later one has begun.

use std::sync::{Mutex, PoisonError};

use dbduel_record::plan::Epochs;
use dbduel_stats::StatsError;
use dbduel_stats::epochs::{EpochBoundaries, FIRST_LOOK, decide_epochs, restart_spread};
use dbduel_text::percent;

use super::decide::{Conclusion, NO_SINGLE_RATIO, Question};
use crate::evidence::blocks::CompleteBlock;
use crate::summary::{Figure, How};

/// The boundaries depend on nothing that is measured, so their simulation has a seed of its own.
const SEED: u64 = 1;

/// Boundaries by number of epochs and error probability. They cost a simulation, and a contest asks for
/// them after every block.
static BOUNDARIES: Mutex<Vec<((u32, u64), EpochBoundaries)>> = Mutex::new(Vec::new());

fn boundaries(epochs: u32, alpha: f64) -> Result<EpochBoundaries, StatsError> {
    let key = (epochs, alpha.to_bits());
    let mut known = BOUNDARIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, boundaries)) = known.iter().find(|(other, _)| *other == key) {
        return Ok(boundaries.clone());
    }
    let made = EpochBoundaries::new(epochs as usize, alpha, SEED)?;
    known.push((key, made.clone()));
    Ok(made)
}

/// The mean of log ratios; 0 of none.
pub(crate) fn mean(differences: &[f64]) -> f64 {
    differences.iter().sum::<f64>() / differences.len().max(1) as f64
}

/// Conclusion from the epochs so far. `values` are those of the blocks, and `log_ratio` is that of several of them
/// together.
pub(crate) fn conclude<V: Copy>(
    question: &Question<'_>,
    planned: Epochs,
    blocks: &[CompleteBlock<'_>],
    values: &[V],
    log_ratio: impl Fn(&[V]) -> f64,
) -> Result<Conclusion, StatsError> {
    let epochs = complete_epochs(planned, blocks, values);
    let of_blocks = epochs.iter().map(|epoch| {
        let blocks = epoch.iter();
        blocks.map(|block| log_ratio(&[*block])).collect()
    });
    let of_blocks: Vec<Vec<f64>> = of_blocks.collect();
    let mut conclusion = Conclusion {
        verdict: dbduel_stats::sequential::Verdict::Undecided,
        is_within_horizon: false,
        decided_at_block: None,
        paid_by: None,
        ratio: Figure::NotMeasured {
            why: "no complete epoch".to_owned(),
        },
        few_stalls: None,
        restart_sd: restart_spread(&of_blocks).ok().map(|spread| spread.between),
    };
    if epochs.is_empty() {
        return Ok(conclusion);
    }
    let means: Vec<f64> = epochs.iter().map(|epoch| log_ratio(epoch)).collect();
    let margin = question.plan.decision.horizon.ln_1p();
    let decision = decide_epochs(&means, &boundaries(planned.count, question.alpha)?, margin)?;
    conclusion.verdict = decision.verdict;
    conclusion.is_within_horizon = decision.within_margin;
    let (value, n) = (decision.estimate.exp(), decision.n);
    let how = match decision.is_balanced {
        true => How::BalanceOfEpochs,
        false => How::Epochs,
    };
    let bare = |why: String| Figure::Bare { value, n, how, why };
    conclusion.ratio = match decision.interval {
        Some(interval) if interval.low.is_finite() => Figure::Estimated {
            value,
            low: interval.low.exp(),
            high: Some(interval.high.exp()).filter(|high| high.is_finite()),
            confidence: 1.0 - question.alpha,
            n,
            how,
        },
        Some(_) if n < FIRST_LOOK => bare(format!(
            "{n} of at least {FIRST_LOOK} epochs, too few for an interval"
        )),
        Some(_) => bare(format!(
            "{n} of {} epochs spend too little of the error probability for an interval of {} confidence",
            planned.count,
            percent::of(1.0 - question.alpha)
        )),
        None => bare(NO_SINGLE_RATIO.to_owned()),
    };
    Ok(conclusion)
}

/// The values of the blocks of every epoch that counts, in order.
fn complete_epochs<V: Copy>(
    planned: Epochs,
    blocks: &[CompleteBlock<'_>],
    values: &[V],
) -> Vec<Vec<V>> {
    let mut epochs: Vec<(u32, Vec<V>)> = Vec::new();
    for (block, value) in blocks.iter().zip(values) {
        let Some(epoch) = block.rows.first().map(|row| row.epoch) else {
            continue;
        };
        match epochs.iter_mut().find(|(known, _)| *known == epoch) {
            Some((_, own)) => own.push(*value),
            None => epochs.push((epoch, vec![*value])),
        }
    }
    epochs.sort_by_key(|(epoch, _)| *epoch);
    let last = epochs.len().saturating_sub(1);
    epochs
        .into_iter()
        .enumerate()
        .filter(|(index, (_, own))| *index < last || own.len() >= planned.blocks as usize)
        .map(|(_, (_, own))| own)
        .collect()
}

#[cfg(test)]
mod tests {
    use dbduel_record::Verdict;

    use dbduel_record::plan::Epochs;

    use crate::summarise;
    use crate::summary::{Figure, How, Scope};
    use dbduel_testkit::synthetic::Scenario;

    /// Six epochs of three blocks, each started with a ratio of its own beside the true one.
    fn judged(ratio: f64, restart: f64) -> crate::Summary {
        let mut scenario = Scenario {
            clients: vec![16],
            blocks: 18,
            ..Scenario::duel()
        };
        scenario.sides[1].speed = vec![ratio];
        let mut record = scenario.record();
        record.plan.schedule.epochs = Some(Epochs {
            count: 6,
            blocks: 3,
        });
        let shifts = [1.0, -0.8, 0.4, -1.0, 0.9, -0.5];
        for row in &mut record.slices {
            let epoch = row.block / 3;
            row.epoch = epoch;
            if row.contender == "no-doublewrite" {
                let factor = 1.0 + restart * shifts[epoch as usize];
                row.ok = (row.ok as f64 * factor).round() as u64;
            }
        }
        summarise(&record).0
    }

    #[test]
    fn with_epochs_the_verdict_is_about_the_servers_and_rests_on_the_epochs() {
        let summary = judged(1.3, 0.01);
        assert_eq!(summary.scope, Scope::TheseServers);
        let comparison = &summary.duels[0].comparisons[0];
        assert_eq!(comparison.verdict, Verdict::Faster);
        assert!(
            matches!(
                comparison.ratio,
                Figure::Estimated {
                    n: 6,
                    how: How::Epochs,
                    ..
                }
            ),
            "{:?}",
            comparison.ratio
        );
    }

    #[test]
    fn what_restarts_move_is_told_and_widens_the_interval() {
        let (calm, restless) = (judged(1.05, 0.0), judged(1.05, 0.08));
        let width = |summary: &crate::Summary| {
            let (low, high) = summary.duels[0].comparisons[0].ratio.interval().unwrap();
            (high / low).ln()
        };
        assert!(width(&restless) > 2.0 * width(&calm));
        let sd = restless.duels[0].comparisons[0].restart_sd.unwrap();
        assert!((0.04..0.14).contains(&sd), "{sd}");
        assert_eq!(restless.duels[0].comparisons[0].verdict, Verdict::Undecided);
    }

    #[test]
    fn an_interval_that_cannot_be_paid_for_yet_is_not_said_to_lack_epochs() {
        let why = |count: u32| {
            let scenario = Scenario {
                clients: vec![16],
                blocks: 9,
                ..Scenario::duel()
            };
            let mut record = scenario.record();
            record.plan.schedule.epochs = Some(Epochs { count, blocks: 3 });
            for row in &mut record.slices {
                row.epoch = row.block / 3;
            }
            match summarise(&record).0.duels[0].comparisons[0].ratio.clone() {
                Figure::Bare { n: 3, why, .. } => why,
                other => panic!("{other:?}"),
            }
        };
        // Three of so many epochs spend less than one simulated path.
        let said = why(40);
        assert!(
            said.starts_with("3 of 40 epochs spend too little"),
            "{said}"
        );
    }
}
