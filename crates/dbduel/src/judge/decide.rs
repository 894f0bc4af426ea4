//! The verdict of one level, from the rows of its slices and the plan alone.
//!
//! The contest asks it after every block whether to go on, and the judge asks it for the report, so
//! that stopping and judging are one piece of code. Knows no file, no clock and no other level.

use dbduel_record::Plan;
use dbduel_record::rows::SliceRow;
use dbduel_record::seed::named_seed;
use dbduel_stats::StatsError;
use dbduel_stats::compare::{
    MirroredBlock, SliceValue, block_differences, hodges_lehmann, log_ratio_of_totals,
    minimum_detectable_effect,
};
use dbduel_stats::sequential::{self, Decision, Interval, Method, SequentialPlan};

use super::blocks::{CompleteBlock, LevelBlocks};
use super::summary::{BlockRatio, Comparison, Figure, How, PaidBy, Verdict};

/// What a slice without a commit counts for, transactions. A slice that hung belongs to its server, so
/// it is not left out; half a transaction keeps its sign and size, where zero has no logarithm.
const SILENT_SLICE_COUNTS: f64 = 0.5;
/// Blocks after which a contender that has not committed anything is not waited for any longer.
const SILENT_BLOCKS: usize = 2;

/// What may be said about one level so far.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelDecision {
    /// Index into `Plan::levels`.
    pub level: usize,
    /// Blocks that count.
    pub blocks_complete: u32,
    /// One entry per contender other than the baseline, in the order of the experiment.
    pub comparisons: Vec<Comparison>,
}

impl LevelDecision {
    /// True when no further block is needed: every comparison is decided or cannot be saved.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.comparisons
            .iter()
            .all(|comparison| comparison.verdict != Verdict::Undecided)
    }
}

/// Compares every contender with the baseline on the complete blocks of `level` among `rows`.
#[must_use]
pub fn decide_level(plan: &Plan, rows: &[SliceRow], level: usize) -> LevelDecision {
    decide_blocks(plan, &LevelBlocks::sort(plan, rows, level), level)
}

/// [`decide_level`] for rows that are sorted already.
pub(super) fn decide_blocks(plan: &Plan, blocks: &LevelBlocks<'_>, level: usize) -> LevelDecision {
    let others = (0..plan.contenders.len()).filter(|&contender| contender != plan.baseline);
    let comparisons = others
        .map(|contender| compare(plan, &blocks.complete, level, contender))
        .collect();
    LevelDecision {
        level,
        blocks_complete: blocks.complete.len() as u32,
        comparisons,
    }
}

/// Error probability of one comparison: the duel's, divided by the number of comparisons in it
/// (Bonferroni). Every level has its own.
fn alpha_per_comparison(plan: &Plan) -> f64 {
    let comparisons = plan.contenders.len().saturating_sub(1).max(1);
    (1.0 - plan.decision.confidence) / comparisons as f64
}

fn compare(
    plan: &Plan,
    blocks: &[CompleteBlock<'_>],
    level: usize,
    contender: usize,
) -> Comparison {
    let alpha = alpha_per_comparison(plan);
    let mut comparison = Comparison {
        contender: plan.contenders[contender].name.clone(),
        verdict: Verdict::Undecided,
        because: None,
        ratio: Figure::NotMeasured {
            why: "no complete block".to_owned(),
        },
        is_within_horizon: false,
        alpha,
        decided_at_block: None,
        paid_by: None,
        block_sd: None,
        detectable_difference: None,
        ratio_hodges_lehmann: None,
        ratio_total_work: None,
        overturned_by: Vec::new(),
        blocks: Vec::new(),
    };
    if let Some(why) = nothing_committed(plan, blocks, contender) {
        comparison.verdict = Verdict::Void;
        comparison.ratio = Figure::NotMeasured { why: why.clone() };
        comparison.because = Some(why);
        return comparison;
    }
    if let Err(error) = fill(&mut comparison, plan, blocks, level, contender) {
        comparison.verdict = Verdict::Undecided;
        comparison.because = Some(error.to_string());
    }
    comparison
}

fn fill(
    comparison: &mut Comparison,
    plan: &Plan,
    blocks: &[CompleteBlock<'_>],
    level: usize,
    contender: usize,
) -> Result<(), StatsError> {
    if blocks.is_empty() {
        return Ok(());
    }
    let pairs: Vec<MirroredBlock> = blocks
        .iter()
        .map(|block| pair(block, contender, plan.baseline))
        .collect();
    let mut differences = block_differences(&pairs, 2, BASELINE)?;
    let differences = differences.swap_remove(CONTENDER);
    comparison.blocks = blocks
        .iter()
        .zip(&differences)
        .map(|(block, difference)| BlockRatio {
            block: block.block.id,
            ratio: difference.exp(),
        })
        .collect();
    comparison.ratio_hodges_lehmann = Some(hodges_lehmann(&differences)?.exp());
    comparison.ratio_total_work = Some(log_ratio_of_totals(&pairs, 2, BASELINE, CONTENDER)?.exp());
    comparison.block_sd = sample_deviation(&differences);
    let blocks_max = plan.decision.blocks_max as usize;
    comparison.detectable_difference = comparison
        .block_sd
        .map(|sd| minimum_detectable_effect(sd, blocks_max.max(differences.len())).exp_m1());
    let decision = sequential::decide(
        &differences,
        &sequential_plan(plan, comparison.alpha, level, contender),
    )?;
    adopt(comparison, &decision, plan);
    Ok(())
}

/// Numbers of the two in a block that is reduced to a pair.
const BASELINE: usize = 0;
const CONTENDER: usize = 1;

/// The block with the slices of two contenders only; what is left of a mirrored block is mirrored.
fn pair(block: &CompleteBlock<'_>, contender: usize, baseline: usize) -> MirroredBlock {
    let slices = block
        .block
        .order
        .iter()
        .zip(&block.rows)
        .filter_map(|(&who, row)| {
            let number = match who {
                who if who == baseline => BASELINE,
                who if who == contender => CONTENDER,
                _ => return None,
            };
            Some(SliceValue {
                contender: number,
                value: (row.ok as f64).max(SILENT_SLICE_COUNTS) / row.measured_s,
            })
        });
    MirroredBlock {
        length: block.block.slice_s,
        slices: slices.collect(),
    }
}

/// Sample standard deviation; `None` below two values.
fn sample_deviation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt())
}

