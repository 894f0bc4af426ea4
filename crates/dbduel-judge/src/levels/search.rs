//! The search for the highest rate that meets the latency objective: which rate is tried next, and when
//! enough is known of one.
//!
//! Every rate is a load level like any other, run in mirrored blocks by all contenders alike. A rate is
//! looked at after a few numbers of blocks that are in the plan; what is said at the first look that is
//! clear stands. The share of late transactions has the interval of any figure of one contender, which
//! allows for slow movements of the machine. Rates around the limit often stay unclear by it; but an interval of
//! slices that are taken for independent calls rates met that are missed, on machines that move (the acceptance
//! suite of `dbduel-stats`, `late_shares.rs`). The error probability is divided by the rates and looks that
//! the plan allows, so that all that is said of one contender holds together, and so does the bracket that
//! follows from it, as long as a server that misses the objective at one rate misses it at every higher one.
//! Pure: the contest asks it what to do, and the judge reports by it.

use dbduel_record::late::{Late, LateShares, late_share};
use dbduel_record::plan::{Arrival, LoadLevel, Objective};
use dbduel_record::rows::{ALL_CLASSES, SliceRow};
use dbduel_record::{Plan, Record};
use dbduel_stats::mean::series_mean;

use crate::evidence::Evidence;
use crate::evidence::blocks::LevelBlocks;
use crate::summary::{Bounds, ObjectiveState};

/// By how much the next rate is above or below all that were tried, while only one side is known.
const STRIDE: f64 = 4.0;
/// Significant digits of a rate that is chosen.
const DIGITS: i32 = 3;
/// A search goes no lower, transactions per second.
const RATE_MIN: f64 = 0.1;

/// The late shares of all slices of a record; empty without an objective.
#[must_use]
pub fn late_shares(record: &Record) -> LateShares {
    late_shares_of(&Evidence::of(record))
}

pub(crate) fn late_shares_of(evidence: &Evidence<'_>) -> LateShares {
    let Some(objective) = evidence.plan().objective else {
        return LateShares::new();
    };
    let rows = evidence.record.slices.iter();
    let totals = rows.filter(|row| row.class == ALL_CLASSES);
    totals
        .filter_map(|row| {
            let slice = row.slice();
            Some((
                slice,
                late_share(&objective, row, &evidence.latencies(slice)?),
            ))
        })
        .collect()
}

/// Whether a contender meets the objective at a level, and the share of late transactions.
pub(crate) fn state(
    plan: &Plan,
    blocks: &LevelBlocks<'_>,
    contender: usize,
    late: &LateShares,
) -> (ObjectiveState, Option<Bounds>) {
    let Some(objective) = plan.objective else {
        return (ObjectiveState::Unclear, None);
    };
    let per_block = |count: usize| -> Option<Vec<Late>> {
        let slices = blocks.complete.iter().take(count);
        slices
            .flat_map(|block| block.slices_of(contender))
            .map(|row| late.get(&row.slice()).copied())
            .collect()
    };
    let all = blocks.complete.len();
    let confidence = plan.decision.confidence;
    let Some(search) = &plan.search else {
        // All statements about one contender hold together.
        let alpha = (1.0 - confidence) / plan.levels.len().max(1) as f64;
        return classify(per_block(all), &objective, alpha);
    };
    let looks = search.looks.len().max(1) as f64;
    let alpha = (1.0 - confidence) / (f64::from(search.rates_max.max(1)) * looks);
    let mut last = (ObjectiveState::Unclear, None);
    for &look in search.looks.iter().filter(|look| **look as usize <= all) {
        last = classify(per_block(look as usize), &objective, alpha);
        if last.0 != ObjectiveState::Unclear {
            break;
        }
    }
    last
}

/// Classifies the slices against the objective. Slices in which nothing was due do not count.
///
/// The variance between slices does not cover events that have not happened yet: where none of n was late, the share
/// may still be as large as ln(1/alpha) / n, beyond which that has a chance below alpha (1 - p <= e^-p).
fn classify(
    late: Option<Vec<Late>>,
    objective: &Objective,
    alpha: f64,
) -> (ObjectiveState, Option<Bounds>) {
    let allowed = 1.0 - objective.share;
    let telling: Vec<Late> = late
        .unwrap_or_default()
        .into_iter()
        .filter(|late| late.known > 0.0)
        .collect();
    let shares: Vec<f64> = telling.iter().map(|late| late.share).collect();
    let Ok(interval) = series_mean(&shares, alpha) else {
        return (ObjectiveState::Unclear, None);
    };
    let known: f64 = telling.iter().map(|late| late.known).sum();
    let unseen = -alpha.ln() / known;
    let late = Bounds {
        value: interval.value,
        low: interval.low.max(0.0),
        high: interval.high.max(unseen).min(1.0),
    };
    let state = match () {
        () if late.high <= allowed => ObjectiveState::Met,
        () if late.low > allowed => ObjectiveState::Missed,
        () => ObjectiveState::Unclear,
    };
    (state, Some(late))
}

