use dbduel_record::Verdict::{self, Equivalent, Faster, Slower, Undecided, Void};
use dbduel_testkit::synthetic::bisection;

use super::*;

/// A step that is over with this answer.
fn step(next: NextStep, answer: StepAnswer) -> SummarisedStep {
    SummarisedStep {
        name: "01".to_owned(),
        role: next.role,
        revisions: next.revisions,
        answer: Some(answer),
        because: None,
        ratio: Figure::NotMeasured { why: String::new() },
        ratio_to_bad: None,
        ends: None,
        blocks: 0,
        load_s: 0.0,
        seconds: 0.0,
    }
}

/// The plan of a bisection of so many revisions, without steps.
fn plan_of(revisions: usize, changes_max: u32) -> BisectPlan {
    let (mut plan, _) = bisection();
    plan.steps.clear();
    plan.revisions = vec![plan.revisions[0].clone(); revisions];
    plan.changes_max = changes_max;
    plan
}

/// Bisects revisions of these levels; `broken` ones cannot be built.
fn bisected(levels: &[i32], changes_max: u32, broken: &[usize]) -> BisectSummary {
    let plan = plan_of(levels.len(), changes_max);
    let mut steps = Vec::new();
    while let Some(next) = next_step(&plan, &steps) {
        let of: Vec<i32> = next.revisions.iter().map(|&one| levels[one]).collect();
        let answer = match (next.role, of.as_slice()) {
            (StepRole::Candidate, _) if broken.contains(&next.revisions[2]) => StepAnswer::Skipped,
            (StepRole::Candidate, &[good, bad, candidate]) => match candidate {
                one if one == good => StepAnswer::LikeGood,
                one if one == bad => StepAnswer::LikeBad,
                one if (one - good).abs() < (bad - one).abs() => StepAnswer::NeitherNearerGood,
                _ => StepAnswer::NeitherNearerBad,
            },
            (_, of) => match of[0] == of[1] {
                true => StepAnswer::Same,
                false => StepAnswer::Differ,
            },
        };
        steps.push(step(next, answer));
        assert!(steps.len() < 100, "it does not end");
    }
    summarise_bisection(&plan, steps)
}

/// The places of the found changes.
fn found(summary: &BisectSummary) -> Vec<(usize, usize)> {
    let places = summary.parts.iter().filter_map(|part| part.place.as_ref());
    let mut places: Vec<(usize, usize)> = places
        .filter(|place| place.is_found)
        .map(|place| (place.after, place.up_to))
        .collect();
    places.sort_unstable();
    places
}

#[test]
fn one_change_is_found_and_measured_and_both_sides_of_it_are_equal() {
    for first_bad in 1..20 {
        let levels: Vec<i32> = (0..20).map(|one| i32::from(one >= first_bad)).collect();
        let summary = bisected(&levels, 3, &[]);
        assert!(summary.is_over);
        assert_eq!(found(&summary), [(first_bad - 1, first_bad)]);
        let place = summary.parts[0].place.as_ref().unwrap();
        assert!(place.measured_by.is_some() && place.probability >= 0.95);
        let others = summary.parts[1..].iter().map(|part| part.ends);
        assert!(
            others
                .into_iter()
                .all(|ends| ends == Some(StepAnswer::Same))
        );
    }
}

#[test]
fn of_two_changes_the_larger_one_is_found_first_and_the_other_one_after_it() {
    let mut levels = vec![0; 5];
    levels.extend([2; 9]);
    levels.extend([7; 6]);
    let summary = bisected(&levels, 3, &[]);
    assert_eq!(summary.parts[0].place.as_ref().unwrap().up_to, 14);
    assert_eq!(found(&summary), [(4, 5), (13, 14)]);
    assert_eq!(found(&bisected(&levels, 1, &[])), [(13, 14)]);
}

#[test]
fn equal_ends_end_it_after_one_contest() {
    let summary = bisected(&[3; 9], 3, &[]);
    assert!(summary.is_over && summary.steps.len() == 1);
    assert_eq!(summary.parts[0].ends, Some(StepAnswer::Same));
    assert_eq!(summary.parts[0].place, None);
}

