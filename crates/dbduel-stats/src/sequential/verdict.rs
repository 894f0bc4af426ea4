//! Content of a decision: the verdict, its interval and the test that decided.

/// Verdict from the units seen so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The difference is above zero.
    Faster,
    /// The difference is below zero.
    Slower,
    /// The difference lies within the margin, and its sign is undecided.
    Equivalent,
    /// None of these. A normal result: print the interval and the detectable effect.
    Undecided,
}

/// The share of the error budget that a decision used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The sign-flip test, within the declared number of units.
    WithinBudget,
    /// The e-process, reserved for duels that continue after the budget.
    Reserve,
}

/// Ends of a confidence set; infinite while nothing can be excluded on that side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether `value` is a finite end of the interval, or lies outside of it; never where the interval is one value.
    ///
    /// An interval that is valid at every look is the intersection of all looks, so late units can move the overall
    /// mean out of it. An excluded value must not be stated as an estimate.
    #[must_use]
    pub fn excludes(&self, value: f64) -> bool {
        let is_below = self.low.is_finite() && value <= self.low;
        let is_above = self.high.is_finite() && value >= self.high;
        is_below != is_above
    }
}

/// The verdict with its evidence. Differences of logarithms stay logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Every effect in the interval lies within the margin. With `Faster`: faster, by less than it.
    pub within_margin: bool,
    /// Confidence interval, valid at every look at once. `None`: no constant effect fits the units, so
    /// the ratio changed during the duel, and the verdict is `Undecided`.
    pub interval: Option<Interval>,
    /// Mean of the differences, or log ratio of the totals. Of totals it is infinite while one of the two contenders has
    /// completed nothing. Where the interval excludes it, the effect at which both tests are equally far from a rejection on either
    /// side (`is_balanced`).
    pub estimate: f64,
    /// Earlier looks exclude the effect of all units together, and the estimate is the balance of the tests.
    pub is_balanced: bool,
    /// Number of units seen.
    pub n: usize,
    /// Number of units after which a verdict first stood.
    pub decided_at: Option<usize>,
    /// The test that reached the first verdict.
    pub method: Option<Method>,
}
