//! The explanation in sentences and rows, the same in every format.
//!
//! States which resources differ and by how much; never a cause, because paired blocks show none.

mod highlights;
mod phrases;
mod sentences;

use dbduel_judge::Summary;
use dbduel_judge::explain::{Cost, Division, Explanation, Latency, Moved, Unit};
use dbduel_judge::summary::Figure;
use serde::Serialize;

use super::number_of;
use super::words::{self, RatioUnit};
pub use sentences::sentences;
/// The caveat of every explanation.
const CAUTION: &str = "Exploratory: not part of the verdict. Differences that occur together show no cause; changing one \
     setting at a time does.";

/// One explanation, ready to be laid out.
#[derive(Debug, Clone, Serialize)]
pub struct ExplanationView {
    /// Name of the load level.
    pub level: String,
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    pub baseline: String,
    /// Sentences, the largest differences first.
    pub sentences: Vec<String>,
    /// Division of a transaction's time; empty when it could not be divided.
    pub parts: Vec<RowView>,
    /// Costs by group.
    pub costs: Vec<RowView>,
}

/// One row of a table of an explanation.
#[derive(Debug, Clone, Serialize)]
pub struct RowView {
    /// Heading of the group that begins with this row, or empty.
    pub group: &'static str,
    pub name: String,
    pub baseline: String,
    pub contender: String,
    pub change: String,
    /// Class of the change: `less`, `more`, `same`, `unclear` or `unknown`; a constant is `same`.
    pub moved: &'static str,
}

/// The explanations of a summary that have something to show.
#[must_use]
pub fn views(summary: &Summary) -> Vec<ExplanationView> {
    summary
        .explanations
        .iter()
        .filter(|explanation| has_content(explanation))
        .map(|explanation| view(summary, explanation))
        .collect()
}

/// True when the explanation has content: a resource differs, the latency could be divided, or resources can be
/// compared once there are enough blocks.
#[must_use]
pub fn has_content(explanation: &Explanation) -> bool {
    !explanation.moved.is_empty()
        || matches!(explanation.latency, Latency::Divided(_))
        || !(explanation.has_enough_blocks() || explanation.costs.is_empty())
}

/// The caveat of the explanations; empty where none of them compares anything.
#[must_use]
pub fn caution(summary: &Summary) -> String {
    let mut explanations = summary.explanations.iter();
    match explanations.find(|one| has_content(one) && one.has_enough_blocks()) {
        Some(one) => format!(
            "{CAUTION} In brackets: intervals over the blocks, with {} joint confidence per comparison.",
            words::share(1.0 - one.alpha)
        ),
        None => String::new(),
    }
}

fn value(unit: Unit, figure: &Figure) -> String {
    words::value(figure, |amount| match unit {
        Unit::Microseconds => words::latency(amount),
        Unit::Bytes => words::bytes_of(amount),
        Unit::Count => words::number(amount),
    })
}

/// Common unit of the changes in one table of costs.
#[must_use]
pub fn unit_of<'c>(costs: impl IntoIterator<Item = &'c Cost>) -> RatioUnit {
    let ratios = costs.into_iter().map(|cost| &cost.ratio);
    RatioUnit::of(ratios.filter(|ratio| ratio.interval().is_some()))
}

/// The change of a cost with its interval: `−47 % [−50 %, −44 %]`; without one it is not stated.
#[must_use]
pub fn change(cost: &Cost, unit: RatioUnit) -> String {
    // Said of a constant zero as well, to which there is no ratio.
    if cost.moved == Moved::Still {
        return "constant".to_owned();
    }
    if cost.ratio.value().is_none() {
        return match cost.moved {
            Moved::Less => "less".to_owned(),
            Moved::More => "more".to_owned(),
            _ => "–".to_owned(),
        };
    }
    match unit.interval(&cost.ratio) {
        interval if interval.is_empty() => "–".to_owned(),
        interval => {
            let interval = interval.replace(" to ", ", ");
            format!("{} [{interval}]", unit.value(&cost.ratio))
        }
    }
}

fn view(summary: &Summary, explanation: &Explanation) -> ExplanationView {
    let level = summary
        .duels
        .iter()
        .find(|duel| duel.level == explanation.level)
        .map_or_else(String::new, |duel| duel.label.clone());
    let parts = match &explanation.latency {
        Latency::Divided(division) => rows_of(division),
        Latency::NotDivided { .. } => Vec::new(),
    };
    let mut last = "";
    let unit = unit_of(&explanation.costs);
    let costs = explanation.costs.iter().map(|cost| {
        let name = cost.group.name();
        let group = if name == last { "" } else { name };
        last = name;
        RowView {
            group,
            name: if cost.is_level {
                format!("{} (level)", cost.name)
            } else {
                cost.name.clone()
            },
            baseline: value(cost.unit, &cost.baseline),
            contender: value(cost.unit, &cost.contender),
            change: change(cost, unit),
            moved: moved(cost.moved),
        }
    });
    ExplanationView {
        level,
        contender: explanation.contender.clone(),
        number: number_of(summary, &explanation.contender),
        baseline: summary.baseline.clone(),
        sentences: sentences(summary, explanation).all(),
        parts,
        costs: costs.collect(),
    }
}

fn rows_of(division: &Division) -> Vec<RowView> {
    let row = |name: &str, figures: [&Figure; 3]| {
        let [baseline, contender, change] = figures;
        let is_less = change.value().is_some_and(|value| value < 0.0);
        RowView {
            group: "",
            name: name.to_owned(),
            baseline: words::value(baseline, words::latency),
            contender: words::value(contender, words::latency),
            change: difference(change),
            moved: match is_certain(change) {
                true if is_less => "less",
                true => "more",
                false if change.interval().is_some() => "unclear",
                false => "unknown",
            },
        }
    };
    let mut rows: Vec<RowView> = division
        .parts
        .iter()
        .filter(|part| {
            [&part.baseline_us, &part.contender_us]
                .iter()
                .any(|figure| figure.value().is_some_and(|us| us > 0.0))
        })
        .map(|part| {
            row(
                part.doing.name(),
                [&part.baseline_us, &part.contender_us, &part.difference_us],
            )
        })
        .collect();
    rows.push(row(
        "whole transaction",
        [
            &division.baseline_us,
            &division.contender_us,
            &division.difference_us,
        ],
    ));
    rows
}

/// A difference of times with its interval: `−104 µs [−157 µs, −51.4 µs]`; without one it is not stated.
fn difference(difference: &Figure) -> String {
    let value = difference.value().unwrap_or(0.0);
    match difference.interval() {
        Some((low, high)) => format!("{} [{}, {}]", signed(value), signed(low), signed(high)),
        None => "–".to_owned(),
    }
}

fn signed(us: f64) -> String {
    let sign = match us {
        _ if us < 0.0 => "−",
        _ if us > 0.0 => "+",
        _ => "",
    };
    format!("{sign}{}", words::latency(us.abs()))
}

fn moved(moved: Moved) -> &'static str {
    match moved {
        Moved::Less => "less",
        Moved::More => "more",
        Moved::Same | Moved::Still => "same",
        Moved::Unclear => "unclear",
        Moved::Unknown => "unknown",
    }
}

fn is_certain(difference: &Figure) -> bool {
    difference
        .interval()
        .is_some_and(|(low, high)| high < 0.0 || low > 0.0)
}
