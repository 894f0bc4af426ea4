//! The explanation in sentences and rows, the same in every format.
//!
//! States which resources differ and by how much; never a cause, because paired blocks show none.

mod highlights;
mod phrases;
mod sentences;

use dbduel_judge::Summary;
use dbduel_judge::explain::{Cost, Division, Explanation, Latency, Moved, Unit, is_negligible};
use dbduel_judge::summary::Figure;
use serde::Serialize;

use super::number_of;
use super::view::table::{Cell, Column, Group, NUMBER, Row, Table};
use super::words::{self, RatioUnit};
pub use sentences::{is_decided, sentences};
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
    /// Division of a transaction's time; absent when it could not be divided.
    pub parts: Option<Table>,
    /// Costs by group. The answer of a change is `less`, `more`, `same`, `unclear` or `unknown`; of a constant `same`, of a
    /// negligible cost `unclear`.
    pub costs: Table,
    /// Number of the costs.
    pub resources: usize,
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

fn value(cost: &Cost, figure: &Figure) -> String {
    words::value(figure, |value| amount(cost, value))
}

/// An amount of a cost in its unit; of a negligible cost no more digits than a reader can use.
#[must_use]
pub fn amount(cost: &Cost, value: f64) -> String {
    let is_trace = |least: f64| value > 0.0 && value < least && is_negligible(cost);
    match cost.unit {
        Unit::Microseconds => words::latency(value),
        Unit::Bytes if is_trace(1.0) => "<1 B".to_owned(),
        Unit::Bytes => words::bytes_of(value),
        Unit::Count if is_trace(0.001) => "<0.001".to_owned(),
        Unit::Count => words::number(value),
    }
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
            Moved::Same | Moved::Still | Moved::Unclear | Moved::Unknown => "–".to_owned(),
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
    let number = number_of(summary, &explanation.contender);
    let table = |what: &str, groups: Vec<Group>| Table {
        class: "moved",
        columns: vec![
            Column::from(("", what)),
            Column::from((NUMBER, summary.baseline.as_str())),
            Column::of_contender(NUMBER, number, &explanation.contender),
            Column::from((NUMBER, "change")),
        ],
        groups,
    };
    let parts = match &explanation.latency {
        Latency::Divided(division) => Some(Group {
            rows: rows_of(division),
            ..Group::default()
        }),
        Latency::NotDivided { .. } => None,
    };
    let unit = unit_of(&explanation.costs);
    let mut groups: Vec<Group> = Vec::new();
    for cost in &explanation.costs {
        let head = cost.group.name();
        if groups.last().is_none_or(|group| group.head != head) {
            groups.push(Group {
                head: head.to_owned(),
                ..Group::default()
            });
        }
        let is_level = if cost.is_level { " (level)" } else { "" };
        let moved = match is_negligible(cost) {
            true => moved(Moved::Unclear),
            false => moved(cost.moved),
        };
        groups.last_mut().expect("one was added").rows.push(row(
            &format!("{}{is_level}", cost.name),
            [&cost.baseline, &cost.contender].map(|figure| value(cost, figure)),
            Cell::answer(moved, change(cost, unit), String::new()),
        ));
    }
    ExplanationView {
        level,
        contender: explanation.contender.clone(),
        number,
        baseline: summary.baseline.clone(),
        sentences: sentences(summary, explanation).all(),
        parts: parts.map(|parts| table("part of the time", vec![parts])),
        costs: table("per transaction", groups),
        resources: explanation.costs.len(),
    }
}

fn row(name: &str, [baseline, contender]: [String; 2], change: Cell) -> Row {
    Row::from_iter([
        Cell::from(name),
        Cell::from(baseline),
        Cell::from(contender),
        change,
    ])
}

fn rows_of(division: &Division) -> Vec<Row> {
    let row = |name: &str, figures: [&Figure; 3]| {
        let [baseline, contender, change] = figures;
        let is_less = change.value().is_some_and(|value| value < 0.0);
        let moved = match is_certain(change) {
            true if is_less => "less",
            true => "more",
            false if change.interval().is_some() => "unclear",
            false => "unknown",
        };
        row(
            name,
            [baseline, contender].map(|figure| words::value(figure, words::latency)),
            Cell::answer(moved, difference(change), String::new()),
        )
    };
    let mut rows: Vec<Row> = division
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
    let whole = [
        &division.baseline_us,
        &division.contender_us,
        &division.difference_us,
    ];
    rows.push(Row {
        class: "sum",
        ..row("whole transaction", whole)
    });
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