fn sequential_plan(plan: &Plan, alpha: f64, level: usize, contender: usize) -> SequentialPlan {
    let rule = &plan.decision;
    let name = &plan.contenders[contender].name;
    SequentialPlan {
        n_max: rule.blocks_max as usize,
        n_min: rule.blocks_min as usize,
        alpha,
        margin: rule.horizon.ln_1p(),
        seed: named_seed(plan.seed, &format!("judge/level/{level}/contender/{name}")),
        paths: rule.paths as usize,
        reserve: rule.reserve,
    }
}

fn adopt(comparison: &mut Comparison, decision: &Decision, plan: &Plan) {
    comparison.verdict = match decision.verdict {
        sequential::Verdict::Faster => Verdict::Faster,
        sequential::Verdict::Slower => Verdict::Slower,
        sequential::Verdict::Equivalent => Verdict::Equivalent,
        sequential::Verdict::Undecided => Verdict::Undecided,
    };
    comparison.is_within_horizon = decision.within_margin;
    comparison.decided_at_block = decision.decided_at;
    comparison.paid_by = decision.method.map(|method| match method {
        Method::WithinBudget => PaidBy::Budget,
        Method::Reserve => PaidBy::Reserve,
    });
    comparison.ratio = ratio_figure(decision, comparison.alpha, plan);
    if decision.interval.is_none() {
        comparison.because =
            Some("no single ratio fits all blocks: it changed during the run".to_owned());
    }
}

fn ratio_figure(decision: &Decision, alpha: f64, plan: &Plan) -> Figure {
    let value = decision.estimate.exp();
    let bare = |why: String| Figure::Bare {
        value,
        n: decision.n,
        how: How::PairedBlocks,
        why,
    };
    match decision.interval {
        Some(Interval { low, high }) if low.is_finite() || high.is_finite() => Figure::Estimated {
            value,
            low: low.exp(),
            high: Some(high.exp()).filter(|high| high.is_finite()),
            confidence: 1.0 - alpha,
            n: decision.n,
            how: How::PairedBlocks,
        },
        Some(_) => bare(format!(
            "{} of at least {} blocks, too few for an interval",
            decision.n, plan.decision.blocks_min
        )),
        None => bare("no single ratio fits all blocks".to_owned()),
    }
}

/// A contender that commits nothing at all has no ratio.
fn nothing_committed(
    plan: &Plan,
    blocks: &[CompleteBlock<'_>],
    contender: usize,
) -> Option<String> {
    if blocks.len() < SILENT_BLOCKS {
        return None;
    }
    let is_silent = |who: usize| {
        blocks
            .iter()
            .flat_map(|block| block.slices_of(who))
            .all(|row| row.ok == 0)
    };
    let who = [contender, plan.baseline]
        .into_iter()
        .find(|&who| is_silent(who))?;
    let name = &plan.contenders[who].name;
    Some(format!(
        "`{name}` committed nothing in {} blocks, so there is no ratio",
        blocks.len()
    ))
}
