//! From the tests to a verdict with its interval.

use super::coins::Coins;
use super::confidence_set::{ShiftTest, confidence_set};
use super::flip_spend::{Rejection, Side};
use super::plan::SequentialPlan;
use super::unit::{Unit, mean_effect};
use super::verdict::{Decision, Interval, Method, Verdict};
use crate::error::{StatsError, at_least};

#[cfg(test)]
mod tests;

/// The tests of one pair and metric, carried along while units arrive.
///
/// Feeding the units one by one and calling [`decide`] on all of them give the same decision. With the default number of
/// paths a unit costs some 20 µs, whatever their number, and [`Decider::decision`], which tests some thirty effects on all
/// units again, 15 to 30 ms for 100 units, 40 to 60 ms for 300 and 80 to 150 ms for 1000 (on a 2-processor virtual machine).
#[derive(Debug, Clone)]
pub struct Decider {
    plan: SequentialPlan,
    coins: Coins,
    units: Vec<Unit>,
    zero: ShiftTest,
    /// Tests of minus and plus the margin; empty without a margin.
    margins: Option<[ShiftTest; 2]>,
}

impl Decider {
    /// Starts a duel.
    ///
    /// # Errors
    /// [`StatsError::Parameter`] for a plan that could never decide.
    pub fn new(plan: SequentialPlan) -> Result<Self, StatsError> {
        plan.check()?;
        Ok(Decider {
            plan,
            coins: Coins::new(plan.seed, plan.paths),
            units: Vec::new(),
            zero: ShiftTest::new(0.0, &plan),
            margins: (plan.margin > 0.0)
                .then(|| [-plan.margin, plan.margin].map(|shift| ShiftTest::new(shift, &plan))),
        })
    }

    /// Adds the next unit.
    ///
    /// # Errors
    /// [`StatsError::OutOfRange`], [`StatsError::NotPositive`] for a weight that is not, or [`StatsError::Shape`] for a unit of
    /// another sort than the first; the state is then unchanged.
    pub fn push(&mut self, unit: Unit) -> Result<(), StatsError> {
        let number = self.units.len();
        unit.check(number)?;
        unit.check_sort(self.units.first().unwrap_or(&unit), number)?;
        self.units.push(unit);
        self.coins.extend_to(number + 1);
        for test in self.margins.iter_mut().flatten().chain([&mut self.zero]) {
            test.push(&unit, &self.coins);
        }
        Ok(())
    }

    /// Number of units so far.
    #[must_use]
    pub fn n(&self) -> usize {
        self.units.len()
    }

    /// Whether a verdict has been reached, without the cost of the interval. [`Decider::decision`] may still withdraw
    /// it when no constant effect fits.
    #[must_use]
    pub fn has_verdict(&self) -> bool {
        self.direction().is_some() || self.equivalence().is_some()
    }

    /// The decision on all units so far.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] before the first unit.
    pub fn decision(&self) -> Result<Decision, StatsError> {
        at_least("paired differences", 1, self.units.len())?;
        let known: Vec<&ShiftTest> = self.margins.iter().flatten().chain([&self.zero]).collect();
        let set = confidence_set(&self.units, &self.plan, &self.coins, &known);
        let interval = set.map(|set| set.interval);
        let balance = set.and_then(|set| set.balance);
        let direction = self.direction();
        let equivalence = self.equivalence();
        let first = [direction.map(|(r, method)| (r.at, method)), equivalence]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at);
        // The tests at zero and at the margins bound the set from outside, so this only fails to agree
        // with them when no constant effect fits well; then nothing is claimed.
        let verdict = match (interval, direction, equivalence) {
            (
                Some(set),
                Some((
                    Rejection {
                        side: Side::Above, ..
                    },
                    _,
                )),
                _,
            ) if set.low >= 0.0 => Verdict::Faster,
            (
                Some(set),
                Some((
                    Rejection {
                        side: Side::Below, ..
                    },
                    _,
                )),
                _,
            ) if set.high <= 0.0 => Verdict::Slower,
            (Some(set), None, Some(_)) if self.is_within_margin(set) => Verdict::Equivalent,
            _ => Verdict::Undecided,
        };
        let stands = verdict != Verdict::Undecided;
        Ok(Decision {
            verdict,
            within_margin: stands && interval.is_some_and(|set| self.is_within_margin(set)),
            interval,
            estimate: balance.unwrap_or_else(|| mean_effect(&self.units)),
            is_balanced: balance.is_some(),
            n: self.units.len(),
            decided_at: first.filter(|_| stands).map(|(at, _)| at),
            method: first.filter(|_| stands).map(|(_, method)| method),
        })
    }

    fn is_within_margin(&self, set: Interval) -> bool {
        -self.plan.margin <= set.low && set.high <= self.plan.margin
    }

    /// When and how "no difference" was rejected.
    fn direction(&self) -> Option<(Rejection, Method)> {
        self.zero.rejection()
    }

    /// When and how both ends of the equivalence zone were excluded, the data lying between them.
    fn equivalence(&self) -> Option<(usize, Method)> {
        let [below, above] = self.margins.as_ref()?;
        let (below, method_below) = below.rejection()?;
        let (above, method_above) = above.rejection()?;
        if below.side != Side::Above || above.side != Side::Below {
            return None;
        }
        Some(if below.at >= above.at {
            (below.at, method_below)
        } else {
            (above.at, method_above)
        })
    }
}

/// The decision on a whole duel, from its units in the order they were measured.
///
/// # Errors
/// [`StatsError::TooFew`] without any unit, [`StatsError::OutOfRange`] for a NaN, an infinity (a contender that
/// completed nothing) or a number too large to compute with, [`StatsError::NotPositive`] for a weight that is not, or where
/// their sum is not, [`StatsError::Parameter`] for a plan that could never decide. Fewer units than the first look are no error: the verdict is `Undecided`, the interval
/// unbounded.
pub fn decide(units: &[Unit], plan: &SequentialPlan) -> Result<Decision, StatsError> {
    let mut decider = Decider::new(*plan)?;
    for unit in units {
        decider.push(*unit)?;
    }
    decider.decision()
}
