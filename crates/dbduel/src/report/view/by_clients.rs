//! Throughput over the load levels as a table: against the baseline, against the level before, and against
//! the first contender.

use serde::Serialize;

use crate::judge::Summary;
use crate::judge::summary::{Duel, Measures};
use crate::report::words;

/// Headings of the table.
pub const HEADS: [&str; 8] = [
    "load",
    "contender",
    "transactions/s",
    "mean latency",
    "95 %",
    "from the level before",
    "gain over the first",
    "ratio to the baseline",
];

/// One contender at one level.
#[derive(Debug, Clone, Serialize)]
pub struct ByClientsView {
    /// Name of the level.
    pub level: String,
    /// Name of the contender.
    pub contender: String,
    /// Number, for colour and shape.
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
    let mut before: Option<&Duel> = None;
    for duel in &summary.duels {
        for (number, measures) in duel.contenders.iter().enumerate() {
            rows.push(ByClientsView {
                level: duel.label.clone(),
                contender: measures.contender.clone(),
                number,
                is_first: number == 0,
                cells: cells(duel, before, number, measures),
            });
        }
        before = Some(duel);
    }
    rows
}

fn cells(duel: &Duel, before: Option<&Duel>, number: usize, measures: &Measures) -> Vec<String> {
    let rate = |measures: &Measures| measures.throughput_per_s.value().filter(|rate| *rate > 0.0);
    let change = |other: Option<&Measures>| {
        let ratio = rate(measures).zip(other.and_then(rate));
        ratio.map_or_else(|| "–".to_owned(), |(own, other)| words::ratio(own / other))
    };
    let comparison = duel
        .comparisons
        .iter()
        .find(|one| one.contender == measures.contender);
    let ratio = comparison.map_or_else(
        || "–".to_owned(),
        |one| {
            let value = words::ratio_value(&one.ratio).unwrap_or_else(|| "–".to_owned());
            match words::ratio_interval(&one.ratio) {
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
