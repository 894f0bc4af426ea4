//! The search for the highest rate that meets an objective: its limits, and the blocks of a chosen rate.

use dbduel_record::Plan;
use dbduel_record::plan::{Arrival, Block, LoadLevel, RateSearch};

use super::blocks::{Cut, numbered_from};
use crate::experiment::document::Report;
use crate::experiment::{Experiment, Rates};

/// Default first rate, transactions per second.
const FROM_PER_S: f64 = 100.0;
/// Default limit of rates.
const RATES: u32 = 16;
/// Default relative difference of the bracket's rates that is narrow enough.
const PRECISION: f64 = 0.05;
/// Blocks after which a rate is evaluated. Far from the limit the first evaluation is clear in most searches; around
/// it, from about half of the capacity to all of it, a rate takes all evaluations and often stays unclear (the
/// acceptance suite of `dbduel-stats`, `late_shares.rs`).
const LOOKS: [u32; 3] = [2, 4, 8];
/// Load levels whose share of the budget determines the slice length. About half of the rates of a search need only the
/// first evaluation; a search whose budget ends before the others have used all of theirs leaves a wider bracket.
pub(super) const LEVELS_OF_A_SEARCH: usize = 4;

/// The search of the experiment, if any.
pub(super) fn complete_search(report: &Report<'_>, experiment: &Experiment) -> Option<RateSearch> {
    let rate = experiment.load.rate.as_ref()?;
    let written = &experiment.search;
    if rate.value != Rates::Searched {
        return None;
    }
    if let Some(epochs) = &experiment.schedule.epochs {
        let message =
            "a search for the highest rate uses one start of the servers; remove `epochs`";
        report.add(&epochs.span, message);
    }
    Some(RateSearch {
        rates_max: written.rates.unwrap_or(RATES),
        precision: written.precision.unwrap_or(PRECISION),
        looks: LOOKS.to_vec(),
    })
}

pub(super) fn first_rate(experiment: &Experiment) -> f64 {
    experiment.search.from.unwrap_or(FROM_PER_S)
}

/// The load level of another rate and its blocks, drawn from the plan's seed and numbered after the plan's.
#[must_use]
pub fn blocks_at_rate(plan: &Plan, per_second: f64) -> (LoadLevel, Vec<Block>) {
    let number = plan.levels.len();
    let mut level = LoadLevel {
        clients: 1,
        arrival: Arrival::Poisson { per_second },
        cell: None,
    };
    if let Some(first) = plan.levels.first() {
        level.clients = first.clients;
        if matches!(first.arrival, Arrival::Constant { .. }) {
            level.arrival = Arrival::Constant { per_second };
        }
    }
    let rounds = plan.search.iter().filter_map(|search| search.looks.last());
    let rounds = rounds.copied().next().unwrap_or(0);
    let own = Cut::fixed(plan.seed, plan.contenders.len(), number, &plan.schedule).blocks();
    let blocks = numbered_from(plan.blocks.len(), own.take(rounds as usize));
    (level, blocks)
}
