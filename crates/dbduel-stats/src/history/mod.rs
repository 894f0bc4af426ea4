//! Change points in a history of results, one value per run.
//!
//! A scan of rank differences with a permutation p-value, split after split (Pettitt 1979 for one change). Ranks make
//! single wild runs harmless; the permutation accounts for having searched. Feed it log ratios to a pinned reference
//! measured in the same duel: raw throughput across days drifts with the machine.

mod scan;

use crate::autocorrelation::autocovariances;
use crate::error::{StatsError, all_finite, bounded, not_negative, open_fraction};
use crate::estimate::Estimate;
use crate::moments::as_count;
use crate::moments::{median, normal_point};
use scan::{Split, scan};

/// Fewest runs on either side of a change.
pub const SIDE_MIN: usize = 5;

/// Lag-one correlation of the residuals above which the permutation is no longer trustworthy.
pub const AUTOCORRELATION_MAX: f64 = 0.25;

/// Confidence of the size of a change and of the band of its position.
const CONFIDENCE: f64 = 0.95;

/// Newest runs that must agree before an alarm.
const AGREEING: usize = 3;

/// Criteria of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoryRule {
    /// Permutation p-value up to which a change is accepted.
    pub alpha: f64,
    /// Number of permutations.
    pub permutations: usize,
    /// Smallest change of the median worth reporting, in the units of the series.
    pub magnitude: f64,
    /// Seed of the permutations.
    pub seed: u64,
}

impl HistoryRule {
    /// For the analysis of a whole history: 1 % and 999 permutations.
    #[must_use]
    pub fn offline(magnitude: f64, seed: u64) -> Self {
        HistoryRule {
            alpha: 0.01,
            permutations: 999,
            magnitude,
            seed,
        }
    }

    /// For testing after every run: 0.2 % and 1999 permutations, since there are many tests.
    #[must_use]
    pub fn alarm(magnitude: f64, seed: u64) -> Self {
        HistoryRule {
            alpha: 0.002,
            permutations: 1999,
            magnitude,
            seed,
        }
    }

    fn check(&self) -> Result<(), StatsError> {
        open_fraction("alpha", self.alpha)?;
        if 1.0 / (self.permutations as f64 + 1.0) > self.alpha {
            return Err(StatsError::Parameter {
                name: "permutations",
                value: self.permutations as f64,
                requirement: "at least 1/alpha - 1, or no p-value could be small enough",
            });
        }
        bounded("permutations", self.permutations)?;
        not_negative("magnitude", self.magnitude)
    }
}

/// One accepted change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Number of the first run after the change, from 0.
    pub at: usize,
    /// Earliest and latest position that the permutation band at 95 % does not exclude.
    pub between: (usize, usize),
    /// Difference after − before (Hodges & Lehmann 1963) with a 95 % interval.
    pub size: Estimate,
    /// Permutation p-value of the split it was found in.
    pub p_value: f64,
}

/// The changes of a history.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// In order of position.
    pub changes: Vec<ChangePoint>,
    /// Neighbouring runs are correlated beyond the changes: there are more false changes than `alpha` says. The usual
    /// causes are raw numbers instead of ratios, and a change of machine.
    pub is_autocorrelated: bool,
}

/// Finds all changes. Histories shorter than ten runs have none.
///
/// # Errors
/// A value that is not finite, or a rule that could never accept a change.
pub fn find_changes(series: &[f64], rule: &HistoryRule) -> Result<History, StatsError> {
    all_finite("history", series)?;
    rule.check()?;
    let mut splits = Vec::new();
    let mut segments = vec![(0, series.len())];
    while let Some((start, end)) = segments.pop() {
        if let Some(split) = scan(&series[start..end], rule, start) {
            let at = start + split.at;
            splits.push(Split {
                at,
                between: (start + split.between.0, start + split.between.1),
                ..split
            });
            segments.extend([(start, at), (at, end)]);
        }
    }
    splits.sort_by_key(|split| split.at);
    let mut changes = sized(series, &splits);
    // Dropping a change joins its neighbours' segments, so sizes are computed again each time.
    while let Some(smallest) = smallest_below(&changes, rule.magnitude) {
        splits.remove(smallest);
        changes = sized(series, &splits);
    }
    let is_autocorrelated = residual_correlation(series, &changes) > AUTOCORRELATION_MAX;
    Ok(History {
        changes,
        is_autocorrelated,
    })
}

/// Tests the runs since the last accepted change for a new one, as after appending a run. `None`: no
/// alarm. An alarm proposes; a paired comparison of the two versions decides.
///
/// # Errors
/// As for [`find_changes`].
pub fn raise_alarm(
    since_last_change: &[f64],
    rule: &HistoryRule,
) -> Result<Option<ChangePoint>, StatsError> {
    all_finite("history", since_last_change)?;
    rule.check()?;
    let series = since_last_change;
    let Some(split) = scan(series, rule, 0) else {
        return Ok(None);
    };
    let before = median(&mut series[..split.at].to_vec()).unwrap_or(f64::NAN);
    let newest = &series[series.len() - AGREEING..];
    let agree =
        newest.iter().all(|value| *value > before) || newest.iter().all(|value| *value < before);
    let change = sized(series, &[split]).into_iter().next();
    Ok(change.filter(|change| agree && change.size.value.abs() >= rule.magnitude))
}

