//! Search for the change in a series of revisions whose tests can be wrong.
//!
//! A binary search ends at a wrong place after a single wrong answer. Here each place has a weight: the probability that the
//! change is there, given all answers (Burnashev and Zigangirov, 1974; Karp and Kleinberg, 2007). An answer multiplies the
//! places that contradict it by its probability of error ε, and the others by 1 − ε. The next revision divides the weight
//! into halves, so a place that rests on a single answer is asked again before it is believed. The search ends when
//! one place has the weight 1 − α.
//!
//! With a uniform prior and answers that are wrong with a probability of at most ε, independently, the place is wrong
//! with a probability of at most α. A revision that differs from both ends, because of a second change, is not an answer.
//!
//! A test compares one start of each server, and restarts can move a server by more than its blocks scatter. Every contest
//! compares the ends, too, so the standard deviation of their difference between contests, beyond the error within each (τ, see
//! [`crate::pool`]), measures what restarts do. A start of a server has half of that variance. A revision is taken for the
//! wrong end where its start and those of the ends move it past the middle between them; the probability of
//! that is added to ε.

use crate::error::{StatsError, open_fraction};
use crate::moments::t_p_value;
use crate::pool::{Stratum, pool};

/// Probability of a wrong answer, relative to that of a wrong result. A step has costs besides its blocks (starting servers,
/// warming up), so answers are made reliable rather than repeated.
const ERROR_SHARE: f64 = 0.2;
/// Contests of the ends from which the effect of restarts is estimated; with two, the estimate has one degree of freedom.
const CONTESTS_MIN: usize = 3;
/// Contests from which on a search is given up whose answers are wrong too often.
const CONTESTS_ENOUGH: usize = 6;
/// Probability of a wrong answer beyond which a search is given up: it takes more than 40 steps for 200 revisions.
const ERROR_MAX: f64 = 0.2;
/// Variance of a revision's distance from the middle between the ends, relative to that of the difference of the ends: one and
/// a half starts against two.
const MIDDLE_VARIANCE: f64 = 0.75;

/// What a test found about a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is like the first one: the change comes after it.
    Good,
    /// It is like the last one: the change is it, or comes before it.
    Bad,
    /// The test ended without a decision.
    Unsure,
    /// It cannot be tested.
    Skipped,
}

/// The place of the change: after revision `after`, up to and including revision `up_to`. These are neighbours unless the
/// revisions between them cannot be tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// The last revision that is like the first one.
    pub after: usize,
    /// The first revision that is like the last one.
    pub up_to: usize,
    /// Probability that the change is there, if there is exactly one.
    pub probability: f64,
}

/// What restarts do to the difference of the ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Restarts {
    /// Mean difference over the contests, bad − good, of the logarithm.
    pub difference: f64,
    /// Its standard deviation between contests, beyond the error within each (τ).
    pub deviation: f64,
    /// Contests that the deviation is from.
    pub contests: usize,
    /// Probability that restarts make an answer wrong.
    pub error: f64,
}

/// A search among revisions 0 (good) to `last` (bad).
#[derive(Debug, Clone)]
pub struct Bisection {
    alpha: f64,
    /// What tests decided, in their order: the revision and whether it is like the bad one.
    answers: Vec<(usize, bool)>,
    /// Contests of the ends.
    contests: usize,
    /// The difference of the ends in each contest that measured it.
    ends: Vec<Stratum>,
    /// What restarts did in another search on the same servers, for a search with few contests.
    elsewhere: Option<Restarts>,
    /// Probability of each place: entry k is for the change between revisions k and k + 1.
    weights: Vec<f64>,
    /// Of each revision, whether it can be tested.
    is_testable: Vec<bool>,
    /// Of each revision, how many tests of it ended undecided.
    unsure: Vec<i32>,
}

impl Bisection {
    /// A search that is wrong with a probability of at most `alpha`, before the first answer.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] where `last` is 0, [`StatsError::Parameter`] for an `alpha` that is not between 0 and 1.
    pub fn new(last: usize, alpha: f64) -> Result<Self, StatsError> {
        open_fraction("alpha", alpha)?;
        crate::error::at_least("revisions after the first", 1, last)?;
        Ok(Bisection {
            alpha,
            answers: Vec::new(),
            contests: 0,
            ends: Vec::new(),
            elsewhere: None,
            weights: vec![1.0 / last as f64; last],
            is_testable: vec![true; last + 1],
            unsure: vec![0; last + 1],
        })
    }

