//! Confidence set by inversion: the effects that neither test has rejected so far.
//!
//! A hypothesis "the effect is δ" is tested on the units shifted by δ, with the coins that every other δ sees. What is
//! rejected once stays rejected, so the set does not grow while units arrive, apart from the resolution of the
//! simulated paths: that is what makes peeking harmless.

use super::balance::balance;
use super::coins::Coins;
use super::flip_spend::{FlipSpend, Rejection, Side};
use super::plan::SequentialPlan;
use super::sign_e_process::SignEProcess;
use super::unit::{Unit, mean_effect, standard_error};
use super::verdict::{Interval, Method};
use crate::moments::median;

/// Effects tried when the mean itself has been rejected, before the set is called empty.
const RESCUE_POINTS: usize = 64;

/// Parts of the units whose means are tried before that.
const RESCUE_MEANS: usize = 8;

/// Distances outside the effects that units show at which further effects are tried. With equal weights every effect
/// out there gives the same outcome, in practice, and one probe answers for all; with unequal weights the first of
/// them may be accepted, since only further out all units count by nothing but their weights.
const REACHES: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];

/// Ends are located to this fraction of the standard error of the mean.
const END_PRECISION: f64 = 5e-3;

/// Upper bound of halvings per end; reached only when all units are equal.
const HALVINGS_MAX: usize = 60;

/// Both tests of the hypothesis "the effect is `shift`".
#[derive(Debug, Clone)]
pub(super) struct ShiftTest {
    shift: f64,
    within_budget: FlipSpend,
    reserve: SignEProcess,
}

impl ShiftTest {
    pub(super) fn new(shift: f64, plan: &SequentialPlan) -> Self {
        ShiftTest {
            shift,
            within_budget: FlipSpend::new(plan, plan.alpha_within_budget()),
            reserve: SignEProcess::new(plan.alpha_reserve()),
        }
    }

    /// Adds the next unit; the rows of coins up to it must exist.
    pub(super) fn push(&mut self, unit: &Unit, coins: &Coins) {
        let shifted = unit.without(self.shift);
        self.within_budget.push(shifted, unit.weight, coins);
        self.reserve.push(shifted);
    }

    /// The first rejection by either test, and the test.
    pub(super) fn rejection(&self) -> Option<(Rejection, Method)> {
        let budget = self
            .within_budget
            .rejection()
            .map(|r| (r, Method::WithinBudget));
        let reserve = self.reserve.rejection().map(|r| (r, Method::Reserve));
        match (budget, reserve) {
            (Some(a), Some(b)) => Some(if b.0.at < a.0.at { b } else { a }),
            (one, other) => one.or(other),
        }
    }

    /// The side of the data at the rejection, or where there is none, at the look that came nearest to one.
    pub(super) fn nearer_side(&self) -> Side {
        let rejected = self.rejection().map(|(found, _)| found.side);
        rejected.unwrap_or_else(|| {
            let budget = self.within_budget.limit_shares();
            budget.larger(self.reserve.limit_shares()).nearer_side()
        })
    }
}

/// The effects that no look has rejected.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfidenceSet {
    /// Its ends, infinite while nothing could be rejected.
    pub(super) interval: Interval,
    /// The effect at which both tests are equally near to a rejection on either side; only where the interval excludes the
    /// effect of all units together.
    pub(super) balance: Option<f64>,
}

/// The confidence set after `units` (at least one). `None` when every effect has been rejected: no constant effect fits
/// the units.
///
/// `known` are tests already carried along, whose rejections bound the set from outside.
pub(super) fn confidence_set(
    units: &[Unit],
    plan: &SequentialPlan,
    coins: &Coins,
    known: &[&ShiftTest],
) -> Option<ConfidenceSet> {
    let inversion = Inversion { units, plan, coins };
    let inside = inversion.accepted_point()?;
    let interval = Interval {
        low: inversion.end(inside, Side::Above, known),
        high: inversion.end(inside, Side::Below, known),
    };
    Some(ConfidenceSet {
        interval,
        balance: interval
            .excludes(mean_effect(units))
            .then(|| inversion.balance(interval)),
    })
}

/// The search for the effects that the units do not reject.
struct Inversion<'a> {
    units: &'a [Unit],
    plan: &'a SequentialPlan,
    coins: &'a Coins,
}

