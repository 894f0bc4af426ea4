//! Was each cell in a steady state while it was measured? From the throughput of its slices alone.
//!
//! A contender is warmed up once, under the heaviest load, and then visits every load level in turns. So
//! a level may still be warming up in its first blocks, drift until its last, or lose at every visit what
//! the level before it left in the caches. Three looks, none of which leaves out a slice:
//!
//! * where the slices' transient ends: MSER (White 1997), taken for one when at least three slices before
//!   are off the rest by more than the tolerance and the margin of error together. MSER chooses among many
//!   places, so the margin is that of all of them jointly;
//! * whether the halves of the rest agree: two one-sided tests (Schuirmann 1987) with lugsail batch means
//!   (Vats and Flegal 2022), as at the end of a warm-up. Noise alone makes a cell neither steady nor
//!   unsteady, and a cell never settled only when the whole interval is beyond the tolerance;
//! * what entering the level costs: the first slice of a block against the mirrored one, paired.
//!
//! A machine that slows down moves all contenders, as servers that warm up together do. One cell cannot
//! tell the two apart; the same ratio of halves, taken of throughput relative to the other contenders of
//! the block, tells what is the contender's own.
//!
//! Restarted servers are warmed up again, and may stay a little faster or slower than before: the first two looks are
//! at the longest run of blocks between two starts.

use std::collections::BTreeMap;

use dbduel_record::rows::SliceRow;
use dbduel_stats::compare::paired_mean;
use dbduel_stats::steady::{halves_ratio, mser};
use dbduel_stats::{Estimate, StatsError};

use super::log_ratios::throughput;
use crate::evidence::Evidence;
use crate::evidence::blocks::CompleteBlock;
use crate::summary::{CellCourse, Figure, How, SteadyState, Transient};

/// Probability of reporting a cost of entering levels in a run without any.
const ENTERED_ALPHA: f64 = 0.01;

/// Fewer slices apart from the rest are outliers, which have a rule of their own.
const TRANSIENT_MIN: usize = 3;

/// The course of `contender` at `level`; `None` without a counted slice.
#[must_use]
pub fn course(evidence: &Evidence<'_>, level: usize, contender: usize) -> Option<CellCourse> {
    let plan = evidence.plan();
    let blocks = &evidence.levels[level].complete;
    if blocks.is_empty() {
        return None;
    }
    let alpha = 1.0 - plan.decision.confidence;
    let start = longest_start(blocks);
    let mut course = of_slices(&cell(start, contender, plan.contenders.len()), alpha);
    if plan.levels.len() > 1 {
        let cells = plan.levels.len() * plan.contenders.len();
        let alpha = ENTERED_ALPHA / cells as f64;
        course.entered = Some(entered(evidence, level, contender, alpha));
    }
    Some(course)
}

/// The longest run of blocks between two starts of the servers; of equal ones the last.
fn longest_start<'b, 'a>(blocks: &'b [CompleteBlock<'a>]) -> &'b [CompleteBlock<'a>] {
    let epoch = |block: &CompleteBlock<'_>| block.rows.first().map(|row| row.epoch);
    let starts = blocks.chunk_by(|one, next| epoch(one) == epoch(next));
    starts.max_by_key(|start| start.len()).unwrap_or_default()
}

/// The slices of a cell in the order in which they ran.
pub(super) struct CellSlices {
    /// Throughput.
    pub own: Vec<f64>,
    /// Throughput ÷ the geometric mean of the other contenders' in the same block.
    pub relative: Vec<f64>,
}

