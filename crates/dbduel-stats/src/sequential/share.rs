//! Share of a part in a whole effect, by inversion.

use super::balance::balance;
use super::coins::Coins;
use super::confidence_set::ShiftTest;
use super::flip_spend::Side;
use super::plan::SequentialPlan;
use super::unit::{Unit, check_all, mean_effect};
use super::verdict::Interval;
use crate::error::StatsError;

/// Ends of an interval of shares are located to this precision.
const END_PRECISION: f64 = 1e-3;

/// Upper bound of halvings per end; reached only where shares are so large that their neighbours are further apart.
const HALVINGS_MAX: usize = 60;

/// Doublings of the distance from the estimate within which an end is searched.
const DOUBLINGS: i32 = 10;

/// The shares that no look at the units has excluded: those for which "the part less this share of the whole is symmetric about
/// zero" was not rejected (the inversion of Fieller 1954, with the sequential test in place of Student's). `part` and `whole`
/// are differences of the same units.
///
/// # Errors
/// A unit that cannot be computed with, units of different number, or a plan that could never decide.
pub fn share_of_whole(
    part: &[Unit],
    whole: &[Unit],
    plan: &SequentialPlan,
) -> Result<WholeShare, StatsError> {
    plan.check()?;
    check_all(part)?;
    check_all(whole)?;
    let mut all = part.iter().chain(whole);
    if all.any(|unit| unit.difference().is_none()) {
        return Err(StatsError::Shape {
            what: "units of a part and of its whole",
            problem: "totals; a share is defined for differences only".to_owned(),
        });
    }
    if part.len() != whole.len() {
        return Err(StatsError::Shape {
            what: "units of a part and of its whole",
            problem: format!("{} and {}", part.len(), whole.len()),
        });
    }
    let mut coins = Coins::new(plan.seed, plan.paths);
    coins.extend_to(whole.len());
    let inversion = Inversion {
        part,
        whole,
        plan,
        coins: &coins,
    };
    let nothing = |unit: &Unit| Unit::new(0.0, unit.weight);
    let no_part: Vec<Unit> = whole.iter().map(nothing).collect();
    let is_whole_open = Inversion {
        part: &no_part,
        ..inversion
    }
    .accepts(1.0);
    if is_whole_open {
        return Ok(WholeShare::OfNothing);
    }
    let value = mean_effect(part) / mean_effect(whole);
    let inside = [value, 1.0, 0.0]
        .into_iter()
        .find(|share| inversion.accepts(*share));
    Ok(match inside {
        None => WholeShare::NotConstant,
        Some(inside) => {
            let interval = Interval {
                low: inversion.end(inside, -1.0),
                high: inversion.end(inside, 1.0),
            };
            WholeShare::Estimated(Share {
                value: match interval.excludes(value) {
                    true => inversion.balance(interval),
                    false => value,
                },
                interval,
            })
        }
    })
}

/// Result of the estimation of a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WholeShare {
    /// The shares that no look has excluded.
    Estimated(Share),
    /// The whole itself may be zero, so no share is defined.
    OfNothing,
    /// Every share has been rejected: it changed during the run.
    NotConstant,
}

/// A share with its interval, valid at every look at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Mean of the part over the mean of the whole, or where the interval excludes it, the share at which the tests are equally far
    /// from a rejection on either side.
    pub value: f64,
    /// Shares that no look has excluded; infinite ends where nothing bounds them.
    pub interval: Interval,
}

/// The search for the shares that the units do not reject.
#[derive(Clone, Copy)]
struct Inversion<'a> {
    part: &'a [Unit],
    whole: &'a [Unit],
    plan: &'a SequentialPlan,
    coins: &'a Coins,
}