/// True when no further block is needed at a level: every contender is clear there, or the last look was
/// taken.
#[must_use]
pub fn is_settled(plan: &Plan, rows: &[SliceRow], late: &LateShares, level: usize) -> bool {
    let blocks = LevelBlocks::sort(plan, rows, level);
    let looks = plan.search.iter().flat_map(|search| &search.looks);
    let last = looks.last().copied().unwrap_or(0);
    blocks.complete.len() >= last as usize
        || (0..plan.contenders.len())
            .all(|who| state(plan, &blocks, who, late).0 != ObjectiveState::Unclear)
}

/// The rate to try next; `None` when every bracket is as narrow as the plan wants it, cannot become
/// narrower, or no further rate is allowed.
#[must_use]
pub fn next_rate(plan: &Plan, rows: &[SliceRow], late: &LateShares) -> Option<f64> {
    let search = plan.search.as_ref()?;
    if plan.levels.len() >= search.rates_max as usize {
        return None;
    }
    let blocks: Vec<LevelBlocks<'_>> = (0..plan.levels.len())
        .map(|level| LevelBlocks::sort(plan, rows, level))
        .collect();
    let wanted = (0..plan.contenders.len()).filter_map(|who| {
        let mut tried: Vec<(f64, ObjectiveState)> = plan
            .levels
            .iter()
            .zip(&blocks)
            .filter_map(|(level, blocks)| Some((rate(level)?, state(plan, blocks, who, late).0)))
            .collect();
        tried.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (gap, rate) = wanted_by(&tried, search.precision)?;
        let rate = rounded(rate);
        let is_new = tried.iter().all(|(known, _)| *known != rate);
        // One that gets no further does not end the search of the others.
        (is_new && rate >= RATE_MIN).then_some((gap, rate))
    });
    // The widest gap first; every contender learns from every rate.
    let (_, chosen) = wanted.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(chosen)
}

/// The rate that one contender wants tried, and the gap that it lies in as a ratio.
fn wanted_by(tried: &[(f64, ObjectiveState)], precision: f64) -> Option<(f64, f64)> {
    let first = tried.first()?.0;
    let last = tried.last()?.0;
    let missed = tried
        .iter()
        .find(|(_, state)| *state == ObjectiveState::Missed)
        .map(|(rate, _)| *rate);
    let met = tried
        .iter()
        .filter(|(rate, state)| {
            *state == ObjectiveState::Met && missed.is_none_or(|missed| *rate < missed)
        })
        .map(|(rate, _)| *rate)
        .next_back();
    match (met, missed) {
        (None, _) => Some((f64::INFINITY, first / STRIDE)),
        (Some(_), None) => Some((f64::INFINITY, last * STRIDE)),
        (Some(met), Some(missed)) => {
            // Rates that stayed unclear are near the limit; what is known is narrowed from both sides.
            let between: Vec<f64> = tried
                .iter()
                .map(|(rate, _)| *rate)
                .filter(|rate| met < *rate && *rate < missed)
                .collect();
            let gaps = match (between.first(), between.last()) {
                (Some(lowest), Some(highest)) => vec![(met, *lowest), (*highest, missed)],
                _ => vec![(met, missed)],
            };
            gaps.into_iter()
                .map(|(low, high)| (high / low, (low * high).sqrt()))
                .filter(|(gap, _)| *gap > 1.0 + precision)
                .max_by(|one, other| one.0.total_cmp(&other.0))
        }
    }
}

/// Transactions per second of an open level.
pub(crate) fn rate(level: &LoadLevel) -> Option<f64> {
    match level.arrival {
        Arrival::Constant { per_second } | Arrival::Poisson { per_second } => Some(per_second),
        Arrival::Closed { .. } => None,
    }
}