#[test]
fn two_revisions_need_one_contest() {
    let summary = bisected(&[0, 1], 3, &[]);
    assert!(summary.is_over && summary.steps.len() == 1);
    assert_eq!(
        summary.parts[0].place.as_ref().unwrap().measured_by,
        Some(0)
    );
}

#[test]
fn revisions_that_cannot_be_built_leave_a_range() {
    let levels: Vec<i32> = (0..12).map(|one| i32::from(one >= 6)).collect();
    let summary = bisected(&levels, 1, &[4, 5, 6]);
    assert_eq!(found(&summary), [(3, 7)]);
    assert!(!summary.parts[0].skipped.is_empty());
    assert!(summary.parts[0].unanswered.is_empty());
}

#[test]
fn a_revision_without_an_answer_is_asked_three_times_at_most() {
    let plan = plan_of(3, 1);
    let ends = NextStep {
        role: StepRole::Ends,
        revisions: vec![0, 2],
    };
    let mut steps = vec![step(ends, StepAnswer::Differ)];
    while let Some(next) = next_step(&plan, &steps) {
        assert_eq!(next.role, StepRole::Candidate);
        steps.push(step(next, StepAnswer::Unsure));
    }
    let summary = summarise_bisection(&plan, steps);
    assert_eq!(summary.steps.len(), 4);
    assert_eq!(summary.parts[0].unanswered, [1]);
    assert_eq!(found(&summary), [(0, 2)]);
}

#[test]
fn a_step_that_is_not_over_is_asked_for_again() {
    let plan = plan_of(5, 1);
    let ends = next_step(&plan, &[]).unwrap();
    let mut unfinished = step(ends.clone(), StepAnswer::Differ);
    unfinished.answer = None;
    assert_eq!(next_step(&plan, &[unfinished.clone()]), Some(ends));
    assert!(!summarise_bisection(&plan, vec![unfinished]).is_over);
}

/// Searches 65 revisions, the last 30 of which are slower, by contests whose ends differ by these in turn, each known to 0.2 %.
fn searched_with_ends(log_ratios: &[f64]) -> BisectSummary {
    let plan = plan_of(65, 1);
    let mut steps = Vec::new();
    while let Some(next) = next_step(&plan, &steps) {
        let answer = match next.role {
            StepRole::Candidate if next.revisions[2] < 35 => StepAnswer::LikeGood,
            StepRole::Candidate => StepAnswer::LikeBad,
            StepRole::Ends | StepRole::Change => StepAnswer::Differ,
        };
        let mut step = step(next, answer);
        step.ends = Some(EndsInContest {
            log_ratio: log_ratios[steps.len() % log_ratios.len()],
            standard_error: 0.002,
        });
        steps.push(step);
        assert!(steps.len() < 100, "it does not end");
    }
    summarise_bisection(&plan, steps)
}

#[test]
fn restarts_that_move_the_ends_cost_steps_or_end_the_search_without_a_place() {
    let steady = searched_with_ends(&[-0.05]);
    assert_eq!(found(&steady), [(34, 35)]);
    let known = steady.parts[0].restarts.unwrap();
    assert!((known.ratio - (-0.05_f64).exp()).abs() < 1e-9);
    assert!(known.deviation == 0.0 && !known.is_too_large);
    let moved = searched_with_ends(&[-0.05, -0.035, -0.065]);
    assert_eq!(found(&moved), [(34, 35)]);
    assert!(moved.steps.len() > steady.steps.len());
    let lost = searched_with_ends(&[-0.05, -0.001, -0.07, -0.002]);
    assert!(lost.is_over && found(&lost).is_empty());
    assert_eq!(lost.parts[0].place, None);
    assert!(lost.parts[0].restarts.unwrap().is_too_large);
    assert_eq!(lost.steps.len(), 6);
}

