//! Cost of a transaction in each workload, as matrices of the same shape as those of throughput.

use dbduel_judge::Summary;
use dbduel_judge::explain::{Cost, Explanation, Moved, Unit};
use dbduel_judge::summary::{Duel, Figure};

use super::{Column, Matrix, MatrixCell, named_groups};
use crate::number_of;
use crate::words::{self, RatioUnit};

/// Resources with a matrix, by their stable names.
const SHOWN: [(&str, &str); 6] = [
    ("server-cpu", "Server CPU per transaction"),
    (
        "voluntary-switches",
        "Voluntary context switches per transaction",
    ),
    (
        "involuntary-switches",
        "Involuntary context switches per transaction",
    ),
    ("disk-reads", "Read requests to the disk per transaction"),
    ("server-read", "Bytes read from the device per transaction"),
    (
        "server-written",
        "Bytes written to the device per transaction",
    ),
];

/// A matrix for each resource that was observed.
pub(super) fn matrices(summary: &Summary) -> Vec<Matrix> {
    let all = SHOWN.iter();
    all.filter_map(|(resource, title)| matrix(summary, resource, title))
        .collect()
}

fn explanation<'s>(summary: &'s Summary, duel: &Duel, contender: &str) -> Option<&'s Explanation> {
    let mut all = summary.explanations.iter();
    all.find(|one| one.level == duel.level && one.contender == contender)
}

fn cost<'s>(
    summary: &'s Summary,
    duel: &Duel,
    contender: &str,
    resource: &str,
) -> Option<&'s Cost> {
    let costs = &explanation(summary, duel, contender)?.costs;
    costs.iter().find(|cost| cost.resource == resource)
}

/// The first-ranked cost of a workload's difference; `None` where none is shown.
pub(super) fn moved(summary: &Summary, duel: &Duel, contender: &str) -> Option<String> {
    let explanation = explanation(summary, duel, contender)?;
    let cost = &explanation.costs[*explanation.moved.first()?];
    let change = words::ratio_value(&cost.ratio)?;
    Some(format!("{} {change}", cost.name))
}

fn matrix(summary: &Summary, resource: &str, title: &str) -> Option<Matrix> {
    let columns: Vec<Column> = summary
        .contenders
        .iter()
        .map(|facts| Column {
            contender: facts.name.clone(),
            number: number_of(summary, &facts.name),
            against: match facts.name == summary.baseline {
                true => String::new(),
                false => summary.baseline.clone(),
            },
        })
        .collect();
    let suite = summary.suite.as_ref()?;
    let groups = named_groups(summary, suite, &columns, |duel, column| {
        cell(summary, duel, column, resource)
    });
    let mut cells = groups
        .iter()
        .flat_map(|group| &group.rows)
        .flat_map(|row| &row.cells);
    cells.any(|cell| !cell.text.is_empty()).then(|| Matrix {
        title: title.to_owned(),
        note: format!(
            "Column {}: per transaction. Other columns: relative to it; ▲ more, ▼ less: the interval excludes no difference; intervals are joint over the figures of a workload.",
            summary.baseline
        ),
        columns,
        groups,
    })
}

fn cell(summary: &Summary, duel: &Duel, column: &Column, resource: &str) -> MatrixCell {
    if column.against.is_empty() {
        // Every contender is compared with the baseline, so any of them has its figure.
        let others = summary.contenders.iter();
        let found = others
            .filter(|facts| facts.name != column.contender)
            .find_map(|facts| cost(summary, duel, &facts.name, resource));
        return found.map_or_else(MatrixCell::default, |cost| MatrixCell {
            text: amount(&cost.baseline, cost.unit),
            hover: format!(
                "{}, {}: {}",
                duel.label,
                column.contender,
                with_interval(&cost.baseline, cost.unit)
            ),
            ..MatrixCell::default()
        });
    }
    let Some(cost) = cost(summary, duel, &column.contender, resource) else {
        return MatrixCell::default();
    };
    let (sign, answer) = match cost.moved {
        Moved::Less => ("▼", "lower"),
        Moved::More => ("▲", "higher"),
        Moved::Same | Moved::Still => ("=", "equivalent"),
        Moved::Unclear | Moved::Unknown => ("?", "undecided"),
    };
    MatrixCell {
        text: super::relative(&cost.ratio),
        sign,
        answer,
        strength: 0.0,
        hover: format!(
            "{}, {}: {} against {}; {}",
            duel.label,
            column.contender,
            with_interval(&cost.contender, cost.unit),
            with_interval(&cost.baseline, cost.unit),
            RatioUnit::of([&cost.ratio]).doubt(&cost.ratio)
        ),
    }
}

fn write(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Microseconds => words::latency(value),
        Unit::Bytes => words::bytes_of(value),
        Unit::Count => words::number(value),
    }
}

fn amount(figure: &Figure, unit: Unit) -> String {
    figure
        .value()
        .map_or_else(|| "–".to_owned(), |value| write(value, unit))
}

fn with_interval(figure: &Figure, unit: Unit) -> String {
    match figure.interval() {
        Some((low, high)) if high.is_finite() => format!(
            "{} ({} to {})",
            amount(figure, unit),
            write(low, unit),
            write(high, unit)
        ),
        _ => amount(figure, unit),
    }
}