/// A rate that people can read.
fn rounded(rate: f64) -> f64 {
    let place = 10_f64.powi(DIGITS - 1 - rate.log10().floor() as i32);
    (rate * place).round() / place
}

#[cfg(test)]
mod tests {
    use super::*;
    use ObjectiveState::{Met, Missed, Unclear};

    #[test]
    fn one_sided_knowledge_is_left_in_strides() {
        assert_eq!(wanted_by(&[(100.0, Met)], 0.05).unwrap().1, 400.0);
        assert_eq!(wanted_by(&[(100.0, Missed)], 0.05).unwrap().1, 25.0);
        assert_eq!(wanted_by(&[(100.0, Unclear)], 0.05).unwrap().1, 25.0);
        assert_eq!(
            wanted_by(&[(100.0, Met), (400.0, Unclear)], 0.05)
                .unwrap()
                .1,
            1600.0
        );
    }

    #[test]
    fn a_bracket_is_halved_until_it_is_narrow_enough() {
        let (gap, middle) = wanted_by(&[(100.0, Met), (400.0, Missed)], 0.05).unwrap();
        assert_eq!((gap, middle), (4.0, 200.0));
        assert!(wanted_by(&[(100.0, Met), (104.0, Missed)], 0.05).is_none());
        // What is met above a rate that is missed is no part of the bracket.
        let odd = [(100.0, Met), (200.0, Missed), (400.0, Met)];
        assert_eq!(wanted_by(&odd, 0.5).unwrap().0, 2.0);
    }

    #[test]
    fn an_unclear_rate_is_closed_in_from_both_sides_and_ends_the_search() {
        let tried = [(100.0, Met), (200.0, Unclear), (300.0, Missed)];
        assert!((wanted_by(&tried, 0.05).unwrap().1 - 141.42).abs() < 0.01);
        let closed_in = [(196.0, Met), (200.0, Unclear), (204.0, Missed)];
        assert!(wanted_by(&closed_in, 0.05).is_none());
    }

    #[test]
    fn a_search_with_exact_answers_brackets_the_truth() {
        for truth in [3.7, 180.0, 25_000.0] {
            let mut tried = vec![(100.0, if 100.0 <= truth { Met } else { Missed })];
            for _ in 0..16 {
                tried.sort_by(|a: &(f64, _), b| a.0.total_cmp(&b.0));
                let Some((_, next)) = wanted_by(&tried, 0.05) else {
                    break;
                };
                let next = rounded(next);
                tried.push((next, if next <= truth { Met } else { Missed }));
            }
            let low = tried.iter().filter(|one| one.1 == Met).map(|one| one.0);
            let high = tried.iter().filter(|one| one.1 == Missed).map(|one| one.0);
            let (low, high) = (low.fold(0.0, f64::max), high.fold(f64::INFINITY, f64::min));
            assert!(low <= truth && truth < high, "{low} {truth} {high}");
            assert!(high / low < 1.06, "{low} {high}");
        }
    }

    #[test]
    fn that_nothing_was_late_says_little_where_little_was_due() {
        let objective = Objective {
            share: 0.99,
            latency_us: 20_000.0,
        };
        let none_late = |known: f64| Some(vec![Late { share: 0.0, known }; 4]);
        let state = |late| classify(late, &objective, 0.001).0;
        assert_eq!(state(none_late(25.0)), Unclear);
        assert_eq!(state(none_late(0.0)), Unclear);
        assert_eq!(state(none_late(1_000.0)), Met);
        // An idle slice is no late one.
        let mut late = none_late(1_000.0).unwrap();
        late[0].known = 0.0;
        assert_eq!(state(Some(late)), Met);
    }

    #[test]
    fn a_lateness_that_moved_slowly_may_move_on() {
        let objective = Objective {
            share: 0.99,
            latency_us: 20_000.0,
        };
        let state = |is_late: fn(usize) -> bool| {
            let late = (0..16).map(|slice| Late {
                share: if is_late(slice) { 0.011 } else { 0.004 },
                known: 1e6,
            });
            classify(Some(late.collect()), &objective, 0.05).0
        };
        assert_eq!(state(|slice| slice % 2 == 0), Met);
        assert_eq!(state(|slice| slice >= 8), Unclear);
    }

    #[test]
    fn chosen_rates_have_three_digits() {
        assert_eq!(rounded(1234.56), 1230.0);
        assert_eq!(rounded(0.123_456), 0.123);
    }
}
