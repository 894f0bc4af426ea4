//! Write and space amplification: bytes written per byte changed, and bytes kept per byte of data.
//!
//! The bytes of a changed row are not counted by any server; they are taken as the mean size of a row as it
//! was loaded, indexes included, which is right for workloads whose rows are alike.

use dbduel_record::event::Event;
use dbduel_record::facts::{FileSize, Size};
use serde::Serialize;

use super::rows_changed;
use crate::evidence::Evidence;

/// Bytes of a terabyte, as drives are sold.
const TERABYTE: f64 = 1e12;

/// Storage of one contender over all its counted slices. A value that the record does not allow is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Amplification {
    /// Name of the contender.
    pub contender: String,
    /// Rows changed; absent where the server's counter does not cover the engine of its tables, or lags.
    pub rows_changed: Option<f64>,
    /// Bytes that the server wrote to the device.
    pub device_written_bytes: Option<f64>,
    /// Mean bytes per row as loaded: the sizes of the data files over their rows.
    pub row_bytes: Option<f64>,
    /// Bytes written to the device per byte of changed rows.
    pub write_amplification: Option<f64>,
    /// Bytes written to the device per changed row.
    pub written_per_row_bytes: Option<f64>,
    /// Bytes written to the device per committed transaction.
    pub written_per_transaction_bytes: Option<f64>,
    /// Committed transactions per terabyte (10^12 bytes) written to the device: drives are rated by the terabytes
    /// that may be written to them. What the drive itself writes in addition is not in it.
    pub transactions_per_tb_written: Option<f64>,
    /// Bytes allocated on the device for data files after the last slice; redo, undo, temporary, log and system files
    /// are not in it.
    pub allocated_bytes: Option<u64>,
    /// Bytes of the data files by their sizes after the last slice.
    pub apparent_bytes: Option<u64>,
    /// Allocated over apparent: below 1 where holes were punched or files are sparse.
    pub allocated_share: Option<f64>,
    /// Allocated bytes of the data files as a share of the baseline's.
    #[serde(default)]
    pub allocated_of_baseline: Option<f64>,
    /// Allocated for data files after the last slice minus before the first.
    pub growth_bytes: Option<i64>,
    /// Seconds that loading or restoring the data took.
    pub load_s: Option<f64>,
    /// True when the data were restored from a copy, so that `load_s` is no loading time.
    pub is_restored: Option<bool>,
}

/// The amplification of `contender`.
pub fn of(evidence: &Evidence<'_>, contender: usize) -> Amplification {
    let plan = evidence.plan();
    let name = plan.contenders[contender].name.clone();
    let slices = evidence
        .levels
        .iter()
        .flat_map(|level| level.slices_of(contender));
    let transactions = slices.map(|row| row.ok as f64).sum::<f64>();
    let watched = || {
        (0..evidence.levels.len())
            .flat_map(|level| evidence.watched(level))
            .flat_map(|block| block.slices_of(contender))
    };
    let watched_transactions = watched().map(|row| row.ok as f64).sum::<f64>();
    // Where turns are short, samplers look at some of the blocks; the others are taken to be like them.
    let sum = |source: &str, metric: &str| -> Option<f64> {
        watched().next()?;
        let seen = watched().map(|row| evidence.used(row.slice(), source, metric));
        let seen = seen.sum::<Option<f64>>()?;
        Some(match watched_transactions > 0.0 {
            true => seen * transactions / watched_transactions,
            false => seen,
        })
    };
    let rows_changed = sum("engine", rows_changed::METRIC)
        .filter(|_| rows_changed::why_not_counted(evidence, contender).is_none());
    let device_written_bytes = sum("server", "device_write_bytes");
    let loaded = evidence
        .record
        .events
        .iter()
        .rev()
        .find_map(|event| match &event.what {
            Event::DatasetReady {
                contender,
                rows,
                files,
                seconds,
                restored,
                ..
            } if *contender == name => Some((*rows, *files, *seconds, *restored)),
            _ => None,
        });
    let row_bytes = loaded
        .and_then(|(rows, files, ..)| Some((rows, files?.data.bytes)))
        .filter(|(rows, bytes)| *rows > 0 && *bytes > 0)
        .map(|(rows, bytes)| bytes as f64 / rows as f64);
    let written_per_transaction_bytes = device_written_bytes
        .filter(|_| transactions > 0.0)
        .map(|bytes| bytes / transactions);
    let written_per_row_bytes = device_written_bytes
        .zip(rows_changed)
        .filter(|(_, rows)| *rows > 0.0)
        .map(|(bytes, rows)| bytes / rows);
    let size = size_of(evidence, contender);
    let after = size.and_then(data_after);
    Amplification {
        contender: name,
        rows_changed,
        device_written_bytes,
        row_bytes,
        write_amplification: written_per_row_bytes
            .zip(row_bytes)
            .map(|(written, row)| written / row),
        written_per_row_bytes,
        written_per_transaction_bytes,
        transactions_per_tb_written: written_per_transaction_bytes
            .filter(|bytes| *bytes > 0.0)
            .map(|bytes| TERABYTE / bytes),
        allocated_bytes: after.map(|data| data.allocated_bytes),
        apparent_bytes: after.map(|data| data.bytes),
        allocated_share: after.map(|data| data.allocated_bytes as f64 / data.bytes as f64),
        allocated_of_baseline: after
            .zip(size_of(evidence, plan.baseline).and_then(data_after))
            .filter(|(_, baseline)| baseline.allocated_bytes > 0)
            .map(|(own, baseline)| own.allocated_bytes as f64 / baseline.allocated_bytes as f64),
        growth_bytes: size.and_then(|size| {
            let before = size.before_files?.data.allocated_bytes;
            Some(data_after(size)?.allocated_bytes.cast_signed() - before.cast_signed())
        }),
        load_s: loaded.map(|(_, _, seconds, _)| seconds),
        is_restored: loaded.map(|(.., restored)| restored),
    }
}

fn size_of(evidence: &Evidence<'_>, contender: usize) -> Option<Size> {
    evidence.record.contenders.get(contender)?.size
}

/// The data files after the last slice; absent where the record does not separate them.
fn data_after(size: Size) -> Option<FileSize> {
    size.after_files
        .map(|files| files.data)
        .filter(|data| data.bytes > 0)
}
