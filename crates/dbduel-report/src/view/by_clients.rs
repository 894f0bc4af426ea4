//! Throughput over the load levels as a table: against the baseline, against the level before, and against
//! the first contender.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Measures};

use super::table::{Cell, Column, LEVEL, NAME, NUMBER, Row, Table};
use crate::words::{self, RatioUnit};

const COLUMNS: [(&str, &str); 8] = [
    (LEVEL, "load"),
    (NAME, "contender"),
    (NUMBER, "transactions/s"),
    (NUMBER, "mean latency"),
    (NUMBER, "p95"),
    (NUMBER, "change from previous level"),
    (NUMBER, "ratio to first contender"),
    (NUMBER, "verdict's ratio"),
];

/// The table; `None` with fewer than two levels.
pub(super) fn by_clients(summary: &Summary) -> Option<Table> {
    if summary.duels.len() < 2 {
        return None;
    }
    let mut rows = Vec::new();
    let unit = unit(summary);
    let mut before: Option<&Duel> = None;
    for duel in &summary.duels {
        for (number, measures) in duel.contenders.iter().enumerate() {
            let names = [
                Cell::from(&duel.label),
                Cell::of_contender(number, &measures.contender),
            ];
            let cells = cells(duel, before, number, measures, unit);
            rows.push(Row {
                class: if number == 0 { "first" } else { "" },
                ..names.into_iter().chain(cells.map(Cell::from)).collect()
            });
        }
        before = Some(duel);
    }
    Some(Table::new(COLUMNS.map(Column::from).into(), rows))
}

/// Legend of the stars beside the verdicts' ratios.
pub(super) fn legend(summary: &Summary) -> &'static str {
    let comparisons = summary.duels.iter().flat_map(|duel| &duel.comparisons);
    words::starred(comparisons.map(|one| &one.ratio))
}

/// The unit of all changes and ratios of the table.
fn unit(summary: &Summary) -> RatioUnit {
    let duels = &summary.duels;
    let ratios = duels.iter().flat_map(|duel| &duel.comparisons);
    let ratios = ratios.flat_map(|one| words::ratio_values(&one.ratio));
    let changes = duels.iter().enumerate().flat_map(|(at, duel)| {
        let before = at.checked_sub(1).map(|before| &duels[before]);
        let measures = duel.contenders.iter().enumerate();
        measures.flat_map(move |(number, measures)| {
            let others = [
                before.and_then(|duel| duel.contenders.get(number)),
                duel.contenders.first(),
            ];
            others.map(|other| change(measures, other))
        })
    });
    RatioUnit::of_values(ratios.chain(changes.flatten()))
}

/// Ratio of a throughput to another; `None` without both.
fn change(measures: &Measures, other: Option<&Measures>) -> Option<f64> {
    let rate = |measures: &Measures| measures.throughput_per_s.value().filter(|rate| *rate > 0.0);
    Some(rate(measures)? / rate(other?)?)
}

fn cells(
    duel: &Duel,
    before: Option<&Duel>,
    number: usize,
    measures: &Measures,
    unit: RatioUnit,
) -> [String; 6] {
    let change = |other: Option<&Measures>| {
        let change = change(measures, other);
        change.map_or_else(|| "–".to_owned(), |change| unit.write(change))
    };
    let comparison = duel
        .comparisons
        .iter()
        .find(|one| one.contender == measures.contender);
    let ratio = comparison.map_or_else(
        || "–".to_owned(),
        |one| {
            let value = unit.value(&one.ratio);
            match unit.short_interval(&one.ratio) {
                interval if interval.is_empty() => value,
                interval => format!("{value} ({interval})"),
            }
        },
    );
    let first = if number == 0 {
        None
    } else {
        duel.contenders.first()
    };
    [
        words::value(&measures.throughput_per_s, words::number),
        words::value(&measures.latency_us_mean, words::latency),
        words::value(&measures.latency_us_p95, words::latency),
        change(before.and_then(|duel| duel.contenders.get(number))),
        change(first),
        ratio,
    ]
}
