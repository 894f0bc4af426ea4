//! What a decision says: the verdict, its interval and what paid for it.

/// What the units seen so far allow to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The difference is above zero.
    Faster,
    /// The difference is below zero.
    Slower,
    /// The difference lies within the margin, and its sign is open.
    Equivalent,
    /// Nothing of this can be said. A normal result: print the interval and the detectable effect.
    Undecided,
}

/// Which share of the error budget paid for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The sign-flip test, within the declared number of units.
    WithinBudget,
    /// The e-process kept for duels that go on after the budget.
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
    /// An interval that is valid at every look is what all looks left over, so units that come late can
    /// move the mean of all out of it. What is excluded must not be stated as an estimate.
    #[must_use]
    pub fn nearest(&self, value: f64) -> f64 {
        value.max(self.low).min(self.high)
    }
}

/// The verdict with everything it rests on. Differences of logarithms stay logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// What may be said.
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
    /// What paid for the first verdict.
    pub method: Option<Method>,
}
