//! The decision rule of a duel, and the deadlines of a run.

use dbduel_record::plan::{DecisionRule, DurabilityProof, Limits, Schedule};
use dbduel_stats::compare::fewest_pairs;
use dbduel_stats::sequential::SequentialPlan;
use dbduel_text::{counts, percent};

use super::extras::check_epochs;
use super::schedule::{budget_for, rounds_within};
use crate::experiment::document::Report;
use crate::experiment::{self, Experiment};

/// Simulated sign paths per error probability, enough for a strict confidence to have paths to give up.
const PATHS_PER_ALPHA: f64 = 40.0;
/// Limit of the planned blocks of all levels: each is drawn, written to the plan, and read again after every block.
const BLOCKS_MAX: u64 = 200_000;
/// Limit of retries of a transaction after a conflict: a deadlock, a serialization failure, a changed record, a lock timeout.
/// Applications retry until the transaction commits, and under serializable isolation most attempts may conflict; the limit
/// ends a transaction that never can.
pub const TRANSACTION_RETRIES: u32 = 100;
/// Scope of `prove = true`: about a minute for each contender.
const PROOF: DurabilityProof = DurabilityProof {
    cuts: 10,
    load_s: 10.0,
};

/// The decision rule, with the error probability shared by `statements` statements.
pub(super) fn complete_decision(
    report: &Report<'_>,
    experiment: &Experiment,
    schedule: &Schedule,
    contenders: usize,
    levels: usize,
    statements: usize,
) -> DecisionRule {
    let confidence = experiment.confidence.unwrap_or(0.95);
    let horizon = experiment.horizon.unwrap_or(0.02);
    let alpha = (1.0 - confidence) / statements.max(1) as f64;
    let blocks_max = match schedule.epochs {
        Some(epochs) => {
            check_epochs(report, experiment, schedule, contenders, levels);
            (epochs.blocks * epochs.count).max(1)
        }
        None => rounds_within(schedule, contenders, levels),
    };
    let mut test = SequentialPlan::new(f64::from(blocks_max), alpha, horizon.ln_1p(), 0);
    let alpha_within_budget = (1.0 - test.reserve) * alpha;
    test.paths = test
        .paths
        .max((PATHS_PER_ALPHA / alpha_within_budget).ceil() as usize);
    // With epochs as the units it is not the blocks that decide.
    let first = test.first_possible_decision(std::iter::repeat(1.0));
    if schedule.epochs.is_none() && first.is_none() {
        let needed = fewest_pairs(alpha_within_budget).max(test.n_min);
        let span = experiment
            .budget
            .as_ref()
            .map_or(0..0, |budget| budget.span.clone());
        let enough_s = budget_for(schedule, contenders, levels, needed);
        report.add(
            &span,
            format!(
                "the budget of {:.0} s holds {} per load level; a verdict at {} confidence between \
                 {contenders} contenders needs at least {needed}: use a budget of {:.0} s or more, fewer load levels, or \
                 shorter slices",
                schedule.budget_s,
                counts::things(blocks_max as u64, "block"),
                percent::of(confidence),
                enough_s.ceil(),
            ),
        );
    } else if let Err(error) = test.check() {
        report.add(
            &(0..0),
            format!("`confidence` and `horizon` allow no decision: {error}"),
        );
    }
    DecisionRule {
        confidence,
        horizon,
        blocks_min: test.n_min as u32,
        blocks_max,
        reserve: test.reserve,
        paths: test.paths as u32,
    }
}

/// Refuses a budget with more blocks than a plan can have, which only slices far too short for it make. False when it is
/// refused.
pub(super) fn check_blocks(
    report: &Report<'_>,
    experiment: &Experiment,
    schedule: &Schedule,
    decision: &DecisionRule,
    levels: usize,
) -> bool {
    let blocks = u64::from(decision.blocks_max).saturating_mul(levels as u64);
    if blocks <= BLOCKS_MAX {
        return true;
    }
    let message = format!(
        "the budget of {:.0} s holds {} blocks with slices of {} s; a plan has at most {}: use longer slices or a smaller \
         budget",
        schedule.budget_s,
        counts::of(blocks),
        schedule.slice_s,
        counts::of(BLOCKS_MAX)
    );
    let slice = experiment.schedule.slice.as_ref().map(|slice| &slice.span);
    let budget = experiment.budget.as_ref().map(|budget| &budget.span);
    report.add(slice.or(budget).unwrap_or(&(0..0)), message);
    false
}

pub(super) fn complete_limits(written: &experiment::Limits) -> Limits {
    let seconds = |duration: Option<std::time::Duration>, default| {
        duration.map_or(default, |d| d.as_secs_f64())
    };
    Limits {
        server_start_s: seconds(written.server_start, 120.0),
        server_stop_s: seconds(written.server_stop, 120.0),
        statement_s: seconds(written.statement, 120.0),
        dataset_s: seconds(written.dataset, 4.0 * 3600.0),
        transaction_retries: TRANSACTION_RETRIES,
        server_restarts: 5,
        free_disk_bytes_min: written.free_disk.unwrap_or(256 << 20),
        prove: written
            .prove
            .as_ref()
            .filter(|prove| prove.value)
            .map(|_| PROOF),
    }
}
