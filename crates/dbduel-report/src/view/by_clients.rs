//! Throughput over the load levels as a table: against the baseline, against the level before, and against
//! the first contender.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Measures};
use serde::Serialize;

use crate::words::{self, RatioUnit};

pub const HEADS: [&str; 8] = [
    "load",
    "contender",
    "transactions/s",
    "mean latency",
    "p95",
    "change from previous level",
    "ratio to first contender",
    "verdict's ratio",
];

#[derive(Debug, Clone, Serialize)]
pub struct ByClientsView {
    pub level: String,
    pub contender: String,
    pub number: usize,
    /// True for the first row of a level.
    pub is_first: bool,
    /// Cells in the order of [`HEADS`], without the first two.
    pub cells: Vec<String>,
}

/// The rows; empty with fewer than two levels.
pub(super) fn by_clients(summary: &Summary) -> Vec<ByClientsView> {
    if summary.duels.len() < 2 {
        return Vec::new();
    }
    let mut rows = Vec::new();
    let unit = unit(summary);
    let mut before: Option<&Duel> = None;
    for duel in &summary.duels {
        for (number, measures) in duel.contenders.iter().enumerate() {
            rows.push(ByClientsView {
                level: duel.label.clone(),
                contender: measures.contender.clone(),
                number,
                is_first: number == 0,
                cells: cells(duel, before, number, measures, unit),
            });
        }
        before = Some(duel);
    }
    rows
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
) -> Vec<String> {
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
            match unit.interval(&one.ratio) {
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
    vec![
        words::value(&measures.throughput_per_s, words::number),
        words::value(&measures.latency_us_mean, words::latency),
        words::value(&measures.latency_us_p95, words::latency),
        change(before.and_then(|duel| duel.contenders.get(number))),
        change(first),
        ratio,
    ]
}
