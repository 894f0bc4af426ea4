//! The difference of two contenders divided among the factors in which they differ, from the contrasts of a designed
//! contest.
//!
//! Each family has the error probability of a level of its own, shared equally (Bonferroni): the effects on throughput, the
//! effects on latency and cost, the interactions, and the two statements about the sum.

use dbduel_record::Plan;
use dbduel_record::Verdict;
use dbduel_record::design::Design;
use dbduel_stats::attribution::FactorialDesign;
use dbduel_stats::sequential::{Unit, WholeShare, share_of_whole};
use dbduel_text::percent;

use super::decide::{Conclusion, Question, no_block, verdict_of};
use super::log_ratios::throughput;
use super::quantities;
use crate::evidence::Evidence;
use crate::evidence::blocks::CompleteBlock;
use crate::summary::{
    Attribution, Change, Comparison, FactorEffect, Figure, How, Interaction, InteractionTerm,
};

/// Statements about the sum of the effects: its share of the whole, and what it leaves.
const CLOSURE_STATEMENTS: f64 = 2.0;

/// A designed contest at one level.
struct Divided<'a> {
    plan: &'a Plan,
    level: usize,
    design: &'a Design,
    matrix: FactorialDesign,
    blocks: &'a [CompleteBlock<'a>],
}

impl<'a> Divided<'a> {
    /// `None` for other contests. A design that divides nothing is an error with its reason.
    fn of(
        plan: &'a Plan,
        blocks: &'a [CompleteBlock<'a>],
        level: usize,
    ) -> Option<Result<Self, String>> {
        let design = plan.design.as_ref()?;
        Some(match FactorialDesign::from_runs(design.runs.clone()) {
            Ok(matrix) => Ok(Self {
                plan,
                level,
                design,
                matrix,
                blocks,
            }),
            Err(error) => Err(error.to_string()),
        })
    }

    fn question(&self, weights: Vec<f64>, statements: f64, name: &str) -> Question<'a> {
        let alpha = (1.0 - self.plan.decision.confidence) / statements;
        let pair = [self.design.target, self.plan.baseline];
        let stream = format!("judge/level/{}/design/{name}", self.level);
        Question {
            weights: Some(weights),
            ..Question::with_alpha(self.plan, pair, alpha, stream)
        }
    }

    /// The question about the effect of a factor, one of so many statements about each.
    fn about(&self, factor: usize, each: usize) -> Question<'a> {
        let statements = (self.design.factors.len() * each) as f64;
        let name = format!("factor/{}", self.design.factors[factor].name);
        self.question(self.matrix.main_effect(factor), statements, &name)
    }

    fn effects(&self) -> Vec<FactorEffect> {
        let factors = 0..self.design.factors.len();
        let effects = factors.map(|factor| {
            let question = self.about(factor, 1);
            let mut effect = FactorEffect {
                factor: self.design.factors[factor].name.clone(),
                verdict: Verdict::Undecided,
                ratio: no_block(),
                is_within_horizon: false,
                share: None,
                alpha: question.alpha,
                decided_at_block: None,
                quantities: Vec::new(),
            };
            if let Some(why) = question.nothing_committed(self.blocks) {
                effect.verdict = Verdict::Void;
                effect.ratio = Figure::NotMeasured { why };
            } else if let Some(found) = self.conclude(&question) {
                match found {
                    Ok(found) => {
                        effect.verdict = verdict_of(found.verdict);
                        effect.ratio = found.ratio;
                        effect.is_within_horizon = found.is_within_horizon;
                        effect.decided_at_block = found.decided_at_block;
                    }
                    Err(why) => effect.ratio = Figure::NotMeasured { why },
                }
            }
            effect
        });
        effects.collect()
    }

    /// Conclusion about throughput; `None` before the first block.
    fn conclude(&self, question: &Question<'_>) -> Option<Result<Conclusion, String>> {
        if self.blocks.is_empty() {
            return None;
        }
        let differences = question.differences(self.blocks, throughput);
        let conclusion = differences.and_then(|all| question.conclude(self.blocks, &all));
        Some(conclusion.map_err(|error| error.to_string()))
    }

    fn interactions(&self) -> Vec<Interaction> {
        let contrasts = self.matrix.interactions();
        let count = contrasts.len() as f64;
        let interactions = contrasts.into_iter().map(|contrast| {
            let term = |&([one, other], is_inverse): &([usize; 2], bool)| InteractionTerm {
                factors: [one, other].map(|factor| self.design.factors[factor].name.clone()),
                is_inverse,
            };
            let terms: Vec<InteractionTerm> = contrast.pairs.iter().map(term).collect();
            let name = format!(
                "interaction/{}/{}",
                terms[0].factors[0], terms[0].factors[1]
            );
            let question = self.question(contrast.weights, count, &name);
            let (change, ratio) = match self.conclude(&question) {
                Some(Ok(found)) => (found.verdict.into(), found.ratio),
                Some(Err(why)) => (Change::NotCompared, Figure::NotMeasured { why }),
                None => (Change::NotCompared, no_block()),
            };
            Interaction {
                terms,
                is_clear: contrast.is_clear,
                change,
                ratio,
                alpha: question.alpha,
            }
        });
        interactions.collect()
    }

    /// The sum of the effects of the listed factors as a share of the whole.
    fn listed_share(&self) -> Figure {
        if self.blocks.is_empty() {
            return no_block();
        }
        let factors = self.design.factors.iter().enumerate();
        let listed = factors
            .filter(|(_, factor)| factor.is_listed)
            .map(|(factor, _)| factor);
        let part = self.question(self.matrix.sum_of(listed), CLOSURE_STATEMENTS, "listed");
        let whole = self.question(self.matrix.whole(), CLOSURE_STATEMENTS, "listed");
        let units = |question: &Question<'_>| {
            let differences = question.differences(self.blocks, throughput)?;
            let units = self.blocks.iter().zip(&differences);
            Ok(units
                .map(|(block, difference)| Unit::new(*difference, block.block.weight()))
                .collect::<Vec<Unit>>())
        };
        let plan = part.sequential_plan(self.level);
        let share = units(&part).and_then(|part| share_of_whole(&part, &units(&whole)?, &plan));
        let n = self.blocks.len();
        match share {
            Ok(WholeShare::Estimated(share))
                if share.interval.low.is_finite() && share.interval.high.is_finite() =>
            {
                Figure::Estimated {
                    value: share.value,
                    low: share.interval.low,
                    high: Some(share.interval.high),
                    confidence: 1.0 - part.alpha,
                    n,
                    how: How::ShareOfWhole,
                }
            }
            Ok(WholeShare::Estimated(share)) => Figure::Bare {
                value: share.value,
                n,
                how: How::ShareOfWhole,
                why: "the whole difference is too uncertain to bound a share of it".to_owned(),
            },
            // The verdict on the difference itself has the error probability of one statement.
            Ok(WholeShare::OfNothing) => Figure::NotMeasured {
                why: format!(
                    "at the required confidence of {} the whole difference may be zero",
                    percent::of(1.0 - part.alpha)
                ),
            },
            Ok(WholeShare::NotConstant) => Figure::NotMeasured {
                why: "no single share fits all blocks; it changed during the run".to_owned(),
            },
            Err(error) => Figure::NotMeasured {
                why: error.to_string(),
            },
        }
    }

    fn gap(&self) -> Option<Figure> {
        let question = self.question(self.matrix.gap()?, CLOSURE_STATEMENTS, "gap");
        Some(match self.conclude(&question) {
            Some(Ok(found)) => found.ratio,
            Some(Err(why)) => Figure::NotMeasured { why },
            None => no_block(),
        })
    }
}

