//! Records that were copied: a run counts once, wherever copies of its record lie.

use super::Judged;

/// The records without copies, and which were left out. Of copies that were made before a run was resumed, the
/// one that goes furthest counts.
pub(super) fn without_copies<R: AsRef<Judged>>(records: Vec<R>) -> (Vec<R>, Vec<String>) {
    let mut kept: Vec<R> = Vec::new();
    let mut copies: Vec<(String, usize)> = Vec::new();
    for record in records {
        let run = run_of(&record);
        let Some(twin) = kept.iter().position(|one| run_of(one) == run) else {
            kept.push(record);
            continue;
        };
        let copy = match ended_ms(&record) > ended_ms(&kept[twin]) {
            true => std::mem::replace(&mut kept[twin], record),
            false => record,
        };
        copies.push((copy.as_ref().place.clone(), twin));
    }
    let told = |(place, twin): (String, usize)| {
        format!(
            "{place}: the same run as {}, which counts once",
            kept[twin].as_ref().place
        )
    };
    let left_out = copies.into_iter().map(told).collect();
    (kept, left_out)
}

/// Identity of a run, equal in all copies of its record: when its plan was made, its seed, and the millisecond of the
/// first entry in its journal.
fn run_of(record: &impl AsRef<Judged>) -> (&str, u64, Option<u64>) {
    let summary = &record.as_ref().summary;
    (&summary.created, summary.seed, summary.run.started_ms)
}

fn ended_ms(record: &impl AsRef<Judged>) -> Option<u64> {
    record.as_ref().summary.run.ended_ms
}
