//! The steps of a bisection together: what each found, which contest comes next, and which revisions made the change.
//!
//! Each step is a contest of its own. A candidate is the baseline of its contest, so that the two comparisons of the plan
//! are those of the good and the bad revision with it.

mod search;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dbduel_record::bisect::{AFTER, BAD, BisectPlan, BisectStep, GOOD, StepRole};
use dbduel_record::{Record, Verdict};

use crate::summary::{Comparison, Figure, SCHEMA_VERSION};
use crate::{IDENTITY, summarise};
pub use search::{NextStep, error_of_answer, next_step};
pub use summary::{
    BisectSummary, EndsInContest, PartRestarts, SearchedPart, SearchedPlace, StepAnswer,
    SummarisedStep,
};

/// A bisection from its plan and its judged steps.
#[must_use]
pub fn summarise_bisection(plan: &BisectPlan, mut steps: Vec<SummarisedStep>) -> BisectSummary {
    search::take_back_reversed(plan, &mut steps);
    let is_finished = steps.iter().all(|step| step.answer.is_some());
    BisectSummary {
        schema_version: SCHEMA_VERSION,
        judged_by: IDENTITY.to_owned(),
        planned_by: plan.dbduel.clone(),
        created: plan.created.clone(),
        question: plan.question.clone(),
        cell: plan.cell.clone(),
        confidence: plan.confidence,
        horizon: plan.horizon,
        is_over: is_finished && next_step(plan, &steps).is_none(),
        source: plan.source.clone(),
        revisions: plan.revisions.clone(),
        parts: search::parts(plan, &steps),
        steps,
    }
}

/// What a step found, from its record; a step without one was skipped or has not begun.
#[must_use]
pub fn judge_step(plan: &BisectPlan, step: &BisectStep, record: Option<&Record>) -> SummarisedStep {
    let not_measured = || Figure::NotMeasured {
        why: "no contest".to_owned(),
    };
    let mut found = SummarisedStep {
        name: step.name.clone(),
        role: step.role,
        revisions: step.revisions.clone(),
        answer: None,
        because: None,
        ratio: not_measured(),
        ratio_to_bad: None,
        ends: None,
        blocks: 0,
        load_s: 0.0,
        seconds: 0.0,
    };
    if let Some(record) = record {
        let (summary, _) = summarise(record);
        found.load_s = record.used_s();
        if let (Some(from), Some(to)) = (summary.run.started_ms, summary.run.ended_ms) {
            found.seconds = to.saturating_sub(from) as f64 / 1e3;
        }
        found.blocks = summary.run.blocks_complete;
        if let Some(duel) = summary.duels.first() {
            read_comparisons(plan, step, &duel.comparisons, &mut found);
            found.ends = ends_of(step.role, record, &duel.comparisons);
        }
        found.answer = match (record.is_over(), step.role) {
            (false, _) => None,
            // Without a block there is no comparison.
            (true, StepRole::Candidate) => Some(found.answer.unwrap_or(StepAnswer::Unsure)),
            (true, StepRole::Ends | StepRole::Change) => {
                Some(found.answer.unwrap_or(StepAnswer::Undecided))
            }
        };
    }
    if let Some(skipped) = &step.skipped {
        found.answer = Some(StepAnswer::Skipped);
        found.because = Some(skipped.why.clone());
    }
    found
}

fn read_comparisons(
    plan: &BisectPlan,
    step: &BisectStep,
    comparisons: &[Comparison],
    found: &mut SummarisedStep,
) {
    let of = |name: &str| comparisons.iter().find(|one| one.contender == name);
    let other = match step.role {
        StepRole::Ends => of(BAD),
        StepRole::Change => of(AFTER),
        StepRole::Candidate => {
            if let (Some(good), Some(bad)) = (of(GOOD), of(BAD)) {
                found.ratio = good.ratio.inverse();
                found.ratio_to_bad = Some(bad.ratio.inverse());
                found.because = good.because.clone().or_else(|| bad.because.clone());
                let pair = |one: &Comparison| (one.verdict, one.ratio.value());
                found.answer = Some(answer_of_candidate(pair(good), pair(bad)));
            }
            return;
        }
    };
    if let Some(other) = other {
        found.ratio = other.ratio.clone();
        found.because.clone_from(&other.because);
        found.answer = Some(answer_of_ends(
            other.verdict,
            other.ratio.value(),
            plan.horizon,
        ));
    }
}

