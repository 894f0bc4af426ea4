//! The verdict of one level, from the rows of its slices and the plan alone.
//!
//! The contest asks it after every block whether to continue, and the judge asks it for the report, so that stopping
//! and judging are one piece of code.

use dbduel_record::Plan;
use dbduel_record::Verdict;
use dbduel_record::plan::Block;
use dbduel_record::rows::SliceRow;
use dbduel_record::seed::named_seed;
use dbduel_stats::StatsError;
use dbduel_stats::compare::{BlockSlices, hodges_lehmann, minimum_detectable_effect};
use dbduel_stats::sequential::{
    self, BlockTotals, Decision, Interval, Method, SequentialPlan, Unit,
};
use dbduel_text::percent;

use super::log_ratios::{self, block_deviation, block_log_ratio, differences};
use super::{attribution, epochs, few_stalls, paths};
use crate::champions;
use crate::evidence::blocks::{CompleteBlock, LevelBlocks};
use crate::summary::{
    BlockRatio, Change, Comparison, FactorEffect, FewStalls, Figure, How, PaidBy,
};

/// After this many blocks the contest stops waiting for a contender that has committed nothing.
const SILENT_BLOCKS: usize = 2;

/// Verdicts on one level so far.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelDecision {
    /// Index into `Plan::levels`.
    pub level: usize,
    /// Blocks that count.
    pub blocks_complete: u32,
    /// One entry per contender other than the baseline, in the order of the experiment.
    pub comparisons: Vec<Comparison>,
    /// Effect of each factor of a designed contest, without latency and cost.
    pub effects: Vec<FactorEffect>,
}

/// Compares every contender with the baseline on the complete blocks of `level` among `rows`.
#[must_use]
pub fn decide_level(plan: &Plan, rows: &[SliceRow], level: usize) -> LevelDecision {
    if let Some((plan, rows)) = champions::judged(plan, rows) {
        return decide_blocks(&plan, &LevelBlocks::sort(&plan, &rows, level), level);
    }
    decide_blocks(plan, &LevelBlocks::sort(plan, rows, level), level)
}

/// [`decide_level`] for rows that are sorted already.
pub(crate) fn decide_blocks(plan: &Plan, blocks: &LevelBlocks<'_>, level: usize) -> LevelDecision {
    let comparisons = plan
        .challengers()
        .map(|contender| {
            Question::against_baseline(plan, contender, level).compare(&blocks.complete)
        })
        .collect();
    LevelDecision {
        level,
        blocks_complete: blocks.complete.len() as u32,
        comparisons,
        effects: attribution::effects(plan, &blocks.complete, level),
    }
}

/// Error probability of one comparison: the duel's, divided by the number of comparisons in it
/// (Bonferroni). Every level has its own.
fn alpha_per_comparison(plan: &Plan) -> f64 {
    let comparisons = plan.challengers().count().max(1);
    (1.0 - plan.decision.confidence) / comparisons as f64
}

/// A question about two contenders at one level, fixed before anything is measured.
#[derive(Debug, Clone)]
pub(crate) struct Question<'a> {
    pub plan: &'a Plan,
    /// Index of the contender whose ratio it is.
    pub contender: usize,
    /// Index of the contender that it is compared with.
    pub reference: usize,
    /// Weight of every contender, in a contrast of more than the two.
    pub weights: Option<Vec<f64>>,
    /// Probability that any part of the answer is wrong.
    pub alpha: f64,
    /// Simulated sign paths.
    pub paths: u32,
    /// Name of the stream of the simulated coins.
    pub stream: String,
}

impl<'a> Question<'a> {
    /// A contender against the baseline at a level, with its share of the level's error probability.
    pub(crate) fn against_baseline(plan: &'a Plan, contender: usize, level: usize) -> Self {
        let name = &plan.contenders[contender].name;
        Self {
            plan,
            contender,
            reference: plan.baseline,
            weights: None,
            alpha: alpha_per_comparison(plan),
            paths: plan.decision.paths,
            stream: format!("judge/level/{level}/contender/{name}"),
        }
    }

    /// A question with an error probability of its own, and as many simulated paths as that needs. They have a
    /// bound: with so many contenders that it is reached, some questions stay open whatever is measured.
    pub(crate) fn with_alpha(
        plan: &'a Plan,
        [contender, reference]: [usize; 2],
        alpha: f64,
        stream: String,
    ) -> Self {
        Self {
            plan,
            contender,
            reference,
            weights: None,
            alpha,
            paths: paths::needed(alpha, &plan.decision),
            stream,
        }
    }

