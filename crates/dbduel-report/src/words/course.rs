//! Steady state of cells, in words.

use dbduel_judge::Summary;
use dbduel_judge::summary::{CellCourse, Figure, SteadyState, Transient};
use dbduel_text::percent;

use super::figures::{ratio_interval, ratio_value};
use super::share;

/// The course of one cell: `steady: second half of the slices +0.4 % (−1.2 % to +2.0 %)`; `None` where nothing
/// is shown, as [`courses`] says once for all of them.
#[must_use]
pub fn course(course: &CellCourse) -> Option<String> {
    let change = || {
        format!(
            "second half of the slices {} ({})",
            ratio_value(&course.change).unwrap_or_default(),
            ratio_interval(&course.change)
        )
    };
    let late = course.transient.map(apart);
    let left_out = || {
        let late = late.as_ref();
        late.map_or_else(String::new, |late| format!("; {late}, excluded"))
    };
    match course.state {
        SteadyState::Steady => Some(format!("steady: {}{}", change(), left_out())),
        SteadyState::NeverSettled => Some(format!("never settled: {}{}", change(), left_out())),
        SteadyState::NotShown => late.map(|late| format!("settled late: {late} than the rest")),
    }
}

/// `the first 4 slices, 33 % ± 4 % lower`.
fn apart(transient: Transient) -> String {
    let difference = transient.ratio - 1.0;
    format!(
        "the first {} slices, {} ± {} {}",
        transient.slices,
        percent::of(difference.abs()),
        percent::of(transient.margin),
        if difference < 0.0 { "lower" } else { "higher" }
    )
}

/// Counts of cells by steady state; `None` where the record has none.
#[must_use]
pub fn courses(summary: &Summary) -> Option<String> {
    let cells: Vec<&CellCourse> = cells(summary).collect();
    let count = |state| cells.iter().filter(|one| one.state == state).count();
    let mut text = format!(
        "Steady state shown (halves of the slices agree within {}): {} of {} cells",
        share(CellCourse::TOLERANCE),
        count(SteadyState::Steady),
        cells.len(),
    );
    let late = cells.iter().filter(|one| one.transient.is_some()).count();
    let too_few = cells.iter().filter(|one| {
        one.state == SteadyState::NotShown && matches!(one.change, Figure::NotMeasured { .. })
    });
    let too_few = too_few.count();
    for (what, count) in [
        ("settled late", late),
        ("never settled", count(SteadyState::NeverSettled)),
        ("too noisy to tell", count(SteadyState::NotShown) - too_few),
        ("too few slices", too_few),
    ] {
        if count > 0 {
            text.push_str(&format!("; {what}: {count}"));
        }
    }
    (!cells.is_empty()).then(|| format!("{text}."))
}

/// True when a cell never settled, or settled late.
#[must_use]
pub fn is_unsettled(summary: &Summary) -> bool {
    cells(summary).any(|one| one.state == SteadyState::NeverSettled || one.transient.is_some())
}

fn cells(summary: &Summary) -> impl Iterator<Item = &CellCourse> {
    let measures = summary.duels.iter().flat_map(|duel| &duel.contenders);
    measures.filter_map(|one| one.course.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(low: f64, high: f64) -> Figure {
        Figure::Estimated {
            value: (low + high) / 2.0,
            low,
            high: Some(high),
            confidence: 0.95,
            n: 24,
            how: dbduel_judge::summary::How::Halves,
        }
    }

    fn cell(state: SteadyState, change: Figure, transient: Option<Transient>) -> CellCourse {
        CellCourse {
            state,
            transient,
            own_change: change.clone(),
            change,
            entered: None,
        }
    }

    #[test]
    fn a_cell_has_a_course_where_something_is_shown() {
        let late = Some(Transient {
            slices: 4,
            ratio: 0.67,
            margin: 0.04,
        });
        let scattered = || change(0.9, 1.12);
        for (cell, expected) in [
            (cell(SteadyState::NotShown, scattered(), None), None),
            (
                cell(SteadyState::NotShown, scattered(), late),
                Some("settled late: the first 4 slices, 33 % ± 4 % lower than the rest"),
            ),
            (
                cell(SteadyState::Steady, change(0.98, 1.02), late),
                Some(
                    "steady: second half of the slices ±0.00 % (−2.0 % to +2.0 %); \
                     the first 4 slices, 33 % ± 4 % lower, excluded",
                ),
            ),
            (
                cell(SteadyState::NeverSettled, change(1.1, 1.2), None),
                Some("never settled: second half of the slices +15.0 % (+10.0 % to +20.0 %)"),
            ),
        ] {
            assert_eq!(course(&cell).as_deref(), expected);
        }
    }
}
