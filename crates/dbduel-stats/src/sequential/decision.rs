//! From the tests to a verdict with its interval.

use super::coins::Coins;
use super::confidence_set::{ShiftTest, confidence_set};
use super::flip_spend::{Rejection, Side};
use super::plan::SequentialPlan;
use super::verdict::{Decision, Interval, Method, Verdict};
use crate::error::{StatsError, all_finite, at_least, finite};
use crate::moments::mean;

/// The tests of one pair and metric, carried along while units arrive.
///
/// Feeding the units one by one and calling [`decide`] on all of them give the same decision.
#[derive(Debug, Clone)]
pub struct Decider {
    plan: SequentialPlan,
    coins: Coins,
    differences: Vec<f64>,
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
            differences: Vec::new(),
            zero: ShiftTest::new(0.0, &plan),
            margins: (plan.margin > 0.0)
                .then(|| [-plan.margin, plan.margin].map(|shift| ShiftTest::new(shift, &plan))),
        })
    }

    /// Adds the next unit's difference.
    ///
    /// # Errors
    /// [`StatsError::OutOfRange`]; the state is then unchanged.
    pub fn push(&mut self, difference: f64) -> Result<(), StatsError> {
        let number = self.differences.len();
        finite("paired differences", number, difference)?;
        self.differences.push(difference);
        self.coins.extend_to(number + 1);
        for test in self.margins.iter_mut().flatten().chain([&mut self.zero]) {
            test.push(difference, &self.coins);
        }
        Ok(())
    }

    /// Number of units so far.
    #[must_use]
    pub fn n(&self) -> usize {
        self.differences.len()
    }

    /// Whether a verdict stands, without the cost of the interval. [`Decider::decision`] may still
    /// withdraw it when no constant effect fits.
    #[must_use]
    pub fn has_verdict(&self) -> bool {
        self.direction().is_some() || self.equivalence().is_some()
    }

    /// The decision on all units so far.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] before the first unit.
    pub fn decision(&self) -> Result<Decision, StatsError> {
        at_least("paired differences", 1, self.differences.len())?;
        let known: Vec<&ShiftTest> = self.margins.iter().flatten().chain([&self.zero]).collect();
        let interval = confidence_set(&self.differences, &self.plan, &self.coins, &known)
            .map(|(low, high)| Interval { low, high });
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
            estimate: {
                let centre = mean(&self.differences);
                interval.map_or(centre, |interval| interval.nearest(centre))
            },
            n: self.differences.len(),
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

/// The decision on a whole duel, from its differences in the order they were measured.
///
/// # Errors
/// [`StatsError::TooFew`] without any unit, [`StatsError::OutOfRange`] for a NaN, an infinity (a contender that
/// completed nothing) or a number too large to compute with, [`StatsError::Parameter`] for a plan that could
/// never decide. Fewer units than the first look are no error: the verdict is `Undecided`, the interval
/// unbounded.
pub fn decide(differences: &[f64], plan: &SequentialPlan) -> Result<Decision, StatsError> {
    at_least("paired differences", 1, differences.len())?;
    all_finite("paired differences", differences)?;
    let mut decider = Decider::new(*plan)?;
    for difference in differences {
        decider.push(*difference)?;
    }
    decider.decision()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn noise(seed: u64, n: usize, centre: f64, spread: f64) -> Vec<f64> {
        let mut random = RandomStream::new(seed, 77);
        (0..n).map(|_| centre + spread * random.normal()).collect()
    }

    #[test]
    fn a_clear_gain_is_called_faster_as_soon_as_the_coins_allow() {
        let plan = SequentialPlan::new(56, 0.05, 0.02, 1);
        let decision = decide(&noise(1, 12, 0.10, 0.01), &plan).unwrap();
        assert_eq!(decision.verdict, Verdict::Faster);
        assert_eq!(decision.decided_at, Some(9));
        assert_eq!(decision.method, Some(Method::WithinBudget));
        let interval = decision.interval.unwrap();
        assert!(
            0.08 < interval.low
                && interval.low < 0.10
                && 0.10 < interval.high
                && interval.high < 0.12
        );
    }

    #[test]
    fn the_estimate_never_stands_outside_of_its_interval() {
        let plan = SequentialPlan::new(20, 0.05, 0.02, 3);
        let mut is_mean_outside_once = false;
        for seed in 0..20 {
            let mut units = noise(seed, 16, 0.0, 0.01);
            // One block in which a contender hung.
            units.push(-3.0);
            let decision = decide(&units, &plan).unwrap();
            let Some(interval) = decision.interval else {
                continue;
            };
            assert!(
                interval.low <= decision.estimate && decision.estimate <= interval.high,
                "{decision:?}"
            );
            is_mean_outside_once |= mean(&units) < interval.low;
        }
        assert!(is_mean_outside_once, "the case that this is about comes up");
    }

    #[test]
    fn turning_the_sign_mirrors_the_decision() {
        let plan = SequentialPlan::new(56, 0.05, 0.02, 1);
        let units = noise(2, 20, 0.05, 0.02);
        let turned: Vec<f64> = units.iter().map(|unit| -unit).collect();
        let (one, other) = (
            decide(&units, &plan).unwrap(),
            decide(&turned, &plan).unwrap(),
        );
        assert_eq!(
            (one.verdict, other.verdict),
            (Verdict::Faster, Verdict::Slower)
        );
        let (one, other) = (one.interval.unwrap(), other.interval.unwrap());
        assert!((one.low + other.high).abs() < 1e-4 && (one.high + other.low).abs() < 1e-4);
    }

    #[test]
    fn quiet_equal_contenders_are_equivalent() {
        let plan = SequentialPlan::new(56, 0.05, 0.02, 1);
        let decision = decide(&noise(3, 30, 0.0, 0.01), &plan).unwrap();
        assert_eq!(decision.verdict, Verdict::Equivalent);
        let interval = decision.interval.unwrap();
        assert!(-0.02 < interval.low && interval.high < 0.02);
    }

    #[test]
    fn few_units_are_undecided_with_an_unbounded_interval() {
        let plan = SequentialPlan::new(56, 0.05, 0.02, 1);
        let decision = decide(&[0.3, 0.3], &plan).unwrap();
        assert_eq!(decision.verdict, Verdict::Undecided);
        let unbounded = Interval {
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
        assert_eq!(decision.interval, Some(unbounded));
        assert_eq!(decision.decided_at, None);
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        let plan = SequentialPlan::new(56, 0.05, 0.02, 1);
        assert!(matches!(decide(&[], &plan), Err(StatsError::TooFew { .. })));
        assert!(matches!(
            decide(&[0.1, f64::NEG_INFINITY], &plan),
            Err(StatsError::OutOfRange { index: 1, .. })
        ));
        for bad in [
            SequentialPlan { alpha: 0.0, ..plan },
            SequentialPlan {
                alpha: f64::NAN,
                ..plan
            },
            SequentialPlan { n_max: 0, ..plan },
            SequentialPlan {
                margin: -0.1,
                ..plan
            },
            SequentialPlan { paths: 10, ..plan },
        ] {
            assert!(
                matches!(decide(&[0.1], &bad), Err(StatsError::Parameter { .. })),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn equal_units_collapse_the_interval_onto_their_value() {
        let plan = SequentialPlan::new(56, 0.05, 0.02, 1);
        let decision = decide(&[0.01; 20], &plan).unwrap();
        assert_eq!(decision.verdict, Verdict::Faster);
        assert!(decision.within_margin);
        let interval = decision.interval.unwrap();
        assert!(
            (interval.low - 0.01).abs() < 1e-6 && (interval.high - 0.01).abs() < 1e-6,
            "{interval:?}"
        );
        assert_eq!(
            decide(&[0.0; 20], &plan).unwrap().verdict,
            Verdict::Equivalent
        );
    }

    #[test]
    fn a_ratio_that_jumps_leaves_no_constant_effect() {
        let plan = SequentialPlan::new(56, 0.05, 0.02, 1);
        let mut units = noise(4, 20, 0.10, 0.005);
        units.extend(noise(5, 36, -0.10, 0.005));
        let decision = decide(&units, &plan).unwrap();
        assert_eq!(
            (decision.verdict, decision.interval),
            (Verdict::Undecided, None)
        );
    }

    #[test]
    fn only_the_reserve_decides_after_the_budget() {
        let plan = SequentialPlan::new(20, 0.05, 0.0, 1);
        let mut units = noise(6, 20, 0.0, 1.0);
        assert_eq!(decide(&units, &plan).unwrap().verdict, Verdict::Undecided);
        units.extend(noise(7, 60, 1.0, 1.0));
        let decision = decide(&units, &plan).unwrap();
        assert_eq!(
            (decision.verdict, decision.method),
            (Verdict::Faster, Some(Method::Reserve))
        );
    }

    #[test]
    fn the_interval_never_grows_while_units_arrive() {
        let plan = SequentialPlan::new(40, 0.05, 0.02, 9);
        let mut decider = Decider::new(plan).unwrap();
        let mut before = Interval {
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
        for unit in noise(8, 40, 0.01, 0.05) {
            // A tenth of a standard error: the resolution that 4999 paths give to an end.
            let slack = 0.1 * 0.05 / (decider.differences.len() as f64 + 1.0).sqrt();
            decider.push(unit).unwrap();
            let now = decider.decision().unwrap().interval.unwrap();
            assert!(
                now.low >= before.low - slack && now.high <= before.high + slack,
                "{now:?} {before:?}"
            );
            before = now;
        }
    }

    #[test]
    fn feeding_one_by_one_equals_replaying() {
        let plan = SequentialPlan::new(40, 0.05, 0.02, 9);
        let units = noise(10, 25, 0.02, 0.03);
        let mut decider = Decider::new(plan).unwrap();
        for unit in &units {
            decider.push(*unit).unwrap();
        }
        assert_eq!(decider.decision().unwrap(), decide(&units, &plan).unwrap());
    }
}