/// The effects of all factors on throughput, as far as they decide whether more blocks are needed; empty for other contests.
pub(super) fn effects(
    plan: &Plan,
    blocks: &[CompleteBlock<'_>],
    level: usize,
) -> Vec<FactorEffect> {
    match Divided::of(plan, blocks, level) {
        Some(Ok(divided)) => divided.effects(),
        Some(Err(_)) | None => Vec::new(),
    }
}

/// The attribution of a designed contest at a level; `None` for other contests. `effects` and `whole` are the
/// decisions about throughput.
pub(crate) fn attribution(
    evidence: &Evidence<'_>,
    level: usize,
    mut effects: Vec<FactorEffect>,
    whole: Option<&Comparison>,
) -> Option<Attribution> {
    let plan = evidence.plan();
    let blocks = &evidence.levels[level].complete;
    let design = plan.design.as_ref()?;
    let mut attribution = Attribution {
        target: plan.contenders[design.target].name.clone(),
        contenders: plan.contenders.len(),
        has_all_combinations: false,
        factors: design.factors.clone(),
        effects: Vec::new(),
        interactions: Vec::new(),
        listed_share: no_block(),
        gap: None,
        because: None,
    };
    let divided = match Divided::of(plan, blocks, level)? {
        Ok(divided) => divided,
        Err(why) => {
            attribution.because = Some(why);
            return Some(attribution);
        }
    };
    let whole = whole.filter(|whole| matches!(whole.verdict, Verdict::Faster | Verdict::Slower));
    let whole = whole.and_then(|whole| whole.ratio.value());
    for (factor, effect) in effects.iter_mut().enumerate() {
        effect.share = effect
            .ratio
            .value()
            .zip(whole)
            .map(|(own, whole)| own.ln() / whole.ln());
        let quantities = FactorEffect::QUANTITIES.map(|quantity| {
            let question = divided.about(factor, FactorEffect::QUANTITIES.len());
            quantities::compare_one(evidence, level, &question, quantity, question.alpha)
        });
        effect.quantities = quantities.into();
    }
    attribution.because = effects
        .iter()
        .find_map(|effect| match (&effect.ratio, effect.verdict) {
            (Figure::NotMeasured { why }, Verdict::Void) => Some(why.clone()),
            _ => None,
        });
    attribution.effects = effects;
    attribution.has_all_combinations =
        divided.matrix.kind() == dbduel_stats::attribution::DesignKind::Full;
    if attribution.because.is_none() {
        attribution.interactions = divided.interactions();
        attribution.listed_share = divided.listed_share();
        attribution.gap = divided.gap();
    }
    Some(attribution)
}

#[cfg(test)]
mod tests {
    use dbduel_record::Verdict;

    use crate::summarise;
    use crate::summary::{Change, Figure};
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn the_factors_that_matter_are_named_and_the_sum_closes() {
        let (summary, _) = summarise(&Scenario::designed().record());
        let duel = &summary.duels[0];
        assert_eq!(duel.comparisons.len(), 1);
        assert!(duel.pairs.is_empty());
        let attribution = duel.attribution.as_ref().unwrap();
        let verdicts: Vec<Verdict> = attribution.effects.iter().map(|one| one.verdict).collect();
        assert_eq!(
            verdicts,
            [Verdict::Faster, Verdict::Faster, Verdict::Equivalent]
        );
        let truth = [1.2_f64, 1.08, 1.0];
        for (effect, truth) in attribution.effects.iter().zip(truth) {
            let (low, high) = effect.ratio.interval().unwrap();
            assert!(low < truth * 1.005 && truth * 0.995 < high, "{effect:?}");
        }
        assert!((attribution.effects[0].share.unwrap() - 0.70).abs() < 0.05);
        let (low, high) = attribution.listed_share.interval().unwrap();
        assert!(low > 0.9 && high < 1.1, "{:?}", attribution.listed_share);
        let (low, high) = attribution.gap.as_ref().unwrap().interval().unwrap();
        assert!(low < 1.0 && 1.0 < high);
        assert_eq!(attribution.interactions.len(), 3);
        assert!(
            attribution
                .interactions
                .iter()
                .all(|one| one.change != Change::Higher)
        );
    }

    #[test]
    fn the_reason_for_no_share_is_the_true_one() {
        let why = |record: &dbduel_record::Record| {
            let (summary, _) = summarise(record);
            let attribution = summary.duels[0].attribution.clone().unwrap();
            match attribution.listed_share {
                Figure::NotMeasured { why } => (why, summary.duels[0].comparisons[0].verdict),
                other => panic!("{other:?}"),
            }
        };
        let alike = Scenario::designed().record();
        let mut record = alike.clone();
        for row in &mut record.slices {
            row.ok = 1000 + u64::from(row.block * 31 + row.position * 17) % 7;
        }
        let (of_nothing, verdict) = why(&record);
        assert!(of_nothing.contains("97.5 %") && of_nothing.contains("may be zero"));
        assert!(!matches!(verdict, Verdict::Faster | Verdict::Slower));

        // The two contenders keep their difference, the listed factors lose theirs half way.
        let mut record = alike;
        let design = record.plan.design.clone().unwrap();
        let ends =
            [record.plan.baseline, design.target].map(|at| record.plan.contenders[at].name.clone());
        let half = record.plan.blocks.len() as u32 / 2;
        for row in record
            .slices
            .iter_mut()
            .filter(|row| !ends.contains(&row.contender))
        {
            let run = record
                .plan
                .contenders
                .iter()
                .position(|one| one.name == row.contender)
                .unwrap();
            let changed = design.runs[run]
                .iter()
                .filter(|is_second| **is_second)
                .count() as i32;
            let effect = if row.block < half { 1.5_f64 } else { 1.0 / 1.5 };
            row.ok = (1000.0 * effect.powi(changed)) as u64;
        }
        let (changed, verdict) = why(&record);
        assert!(changed.contains("changed during the run"), "{changed}");
        assert_eq!(verdict, Verdict::Faster);
    }

    #[test]
    fn a_contender_that_commits_nothing_leaves_nothing_to_divide() {
        let mut record = Scenario::designed().record();
        let silent = record.plan.contenders[4].name.clone();
        for row in record
            .slices
            .iter_mut()
            .filter(|row| row.contender == silent)
        {
            row.ok = 0;
        }
        let (summary, _) = summarise(&record);
        let attribution = summary.duels[0].attribution.as_ref().unwrap();
        assert!(
            attribution
                .because
                .as_ref()
                .is_some_and(|why| why.contains("committed nothing"))
        );
        assert!(
            attribution
                .effects
                .iter()
                .all(|one| one.verdict == Verdict::Void)
        );
    }

    #[test]
    fn a_design_that_cannot_divide_says_so() {
        let mut record = Scenario::designed().record();
        let design = record.plan.design.as_mut().unwrap();
        design.runs[3] = design.runs[2].clone();
        let (summary, _) = summarise(&record);
        let attribution = summary.duels[0].attribution.as_ref().unwrap();
        assert!(attribution.because.is_some() && attribution.effects.is_empty());
    }
}
