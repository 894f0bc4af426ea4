//! Tables of a record and its summary.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_judge::Summary;
use dbduel_judge::explain::Cost;
use dbduel_judge::summary::{Figure, Measures};
use dbduel_record::Record;
use dbduel_record::event::SliceId;
use dbduel_record::rows::ALL_CLASSES;

use super::table::Kind::{Real, Text, Whole};
use super::table::{Cell, Table};

/// Value, lower and upper end, confidence; missing where there is none.
pub(super) fn cells(figure: &Figure) -> [Cell; 4] {
    let interval = figure.interval();
    let confidence = match figure {
        Figure::Estimated { confidence, .. } => Some(*confidence),
        _ => None,
    };
    [
        figure.value(),
        interval.map(|(low, _)| low),
        interval.map(|(_, high)| high),
        confidence,
    ]
    .map(Cell::real)
}

/// One row per comparison.
pub fn verdicts(summary: &Summary) -> Table {
    let mut table = Table::new(
        "verdicts",
        &[
            ("load", Text),
            ("clients", Whole),
            ("contender", Text),
            ("baseline", Text),
            ("verdict", Text),
            ("ratio", Real),
            ("ratio_low", Real),
            ("ratio_high", Real),
            ("confidence", Real),
            ("blocks", Whole),
        ],
    );
    for duel in &summary.duels {
        for one in &duel.comparisons {
            let mut row = vec![
                Cell::from(duel.label.as_str()),
                duel.load.clients.into(),
                one.contender.as_str().into(),
                summary.baseline.as_str().into(),
                one.verdict.word().into(),
            ];
            row.extend(cells(&one.ratio));
            row.push(duel.blocks_complete.into());
            table.push(row);
        }
    }
    table
}

/// One row per block of a comparison: the work and the time that the ratio of the verdict divides.
pub fn blocks(summary: &Summary) -> Table {
    let mut table = Table::new(
        "blocks",
        &[
            ("load", Text),
            ("clients", Whole),
            ("contender", Text),
            ("baseline", Text),
            ("block", Whole),
            ("transactions", Whole),
            ("seconds", Real),
            ("baseline_transactions", Whole),
            ("baseline_seconds", Real),
            ("log_ratio", Real),
        ],
    );
    for duel in &summary.duels {
        for one in &duel.comparisons {
            for block in &one.blocks {
                table.push(vec![
                    Cell::from(duel.label.as_str()),
                    duel.load.clients.into(),
                    one.contender.as_str().into(),
                    summary.baseline.as_str().into(),
                    block.block.into(),
                    Cell::count(block.transactions),
                    block.seconds.into(),
                    Cell::count(block.baseline_transactions),
                    block.baseline_seconds.into(),
                    block.ratio.ln().into(),
                ]);
            }
        }
    }
    table
}

/// Selects one of a contender's figures.
type Pick = fn(&Measures) -> &Figure;

pub(super) const FIGURES: [(&str, Pick); 11] = [
    ("throughput_per_s", |one| &one.throughput_per_s),
    ("latency_us_mean", |one| &one.latency_us_mean),
    ("latency_us_p50", |one| &one.latency_us_p50),
    ("latency_us_p95", |one| &one.latency_us_p95),
    ("latency_us_p99", |one| &one.latency_us_p99),
    ("latency_us_p999", |one| &one.latency_us_p999),
    ("latency_us_max", |one| &one.latency_us_max),
    ("server_cpu_us_per_transaction", |one| {
        &one.server_cpu_us_per_transaction
    }),
    ("client_cpu_us_per_transaction", |one| {
        &one.client_cpu_us_per_transaction
    }),
    ("server_memory_bytes_max", |one| {
        &one.server_memory_bytes_max
    }),
    ("client_memory_bytes_max", |one| {
        &one.client_memory_bytes_max
    }),
];

/// One row per figure of a contender.
pub fn measures(summary: &Summary) -> Table {
    let mut table = Table::new(
        "measures",
        &[
            ("load", Text),
            ("clients", Whole),
            ("contender", Text),
            ("figure", Text),
            ("value", Real),
            ("low", Real),
            ("high", Real),
            ("confidence", Real),
        ],
    );
    for duel in &summary.duels {
        for one in &duel.contenders {
            for (name, pick) in FIGURES {
                let mut row = vec![
                    Cell::from(duel.label.as_str()),
                    duel.load.clients.into(),
                    one.contender.as_str().into(),
                    name.into(),
                ];
                row.extend(cells(pick(one)));
                table.push(row);
            }
        }
    }
    table
}