    /// The probability of error, at most, that an answer must have.
    #[must_use]
    pub fn error_of_answer(&self) -> f64 {
        ERROR_SHARE * self.alpha
    }

    /// Takes what a test of a revision found. Answers about the first and the last revision, and about others, change
    /// nothing: they are known.
    pub fn take(&mut self, revision: usize, answer: Answer) {
        if revision == 0 || revision >= self.weights.len() {
            return;
        }
        match answer {
            Answer::Good => self.answers.push((revision, false)),
            Answer::Bad => self.answers.push((revision, true)),
            Answer::Unsure => self.unsure[revision] += 1,
            Answer::Skipped => self.is_testable[revision] = false,
        }
        self.weigh();
    }

    /// Takes the difference of the ends (bad − good, of the logarithm) in one contest, with its standard error there; `None` of a
    /// contest that did not measure it. One that is not a number, or has no error, counts as not measured.
    pub fn take_ends(&mut self, ends: Option<Stratum>) {
        self.contests += 1;
        let is_measured =
            |ends: &Stratum| ends.effect.is_finite() && ends.error.is_finite() && ends.error > 0.0;
        self.ends.extend(ends.filter(is_measured));
        self.weigh();
    }

    /// Takes what restarts did in another search on the same servers: it counts until this one has contests enough.
    pub fn take_restarts(&mut self, elsewhere: Restarts) {
        self.elsewhere = Some(elsewhere);
        self.weigh();
    }

    /// True where the ends of a contest are in another order than in all contests so far together: what it says of a
    /// revision between them is no answer.
    #[must_use]
    pub fn is_reversed(&self, effect: f64) -> bool {
        let sum: f64 = self.ends.iter().map(|ends| ends.effect).sum();
        effect * sum < 0.0
    }

    /// What restarts do to the difference of the ends; `None` as long as that is not known.
    #[must_use]
    pub fn restarts(&self) -> Option<Restarts> {
        let own = self.ends.len();
        // The mean of contests that are known equally well by their restarts.
        let plain = self.ends.iter().map(|ends| ends.effect).sum::<f64>() / own as f64;
        let (difference, deviation, contests, error_of_difference) = match (own, self.elsewhere) {
            (CONTESTS_MIN.., _) => {
                let pooled = pool(&self.ends, self.alpha).ok()?;
                (pooled.mean.value, pooled.deviation, own, pooled.error)
            }
            (
                1..,
                Some(Restarts {
                    deviation,
                    contests,
                    ..
                }),
            ) => (plain, deviation, contests, deviation / (own as f64).sqrt()),
            _ => return None,
        };
        let error = match deviation > 0.0 {
            true => {
                let middle =
                    MIDDLE_VARIANCE * deviation.powi(2) + (0.5 * error_of_difference).powi(2);
                0.5 * t_p_value(0.5 * difference / middle.sqrt(), contests as f64 - 1.0)
            }
            false => 0.0,
        };
        Some(Restarts {
            difference,
            deviation,
            contests,
            error,
        })
    }

