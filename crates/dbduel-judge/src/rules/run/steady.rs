//! Rules about the course of the cells: were they in a steady state while they were measured?

use dbduel_audit::Finding;
use dbduel_record::Plan;
use dbduel_record::event::Severity;
use dbduel_text::percent;

use super::RunEvidence;
use super::verdict::has_changed;
use crate::duel::steady::{is_beyond, is_within};
use crate::summary::{CellCourse, Duel, Figure, SteadyState};

/// The cells of a level, with their names, whose course is known.
fn courses(duel: &Duel) -> impl Iterator<Item = (&str, &CellCourse)> {
    let measures = duel.contenders.iter();
    measures.filter_map(|one| Some((one.contender.as_str(), one.course.as_ref()?)))
}

/// Relative change within which two parts of a cell agree: smaller changes matter to no verdict.
fn tolerance(run: &RunEvidence<'_>) -> f64 {
    CellCourse::TOLERANCE.max(run.evidence.plan().decision.horizon)
}

/// The start that a claim is about, between commas, where servers were started several times.
fn which_start(run: &RunEvidence<'_>) -> String {
    match run.judged.run.epochs {
        ..=1 => String::new(),
        starts => format!(", in the longest of {starts} starts,"),
    }
}

/// Cells whose throughput changed from the first half of their slices to the second.
pub fn never_settled(run: &RunEvidence<'_>) -> Vec<Finding> {
    let tolerance = tolerance(run);
    let within = percent::of(tolerance);
    let told = run.judged.duels.iter().filter_map(|duel| {
        let unsettled: Vec<(&str, &CellCourse)> = courses(duel)
            .filter(|(_, course)| course.state == SteadyState::NeverSettled)
            .collect();
        if unsettled.is_empty() {
            return None;
        }
        let (cells, severity, meaning) = match whose(unsettled, tolerance) {
            Whose::Own(cells) if is_told_of_a_ratio(run, duel, &cells) => (
                cells,
                Severity::Note,
                "It changed relative to the other contenders too, which is why the ratio changed.".to_owned(),
            ),
            Whose::Own(cells) => (
                cells,
                Severity::Doubt,
                "It changed relative to the other contenders too, so the ratio is not a steady-state one.".to_owned(),
            ),
            Whose::Common(cells) => (
                cells,
                Severity::Note,
                format!(
                    "All contenders changed equally within {within}, as when the machine changes: ratios hold, but figures \
                     of single contenders are means over a changing state."
                ),
            ),
            Whose::NotShown(cells) => (
                cells,
                Severity::Note,
                format!(
                    "The data do not show whether contenders changed equally within {within}; figures of single \
                     contenders are means over a changing state."
                ),
            ),
        };
        let (names, changes): (Vec<&str>, Vec<String>) = cells
            .iter()
            .map(|(name, course)| (*name, format!("`{name}` by {}", change(&course.change))))
            .unzip();
        let claim = format!(
            "No steady state at {}: from the first half of the slices{} to the second, throughput changed for {}. {meaning}",
            duel.label,
            which_start(run),
            changes.join(", ")
        );
        let plan = run.evidence.plan();
        let fewer_levels = match plan.levels.len() {
            1 => String::new(),
            _ => format!(" or fewer {}s", level_word(plan)),
        };
        let remedy = format!(
            "See throughput over time; use a longer warm-up{fewer_levels}, or a machine without other work."
        );
        Some(Finding::new(severity, &names, claim, &remedy).at(duel.level))
    });
    told.collect()
}

/// Origin of the change in the unsettled cells of a level, and the cells to report.
enum Whose<'a> {
    /// These cells changed relative to the other contenders.
    Own(Vec<(&'a str, &'a CellCourse)>),
    /// All contenders changed alike.
    Common(Vec<(&'a str, &'a CellCourse)>),
    /// Too much scatter to tell.
    NotShown(Vec<(&'a str, &'a CellCourse)>),
}

fn whose<'a>(unsettled: Vec<(&'a str, &'a CellCourse)>, tolerance: f64) -> Whose<'a> {
    let movers: Vec<(&str, &CellCourse)> = (unsettled.iter().copied())
        .filter(|(_, course)| is_beyond(&course.own_change, tolerance))
        .collect();
    if !movers.is_empty() {
        Whose::Own(movers)
    } else if (unsettled.iter()).all(|(_, course)| is_within(&course.own_change, tolerance)) {
        Whose::Common(unsettled)
    } else {
        Whose::NotShown(unsettled)
    }
}