/// Bad ÷ good in a contest of both, from its blocks, or from its epochs where the experiment has them.
fn ends_of(role: StepRole, record: &Record, comparisons: &[Comparison]) -> Option<EndsInContest> {
    let of = |name: &str| comparisons.iter().find(|one| one.contender == name);
    let bad = of(BAD)?;
    let good: Option<BTreeMap<u32, f64>> = match role {
        StepRole::Ends => None,
        StepRole::Candidate => Some(
            of(GOOD)?
                .blocks
                .iter()
                .map(|one| (one.block, one.ratio))
                .collect(),
        ),
        StepRole::Change => return None,
    };
    let has_epochs = record.plan.schedule.epochs.is_some();
    let epochs: BTreeMap<u32, u32> = record
        .slices
        .iter()
        .map(|row| (row.block, row.epoch))
        .collect();
    let mut units: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for block in &bad.blocks {
        let baseline = match &good {
            None => Some(1.0),
            Some(good) => good.get(&block.block).copied(),
        };
        let unit = match has_epochs {
            true => epochs.get(&block.block).copied(),
            false => Some(block.block),
        };
        if let (Some(baseline), Some(unit)) = (baseline, unit) {
            let log_ratio = (block.ratio / baseline).ln();
            units.entry(unit).or_default().push(log_ratio);
        }
    }
    let mean = |all: &Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
    EndsInContest::of(units.values().map(mean))
}

/// What a contest of two revisions says: whether they differ by more than the horizon.
fn answer_of_ends(verdict: Verdict, ratio: Option<f64>, horizon: f64) -> StepAnswer {
    match verdict {
        Verdict::Faster | Verdict::Slower => {
            let size = ratio.map_or(0.0, |ratio| ratio.ln().abs());
            match size > horizon.ln_1p() {
                true => StepAnswer::Differ,
                false => StepAnswer::Same,
            }
        }
        Verdict::Equivalent => StepAnswer::Same,
        Verdict::Undecided => StepAnswer::Undecided,
        Verdict::Void => StepAnswer::Void,
    }
}

/// What a contest says of its candidate, from the verdicts and ratios of the good and the bad revision against it.
///
/// Differing from one end alone is an answer only where the candidate is nearer to the other one: a revision between
/// the two may differ from one first, by chance from the nearer one. Of a void contest the candidate counts as not testable.
#[must_use]
pub fn answer_of_candidate(
    good: (Verdict, Option<f64>),
    bad: (Verdict, Option<f64>),
) -> StepAnswer {
    if [good.0, bad.0].contains(&Verdict::Void) {
        return StepAnswer::Skipped;
    }
    let differs = |verdict| matches!(verdict, Verdict::Faster | Verdict::Slower);
    let (Some(to_good), Some(to_bad)) = (good.1, bad.1) else {
        return StepAnswer::Unsure;
    };
    let is_nearer_to_good = to_good.ln().abs() < to_bad.ln().abs();
    match (differs(good.0), differs(bad.0), is_nearer_to_good) {
        (false, true, true) => StepAnswer::LikeGood,
        (true, false, false) => StepAnswer::LikeBad,
        (true, true, true) => StepAnswer::NeitherNearerGood,
        (true, true, false) => StepAnswer::NeitherNearerBad,
        (false, false, _) | (true, false, true) | (false, true, false) => StepAnswer::Unsure,
    }
}
