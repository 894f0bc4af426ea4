//! Number of simulated sign paths that an error probability needs, and the conclusion where it gets fewer.

use dbduel_record::plan::DecisionRule;
use dbduel_stats::sequential::{SequentialPlan, Verdict};
use dbduel_text::{counts, percent};

use super::decide::Conclusion;
use crate::summary::{Figure, How};

/// Paths of which each part of the error probability can give up one, so that it is spent in small steps.
const STEPS: f64 = 20.0;

/// Most paths of a question that is one of many: a bound of the judge's time and memory.
const MOST: u32 = 20_000;

/// Simulated sign paths for an error probability of `alpha`: as many as it needs, but no more than a bound
/// unless the rule of the duel has more.
pub(super) fn needed(alpha: f64, rule: &DecisionRule) -> u32 {
    let needed = STEPS / ((1.0 - rule.reserve) * alpha);
    rule.paths.max((needed.ceil() as u32).min(MOST))
}

/// The conclusion where there are too few paths to ever give one up: the log ratio `estimate` of `blocks`, and the
/// reason why no number of blocks decides. `None` where there are enough paths.
pub(super) fn conclude_without(
    test: &SequentialPlan,
    estimate: f64,
    how: How,
    blocks: usize,
) -> Option<Conclusion> {
    let can_give_up = (1.0 - test.reserve) * test.alpha * (test.paths as f64 + 1.0) >= 1.0;
    if can_give_up || blocks == 0 {
        return None;
    }
    Some(Conclusion {
        verdict: Verdict::Undecided,
        is_within_horizon: false,
        decided_at_block: None,
        paid_by: None,
        ratio: Figure::Bare {
            value: estimate.exp(),
            n: blocks,
            how,
            why: format!(
                "{} simulated sign paths are too few for an error probability of {}, so no number of blocks decides it; \
                 compare fewer contenders",
                counts::of(test.paths as u64),
                percent::of(test.alpha)
            ),
        },
        restart_sd: None,
        few_stalls: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::decide::Question;
    use super::*;
    use crate::evidence::Evidence;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn a_question_that_no_block_can_decide_says_so() {
        let record = Scenario::duel().record();
        let evidence = Evidence::of(&record);
        let answer = |pairs: f64| {
            let alpha = 0.05 / pairs / 5.0;
            let question = Question::with_alpha(&record.plan, [1, 0], alpha, "test".to_owned());
            question.compare(&evidence.levels[0].complete)
        };
        // Of 4 contenders and of 20.
        assert!(answer(6.0).ratio.interval().is_some());
        let open = answer(190.0);
        assert_eq!(open.verdict, dbduel_record::Verdict::Undecided);
        let Figure::Bare { value, why, .. } = open.ratio else {
            panic!("{open:?}")
        };
        assert!((value / 1.08 - 1.0).abs() < 0.02, "{value}");
        assert!(
            why.starts_with("20,000 simulated sign paths are too few"),
            "{why}"
        );
    }
}