/// True when a ratio of one of these contenders is in doubt already because it changed.
fn is_told_of_a_ratio(run: &RunEvidence<'_>, duel: &Duel, cells: &[(&str, &CellCourse)]) -> bool {
    let is_one_of_them = |name: &str| cells.iter().any(|(cell, _)| *cell == name);
    let mut changed = (duel.comparisons.iter()).filter(|one| has_changed(one));
    changed.any(|one| is_one_of_them(&one.contender) || is_one_of_them(&run.judged.baseline))
}

/// Cells whose first slices lie apart from the rest.
pub fn settled_late(run: &RunEvidence<'_>) -> Vec<Finding> {
    let levels = &run.evidence.plan().levels;
    let heaviest = levels.iter().map(|level| level.clients).max();
    let told = run.judged.duels.iter().filter_map(|duel| {
        let late = courses(duel).filter_map(|(name, course)| Some((name, course.transient?)));
        let (names, parts): (Vec<&str>, Vec<String>) = late
            .map(|(name, transient)| {
                let part = format!(
                    "the first {} of `{name}` by {} ± {}",
                    transient.slices,
                    percent::signed(transient.ratio - 1.0),
                    percent::of(transient.margin)
                );
                (name, part)
            })
            .unzip();
        if names.is_empty() {
            return None;
        }
        let claim = format!(
            "First slices of {}{} differ from the later ones: {}. They are included; a machine that was busy then \
             would look the same.",
            duel.label,
            which_start(run),
            parts.join(", ")
        );
        let is_suite = run.evidence.plan().suite.is_some();
        let remedy = match is_suite || Some(levels[duel.level].clients) == heaviest {
            true => "Use a longer warm-up.",
            false => {
                "The warm-up ran under the heaviest load only; use a longer one, or a separate experiment for this load level."
            }
        };
        Some(Finding::new(Severity::Note, &names, claim, remedy).at(duel.level))
    });
    told.collect()
}

/// Cells that commit less, or more, whenever another load level was before them.
pub fn level_entered(run: &RunEvidence<'_>) -> Vec<Finding> {
    let tolerance = tolerance(run);
    let told = run.judged.duels.iter().filter_map(|duel| {
        let moved: Vec<(&str, &Figure)> = courses(duel)
            .filter_map(|(name, course)| Some((name, course.entered.as_ref()?)))
            .filter(|(_, entered)| is_beyond(entered, 0.0) && !is_within(entered, tolerance))
            .collect();
        let (names, parts): (Vec<&str>, Vec<String>) = moved
            .iter()
            .map(|(name, entered)| (*name, format!("of `{name}` by {}", change(entered))))
            .unzip();
        if names.is_empty() {
            return None;
        }
        let severity = match moved.iter().any(|(_, entered)| is_beyond(entered, tolerance)) {
            true => Severity::Doubt,
            false => Severity::Note,
        };
        let level = level_word(run.evidence.plan());
        let claim = format!(
            "At {} the first slice after another {level} differs from the next one in the same block: {}. State \
             left by one {level} affects the figures of the other.",
            duel.label,
            parts.join(", ")
        );
        let remedy = format!("Use longer slices, or a separate experiment for each {level}.");
        Some(Finding::new(severity, &names, claim, &remedy).at(duel.level))
    });
    told.collect()
}

/// Word for a duel of a contest: load level, or workload in a suite.
pub(super) fn level_word(plan: &Plan) -> &'static str {
    match plan.suite {
        Some(_) => "workload",
        None => "load level",
    }
}

/// `−12.0 % (−15.0 % to −9.0 %)`.
fn change(ratio: &Figure) -> String {
    let signed = |value: f64| percent::signed(value - 1.0);
    match (ratio.value(), ratio.interval()) {
        (Some(value), Some((low, high))) => {
            format!("{} ({} to {})", signed(value), signed(low), signed(high))
        }
        (Some(value), None) => signed(value),
        (None, _) => "an unknown amount".to_owned(),
    }
}
