//! The durability log: the transactions that a server acknowledged as committed, kept by the load process.
//!
//! A workload whose transactions leave a numbered object behind (an order, for example) names a series and the number.
//! Within a series numbers are assigned consecutively, so a whole slice is a few ranges. After a crash the server must
//! still have every number of the log.

use serde::{Deserialize, Serialize};

/// Consecutive numbers of one series, all of them acknowledged by the server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CommitRange {
    /// The series, as the workload names it.
    pub series: String,
    /// First number.
    pub first: u64,
    /// Last number, not less than the first.
    pub last: u64,
}

impl CommitRange {
    /// How many numbers there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self.last.checked_sub(self.first) {
            Some(beyond_the_first) => beyond_the_first.saturating_add(1),
            None => 0,
        }
    }
}

/// One row of `commits.csv`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitRow {
    /// When the row was written, stamped like an event ([`crate::event::Stamped`]); the server acknowledged it before.
    pub at_ms: u64,
    /// Name of the contender.
    pub contender: String,
    /// [`CommitRange::series`].
    pub series: String,
    /// [`CommitRange::first`].
    pub first: u64,
    /// [`CommitRange::last`].
    pub last: u64,
}

impl CommitRow {
    /// The range as a row of a contender.
    #[must_use]
    pub fn of(at_ms: u64, contender: &str, range: CommitRange) -> Self {
        let CommitRange {
            series,
            first,
            last,
        } = range;
        Self {
            at_ms,
            contender: contender.to_owned(),
            series,
            first,
            last,
        }
    }

    /// The range of the row.
    #[must_use]
    pub fn range(&self) -> CommitRange {
        CommitRange {
            series: self.series.clone(),
            first: self.first,
            last: self.last,
        }
    }
}

/// The rows as the text of a `commits.csv`.
///
/// # Errors
/// When a row cannot be written as CSV.
pub fn to_csv(rows: &[CommitRow]) -> Result<Vec<u8>, csv::Error> {
    let mut table = csv::Writer::from_writer(Vec::new());
    for row in rows {
        table.serialize(row)?;
    }
    table
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))
}

/// The rows of a `commits.csv`.
///
/// # Errors
/// For the first invalid line, with its number.
pub fn from_csv(bytes: &[u8]) -> Result<Vec<CommitRow>, csv::Error> {
    csv::Reader::from_reader(bytes).deserialize().collect()
}

/// A log without overlaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coalesced {
    /// Ranges by series and number, none touching another.
    pub ranges: Vec<CommitRange>,
    /// Numbers that occurred in the log more than once, counted each time beyond the first. A server assigns a number
    /// twice only when it has lost the first.
    pub repeated: u64,
}

/// Sorts ranges and joins adjacent and overlapping ones. A range whose last number is before its first is left out.
#[must_use]
pub fn coalesce(mut ranges: Vec<CommitRange>) -> Coalesced {
    ranges.retain(|range| range.first <= range.last && range.last < u64::MAX);
    ranges.sort_unstable();
    let mut joined = Coalesced::default();
    for range in ranges {
        match joined.ranges.last_mut() {
            Some(before) if before.series == range.series && range.first <= before.last + 1 => {
                let overlap_end = before.last.min(range.last);
                joined.repeated += (overlap_end + 1).saturating_sub(range.first);
                before.last = before.last.max(range.last);
            }
            _ => joined.ranges.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(series: &str, first: u64, last: u64) -> CommitRange {
        CommitRange {
            series: series.to_owned(),
            first,
            last,
        }
    }

    #[track_caller]
    fn check(given: &[(&str, u64, u64)], ranges: &[(&str, u64, u64)], repeated: u64) {
        let all = |list: &[(&str, u64, u64)]| -> Vec<CommitRange> {
            list.iter().map(|(s, f, l)| range(s, *f, *l)).collect()
        };
        let expected = Coalesced {
            ranges: all(ranges),
            repeated,
        };
        assert_eq!(coalesce(all(given)), expected);
    }

    #[test]
    fn ranges_that_touch_are_joined_and_repetitions_counted() {
        check(&[], &[], 0);
        check(&[("a", 5, 9), ("a", 1, 4)], &[("a", 1, 9)], 0);
        check(&[("a", 1, 4), ("a", 6, 9)], &[("a", 1, 4), ("a", 6, 9)], 0);
        check(&[("a", 1, 4), ("b", 5, 9)], &[("a", 1, 4), ("b", 5, 9)], 0);
        check(&[("a", 1, 8), ("a", 5, 9)], &[("a", 1, 9)], 4);
        check(&[("a", 1, 9), ("a", 3, 4)], &[("a", 1, 9)], 2);
        check(&[("a", 1, 1), ("a", 1, 1), ("a", 1, 1)], &[("a", 1, 1)], 2);
    }

    #[test]
    fn rows_read_back_and_other_tables_do_not() {
        let rows = [CommitRow::of(7, "a, b", range("1/3", 3001, 3009))];
        assert_eq!(from_csv(&to_csv(&rows).unwrap()).unwrap(), rows);
        let error = from_csv(b"at_ms,contender,series,first,last\n1,a,1/3,3,4\n1,a,1/3,x,4\n");
        assert!(error.unwrap_err().to_string().contains("line: 3"));
        assert!(from_csv(b"block,position\n1,2\n").is_err());
    }

    #[test]
    fn nonsense_is_left_out() {
        check(&[("a", 5, 4), ("a", 0, u64::MAX)], &[], 0);
        assert_eq!(range("a", 3, 7).count(), 5);
    }
}
