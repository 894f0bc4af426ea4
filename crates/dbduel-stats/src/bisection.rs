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

use crate::error::{StatsError, open_fraction};

/// Probability of a wrong answer, relative to that of a wrong result. A step has costs besides its blocks (starting servers,
/// warming up), so answers are made reliable rather than repeated.
const ERROR_SHARE: f64 = 0.2;

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

/// A search among revisions 0 (good) to `last` (bad).
#[derive(Debug, Clone)]
pub struct Bisection {
    alpha: f64,
    /// Probability of each place, unnormalised: entry k is for the change between revisions k and k + 1.
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
        let error = self.error_of_answer();
        let (before, after) = match answer {
            Answer::Good => (error, 1.0 - error),
            Answer::Bad => (1.0 - error, error),
            Answer::Unsure => {
                self.unsure[revision] += 1;
                return;
            }
            Answer::Skipped => {
                self.is_testable[revision] = false;
                return;
            }
        };
        let (left, right) = self.weights.split_at_mut(revision);
        left.iter_mut().for_each(|weight| *weight *= before);
        right.iter_mut().for_each(|weight| *weight *= after);
        let total: f64 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|weight| *weight /= total);
    }

    /// The revision to test next: the one that divides the probability most evenly. Each test that ended undecided halves what another
    /// one of the same revision is worth. `None` when the search has ended.
    #[must_use]
    pub fn next(&self) -> Option<usize> {
        if self.found().is_some() {
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

    /// The place of the change once it is known with probability 1 − α.
    #[must_use]
    pub fn found(&self) -> Option<Place> {
        let place = self.likeliest();
        (place.probability >= 1.0 - self.alpha).then_some(place)
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

    #[test]
    fn bad_parameters_are_refused() {
        assert!(Bisection::new(0, 0.05).is_err());
        assert!(Bisection::new(5, 0.0).is_err());
        assert!(Bisection::new(5, f64::NAN).is_err());
    }
}
