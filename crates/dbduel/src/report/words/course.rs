//! Whether cells were in a steady state, in words.

use super::figures::{ratio_interval, ratio_value};
use super::numbers::ratio;
use super::share;
use crate::judge::Summary;
use crate::judge::summary::{CellCourse, Figure, SteadyState};

/// The course of one cell: `steady: second half of its slices +0.4 % (−1.2 % to +2.0 %)`.
#[must_use]
pub fn course(course: &CellCourse) -> String {
    let state = match course.state {
        SteadyState::Steady => "steady",
        SteadyState::NeverSettled => "never settled",
        SteadyState::NotShown => "steady state not shown",
    };
    let change = match &course.change {
        Figure::NotMeasured { why } => why.clone(),
        change => format!(
            "second half of the slices {} ({})",
            ratio_value(change).unwrap_or_default(),
            ratio_interval(change)
        ),
    };
    let transient = course.transient.map_or_else(String::new, |transient| {
        format!(
            ", without the first {} at {}",
            transient.slices,
            ratio(transient.ratio)
        )
    });
    format!("{state}: {change}{transient}")
}

/// How many cells were steady; `None` where nothing was asked.
#[must_use]
pub fn courses(summary: &Summary) -> Option<String> {
    let measures = summary.duels.iter().flat_map(|duel| &duel.contenders);
    let states: Vec<SteadyState> = measures
        .filter_map(|one| Some(one.course.as_ref()?.state))
        .collect();
    let count = |state| states.iter().filter(|&&one| one == state).count();
    (!states.is_empty()).then(|| {
        format!(
            "A cell is steady when the halves of its slices are shown to agree within {}: {} of {} are, {} never settled, of \
             {} neither is shown.",
            share(CellCourse::TOLERANCE),
            count(SteadyState::Steady),
            states.len(),
            count(SteadyState::NeverSettled),
            count(SteadyState::NotShown)
        )
    })
}
