//! The course of a bisection, derived from its finished steps: which contest comes next, and which changes are found.
//!
//! The whole series is searched first. When its largest change is found, the parts before and after it are searched the same way:
//! each begins with a contest of its ends, and ends with it where they do not differ.

use dbduel_record::bisect::{BisectPlan, StepRole};
use dbduel_stats::bisection::{Answer, Bisection, Place, Restarts};
use dbduel_stats::pool::Stratum;

use super::summary::{PartRestarts, SearchedPart, SearchedPlace, StepAnswer, SummarisedStep};
use crate::summary::Figure;

/// Contests of one revision without an answer, after which it is not asked again.
const UNSURE_MAX: usize = 3;

/// The next contest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    /// Its question.
    pub role: StepRole,
    /// Revisions of its contenders, in the order of the role.
    pub revisions: Vec<usize>,
}

/// The contest after these finished steps; `None` when the bisection is over.
#[must_use]
pub fn next_step(plan: &BisectPlan, steps: &[SummarisedStep]) -> Option<NextStep> {
    let parts = replay(plan, steps);
    let found = parts.iter().filter(|part| part.found().is_some()).count();
    parts.iter().find_map(|part| {
        let is_new = part.ends.is_none();
        match is_new && found >= plan.changes_max as usize {
            true => None,
            false => part.next(),
        }
    })
}

/// All parts after these finished steps.
pub(super) fn parts(plan: &BisectPlan, steps: &[SummarisedStep]) -> Vec<SearchedPart> {
    let parts = replay(plan, steps);
    parts.iter().map(|part| part.summary(steps)).collect()
}

/// Takes back the answers of steps whose good and bad revisions were in another order than in the contests before: nearer to one
/// of them says nothing then.
pub(super) fn take_back_reversed(plan: &BisectPlan, steps: &mut [SummarisedStep]) {
    let parts = replay(plan, steps);
    for number in parts.into_iter().flat_map(|part| part.reversed) {
        steps[number].answer = Some(StepAnswer::Unsure);
        steps[number].because = Some(
            "the good and the bad revision are in another order than in the contests before"
                .to_owned(),
        );
    }
}

/// Probability of error, at most, of each test of two revisions.
///
/// A contest of three has two of them.
#[must_use]
pub fn error_of_answer(plan: &BisectPlan) -> Option<f64> {
    let bisection = Bisection::new(plan.last(), 1.0 - plan.confidence).ok()?;
    Some(bisection.error_of_answer())
}

/// Takes every finished step.
fn replay(plan: &BisectPlan, steps: &[SummarisedStep]) -> Vec<Part> {
    let mut parts = vec![Part::new(0, plan.last())];
    for (number, step) in steps.iter().enumerate() {
        let Some(answer) = step.answer else {
            continue;
        };
        let place = step.revisions.as_slice();
        let whole = parts
            .first()
            .and_then(|whole| whole.bisection.as_ref()?.restarts());
        let own = parts.iter_mut().find(|part| match (step.role, place) {
            (StepRole::Ends | StepRole::Candidate, [good, bad, ..]) => {
                (part.good, part.bad) == (*good, *bad)
            }
            (StepRole::Change, [before, after, ..]) => part
                .found()
                .is_some_and(|place| (place.after, place.up_to) == (*before, *after)),
            (StepRole::Ends | StepRole::Candidate | StepRole::Change, _) => false,
        });
        let Some(part) = own else {
            continue;
        };
        part.take(plan, number, step, answer, whole);
        let halves = part.halves();
        for half in halves {
            if parts.iter().all(|part| (part.good, part.bad) != half) {
                parts.push(Part::new(half.0, half.1));
            }
        }
    }
    parts
}

/// A part of the series.
#[derive(Debug)]
struct Part {
    good: usize,
    bad: usize,
    ends: Option<StepAnswer>,
    steps: Vec<usize>,
    /// Present once the ends differ; its revision 0 is the good one of the part.
    bisection: Option<Bisection>,
    /// Contest of its ends.
    ends_step: Option<usize>,
    /// Contest of the revisions before and after the found change.
    change_step: Option<usize>,
    skipped: Vec<usize>,
    unanswered: Vec<usize>,
    /// Each contest without an answer.
    unsure: Vec<usize>,
    /// Contests without an answer because their ends were in the other order.
    reversed: Vec<usize>,
}

impl Part {
    fn new(good: usize, bad: usize) -> Self {
        Self {
            good,
            bad,
            ends: None,
            steps: Vec::new(),
            bisection: None,
            ends_step: None,
            change_step: None,
            skipped: Vec::new(),
            unanswered: Vec::new(),
            unsure: Vec::new(),
            reversed: Vec::new(),
        }
    }

    fn take(
        &mut self,
        plan: &BisectPlan,
        number: usize,
        step: &SummarisedStep,
        answer: StepAnswer,
        whole: Option<Restarts>,
    ) {
        self.steps.push(number);
        if step.role == StepRole::Ends && answer == StepAnswer::Differ {
            let alpha = 1.0 - plan.confidence;
            self.bisection = Bisection::new(self.bad - self.good, alpha).ok();
            if let (Some(bisection), Some(whole)) = (&mut self.bisection, whole) {
                bisection.take_restarts(whole);
            }
        }
        // Of a void contest no figure counts.
        let counts = !matches!(answer, StepAnswer::Skipped | StepAnswer::Void);
        let mut answer = answer;
        if let (Some(bisection), StepRole::Ends | StepRole::Candidate, true) =
            (&mut self.bisection, step.role, counts)
        {
            let ends = step.ends.map(|ends| Stratum {
                effect: ends.log_ratio,
                error: ends.standard_error,
            });
            if ends.is_some_and(|ends| bisection.is_reversed(ends.effect)) {
                answer = StepAnswer::Unsure;
                self.reversed.push(number);
            }
            bisection.take_ends(ends);
        }
        match (step.role, step.revisions.as_slice()) {
            (StepRole::Ends, _) => {
                self.ends = Some(answer);
                self.ends_step = Some(number);
            }
            (StepRole::Candidate, &[_, _, candidate]) => self.answered(candidate, answer),
            (StepRole::Change, _) => self.change_step = Some(number),
            (StepRole::Candidate, _) => {}
        }
    }