impl Inversion<'_> {
    /// Replays all units against one hypothesis, stopping at its rejection.
    fn test(&self, shift: f64) -> ShiftTest {
        let mut test = ShiftTest::new(shift, self.plan);
        for unit in self.units {
            test.push(unit, self.coins);
            if test.rejection().is_some() {
                break;
            }
        }
        test
    }

    fn accepts(&self, shift: f64) -> bool {
        self.test(shift).rejection().is_none()
    }

    /// The balance of the tests in the interval. Beyond all effects that units show, every look has the data on one side, so
    /// there it is sought no further.
    fn balance(&self, interval: Interval) -> f64 {
        let (smallest, largest) = self.range();
        let reach = REACHES[0] * self.reach(interval.low.max(-interval.high));
        let low = match interval.low.is_finite() {
            true => interval.low,
            false => smallest.min(interval.high) - reach,
        };
        let high = match interval.high.is_finite() {
            true => interval.high,
            false => largest.max(interval.low) + reach,
        };
        let precision = self.precision() + 1e-12 * reach;
        balance(low, high, precision, |shift| self.test(shift).nearer_side())
    }

    /// The finite effects that single units show.
    fn own_effects(&self) -> impl Iterator<Item = f64> {
        let effects = self.units.iter().map(Unit::own_effect);
        effects.filter(|effect| effect.is_finite())
    }

    /// The smallest and the largest of them; zero for both where there are none.
    fn range(&self) -> (f64, f64) {
        let smallest = self.own_effects().fold(f64::INFINITY, f64::min);
        let largest = self.own_effects().fold(f64::NEG_INFINITY, f64::max);
        if smallest <= largest {
            (smallest, largest)
        } else {
            (0.0, 0.0)
        }
    }

    /// Width of that range, or where it is smaller, a distance that is still a difference from `near`.
    fn reach(&self, near: f64) -> f64 {
        let (smallest, largest) = self.range();
        (largest - smallest).max(1e-9 + 1e-6 * near.abs())
    }

    /// The mean, or when an early look has rejected it, another value between the units: the median and
    /// the means of the first units, which a late extreme one has not moved, then any.
    fn accepted_point(&self) -> Option<f64> {
        let n = self.units.len();
        let early = (1..RESCUE_MEANS).rev().map(|part| n * part / RESCUE_MEANS);
        let early = early.map(|count| mean_effect(&self.units[..count]));
        let (smallest, largest) = self.range();
        let step = (largest - smallest) / RESCUE_POINTS as f64;
        let between = (0..=RESCUE_POINTS).map(|number| smallest + step * number as f64);
        [
            mean_effect(self.units),
            median(&mut self.own_effects().collect::<Vec<_>>()).unwrap_or(f64::NAN),
        ]
        .into_iter()
        .chain(early)
        .chain(between)
        .filter(|effect| effect.is_finite())
        .find(|shift| self.accepts(*shift))
    }

    /// The end of the set beyond which the data lie on the given side, by bisection between a rejected
    /// value and the accepted `inside`. The rejected value is returned, so the set errs outwards.
    fn end(&self, inside: f64, side: Side, known: &[&ShiftTest]) -> f64 {
        let (smallest, largest) = self.range();
        let reach = self.reach(inside);
        let outside = |times: f64| match side {
            Side::Above => smallest - times * reach,
            Side::Below => largest + times * reach,
        };
        let Some(outermost) = REACHES
            .map(outside)
            .into_iter()
            .find(|at| !self.accepts(*at))
        else {
            return match side {
                Side::Above => f64::NEG_INFINITY,
                Side::Below => f64::INFINITY,
            };
        };
        let distance = |shift: f64| match side {
            Side::Above => inside - shift,
            Side::Below => shift - inside,
        };
        let mut rejected = known
            .iter()
            .filter(|test| {
                test.rejection()
                    .is_some_and(|(found, _)| found.side == side)
            })
            .map(|test| test.shift)
            .filter(|shift| distance(*shift) > 0.0)
            .fold(outermost, |nearest, shift| {
                if distance(shift) < distance(nearest) {
                    shift
                } else {
                    nearest
                }
            });
        let mut kept = inside;
        let precision = self.precision() + 1e-12 * reach;
        for _ in 0..HALVINGS_MAX {
            if (kept - rejected).abs() <= precision {
                break;
            }
            let middle = 0.5 * (kept + rejected);
            if self.accepts(middle) {
                kept = middle;
            } else {
                rejected = middle;
            }
        }
        rejected
    }

    fn precision(&self) -> f64 {
        if self.units.len() < 2 {
            return 0.0;
        }
        let precision = END_PRECISION * standard_error(self.units);
        if precision.is_finite() {
            precision
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    /// The set by brute force: the outermost of 400 points that no test rejects.
    fn hull(units: &[Unit], plan: &SequentialPlan, coins: &Coins) -> (f64, f64) {
        let inversion = Inversion { units, plan, coins };
        let reach = 4.0 * standard_error(units) * (units.len() as f64).sqrt();
        let points =
            (0..=400).map(|step| mean_effect(units) + reach * (f64::from(step) / 200.0 - 1.0));
        let accepted: Vec<f64> = points.filter(|shift| inversion.accepts(*shift)).collect();
        (accepted[0], accepted[accepted.len() - 1])
    }

    #[test]
    fn bisection_finds_the_hull_of_what_is_not_rejected() {
        let mut inside = 0;
        for seed in 0..20 {
            let mut random = RandomStream::new(seed, 5);
            let units: Vec<f64> = (0..30).map(|_| 0.3 + random.normal()).collect();
            let units = Unit::of_weight_one(&units);
            let plan = SequentialPlan::new(40.0, 0.05, 0.0, seed);
            let mut coins = Coins::new(seed, plan.paths);
            coins.extend_to(units.len());
            let set = confidence_set(&units, &plan, &coins, &[]).unwrap();
            let Interval { low, high } = set.interval;
            let (hull_low, hull_high) = hull(&units, &plan, &coins);
            let standard_error = standard_error(&units);
            // Earlier looks leave the border slightly ragged: isolated points outside are accepted.
            assert!(
                (low - hull_low).abs() < 0.3 * standard_error,
                "{seed}: {low} {hull_low}"
            );
            assert!(
                (high - hull_high).abs() < 0.3 * standard_error,
                "{seed}: {high} {hull_high}"
            );
            let close = |a: f64, b: f64| (a - b).abs() < 0.15 * standard_error;
            inside += usize::from(close(low, hull_low) && close(high, hull_high));
        }
        assert!(inside >= 15, "{inside}");
    }

    #[test]
    fn the_balance_lies_in_the_middle_also_of_an_open_interval() {
        for seed in 0..10 {
            let mut random = RandomStream::new(seed, 8);
            let units: Vec<f64> = (0..20).map(|_| 0.3 + random.normal()).collect();
            let units = Unit::of_weight_one(&units);
            let plan = SequentialPlan::new(20.0, 0.05, 0.0, seed);
            let mut coins = Coins::new(seed, plan.paths);
            coins.extend_to(units.len());
            let inversion = Inversion {
                units: &units,
                plan: &plan,
                coins: &coins,
            };
            let set = confidence_set(&units, &plan, &coins, &[]).unwrap();
            let Interval { low, high } = set.interval;
            let closed = inversion.balance(set.interval);
            let place = (closed - low) / (high - low);
            assert!((0.2..0.8).contains(&place), "{seed}: {closed} {set:?}");
            for open in [(low, f64::INFINITY), (f64::NEG_INFINITY, high)] {
                let (low, high) = open;
                let balance = inversion.balance(Interval { low, high });
                let error = (balance - closed).abs();
                assert!(
                    error < 0.02 * standard_error(&units),
                    "{seed}: {balance} {closed}"
                );
            }
        }
    }

    #[test]
    fn far_outside_all_units_every_effect_has_the_same_outcome() {
        for n in 7..=20 {
            for shape in 0..4 {
                let mut random = RandomStream::new(n, 6);
                let mut units: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                match shape {
                    1 => units[0] = 30.0,
                    2 => units
                        .iter_mut()
                        .enumerate()
                        .for_each(|(at, unit)| *unit += at as f64),
                    3 => units
                        .iter_mut()
                        .skip(1)
                        .step_by(2)
                        .for_each(|unit| *unit -= 5.0),
                    _ => {}
                }
                let units = Unit::of_weight_one(&units);
                let plan = SequentialPlan::new(20.0, 0.05, 0.0, n);
                let mut coins = Coins::new(n, plan.paths);
                coins.extend_to(units.len());
                let inversion = Inversion {
                    units: &units,
                    plan: &plan,
                    coins: &coins,
                };
                let (smallest, largest) = inversion.range();
                let reach = largest - smallest;
                let outcomes = [1.0, 1.5, 2.0, 5.0, 100.0].map(|times| {
                    [smallest - times * reach, largest + times * reach]
                        .map(|shift| inversion.accepts(shift))
                });
                assert!(
                    outcomes.iter().all(|outcome| *outcome == outcomes[0]),
                    "{n} {shape}: {outcomes:?}"
                );
            }
        }
    }
}