    /// Throughput, contender ÷ reference.
    pub(crate) fn compare(&self, blocks: &[CompleteBlock<'_>]) -> Comparison {
        let mut comparison = Comparison {
            contender: self.plan.contenders[self.contender].name.clone(),
            verdict: Verdict::Undecided,
            because: None,
            is_withheld: false,
            ratio: no_block(),
            is_within_horizon: false,
            alpha: self.alpha,
            decided_at_block: None,
            paid_by: None,
            block_sd: None,
            detectable_difference: None,
            ratio_hodges_lehmann: None,
            ratio_mean_of_blocks: None,
            few_stalls: None,
            contradiction: None,
            restart_sd: None,
            overturned_by: Vec::new(),
            quantities: Vec::new(),
            blocks: Vec::new(),
        };
        if let Some(why) = self.nothing_committed(blocks) {
            comparison.verdict = Verdict::Void;
            comparison.ratio = Figure::NotMeasured { why: why.clone() };
            comparison.because = Some(why);
            return comparison;
        }
        if let Err(error) = self.fill(&mut comparison, blocks) {
            comparison.verdict = Verdict::Undecided;
            comparison.because = Some(error.to_string());
        }
        comparison
    }

    fn fill(
        &self,
        comparison: &mut Comparison,
        blocks: &[CompleteBlock<'_>],
    ) -> Result<(), StatsError> {
        if blocks.is_empty() {
            return Ok(());
        }
        let totals = blocks
            .iter()
            .map(|block| log_ratios::totals(block, self.contender, self.reference));
        let totals: Vec<BlockTotals> = totals.collect();
        let differences: Vec<f64> = totals.iter().map(block_log_ratio).collect();
        comparison.blocks = blocks
            .iter()
            .zip(&totals)
            .map(|(block, totals)| BlockRatio {
                block: block.block.id,
                ratio: block_log_ratio(totals).exp(),
                transactions: totals.contender.work as u64,
                seconds: totals.contender.time,
                baseline_transactions: totals.reference.work as u64,
                baseline_seconds: totals.reference.time,
            })
            .collect();
        comparison.ratio_hodges_lehmann = Some(hodges_lehmann(&differences)?.exp());
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        comparison.ratio_mean_of_blocks = Some(mean.exp());
        comparison.block_sd = block_deviation(&differences, blocks);
        let blocks_max = self.plan.blocks_max(level_of(blocks)) as usize;
        let planned = blocks_max.max(differences.len());
        comparison.detectable_difference = comparison
            .block_sd
            .map(|sd| minimum_detectable_effect(sd, planned, self.alpha).exp_m1())
            .filter(|detectable| detectable.is_finite());
        let conclusion = self.conclude_totals(blocks, &totals)?;
        let Conclusion {
            verdict,
            is_within_horizon,
            decided_at_block,
            paid_by,
            ratio,
            restart_sd,
            few_stalls,
        } = conclusion;
        comparison.few_stalls = few_stalls;
        comparison.verdict = verdict_of(verdict);
        comparison.is_within_horizon = is_within_horizon;
        comparison.decided_at_block = decided_at_block;
        comparison.paid_by = paid_by;
        comparison.restart_sd = restart_sd;
        if matches!(&ratio, Figure::Bare { why, .. } if why == NO_SINGLE_RATIO) {
            comparison.because =
                Some("no single ratio fits all blocks: it changed during the run".to_owned());
        }
        comparison.ratio = ratio;
        Ok(())
    }

    /// Conclusion from log ratios, one per block: the units are the blocks, or the epochs when the plan starts the
    /// servers several times.
    pub(crate) fn conclude(
        &self,
        blocks: &[CompleteBlock<'_>],
        differences: &[f64],
    ) -> Result<Conclusion, StatsError> {
        if let Some(epochs) = self.plan.schedule.epochs {
            return epochs::conclude(self, epochs, blocks, differences, epochs::mean);
        }
        let test = self.sequential_plan(level_of(blocks));
        let units = blocks.iter().zip(differences);
        let units: Vec<Unit> = units
            .map(|(block, difference)| Unit::new(*difference, block.block.weight()))
            .collect();
        if let Some(open) = paths::conclude_without(
            &test,
            epochs::mean(differences),
            How::PairedBlocks,
            units.len(),
        ) {
            return Ok(open);
        }
        let decision = sequential::decide(&units, &test)?;
        Ok(self.conclusion(&decision, How::PairedBlocks, &test, blocks))
    }

    /// Conclusion about long-run throughput from the totals of the two contenders in each block: as
    /// [`Question::conclude`], with total work over total time in place of the mean of the blocks, and with the
    /// interval widened where stalls are too few.
    fn conclude_totals(
        &self,
        blocks: &[CompleteBlock<'_>],
        totals: &[BlockTotals],
    ) -> Result<Conclusion, StatsError> {
        let all = |totals: &[BlockTotals]| {
            let sum = totals.iter().copied().reduce(BlockTotals::plus);
            sum.map_or(0.0, |sum| block_log_ratio(&sum))
        };
        if let Some(epochs) = self.plan.schedule.epochs {
            return epochs::conclude(self, epochs, blocks, totals, all);
        }
        let test = self.sequential_plan(level_of(blocks));
        if let Some(open) =
            paths::conclude_without(&test, all(totals), How::BlockTotals, totals.len())
        {
            return Ok(open);
        }
        let weights = blocks.iter().map(|block| block.block.weight());
        let units: Vec<(BlockTotals, f64)> = totals.iter().copied().zip(weights).collect();
        let mut decision = sequential::decide(&Unit::of_totals(&units)?, &test)?;
        let few_stalls = few_stalls::widen(self, blocks, all(totals), &mut decision)?;
        Ok(Conclusion {
            few_stalls,
            ..self.conclusion(&decision, How::BlockTotals, &test, blocks)
        })
    }

    fn conclusion(
        &self,
        decision: &Decision,
        how: How,
        test: &SequentialPlan,
        blocks: &[CompleteBlock<'_>],
    ) -> Conclusion {
        Conclusion {
            verdict: decision.verdict,
            is_within_horizon: decision.within_margin,
            decided_at_block: decision.decided_at,
            paid_by: decision.method.map(|method| match method {
                Method::WithinBudget => PaidBy::Budget,
                Method::Reserve => PaidBy::Reserve,
            }),
            ratio: self.ratio_figure(decision, how, test, blocks),
            restart_sd: None,
            few_stalls: None,
        }
    }

    /// The blocks with the slices of the two only; `value` is what is compared of a slice.
    pub(crate) fn pairs(
        &self,
        blocks: &[CompleteBlock<'_>],
        value: impl Fn(&SliceRow) -> f64,
    ) -> Vec<BlockSlices> {
        let pairs = blocks
            .iter()
            .map(|block| log_ratios::pair(block, self.contender, self.reference, &value));
        pairs.collect()
    }

    /// The sequential test that answers the question at a level.
    pub(crate) fn sequential_plan(&self, level: usize) -> SequentialPlan {
        let rule = &self.plan.decision;
        SequentialPlan {
            weight_max: self.plan.information(level),
            n_min: rule.blocks_min as usize,
            alpha: self.alpha,
            margin: rule.horizon.ln_1p(),
            seed: named_seed(self.plan.seed, &self.stream),
            paths: self.paths as usize,
            reserve: rule.reserve,
        }
    }

    /// Why `blocks` leave an interval open at both ends.
    fn open_interval(&self, blocks: &[CompleteBlock<'_>], test: &SequentialPlan) -> String {
        let (n, level) = (blocks.len(), level_of(blocks));
        let confidence = percent::of(1.0 - test.alpha);
        let planned = self.plan.blocks.iter().filter(|block| block.level == level);
        let weights = planned.map(Block::weight).chain(std::iter::repeat(1.0));
        let first = test.first_possible_decision(weights);
        match first {
            Some(first) if n >= first => {
                format!(
                    "too much scatter: an interval of {confidence} confidence is open at both ends"
                )
            }
            Some(first) => {
                format!("too few blocks for {confidence} confidence: {n} of at least {first}")
            }
            None => format!(
                "too few blocks for {confidence} confidence: the {} planned blocks cannot decide",
                self.plan.blocks_max(level)
            ),
        }
    }

    fn ratio_figure(
        &self,
        decision: &Decision,
        how: How,
        test: &SequentialPlan,
        blocks: &[CompleteBlock<'_>],
    ) -> Figure {
        let plan = self.plan;
        let alpha = test.alpha;
        let value = decision.estimate.exp();
        let how = match decision.is_balanced {
            true => How::Balance,
            false => how,
        };
        let bare = |why: String| Figure::Bare {
            value,
            n: decision.n,
            how,
            why,
        };
        match decision.interval {
            Some(Interval { low, high }) if low.is_finite() || high.is_finite() => {
                Figure::Estimated {
                    value,
                    low: low.exp(),
                    high: Some(high.exp()).filter(|high| high.is_finite()),
                    confidence: 1.0 - alpha,
                    n: decision.n,
                    how,
                }
            }
            Some(_) if decision.n < plan.decision.blocks_min as usize => bare(format!(
                "{} of at least {} blocks, too few for an interval",
                decision.n, plan.decision.blocks_min
            )),
            Some(_) => bare(self.open_interval(blocks, test)),
            None => bare(NO_SINGLE_RATIO.to_owned()),
        }
    }

    /// Log ratios, one per block; `value` is what is compared of a slice.
    pub(crate) fn differences(
        &self,
        blocks: &[CompleteBlock<'_>],
        value: impl Fn(&SliceRow) -> f64,
    ) -> Result<Vec<f64>, StatsError> {
        match &self.weights {
            Some(weights) => log_ratios::contrasts(blocks, weights, value),
            None => differences(&self.pairs(blocks, value)),
        }
    }

    /// The contenders that the answer rests on.
    pub(crate) fn members(&self) -> Vec<usize> {
        match &self.weights {
            Some(weights) => (0..weights.len())
                .filter(|&who| weights[who] != 0.0)
                .collect(),
            None => vec![self.contender, self.reference],
        }
    }

    /// Names a contender without any commit, once there are enough blocks to stop waiting for it.
    pub(super) fn nothing_committed(&self, blocks: &[CompleteBlock<'_>]) -> Option<String> {
        if blocks.len() < SILENT_BLOCKS {
            return None;
        }
        let is_silent = |&who: &usize| {
            let mut rows = blocks.iter().flat_map(|block| block.slices_of(who));
            rows.all(|row| row.ok == 0)
        };
        let who = self.members().into_iter().find(is_silent)?;
        let name = &self.plan.contenders[who].name;
        Some(format!(
            "`{name}` committed nothing in {} blocks, so there is no ratio",
            blocks.len()
        ))
    }
}

/// The verdict of a sequential test of throughput.
pub(super) fn verdict_of(tested: sequential::Verdict) -> Verdict {
    match tested {
        sequential::Verdict::Faster => Verdict::Faster,
        sequential::Verdict::Slower => Verdict::Slower,
        sequential::Verdict::Equivalent => Verdict::Equivalent,
        sequential::Verdict::Undecided => Verdict::Undecided,
    }
}

impl From<sequential::Verdict> for Change {
    fn from(verdict: sequential::Verdict) -> Self {
        match verdict {
            sequential::Verdict::Faster => Self::Higher,
            sequential::Verdict::Slower => Self::Lower,
            sequential::Verdict::Equivalent => Self::Equivalent,
            sequential::Verdict::Undecided => Self::Undecided,
        }
    }
}

/// The conclusion about a ratio.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conclusion {
    /// The verdict of the statistics: larger is called faster.
    pub verdict: sequential::Verdict,
    /// True when the whole interval lies within the horizon.
    pub is_within_horizon: bool,
    /// Blocks after which the verdict first stood.
    pub decided_at_block: Option<usize>,
    /// Which part of the error probability paid for it.
    pub paid_by: Option<PaidBy>,
    pub ratio: Figure,
    /// Standard deviation between starts of the same servers, when several were measured.
    pub restart_sd: Option<f64>,
    /// The stalls that were too few, and have made the interval wider.
    pub few_stalls: Option<FewStalls>,
}

/// Why a ratio has no interval although there are enough units.
pub(crate) const NO_SINGLE_RATIO: &str = "no single ratio fits all blocks";

/// The ratio before the first block.
pub(crate) fn no_block() -> Figure {
    Figure::NotMeasured {
        why: "no complete block".to_owned(),
    }
}

/// The level of blocks that are compared with each other.
fn level_of(blocks: &[CompleteBlock<'_>]) -> usize {
    blocks.first().map_or(0, |block| block.block.level)
}