    fn answered(&mut self, candidate: usize, answer: StepAnswer) {
        let Some(bisection) = &mut self.bisection else {
            return;
        };
        let own = candidate - self.good;
        match answer {
            // Of several changes the largest is searched, and its side is the one that is farther away.
            StepAnswer::LikeGood | StepAnswer::NeitherNearerGood => {
                bisection.take(own, Answer::Good);
            }
            StepAnswer::LikeBad | StepAnswer::NeitherNearerBad => bisection.take(own, Answer::Bad),
            StepAnswer::Skipped => {
                bisection.take(own, Answer::Skipped);
                self.skipped.push(candidate);
            }
            StepAnswer::Unsure
            | StepAnswer::Undecided
            | StepAnswer::Void
            | StepAnswer::Differ
            | StepAnswer::Same => {
                self.unsure.push(candidate);
                let times = self.unsure.iter().filter(|&&one| one == candidate).count();
                if times < UNSURE_MAX {
                    bisection.take(own, Answer::Unsure);
                } else {
                    bisection.take(own, Answer::Skipped);
                    self.unanswered.push(candidate);
                }
            }
        }
    }

    /// The found change, in revisions of the series.
    fn found(&self) -> Option<Place> {
        let place = self.bisection.as_ref()?.found()?;
        Some(self.in_series(place))
    }

    /// The contest of the revisions before and after the found change; that of the ends where they are those.
    fn measured_by(&self) -> Option<usize> {
        let place = self.found()?;
        match (place.after, place.up_to) == (self.good, self.bad) {
            true => self.ends_step,
            false => self.change_step,
        }
    }

    fn in_series(&self, place: Place) -> Place {
        Place {
            after: self.good + place.after,
            up_to: self.good + place.up_to,
            probability: place.probability,
        }
    }

    fn next(&self) -> Option<NextStep> {
        if self.ends.is_none() {
            return Some(NextStep {
                role: StepRole::Ends,
                revisions: vec![self.good, self.bad],
            });
        }
        let bisection = self.bisection.as_ref()?;
        if let Some(candidate) = bisection.next() {
            return Some(NextStep {
                role: StepRole::Candidate,
                revisions: vec![self.good, self.bad, self.good + candidate],
            });
        }
        let place = self.found()?;
        self.measured_by().is_none().then(|| NextStep {
            role: StepRole::Change,
            revisions: vec![place.after, place.up_to],
        })
    }

    /// What is left of the part before and after its found and measured change.
    fn halves(&self) -> Vec<(usize, usize)> {
        let Some(place) = self.found().filter(|_| self.measured_by().is_some()) else {
            return Vec::new();
        };
        let halves = [(self.good, place.after), (place.up_to, self.bad)];
        halves
            .into_iter()
            .filter(|(good, bad)| good < bad)
            .collect()
    }

    fn summary(&self, steps: &[SummarisedStep]) -> SearchedPart {
        let probabilities = |bisection: &Bisection| {
            let up_to = |revision| bisection.probability_up_to(revision);
            let places = 1..=self.bad - self.good;
            places
                .map(|place| up_to(place) - up_to(place - 1))
                .collect()
        };
        SearchedPart {
            good: self.good,
            bad: self.bad,
            ends: self.ends,
            steps: self.steps.clone(),
            place: self
                .bisection
                .as_ref()
                .filter(|bisection| may_be_named(bisection))
                .map(|bisection| {
                    let place = self.in_series(bisection.likeliest());
                    let measured = self.measured_by().and_then(|number| steps.get(number));
                    SearchedPlace {
                        after: place.after,
                        up_to: place.up_to,
                        probability: place.probability,
                        is_found: bisection.found().is_some(),
                        ratio: measured.map_or_else(
                            || Figure::NotMeasured {
                                why: "no contest of the two yet".to_owned(),
                            },
                            |step| step.ratio.clone(),
                        ),
                        measured_by: self.measured_by(),
                    }
                }),
            probabilities: self
                .bisection
                .as_ref()
                .map(probabilities)
                .unwrap_or_default(),
            restarts: self.bisection.as_ref().and_then(restarts_of),
            skipped: self.skipped.clone(),
            unanswered: self.unanswered.clone(),
        }
    }
}

/// Before the first answer all places are equally probable, and after a search was given up none is known.
fn may_be_named(bisection: &Bisection) -> bool {
    bisection.found().is_some() || (bisection.has_answers() && !bisection.is_lost())
}

fn restarts_of(bisection: &Bisection) -> Option<PartRestarts> {
    let known = bisection.restarts()?;
    Some(PartRestarts {
        ratio: known.difference.exp(),
        deviation: known.deviation,
        contests: known.contests,
        error: known.error,
        is_too_large: bisection.is_lost(),
    })
}
