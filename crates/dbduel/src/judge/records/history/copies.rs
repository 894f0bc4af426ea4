//! Records that were copied: a run counts once, wherever copies of its record lie.
//!
//! Knows nothing of ratios.

use super::Judged;
use crate::judge::Summary;

/// The records without copies, and which were left out. Of copies that were made before a run was resumed, the
/// one that goes furthest counts.
pub(super) fn without_copies(records: Vec<Judged>) -> (Vec<Judged>, Vec<String>) {
    let mut kept: Vec<Judged> = Vec::new();
    let mut copies: Vec<(String, usize)> = Vec::new();
    for record in records {
        let mut known = kept.iter();
        let Some(twin) = known.position(|one| run_of(&one.summary) == run_of(&record.summary))
        else {
            kept.push(record);
            continue;
        };
        let copy = match record.summary.run.ended_ms > kept[twin].summary.run.ended_ms {
            true => std::mem::replace(&mut kept[twin], record),
            false => record,
        };
        copies.push((copy.place, twin));
    }
    let told = |(place, twin): (String, usize)| {
        format!(
            "{place}: the same run as {}, which counts once",
            kept[twin].place
        )
    };
    let left_out = copies.into_iter().map(told).collect();
    (kept, left_out)
}

/// What tells a run from every other, wherever its record is copied: when its plan was made, its seed, and the
/// millisecond of the first entry in its journal.
fn run_of(summary: &Summary) -> (&str, u64, Option<u64>) {
    (&summary.created, summary.seed, summary.run.started_ms)
}