#[test]
fn a_contest_whose_ends_are_in_the_other_order_has_no_answer() {
    let plan = plan_of(9, 1);
    let mut steps: Vec<SummarisedStep> = Vec::new();
    for log_ratio in [-0.05, 0.03] {
        let next = next_step(&plan, &steps).unwrap();
        let answer = match next.role {
            StepRole::Ends => StepAnswer::Differ,
            StepRole::Candidate | StepRole::Change => StepAnswer::LikeBad,
        };
        let mut step = step(next, answer);
        step.ends = Some(EndsInContest {
            log_ratio,
            standard_error: 0.002,
        });
        steps.push(step);
    }
    let summary = summarise_bisection(&plan, steps);
    assert_eq!(summary.steps[1].answer, Some(StepAnswer::Unsure));
    let why = summary.steps[1].because.as_deref().unwrap();
    assert!(why.contains("another order"), "{why}");
    // Without an answer no place is more probable than others.
    assert_eq!(summary.parts[0].place, None);
}

#[test]
fn records_are_read_as_their_roles_have_them() {
    let (plan, records) = bisection();
    let steps = plan.steps.iter().zip(&records);
    let steps: Vec<SummarisedStep> = steps
        .map(|(step, record)| judge_step(&plan, step, record.as_ref()))
        .collect();
    let answers: Vec<Option<StepAnswer>> = steps.iter().map(|step| step.answer).collect();
    assert_eq!(
        answers,
        [
            StepAnswer::Differ,
            StepAnswer::LikeGood,
            StepAnswer::Skipped,
            StepAnswer::LikeGood,
            StepAnswer::Differ
        ]
        .map(Some)
    );
    // After ÷ before, candidate ÷ good, candidate ÷ bad.
    for (figure, truth) in [
        (&steps[0].ratio, 0.8),
        (&steps[1].ratio, 1.0),
        (steps[1].ratio_to_bad.as_ref().unwrap(), 1.25),
        (&steps[4].ratio, 0.8),
    ] {
        let (low, high) = figure.interval().unwrap();
        assert!(low < truth && truth < high, "{truth}: {low} to {high}");
    }
    for (step, truth) in [(&steps[0], 0.8_f64), (&steps[1], 0.8), (&steps[3], 0.8)] {
        let ends = step.ends.unwrap();
        assert!(
            ends.standard_error > 0.0
                && (ends.log_ratio - truth.ln()).abs() < 4.0 * ends.standard_error
        );
    }
    assert!(steps[2].ends.is_none() && steps[4].ends.is_none());
    assert!(steps[1].seconds > 0.0 && steps[1].load_s > 0.0 && steps[1].blocks > 0);
    assert_eq!(steps[2].because.as_deref(), Some("the build exited with 2"));
    let summary = summarise_bisection(&plan, steps);
    assert!(summary.is_over);
    let place = summary.parts[0].place.as_ref().unwrap();
    assert_eq!(
        (place.after, place.up_to, place.measured_by),
        (2, 4, Some(4))
    );
    assert!(place.is_found && place.ratio.interval().is_some());
}

#[test]
fn one_difference_is_an_answer_only_where_the_other_end_is_nearer() {
    let answer = |good: (Verdict, f64), bad: (Verdict, f64)| {
        answer_of_candidate((good.0, Some(good.1)), (bad.0, Some(bad.1)))
    };
    for (good, bad, expected) in [
        ((Undecided, 1.01), (Slower, 0.8), StepAnswer::LikeGood),
        ((Faster, 1.25), (Undecided, 0.99), StepAnswer::LikeBad),
        ((Faster, 1.25), (Equivalent, 0.99), StepAnswer::LikeBad),
        ((Undecided, 1.25), (Slower, 0.9), StepAnswer::Unsure),
        ((Faster, 1.1), (Undecided, 0.8), StepAnswer::Unsure),
        ((Faster, 1.05), (Slower, 0.8), StepAnswer::NeitherNearerGood),
        ((Faster, 1.3), (Slower, 0.9), StepAnswer::NeitherNearerBad),
        ((Undecided, 1.1), (Undecided, 0.9), StepAnswer::Unsure),
        ((Void, 1.3), (Slower, 0.9), StepAnswer::Skipped),
    ] {
        assert_eq!(answer(good, bad), expected, "{good:?} {bad:?}");
    }
}