impl Inversion<'_> {
    /// Tests the part less this share of the whole, stopping at a rejection.
    fn test(&self, share: f64) -> ShiftTest {
        let mut test = ShiftTest::new(0.0, self.plan);
        for (part, whole) in self.part.iter().zip(self.whole) {
            let [one, other] = [part, whole].map(Unit::own_effect);
            let rest = Unit::new(one - share * other, part.weight);
            test.push(&rest, self.coins);
            if test.rejection().is_some() {
                break;
            }
        }
        test
    }

    fn accepts(&self, share: f64) -> bool {
        self.test(share).rejection().is_none()
    }

    /// The balance of the tests in the interval.
    fn balance(&self, interval: Interval) -> f64 {
        let furthest = 0.1 * 2.0_f64.powi(DOUBLINGS);
        let low = match interval.low.is_finite() {
            true => interval.low,
            false => interval.high - furthest,
        };
        let high = match interval.high.is_finite() {
            true => interval.high,
            false => interval.low + furthest,
        };
        // The tests give the sign of the whole: a late unit may turn that of its mean, beside which all looks stay as they were.
        let is_loss = match interval.low.is_finite() {
            true => self.test(interval.low).nearer_side() == Side::Below,
            false => self.test(interval.high).nearer_side() == Side::Above,
        };
        balance(low, high, END_PRECISION, |share| {
            match (self.test(share).nearer_side(), is_loss) {
                (Side::Above, false) | (Side::Below, true) => Side::Above,
                (Side::Below, false) | (Side::Above, true) => Side::Below,
            }
        })
    }

    /// The end in this direction from an accepted share; the rejected side of it, so that the interval errs outwards.
    fn end(&self, inside: f64, direction: f64) -> f64 {
        let at = |doubling: i32| inside + direction * 0.1 * 2.0_f64.powi(doubling);
        let Some(first) = (0..DOUBLINGS).find(|doubling| !self.accepts(at(*doubling))) else {
            return direction * f64::INFINITY;
        };
        let mut rejected = at(first);
        let mut kept = if first == 0 { inside } else { at(first - 1) };
        for _ in 0..HALVINGS_MAX {
            if (rejected - kept).abs() <= END_PRECISION {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn units(seed: u64, share: f64, whole: f64, n: usize) -> [Vec<Unit>; 2] {
        let mut random = RandomStream::new(seed, 12);
        let pairs = (0..n).map(|_| {
            let (one, other) = (random.normal(), random.normal());
            (
                Unit::new(share * whole + 0.1 * one, 1.0),
                Unit::new(whole + 0.1 * other, 1.0),
            )
        });
        let (part, whole) = pairs.unzip();
        [part, whole]
    }

    fn estimated(part: &[Unit], whole: &[Unit], plan: &SequentialPlan) -> Share {
        match share_of_whole(part, whole, plan) {
            Ok(WholeShare::Estimated(share)) => share,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_interval_holds_the_true_share_and_narrows() {
        let mut held = 0;
        for seed in 0..60 {
            let [part, whole] = units(seed, 0.9, 0.5, 30);
            let plan = SequentialPlan::new(30.0, 0.05, 0.0, seed);
            let share = estimated(&part, &whole, &plan);
            let Interval { low, high } = share.interval;
            assert!(
                low < share.value && share.value < high && high - low < 0.6,
                "{share:?}"
            );
            held += u32::from(low < 0.9 && 0.9 < high);
        }
        // 99.9 % point of 60 trials at 5 %.
        assert!(held >= 51, "{held} of 60");
    }

    #[test]
    fn a_late_unit_that_turns_the_whole_leaves_the_share_inside_its_interval() {
        for sign in [1.0, -1.0] {
            let (mut part, mut whole) = (Vec::new(), Vec::new());
            for number in 0..14 {
                let of_whole = 0.05 + 0.002 * f64::from(number % 5);
                let of_part = of_whole + 0.01 * (f64::from(number % 3) - 1.0);
                part.push(Unit::new(sign * of_part, 1.0));
                whole.push(Unit::new(sign * of_whole, 1.0));
            }
            part.push(Unit::new(sign * 0.05, 1.0));
            whole.push(Unit::new(sign * -0.95, 1.0));
            let plan = SequentialPlan::new(20.0, 0.05, 0.0, 1);
            let share = estimated(&part, &whole, &plan);
            let Interval { low, high } = share.interval;
            // The search without a balance runs to one of the ends.
            let to_end = (share.value - low).min(high - share.value);
            assert!(to_end > 2.0 * END_PRECISION, "{sign}: {share:?}");
            assert!((share.value - 1.0).abs() < 0.2, "{sign}: {share:?}");
        }
    }

    #[test]
    fn of_nothing_there_is_no_share() {
        let [part, whole] = units(3, 0.5, 0.0, 30);
        let plan = SequentialPlan::new(30.0, 0.05, 0.0, 1);
        let share = share_of_whole(&part, &whole, &plan);
        assert_eq!(share, Ok(WholeShare::OfNothing));
        assert!(share_of_whole(&part[1..], &whole, &plan).is_err());
    }

    #[test]
    fn a_share_that_changes_during_the_run_is_no_share() {
        let [mut part, whole] = units(3, 1.0, 0.5, 40);
        for unit in &mut part[20..] {
            *unit = Unit::new(-unit.own_effect(), unit.weight);
        }
        let plan = SequentialPlan::new(40.0, 0.05, 0.0, 1);
        let share = share_of_whole(&part, &whole, &plan);
        assert_eq!(share, Ok(WholeShare::NotConstant));
    }

    #[test]
    fn a_part_that_is_the_whole_has_the_share_of_one() {
        let [_, whole] = units(3, 1.0, 0.5, 30);
        let plan = SequentialPlan::new(30.0, 0.05, 0.0, 1);
        let share = estimated(&whole, &whole, &plan);
        assert_eq!(share.value, 1.0);
        assert!(
            (share.interval.low - 1.0).abs() < 0.002 && (share.interval.high - 1.0).abs() < 0.002
        );
    }
}
