//! The durability log in the load process: acknowledged numbers in, ranges out.
//!
//! Clients note the numbers that the server acknowledged; once per tick a load thread passes its notes on, and here
//! they are joined over all threads.

use std::collections::BTreeMap;

use dbduel_record::commits::CommitRange;
use serde::{Deserialize, Serialize};

/// A number that the server acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commitment {
    /// The series that it belongs to; written `1/3`.
    pub series: [u32; 2],
    /// The number.
    pub number: u64,
}

/// A number and the time of its acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// The number.
    #[serde(flatten)]
    pub commitment: Commitment,
    /// Nanoseconds of `CLOCK_MONOTONIC`, at or after the acknowledgement's arrival.
    pub at_ns: u64,
}

/// Numbers that one contender's server acknowledged since the last answer. Its size depends on the number of series
/// and gaps, not of transactions.
#[derive(Debug, Default)]
pub struct CommitLog {
    /// First and last numbers of ranges, ascending and not adjacent.
    stretches: BTreeMap<[u32; 2], Vec<(u64, u64)>>,
}

impl CommitLog {
    /// Adds acknowledged numbers. Numbers of a series come nearly in order.
    pub fn note(&mut self, commitments: impl IntoIterator<Item = Commitment>) {
        for Commitment { series, number } in commitments {
            let stretches = self.stretches.entry(series).or_default();
            let after = stretches.partition_point(|(first, _)| *first <= number);
            let (before, behind) = stretches.split_at_mut(after);
            let joins_next = behind
                .first()
                .is_some_and(|(first, _)| number + 1 == *first);
            match before.last_mut() {
                // Acknowledged twice: kept twice, because that is what the log is for.
                Some((_, last)) if number <= *last => stretches.insert(after, (number, number)),
                Some((_, last)) if *last + 1 == number => {
                    *last = number;
                    if joins_next {
                        *last = behind[0].1;
                        stretches.remove(after);
                    }
                }
                _ if joins_next => behind[0].0 = number,
                _ => stretches.insert(after, (number, number)),
            }
        }
    }

    /// Returns all ranges and empties the log.
    pub fn take(&mut self) -> Vec<CommitRange> {
        let stretches = std::mem::take(&mut self.stretches);
        let ranges = stretches.into_iter().flat_map(|([major, minor], list)| {
            list.into_iter().map(move |(first, last)| CommitRange {
                series: format!("{major}/{minor}"),
                first,
                last,
            })
        });
        ranges.collect()
    }
}

/// Parses the two numbers of a series as [`CommitLog::take`] writes it.
#[must_use]
pub fn parse_series(series: &str) -> Option<[u32; 2]> {
    let (major, minor) = series.split_once('/')?;
    Some([major.parse().ok()?, minor.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use dbduel_record::commits::coalesce;

    #[track_caller]
    fn check(numbers: &[u64], ranges: &[(u64, u64)]) {
        let mut log = CommitLog::default();
        for &number in numbers {
            let series = [7, 3];
            log.note([Commitment { series, number }]);
        }
        let found: Vec<(u64, u64)> = log
            .take()
            .iter()
            .inspect(|range| assert_eq!(parse_series(&range.series), Some([7, 3])))
            .map(|range| (range.first, range.last))
            .collect();
        assert_eq!(found, ranges, "{numbers:?}");
        assert_eq!(log.take(), []);
    }

    #[test]
    fn neighbours_join_on_both_sides() {
        check(&[1, 2, 3], &[(1, 3)]);
        check(&[3, 2, 1], &[(1, 3)]);
        check(&[1, 3, 2, 5], &[(1, 3), (5, 5)]);
        check(&[5, 1, 4, 2, 9], &[(1, 2), (4, 5), (9, 9)]);
    }

    #[test]
    fn what_is_acknowledged_twice_is_seen_as_repeated() {
        let mut log = CommitLog::default();
        for number in [1, 2, 3, 2, 4, 2] {
            let series = [1, 1];
            log.note([Commitment { series, number }]);
        }
        let log = coalesce(log.take());
        assert_eq!(
            (log.ranges.len(), log.ranges[0].count(), log.repeated),
            (1, 4, 2)
        );
    }

    #[test]
    fn any_order_of_distinct_numbers_gives_one_stretch() {
        let mut random = Random::new(3);
        let mut numbers: Vec<u64> = (1..=500).collect();
        for last in (1..numbers.len()).rev() {
            numbers.swap(last, random.below(last as u64 + 1) as usize);
        }
        check(&numbers, &[(1, 500)]);
    }

    #[test]
    fn a_series_that_is_none_is_not_parsed() {
        for series in ["", "1", "1/", "a/b", "1/2/3", "-1/2"] {
            assert_eq!(parse_series(series), None, "{series}");
        }
    }
}
