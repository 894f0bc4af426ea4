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
    /// The value of the interval that is nearest to `value`.
    ///
    /// An interval that is valid at every look is the intersection of all looks, so late units can move the overall
    /// mean out of it. An excluded value must not be stated as an estimate.
    #[must_use]
    pub fn nearest(&self, value: f64) -> f64 {
        value.max(self.low).min(self.high)
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
    /// Mean of the differences, or log ratio of the totals; where that is outside of the interval, the end next to it. Of totals it
    /// is infinite while one of the two contenders has completed nothing.
    pub estimate: f64,
    /// Number of units seen.
    pub n: usize,
    /// Number of units after which a verdict first stood.
    pub decided_at: Option<usize>,
    /// The test that reached the first verdict.
    pub method: Option<Method>,
}
