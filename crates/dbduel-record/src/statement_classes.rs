//! Figures of single statements by their class: `statement-classes.json` and `statements.csv`. Only the workload `captured` has
//! them.

use std::fmt::Display;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::event::SliceId;

/// The classes whose statements are measured, with what the capture says about them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatementClasses {
    /// One entry per class, in the order of the load process.
    pub classes: Vec<StatementClass>,
}

/// One class of statements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementClass {
    /// Its identity: the first digits by which `dbduel capture show --class` finds it.
    pub id: String,
    /// Its text, without values.
    pub text: String,
    /// True when its statements change rows.
    pub writes: bool,
    /// Its statements that the replay draws; of settings all.
    pub captured: u64,
    /// Sum of their durations when they were captured, seconds; 0 where the log has none.
    pub captured_s: f64,
    /// Those of them whose number of changed rows the log has.
    pub captured_with_rows: u64,
    /// Those of these that changed no row.
    pub captured_unchanged: u64,
}

/// One row of `statements.csv`: the statements of one class in one slice. A statement counts in the slice in which its transaction
/// counts, in each attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementRow {
    /// `SliceId::block`.
    pub block: u32,
    /// `SliceId::position`.
    pub position: u32,
    /// Name of the contender.
    pub contender: String,
    /// [`StatementClass::id`].
    pub statement: String,
    /// Answered without an error.
    pub ok: u64,
    /// Answered with an error.
    pub failed: u64,
    /// Those of `failed` whose key exists (1062, 23505).
    pub key_exists: u64,
    /// Those of `ok` that change rows and changed none; 0 for reads.
    pub unchanged: u64,
    /// Rows that `ok` returned.
    pub rows_returned: u64,
    /// Rows that `ok` changed; 0 for reads.
    pub rows_changed: u64,
    /// Sum of the latencies of `ok`, microseconds, without the time for which the server was frozen.
    pub latency_us_sum: f64,
    /// The same of `failed`.
    pub failed_us_sum: f64,
    /// Error codes with their numbers of occurrences: `1062:7 1213:1`.
    pub errors: String,
    /// Latencies of `ok`, nanoseconds to two significant digits, with their numbers, in ascending order: `131071:4 155647:1`.
    pub latencies: String,
}

impl StatementRow {
    /// The slice of the row.
    #[must_use]
    pub fn slice(&self) -> SliceId {
        SliceId {
            block: self.block,
            position: self.position,
        }
    }
}

/// Statements of one class by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementCounts {
    /// Answered without an error.
    pub ok: u64,
    /// Answered with an error.
    pub failed: u64,
    /// Those of `failed` whose key exists.
    pub key_exists: u64,
    /// Those of `ok` that change rows and changed none.
    pub unchanged: u64,
    /// Rows that `ok` returned.
    pub rows_returned: u64,
    /// Rows that `ok` changed.
    pub rows_changed: u64,
}

impl AddAssign for StatementCounts {
    /// Destructured by name, so that a new counter cannot be forgotten.
    fn add_assign(&mut self, other: StatementCounts) {
        let StatementCounts {
            ok,
            failed,
            key_exists,
            unchanged,
            rows_returned,
            rows_changed,
        } = other;
        self.ok += ok;
        self.failed += failed;
        self.key_exists += key_exists;
        self.unchanged += unchanged;
        self.rows_returned += rows_returned;
        self.rows_changed += rows_changed;
    }
}

/// Keys with their counts, as [`StatementRow::errors`] and [`StatementRow::latencies`] have them.
#[must_use]
pub fn join_counts<K: Display>(counts: impl Iterator<Item = (K, u64)>) -> String {
    let entries: Vec<String> = counts.map(|(key, n)| format!("{key}:{n}")).collect();
    entries.join(" ")
}

/// The keys that [`join_counts`] joined, with their counts.
///
/// # Errors
/// Names an entry that is not a key with a count.
pub fn split_counts<K: FromStr>(
    joined: &str,
) -> impl Iterator<Item = Result<(K, u64), String>> + '_ {
    let entries = joined.split(' ').filter(|entry| !entry.is_empty());
    entries.map(|entry| {
        let parts = entry.rsplit_once(':');
        let parsed = parts.and_then(|(key, count)| Some((key.parse().ok()?, count.parse().ok()?)));
        parsed.ok_or_else(|| format!("`{entry}` is not a number with its count"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_back_as_they_were_written() {
        let errors = [("1062".to_owned(), 7), ("40P01".to_owned(), 1)];
        let joined = join_counts(errors.iter().map(|(code, count)| (code, *count)));
        assert_eq!(joined, "1062:7 40P01:1");
        let split: Result<Vec<(String, u64)>, String> = split_counts(&joined).collect();
        assert_eq!(split.unwrap(), errors);
        assert_eq!(split_counts::<u64>("").count(), 0);
        let torn: Result<Vec<(u64, u64)>, String> = split_counts("7:1 40P").collect();
        assert_eq!(torn.unwrap_err(), "`40P` is not a number with its count");
    }
}
