//! From the slices of two contenders to log ratios, one per block.

use dbduel_record::rows::SliceRow;
use dbduel_stats::StatsError;
use dbduel_stats::compare::{BlockSlices, SliceValue, block_differences};
use dbduel_stats::sequential::{BlockTotals, Totals};

use crate::evidence::blocks::CompleteBlock;

/// Transactions that a slice without a commit counts as. A slice that hung belongs to its server, so it is not left
/// out; half a transaction keeps its sign and size, where zero has no logarithm.
const SILENT_SLICE_COUNTS: f64 = 0.5;

/// Index of the reference, in a block that is reduced to a pair.
pub(super) const REFERENCE: usize = 0;
/// Index of the contender whose ratio it is.
pub(super) const CONTENDER: usize = 1;

/// The block with the slices of two contenders only; of a mirrored block they are mirrored.
pub(crate) fn pair(
    block: &CompleteBlock<'_>,
    contender: usize,
    reference: usize,
    value: impl Fn(&SliceRow) -> f64,
) -> BlockSlices {
    let slices = block
        .block
        .order
        .iter()
        .zip(&block.rows)
        .filter_map(|(&who, row)| {
            let number = match who {
                who if who == reference => REFERENCE,
                who if who == contender => CONTENDER,
                _ => return None,
            };
            Some(SliceValue {
                contender: number,
                value: value(row),
            })
        });
    BlockSlices {
        length: block.block.slice_s * block.block.weight(),
        slices: slices.collect(),
    }
}

/// Work and time of two contenders in a block: committed transactions, and the seconds in which they were.
pub(super) fn totals(block: &CompleteBlock<'_>, contender: usize, reference: usize) -> BlockTotals {
    let of = |who: usize| {
        let mut sum = Totals::default();
        for row in block.slices_of(who) {
            sum.work += row.ok as f64;
            sum.time += row.measured_s;
        }
        sum
    };
    BlockTotals {
        contender: of(contender),
        reference: of(reference),
    }
}

/// The log ratio of a block by its totals. One of the two without a commit counts as [`SILENT_SLICE_COUNTS`], where the totals of
/// many blocks need no such convention.
pub(super) fn block_log_ratio(totals: &BlockTotals) -> f64 {
    let rate = |of: Totals| of.work.max(SILENT_SLICE_COUNTS) / of.time;
    (rate(totals.contender) / rate(totals.reference)).ln()
}

/// Log ratios of the blocks of a pair.
pub(crate) fn differences(pairs: &[BlockSlices]) -> Result<Vec<f64>, StatsError> {
    let mut differences = block_differences(pairs, 2, REFERENCE)?;
    Ok(differences.swap_remove(CONTENDER))
}

/// The contrast of all contenders with these weights, one for each block: weights times the mean logarithm of a contender's
/// slices.
pub(crate) fn contrasts(
    blocks: &[CompleteBlock<'_>],
    weights: &[f64],
    value: impl Fn(&SliceRow) -> f64,
) -> Result<Vec<f64>, StatsError> {
    let level = |block: &CompleteBlock<'_>, contender: usize| {
        let slices = block.slices_of(contender).map(|row| value(row).ln());
        let (sum, count) = slices.fold((0.0, 0.0), |(sum, count), one| (sum + one, count + 1.0));
        sum / count
    };
    let contrasts = blocks.iter().enumerate().map(|(index, block)| {
        let weighted = weights
            .iter()
            .enumerate()
            .filter(|(_, weight)| **weight != 0.0);
        let contrast: f64 = weighted
            .map(|(contender, weight)| weight * level(block, contender))
            .sum();
        match contrast.is_finite() {
            true => Ok(contrast),
            false => Err(StatsError::OutOfRange {
                what: "contrast of a block",
                index,
                value: contrast,
            }),
        }
    });
    contrasts.collect()
}

/// Committed transactions per second.
pub(crate) fn throughput(row: &SliceRow) -> f64 {
    (row.ok as f64).max(SILENT_SLICE_COUNTS) / row.measured_s
}

/// Standard deviation of the value of a block of average weight, where variances are as one over weights; `None` below two
/// blocks.
pub(crate) fn block_deviation(values: &[f64], blocks: &[CompleteBlock<'_>]) -> Option<f64> {
    let weighted = || {
        values
            .iter()
            .zip(blocks.iter().map(|block| block.block.weight()))
    };
    let total: f64 = weighted().map(|(_, weight)| weight).sum();
    let mean = weighted()
        .map(|(value, weight)| value * weight)
        .sum::<f64>()
        / total;
    let squares: f64 = weighted()
        .map(|(value, weight)| weight * (value - mean).powi(2))
        .sum();
    let n = values.len() as f64;
    (values.len() > 1).then(|| (squares / (n - 1.0) / (total / n)).sqrt())
}