pub(super) fn cell(
    blocks: &[CompleteBlock<'_>],
    contender: usize,
    contenders: usize,
) -> CellSlices {
    let mut slices = CellSlices {
        own: Vec::new(),
        relative: Vec::new(),
    };
    for block in blocks {
        let others: Vec<f64> = (0..contenders)
            .filter(|&other| other != contender)
            .flat_map(|other| block.slices_of(other))
            .map(|row| throughput(row).ln())
            .collect();
        let usual = (others.iter().sum::<f64>() / others.len() as f64).exp();
        for row in block.slices_of(contender) {
            slices.own.push(throughput(row));
            slices.relative.push(throughput(row) / usual);
        }
    }
    slices
}

/// The conclusions from the slices of one cell alone.
pub(super) fn of_slices(slices: &CellSlices, alpha: f64) -> CellCourse {
    let transient = transient(&slices.own, alpha);
    let dropped = transient.map_or(0, |transient| transient.slices as usize);
    let halves =
        |values: &[f64]| figure(halves_ratio(&values[dropped..], alpha), alpha, How::Halves);
    let change = halves(&slices.own);
    CellCourse {
        state: state(&change),
        transient,
        change,
        own_change: halves(&slices.relative),
        entered: None,
    }
}

/// The slices before the point that MSER proposes, if it lies in the first half and they are off the rest
/// by more than the tolerance and the margin of error.
fn transient(own: &[f64], alpha: f64) -> Option<Transient> {
    let places = TRANSIENT_MIN..=own.len() / 2;
    let dropped = mser(own).filter(|dropped| places.contains(dropped))?;
    let (before, rest) = own.split_at(dropped);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let settled = mean(rest);
    let ratio = mean(before) / settled;
    let is_apart = |value: &&f64| {
        let off = (**value / settled - 1.0) * (ratio - 1.0).signum();
        off > CellCourse::TOLERANCE
    };
    if before.iter().filter(is_apart).count() < TRANSIENT_MIN {
        return None;
    }
    let halves = halves_ratio(rest, alpha / places.count() as f64).ok()?;
    // Where halves of n values in all agree, their margin is t·√(4V/n); that of m values against the n is
    // t·√(V/m + ratio²·V/n).
    let parts = rest.len() as f64 / before.len() as f64;
    let margin = 0.5 * (halves.high - halves.value) * (parts + ratio * ratio).sqrt();
    ((ratio - 1.0).abs() > CellCourse::TOLERANCE + margin).then_some(Transient {
        slices: dropped as u32,
        ratio,
        margin,
    })
}

/// State of a cell from the interval of a ratio: its parts agree within the tolerance, they do not, or neither is
/// shown.
fn state(ratio: &Figure) -> SteadyState {
    if is_within(ratio, CellCourse::TOLERANCE) {
        SteadyState::Steady
    } else if is_beyond(ratio, CellCourse::TOLERANCE) {
        SteadyState::NeverSettled
    } else {
        SteadyState::NotShown
    }
}

/// True when all of the interval is within `tolerance` of 1, the same one way and the other.
pub(crate) fn is_within(ratio: &Figure, tolerance: f64) -> bool {
    let most = 1.0 + tolerance;
    ratio
        .interval()
        .is_some_and(|(low, high)| low > 1.0 / most && high < most)
}

/// True when all of the interval is further than `tolerance` from 1, on one side of it.
pub(crate) fn is_beyond(ratio: &Figure, tolerance: f64) -> bool {
    let most = 1.0 + tolerance;
    ratio
        .interval()
        .is_some_and(|(low, high)| low > most || high < 1.0 / most)
}

/// Cost of entering the level, over blocks in which both slices of the contender follow a switch, so that the cost of
/// the switch itself is on both sides.
fn entered(evidence: &Evidence<'_>, level: usize, contender: usize, alpha: f64) -> Figure {
    let before = levels_before(evidence);
    let differences: Vec<f64> = evidence.levels[level]
        .complete
        .iter()
        .filter(|block| {
            before
                .get(&block.block.id)
                .is_some_and(|&other| other != level)
        })
        .filter_map(|block| first_against_mirrored(block, contender))
        .collect();
    let needed = evidence.plan().decision.blocks_min as usize;
    if differences.len() < needed {
        return Figure::NotMeasured {
            why: format!(
                "{} of at least {needed} blocks that follow another level and in which both slices follow a switch",
                differences.len()
            ),
        };
    }
    let ratio = paired_mean(&differences, alpha).map(|mean| mean.map_increasing(f64::exp));
    figure(ratio, alpha, How::PairedMean)
}

/// The log ratio of a contender's two slices in a block, unless one of them followed no switch, or both are sums over several turns.
fn first_against_mirrored(block: &CompleteBlock<'_>, contender: usize) -> Option<f64> {
    let own: Vec<(usize, f64)> = (block.block.order.iter().zip(&block.rows).enumerate())
        .filter(|(_, (who, _))| **who == contender)
        .map(|(position, (_, row))| (position, throughput(row)))
        .collect();
    let [(_, first), (position, mirrored)] = own[..] else {
        return None;
    };
    let is_comparable = block.block.repeats == 1 && !block.block.continues(position);
    is_comparable.then(|| (first / mirrored).ln())
}

/// The level of the block that ran before each block, in the same epoch.
fn levels_before(evidence: &Evidence<'_>) -> BTreeMap<u32, usize> {
    let planned = &evidence.plan().blocks;
    let level_of: BTreeMap<u32, usize> =
        (planned.iter().map(|block| (block.id, block.level))).collect();
    let mut rows: Vec<&SliceRow> = evidence.record.slices.iter().collect();
    rows.sort_by_key(|row| row.start_ms);
    rows.dedup_by_key(|row| row.block);
    let followed = rows
        .windows(2)
        .filter(|pair| pair[0].epoch == pair[1].epoch);
    followed
        .filter_map(|pair| Some((pair[1].block, *level_of.get(&pair[0].block)?)))
        .collect()
}

fn figure(ratio: Result<Estimate, StatsError>, alpha: f64, how: How) -> Figure {
    match ratio {
        Ok(ratio) => Figure::Estimated {
            value: ratio.value,
            low: ratio.low.max(0.0),
            high: Some(ratio.high).filter(|high| high.is_finite()),
            confidence: 1.0 - alpha,
            n: ratio.n,
            how,
        },
        Err(error) => Figure::NotMeasured {
            why: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests;
