//! From the slices of two contenders to log ratios, one per block.
//!
//! Knows no plan and concludes nothing.

use dbduel_record::rows::SliceRow;
use dbduel_stats::StatsError;
use dbduel_stats::compare::{MirroredBlock, SliceValue, block_differences};

use crate::judge::evidence::blocks::CompleteBlock;

/// What a slice without a commit counts for, transactions. A slice that hung belongs to its server, so
/// it is not left out; half a transaction keeps its sign and size, where zero has no logarithm.
const SILENT_SLICE_COUNTS: f64 = 0.5;

/// Number of the one that is compared with, in a block that is reduced to a pair.
pub(super) const REFERENCE: usize = 0;
/// The one whose ratio it is.
pub(super) const CONTENDER: usize = 1;

/// The block with the slices of two contenders only; what is left of a mirrored block is mirrored.
pub(super) fn pair(
    block: &CompleteBlock<'_>,
    contender: usize,
    reference: usize,
    value: impl Fn(&SliceRow) -> f64,
) -> MirroredBlock {
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
    MirroredBlock {
        length: block.block.slice_s,
        slices: slices.collect(),
    }
}

/// Log ratios of the blocks of a pair.
pub(in crate::judge) fn differences(pairs: &[MirroredBlock]) -> Result<Vec<f64>, StatsError> {
    let mut differences = block_differences(pairs, 2, REFERENCE)?;
    Ok(differences.swap_remove(CONTENDER))
}

/// Committed transactions per second.
pub(in crate::judge) fn throughput(row: &SliceRow) -> f64 {
    (row.ok as f64).max(SILENT_SLICE_COUNTS) / row.measured_s
}

/// Sample standard deviation; `None` below two values.
pub(in crate::judge) fn sample_deviation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt())
}
