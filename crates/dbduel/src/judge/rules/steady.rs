//! Rules about the course of the cells: were they in a steady state while they were measured?

use dbduel_record::event::Severity;

use super::{Case, Found, finding};
use crate::judge::duel::steady::state;
use crate::judge::summary::{CellCourse, Duel, Figure, SteadyState};
use crate::percent;

/// The cells of a level, with their names, whose course is known.
fn courses(duel: &Duel) -> impl Iterator<Item = (&str, &CellCourse)> {
    let measures = duel.contenders.iter();
    measures.filter_map(|one| Some((one.contender.as_str(), one.course.as_ref()?)))
}

/// Cells whose throughput changed from the first half of their slices to the second.
pub(super) fn never_settled(case: &Case<'_>) -> Vec<Found> {
    let told = case.summary.duels.iter().filter_map(|duel| {
        let unsettled: Vec<(&str, &CellCourse)> = courses(duel)
            .filter(|(_, course)| course.state == SteadyState::NeverSettled)
            .collect();
        let (names, changes): (Vec<&str>, Vec<String>) = unsettled
            .iter()
            .map(|(name, course)| (*name, format!("`{name}` by {}", change(&course.change))))
            .unzip();
        if names.is_empty() {
            return None;
        }
        let (severity, meaning) = match whose(&unsettled) {
            Whose::Own => (
                Severity::Doubt,
                "It moved against the other contenders too, so the ratio is one of servers on their way.",
            ),
            Whose::Common => (
                Severity::Note,
                "All contenders moved alike, as when the machine does: ratios hold, but the figures of single contenders \
                 are means over a state that moved.",
            ),
            Whose::NotShown => (
                Severity::Note,
                "Whether all contenders moved alike is not shown; the figures of single contenders are means over a state \
                 that moved.",
            ),
        };
        let claim = format!(
            "Never settled at {}: throughput changed from the first half of the slices to the second, of {}. {meaning}",
            duel.label,
            changes.join(", of ")
        );
        let remedy = "Look at throughput over time; give a longer warm-up or fewer load levels, or a machine without other work.";
        Some(finding(severity, &names, claim, remedy).at(duel.level))
    });
    told.collect()
}

/// Whose the change of a level's unsettled cells is.
enum Whose {
    /// That of one of them at least, relative to the other contenders.
    Own,
    /// That of all contenders alike.
    Common,
    /// The scatter does not tell.
    NotShown,
}

fn whose(unsettled: &[(&str, &CellCourse)]) -> Whose {
    let changes = || unsettled.iter().map(|(_, course)| &course.own_change);
    if changes().any(is_off_one) {
        Whose::Own
    } else if changes().all(|change| state(change) == SteadyState::Steady) {
        Whose::Common
    } else {
        Whose::NotShown
    }
}

/// True when the interval does not hold 1.
fn is_off_one(ratio: &Figure) -> bool {
    ratio
        .interval()
        .is_some_and(|(low, high)| low > 1.0 || high < 1.0)
}

/// Cells whose first slices lie apart from the rest.
pub(super) fn settled_late(case: &Case<'_>) -> Vec<Found> {
    let told = case.summary.duels.iter().filter_map(|duel| {
        let late = courses(duel).filter_map(|(name, course)| Some((name, course.transient?)));
        let (names, parts): (Vec<&str>, Vec<String>) = late
            .map(|(name, transient)| {
                let part = format!(
                    "the first {} of `{name}` by {}",
                    transient.slices,
                    percent::signed(transient.ratio - 1.0)
                );
                (name, part)
            })
            .unzip();
        if names.is_empty() {
            return None;
        }
        let claim = format!(
            "Slices at the beginning of {} lie apart from the later ones: {}. They count like all others; a machine \
                 that was busy then looks the same.",
            duel.label,
            parts.join(", ")
        );
        let remedy = "The warm-up ran under the heaviest load only; give a longer one, or this load level an experiment of its own.";
        Some(finding(Severity::Note, &names, claim, remedy).at(duel.level))
    });
    told.collect()
}

/// Cells that commit less, or more, whenever another load level was before them.
pub(super) fn level_entered(case: &Case<'_>) -> Vec<Found> {
    let told = case.summary.duels.iter().filter_map(|duel| {
        let moved = courses(duel).filter_map(|(name, course)| {
            let entered = course.entered.as_ref().filter(|entered| is_off_one(entered))?;
            Some((name, entered))
        });
        let (names, parts): (Vec<&str>, Vec<String>) = moved
            .map(|(name, entered)| (name, format!("of `{name}` by {}", change(entered))))
            .unzip();
        if names.is_empty() {
            return None;
        }
        let claim = format!(
            "At {} the first slice after another load level differs from the next one in the same block: {}. The state \
             that one level leaves is part of the figures of the other.",
            duel.label,
            parts.join(", ")
        );
        let remedy = "Give longer slices, or every load level an experiment of its own.";
        Some(finding(Severity::Doubt, &names, claim, remedy).at(duel.level))
    });
    told.collect()
}

/// `−12.0 % (−15.0 % to −9.0 %)`.
fn change(ratio: &Figure) -> String {
    let signed = |value: f64| percent::signed(value - 1.0);
    match (ratio.value(), ratio.interval()) {
        (Some(value), Some((low, high))) => {
            format!("{} ({} to {})", signed(value), signed(low), signed(high))
        }
        (Some(value), None) => signed(value),
        (None, _) => "an amount that is not known".to_owned(),
    }
}