/// One row per resource of an explanation.
pub fn costs(summary: &Summary) -> Table {
    let mut table = Table::new(
        "costs",
        &[
            ("load", Text),
            ("contender", Text),
            ("baseline", Text),
            ("resource", Text),
            ("name", Text),
            ("unit", Text),
            ("moved", Text),
            ("baseline_value", Real),
            ("baseline_low", Real),
            ("baseline_high", Real),
            ("baseline_confidence", Real),
            ("contender_value", Real),
            ("contender_low", Real),
            ("contender_high", Real),
            ("contender_confidence", Real),
            ("ratio", Real),
            ("ratio_low", Real),
            ("ratio_high", Real),
            ("ratio_confidence", Real),
        ],
    );
    for explanation in &summary.explanations {
        let label = summary
            .duels
            .iter()
            .find(|duel| duel.level == explanation.level)
            .map_or("", |duel| duel.label.as_str());
        for cost in &explanation.costs {
            let mut row = vec![
                Cell::from(label),
                explanation.contender.as_str().into(),
                summary.baseline.as_str().into(),
                cost.resource.as_str().into(),
                cost.name.as_str().into(),
                word(&cost.unit).as_str().into(),
                word(&cost.moved).as_str().into(),
            ];
            let Cost {
                baseline,
                contender,
                ratio,
                ..
            } = cost;
            row.extend([baseline, contender, ratio].into_iter().flat_map(cells));
            table.push(row);
        }
    }
    table
}

/// The name that an enumeration has in JSON.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// One row per slice, with its readings as columns.
pub fn slices(record: &Record) -> Table {
    let columns: BTreeSet<(&str, &str)> = record
        .readings
        .iter()
        .map(|row| (row.source.as_str(), row.metric.as_str()))
        .collect();
    let readings: BTreeMap<(SliceId, &str, &str), f64> = record
        .readings
        .iter()
        .map(|row| {
            let slice = SliceId {
                block: row.block,
                position: row.position,
            };
            ((slice, row.source.as_str(), row.metric.as_str()), row.value)
        })
        .collect();
    let mut table = Table::new(
        "slices",
        &[
            ("block", Whole),
            ("position", Whole),
            ("epoch", Whole),
            ("contender", Text),
            ("clients", Whole),
            ("start_ms", Whole),
            ("measured_s", Real),
            ("ok", Whole),
            ("failed", Whole),
            ("retries", Whole),
            ("latency_us_sum", Real),
            ("latency_us_p50", Real),
            ("latency_us_p95", Real),
            ("latency_us_p99", Real),
            ("latency_us_max", Real),
        ],
    );
    let names = columns.iter();
    table
        .columns
        .extend(names.map(|(source, metric)| (format!("{source}.{metric}"), Real)));
    for row in record.slices.iter().filter(|row| row.class == ALL_CLASSES) {
        let slice = SliceId {
            block: row.block,
            position: row.position,
        };
        let mut cells = vec![
            Cell::from(row.block),
            row.position.into(),
            row.epoch.into(),
            row.contender.as_str().into(),
            row.clients.into(),
            Cell::count(row.start_ms),
            row.measured_s.into(),
            Cell::count(row.ok),
            Cell::count(row.failed),
            Cell::count(row.retries),
            row.latency_us_sum.into(),
            row.latency_us_p50.into(),
            row.latency_us_p95.into(),
            row.latency_us_p99.into(),
            row.latency_us_max.into(),
        ];
        cells.extend(
            columns.iter().map(|(source, metric)| {
                Cell::real(readings.get(&(slice, *source, *metric)).copied())
            }),
        );
        table.push(cells);
    }
    table
}

pub fn ticks(record: &Record) -> Table {
    let mut table = Table::new(
        "ticks",
        &[
            ("block", Whole),
            ("position", Whole),
            ("offset_s", Real),
            ("length_s", Real),
            ("ok", Whole),
            ("failed", Whole),
            ("latency_us_sum", Real),
            ("latency_us_max", Real),
        ],
    );
    for row in &record.ticks {
        table.push(vec![
            row.block.into(),
            row.position.into(),
            row.offset_s.into(),
            row.length_s.into(),
            Cell::count(row.ok),
            Cell::count(row.failed),
            row.latency_us_sum.into(),
            row.latency_us_max.into(),
        ]);
    }
    table
}

/// Per-second readings of the samplers.
pub fn seconds(record: &Record) -> Table {
    let mut table = Table::new(
        "seconds",
        &[
            ("block", Whole),
            ("position", Whole),
            ("offset_s", Real),
            ("length_s", Real),
            ("source", Text),
            ("metric", Text),
            ("value", Real),
        ],
    );
    for row in &record.seconds {
        table.push(vec![
            row.block.into(),
            row.position.into(),
            row.offset_s.into(),
            row.length_s.into(),
            row.source.as_str().into(),
            row.metric.as_str().into(),
            row.value.into(),
        ]);
    }
    table
}
