//! The type of every result: a value, its interval and the number of observations.

/// A value with an interval that holds the truth with the stated confidence, and its number of observations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; `+∞` where the data cannot bound the value from above.
    pub high: f64,
    /// Number of observations behind it.
    pub n: usize,
}

impl Estimate {
    /// Both ends and the value after a strictly increasing map, such as `exp` for log ratios.
    #[must_use]
    pub fn map_increasing(self, map: impl Fn(f64) -> f64) -> Estimate {
        Estimate {
            value: map(self.value),
            low: map(self.low),
            high: map(self.high),
            n: self.n,
        }
    }

    /// Whether `value` lies in the interval, ends included; never for a NaN.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
