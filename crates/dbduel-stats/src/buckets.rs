//! Counted values in ascending order: what a latency histogram boils down to. It does not know how the
//! histogram rounds its values.

use crate::error::StatsError;

/// Distinct positive values with cumulative counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Buckets {
    values: Vec<f64>,
    /// Count of observations at or below the value of the same index.
    cumulative: Vec<u64>,
}

impl Buckets {
    /// From values and their counts in any order; equal values are merged, zero counts dropped.
    ///
    /// # Errors
    /// A value that is not finite and positive, or no observation at all.
    pub fn new(counts: impl IntoIterator<Item = (f64, u64)>) -> Result<Self, StatsError> {
        let mut counts: Vec<(f64, u64)> =
            counts.into_iter().filter(|(_, count)| *count > 0).collect();
        if let Some(index) = counts
            .iter()
            .position(|(value, _)| !(value.is_finite() && *value > 0.0))
        {
            return Err(StatsError::NotPositive {
                what: "latencies",
                index,
                value: counts[index].0,
            });
        }
        if counts.is_empty() {
            return Err(StatsError::TooFew {
                what: "requests of a slice",
                needed: 1,
                got: 0,
            });
        }
        counts.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut buckets = Buckets {
            values: Vec::with_capacity(counts.len()),
            cumulative: Vec::with_capacity(counts.len()),
        };
        let mut total = 0;
        for (value, count) in counts {
            total += count;
            if buckets.values.last() == Some(&value) {
                buckets.values.pop();
                buckets.cumulative.pop();
            }
            buckets.values.push(value);
            buckets.cumulative.push(total);
        }
        Ok(buckets)
    }

    /// Number of observations.
    pub fn total(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or(0)
    }

    /// Observations at or below `value`.
    pub fn at_or_below(&self, value: f64) -> u64 {
        match self.values.partition_point(|bucket| *bucket <= value) {
            0 => 0,
            index => self.cumulative[index - 1],
        }
    }

    /// Share of the observations above `value`.
    pub fn share_above(&self, value: f64) -> f64 {
        1.0 - self.at_or_below(value) as f64 / self.total() as f64
    }

    /// Smallest value with at least a fraction `q` of the observations at or below it.
    pub fn quantile(&self, q: f64) -> f64 {
        let rank = rank(q, self.total());
        let index = self.cumulative.partition_point(|count| *count < rank);
        self.values[index.min(self.values.len() - 1)]
    }

    /// The values and their counts, ascending.
    pub fn counts(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let mut before = 0;
        self.values
            .iter()
            .zip(&self.cumulative)
            .map(move |(value, cumulative)| {
                let count = cumulative - before;
                before = *cumulative;
                (*value, count)
            })
    }

    /// All observations of both.
    #[must_use]
    pub fn merged(&self, other: &Buckets) -> Buckets {
        let mut merged = Buckets {
            values: Vec::new(),
            cumulative: Vec::new(),
        };
        let (mut own, mut others) = (
            self.values.iter().peekable(),
            other.values.iter().peekable(),
        );
        loop {
            let value = match (own.peek(), others.peek()) {
                (Some(a), Some(b)) => a.min(**b),
                (Some(a), None) => **a,
                (None, Some(b)) => **b,
                (None, None) => return merged,
            };
            own.next_if(|own| **own == value);
            others.next_if(|other| **other == value);
            merged.values.push(value);
            merged
                .cumulative
                .push(self.at_or_below(value) + other.at_or_below(value));
        }
    }
}

/// Rank, from 1, of the quantile `q` among `total` observations.
pub(crate) fn rank(q: f64, total: u64) -> u64 {
    // Rounding must not push 0.99 · 100 above 99.
    ((q * total as f64 - 1e-9).ceil() as u64).clamp(1, total.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_quantiles_agree_with_the_plain_list() {
        let buckets = Buckets::new([(3.0, 1), (1.0, 2), (2.0, 0), (3.0, 1)]).unwrap();
        assert_eq!(buckets.counts().collect::<Vec<_>>(), [(1.0, 2), (3.0, 2)]);
        assert_eq!(
            (
                buckets.total(),
                buckets.at_or_below(2.5),
                buckets.at_or_below(0.5)
            ),
            (4, 2, 0)
        );
        assert_eq!(
            (
                buckets.quantile(0.5),
                buckets.quantile(0.51),
                buckets.quantile(1.0)
            ),
            (1.0, 3.0, 3.0)
        );
        let hundred = Buckets::new((1..=100).map(|value| (f64::from(value), 1))).unwrap();
        assert_eq!(hundred.quantile(0.99), 99.0);
    }

    #[test]
    fn merging_equals_counting_together() {
        let one = Buckets::new([(1.0, 2), (4.0, 1)]).unwrap();
        let other = Buckets::new([(0.5, 1), (4.0, 3), (9.0, 1)]).unwrap();
        let together = Buckets::new(one.counts().chain(other.counts())).unwrap();
        assert_eq!(one.merged(&other), together);
        assert_eq!(other.merged(&one), together);
    }

    #[test]
    fn values_without_a_logarithm_are_refused() {
        assert!(Buckets::new([]).is_err());
        assert!(Buckets::new([(0.0, 1)]).is_err());
        assert!(Buckets::new([(f64::NAN, 1)]).is_err());
    }
}