/// The splits with their sizes, from the segments between them.
fn sized(series: &[f64], splits: &[Split]) -> Vec<ChangePoint> {
    let mut ends: Vec<usize> = vec![0];
    ends.extend(splits.iter().map(|split| split.at));
    ends.push(series.len());
    splits
        .iter()
        .zip(ends.windows(3))
        .map(|(split, ends)| ChangePoint {
            at: split.at,
            between: split.between,
            size: shift(&series[ends[0]..ends[1]], &series[ends[1]..ends[2]]),
            p_value: split.p_value,
        })
        .collect()
}

fn smallest_below(changes: &[ChangePoint], magnitude: f64) -> Option<usize> {
    let size = |index: &usize| changes[*index].size.value.abs();
    (0..changes.len())
        .filter(|index| size(index) < magnitude)
        .min_by(|a, b| size(a).total_cmp(&size(b)))
}

/// Median of all differences after − before, with the interval of the rank-sum test.
fn shift(before: &[f64], after: &[f64]) -> Estimate {
    let mut differences: Vec<f64> = after
        .iter()
        .flat_map(|late| before.iter().map(move |early| late - early))
        .collect();
    let value = median(&mut differences).unwrap_or(f64::NAN);
    let (m, n) = (before.len() as f64, after.len() as f64);
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    let reach = normal_point(0.5 + 0.5 * CONFIDENCE) * deviation;
    let low = as_count((0.5 * m * n - reach).floor());
    Estimate {
        value,
        low: differences[low],
        high: differences[differences.len() - 1 - low],
        n: before.len() + after.len(),
    }
}

/// Lag-one correlation of the residuals after each segment's median is subtracted.
fn residual_correlation(series: &[f64], changes: &[ChangePoint]) -> f64 {
    if series.len() < 2 * SIDE_MIN {
        return 0.0;
    }
    let mut residuals = Vec::with_capacity(series.len());
    let mut start = 0;
    for end in changes.iter().map(|change| change.at).chain([series.len()]) {
        let level = median(&mut series[start..end].to_vec()).unwrap_or(f64::NAN);
        residuals.extend(series[start..end].iter().map(|value| value - level));
        start = end;
    }
    let covariances = autocovariances(&residuals, 1);
    if covariances[0] > 0.0 {
        covariances[1] / covariances[0]
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn noisy(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut random = RandomStream::new(seed, 0);
        let runs = levels
            .iter()
            .flat_map(|(count, level)| std::iter::repeat_n(*level, *count));
        runs.map(|level| level + 0.01 * random.normal()).collect()
    }

    #[test]
    fn two_steps_are_two_changes() {
        let rule = HistoryRule::offline(0.01, 1);
        let history =
            find_changes(&noisy(&[(30, 0.0), (30, 0.05), (30, -0.02)], 3), &rule).unwrap();
        let places: Vec<usize> = history.changes.iter().map(|change| change.at).collect();
        assert_eq!(places, [30, 60]);
        assert!(history.changes[0].size.contains(0.05) && history.changes[1].size.contains(-0.07));
        assert!(!history.is_autocorrelated);
        for change in &history.changes {
            assert!(change.between.0 <= change.at && change.at <= change.between.1);
        }
    }

    #[test]
    fn changes_below_the_magnitude_are_dropped() {
        let series = noisy(&[(100, 0.0), (100, 0.015)], 4);
        assert_eq!(
            find_changes(&series, &HistoryRule::offline(0.01, 1))
                .unwrap()
                .changes
                .len(),
            1
        );
        assert!(
            find_changes(&series, &HistoryRule::offline(0.03, 1))
                .unwrap()
                .changes
                .is_empty()
        );
    }

    #[test]
    fn drifting_histories_are_marked() {
        let series: Vec<f64> = (0..60).map(|run| (f64::from(run) / 6.0).sin()).collect();
        assert!(
            find_changes(&series, &HistoryRule::offline(10.0, 1))
                .unwrap()
                .is_autocorrelated
        );
    }

    #[test]
    fn an_alarm_needs_the_newest_runs_to_agree() {
        let rule = HistoryRule::alarm(0.01, 1);
        let mut series = noisy(&[(40, 0.0), (8, 0.10)], 5);
        assert_eq!(
            raise_alarm(&series, &rule).unwrap().map(|change| change.at),
            Some(40)
        );
        series.push(-0.10);
        assert_eq!(raise_alarm(&series, &rule).unwrap(), None);
    }

    #[test]
    fn short_constant_and_bad_histories_have_stated_outcomes() {
        let rule = HistoryRule::offline(0.01, 1);
        for series in [&[][..], &[1.0; 9], &[1.0; 50]] {
            assert!(find_changes(series, &rule).unwrap().changes.is_empty());
            assert_eq!(raise_alarm(series, &rule).unwrap(), None);
        }
        assert!(find_changes(&[f64::NAN], &rule).is_err());
        assert!(
            find_changes(
                &[1.0],
                &HistoryRule {
                    permutations: 50,
                    ..rule
                }
            )
            .is_err()
        );
        assert!(
            find_changes(
                &[1.0],
                &HistoryRule {
                    magnitude: f64::NAN,
                    ..rule
                }
            )
            .is_err()
        );
    }
}