    /// True when restarts make so many answers wrong that the search is given up.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.restarts()
            .is_some_and(|known| known.contests >= CONTESTS_ENOUGH && known.error > ERROR_MAX)
    }

    /// True when a revision between the ends was decided.
    #[must_use]
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// The weight of each place by all answers. What restarts do is known better with every contest, also to earlier answers.
    fn weigh(&mut self) {
        let by_restarts = self.restarts().map_or(0.0, |known| known.error);
        let error = (self.error_of_answer() + by_restarts).min(0.5);
        let uniform = 1.0 / self.weights.len() as f64;
        self.weights.fill(uniform);
        for &(revision, is_bad) in &self.answers {
            let (before, after) = match is_bad {
                true => (1.0 - error, error),
                false => (error, 1.0 - error),
            };
            let (left, right) = self.weights.split_at_mut(revision);
            left.iter_mut().for_each(|weight| *weight *= before);
            right.iter_mut().for_each(|weight| *weight *= after);
            let total: f64 = self.weights.iter().sum();
            self.weights.iter_mut().for_each(|weight| *weight /= total);
        }
    }

    /// The revision to test next: the one that divides the probability most evenly. Each test that ended undecided halves what another
    /// one of the same revision is worth. `None` when the search has ended.
    #[must_use]
    pub fn next(&self) -> Option<usize> {
        if self.found().is_some() || self.is_lost() {
            return None;
        }
        let mut best = None;
        let mut below = 0.0;
        for revision in 1..self.weights.len() {
            below += self.weights[revision - 1];
            let worth = below.min(1.0 - below) * 0.5_f64.powi(self.unsure[revision]);
            let is_better = best.is_none_or(|(_, most)| worth > most);
            if self.is_testable[revision] && is_better {
                best = Some((revision, worth));
            }
        }
        best.map(|(revision, _)| revision)
    }

    /// The place of the change once it is known with probability 1 − α, and what restarts do is known, if there is a revision to
    /// learn it from.
    #[must_use]
    pub fn found(&self) -> Option<Place> {
        if self.is_lost() {
            return None;
        }
        let last = self.weights.len();
        let may_learn = self.is_testable[1..last].contains(&true);
        let knows_restarts =
            self.restarts().is_some() || self.contests == 0 || self.contests >= CONTESTS_MIN;
        let place = self.likeliest();
        let is_known = place.probability >= 1.0 - self.alpha && (knows_restarts || !may_learn);
        is_known.then_some(place)
    }

    /// The most probable place so far.
    #[must_use]
    pub fn likeliest(&self) -> Place {
        let last = self.weights.len();
        let mut best = Place {
            after: 0,
            up_to: last,
            probability: 0.0,
        };
        let (mut after, mut probability) = (0, 0.0);
        for up_to in 1..=last {
            probability += self.weights[up_to - 1];
            if self.is_testable[up_to] {
                if probability > best.probability {
                    best = Place {
                        after,
                        up_to,
                        probability,
                    };
                }
                (after, probability) = (up_to, 0.0);
            }
        }
        best
    }

    /// Probability that the change is at revision `up_to` or before it, given the answers so far.
    #[must_use]
    pub fn probability_up_to(&self, up_to: usize) -> f64 {
        self.weights.iter().take(up_to).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    /// Searches for a change just before revision `first_bad`; `is_wrong` says whether the next answer is.
    fn search(
        last: usize,
        first_bad: usize,
        mut is_wrong: impl FnMut() -> bool,
    ) -> (Option<Place>, usize) {
        let mut bisection = Bisection::new(last, 0.05).unwrap();
        let mut steps = 0;
        while let Some(revision) = bisection.next() {
            let answer = match (revision >= first_bad) != is_wrong() {
                true => Answer::Bad,
                false => Answer::Good,
            };
            bisection.take(revision, answer);
            steps += 1;
            assert!(steps < 1000, "the search does not end");
        }
        (bisection.found(), steps)
    }

    #[test]
    fn right_answers_lead_to_every_place_in_about_the_logarithm_of_steps() {
        for last in [1, 2, 3, 16, 100] {
            for first_bad in 1..=last {
                let (place, steps) = search(last, first_bad, || false);
                let place = place.unwrap();
                assert_eq!((place.after, place.up_to), (first_bad - 1, first_bad));
                assert!(place.probability >= 0.95);
                assert!(steps <= 2 * last.ilog2() as usize + 2, "{last}: {steps}");
            }
        }
    }

    #[test]
    fn an_early_wrong_answer_is_asked_again() {
        for wrong_at in 0..3 {
            let mut number = 0;
            let (place, _) = search(100, 37, || {
                number += 1;
                number == wrong_at + 1
            });
            assert_eq!(place.unwrap().up_to, 37, "wrong answer {wrong_at}");
        }
    }

    #[test]
    fn answers_as_unreliable_as_allowed_are_wrong_in_the_end_less_often_than_alpha() {
        let mut random = RandomStream::new(5, 0);
        let mut wrong = 0;
        for _ in 0..2000 {
            let first_bad = 1 + random.below(64);
            let (place, _) = search(64, first_bad, || random.uniform() < 0.01);
            wrong += u32::from(place.unwrap().up_to != first_bad);
        }
        // Of 2000 at a true 5 %, fewer than 131 with a probability of 99.9 %.
        assert!(wrong <= 130, "{wrong}");
    }

    #[test]
    fn revisions_that_cannot_be_tested_leave_a_range() {
        let mut bisection = Bisection::new(8, 0.05).unwrap();
        for skipped in [3, 4, 5] {
            bisection.take(skipped, Answer::Skipped);
        }
        while let Some(revision) = bisection.next() {
            assert!(!(3..=5).contains(&revision));
            let answer = if revision >= 5 {
                Answer::Bad
            } else {
                Answer::Good
            };
            bisection.take(revision, answer);
        }
        let place = bisection.found().unwrap();
        assert_eq!((place.after, place.up_to), (2, 6));
    }

    #[test]
    fn with_every_revision_skipped_the_ends_are_the_place() {
        let mut bisection = Bisection::new(3, 0.05).unwrap();
        bisection.take(1, Answer::Skipped);
        bisection.take(2, Answer::Skipped);
        assert_eq!(bisection.next(), None);
        let place = bisection.found().unwrap();
        assert_eq!((place.after, place.up_to), (0, 3));
    }

    #[test]
    fn an_undecided_revision_gives_way_to_its_neighbours_and_comes_back() {
        let mut bisection = Bisection::new(4, 0.05).unwrap();
        assert_eq!(bisection.next(), Some(2));
        bisection.take(2, Answer::Unsure);
        bisection.take(2, Answer::Unsure);
        assert_eq!(bisection.next(), Some(1));
        bisection.take(1, Answer::Good);
        bisection.take(3, Answer::Bad);
        assert_eq!(bisection.next(), Some(2));
        assert!(bisection.probability_up_to(4) > 0.999);
    }

    fn contest(effect: f64) -> Stratum {
        Stratum {
            effect,
            error: 0.002,
        }
    }

    /// A search of one revision that was like the last one, by contests with these differences of the ends.
    fn searched(effects: &[f64]) -> Bisection {
        let mut bisection = Bisection::new(2, 0.05).unwrap();
        bisection.take(1, Answer::Bad);
        effects
            .iter()
            .for_each(|&effect| bisection.take_ends(Some(contest(effect))));
        bisection
    }

    #[test]
    fn restarts_that_move_the_ends_make_answers_less_certain_or_end_the_search() {
        let steady = searched(&[-0.05, -0.052, -0.049, -0.05]);
        assert_eq!(steady.next(), None);
        assert!((steady.likeliest().probability - 0.99).abs() < 1e-9);
        let scattered = searched(&[-0.05, -0.03, -0.07, -0.04, -0.06]);
        let known = scattered.restarts().unwrap();
        assert!((known.difference + 0.05).abs() < 1e-9 && known.contests == 5);
        assert!((known.deviation - 0.0157).abs() < 2e-4, "{known:?}");
        // Half of the difference is 1.78 deviations of the middle: with four degrees of freedom 7.5 % are beyond that.
        assert!((known.error - 0.075).abs() < 2e-3, "{known:?}");
        assert!((scattered.likeliest().probability - (0.99 - known.error)).abs() < 1e-9);
        assert_eq!(scattered.next(), Some(1));
        assert!(!scattered.is_lost());
        let lost = searched(&[-0.04, 0.035, -0.03, 0.02, -0.01, 0.03]);
        assert!(lost.is_lost() && lost.found().is_none() && lost.next().is_none());
    }

    #[test]
    fn a_place_is_not_believed_before_it_is_known_what_restarts_do() {
        let mut bisection = searched(&[-0.05, -0.05]);
        assert_eq!((bisection.found(), bisection.next()), (None, Some(1)));
        bisection.take_restarts(searched(&[-0.05, -0.052, -0.049]).restarts().unwrap());
        assert!(bisection.found().is_some());
        let far = searched(&[-0.25, -0.35, -0.3, -0.31, -0.29, -0.27]).restarts();
        bisection.take_restarts(far.unwrap());
        assert!(bisection.is_lost() && bisection.found().is_none());
        // Two revisions have none between them to learn it from.
        let mut neighbours = Bisection::new(1, 0.05).unwrap();
        neighbours.take_ends(Some(contest(-0.05)));
        assert!(neighbours.found().is_some());
    }

    #[test]
    fn a_contest_whose_ends_are_in_the_other_order_is_recognised() {
        let bisection = searched(&[-0.05, 0.01]);
        assert!(bisection.is_reversed(0.01) && !bisection.is_reversed(-0.02));
        assert!(!searched(&[]).is_reversed(0.05));
    }

    #[test]
    fn bad_parameters_are_refused() {
        assert!(Bisection::new(0, 0.05).is_err());
        assert!(Bisection::new(5, 0.0).is_err());
        assert!(Bisection::new(5, f64::NAN).is_err());
    }
}
