//! Tables of a record and its summary.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_judge::Summary;
use dbduel_judge::summary::{Comparison, Duel, Figure, Measures};
use dbduel_record::Record;
use dbduel_record::event::SliceId;
use dbduel_record::rows::ALL_CLASSES;

use super::table::Kind::{Real, Text, Whole};
use super::table::{Cell, Table};

pub(super) fn low(figure: &Figure) -> Cell {
    figure.interval().map(|(low, _)| low).into()
}

pub(super) fn high(figure: &Figure) -> Cell {
    figure.interval().map(|(_, high)| high).into()
}

pub(super) fn confidence(figure: &Figure) -> Cell {
    match figure {
        Figure::Estimated { confidence, .. } => (*confidence).into(),
        Figure::Bare { .. } | Figure::NotMeasured { .. } => Cell::Missing,
    }
}

/// The comparisons of all levels, each with the name of the baseline.
fn comparisons(summary: &Summary) -> impl Iterator<Item = (&str, &Duel, &Comparison)> {
    let baseline = summary.baseline.as_str();
    let duels = summary.duels.iter();
    duels.flat_map(move |duel| {
        duel.comparisons
            .iter()
            .map(move |one| (baseline, duel, one))
    })
}

/// One row per comparison.
pub fn verdicts(summary: &Summary) -> Table {
    Table::of(
        "verdicts",
        comparisons(summary),
        &[
            ("load", Text, |(_, duel, _)| (&duel.label).into()),
            ("clients", Whole, |(_, duel, _)| duel.load.clients.into()),
            ("contender", Text, |(_, _, one)| (&one.contender).into()),
            ("baseline", Text, |(baseline, ..)| (*baseline).into()),
            ("verdict", Text, |(_, _, one)| one.verdict.word().into()),
            ("ratio", Real, |(_, _, one)| one.ratio.value().into()),
            ("ratio_low", Real, |(_, _, one)| low(&one.ratio)),
            ("ratio_high", Real, |(_, _, one)| high(&one.ratio)),
            ("confidence", Real, |(_, _, one)| confidence(&one.ratio)),
            ("blocks", Whole, |(_, duel, _)| duel.blocks_complete.into()),
        ],
    )
}

/// One row per block of a comparison: the work and the time that the ratio of the verdict divides.
pub fn blocks(summary: &Summary) -> Table {
    let blocks = comparisons(summary).flat_map(|(baseline, duel, one)| {
        let blocks = one.blocks.iter();
        blocks.map(move |block| (baseline, duel, &one.contender, block))
    });
    Table::of(
        "blocks",
        blocks,
        &[
            ("load", Text, |(_, duel, ..)| (&duel.label).into()),
            ("clients", Whole, |(_, duel, ..)| duel.load.clients.into()),
            ("contender", Text, |(_, _, contender, _)| {
                (*contender).into()
            }),
            ("baseline", Text, |(baseline, ..)| (*baseline).into()),
            ("block", Whole, |(.., block)| block.block.into()),
            ("transactions", Whole, |(.., block)| {
                block.transactions.into()
            }),
            ("seconds", Real, |(.., block)| block.seconds.into()),
            ("baseline_transactions", Whole, |(.., block)| {
                block.baseline_transactions.into()
            }),
            ("baseline_seconds", Real, |(.., block)| {
                block.baseline_seconds.into()
            }),
            ("log_ratio", Real, |(.., block)| block.ratio.ln().into()),
        ],
    )
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
    let measures = summary.duels.iter().flat_map(|duel| {
        let contenders = duel.contenders.iter();
        contenders.flat_map(move |one| {
            FIGURES.map(|(name, pick)| (duel, &one.contender, name, pick(one)))
        })
    });
    Table::of(
        "measures",
        measures,
        &[
            ("load", Text, |(duel, ..)| (&duel.label).into()),
            ("clients", Whole, |(duel, ..)| duel.load.clients.into()),
            ("contender", Text, |(_, contender, ..)| (*contender).into()),
            ("figure", Text, |(_, _, name, _)| (*name).into()),
            ("value", Real, |(.., figure)| figure.value().into()),
            ("low", Real, |(.., figure)| low(figure)),
            ("high", Real, |(.., figure)| high(figure)),
            ("confidence", Real, |(.., figure)| confidence(figure)),
        ],
    )
}

/// One row per resource of an explanation.
pub fn costs(summary: &Summary) -> Table {
    let costs = summary.explanations.iter().flat_map(|explanation| {
        let mut duels = summary.duels.iter();
        let duel = duels.find(|duel| duel.level == explanation.level);
        let label = duel.map_or("", |duel| duel.label.as_str());
        let names = (label, &explanation.contender, &summary.baseline);
        explanation.costs.iter().map(move |cost| (names, cost))
    });
    Table::of(
        "costs",
        costs,
        &[
            ("load", Text, |((label, ..), _)| (*label).into()),
            ("contender", Text, |((_, contender, _), _)| {
                (*contender).into()
            }),
            ("baseline", Text, |((.., baseline), _)| (*baseline).into()),
            ("resource", Text, |(_, cost)| (&cost.resource).into()),
            ("name", Text, |(_, cost)| (&cost.name).into()),
            ("unit", Text, |(_, cost)| word(&cost.unit)),
            ("moved", Text, |(_, cost)| word(&cost.moved)),
            ("baseline_value", Real, |(_, cost)| {
                cost.baseline.value().into()
            }),
            ("baseline_low", Real, |(_, cost)| low(&cost.baseline)),
            ("baseline_high", Real, |(_, cost)| high(&cost.baseline)),
            ("baseline_confidence", Real, |(_, cost)| {
                confidence(&cost.baseline)
            }),
            ("contender_value", Real, |(_, cost)| {
                cost.contender.value().into()
            }),
            ("contender_low", Real, |(_, cost)| low(&cost.contender)),
            ("contender_high", Real, |(_, cost)| high(&cost.contender)),
            ("contender_confidence", Real, |(_, cost)| {
                confidence(&cost.contender)
            }),
            ("ratio", Real, |(_, cost)| cost.ratio.value().into()),
            ("ratio_low", Real, |(_, cost)| low(&cost.ratio)),
            ("ratio_high", Real, |(_, cost)| high(&cost.ratio)),
            ("ratio_confidence", Real, |(_, cost)| {
                confidence(&cost.ratio)
            }),
        ],
    )
}

/// The name that an enumeration has in JSON.
pub(super) fn word(value: &impl serde::Serialize) -> Cell {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => (&word).into(),
        _ => "".into(),
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
    let slices = || record.slices.iter().filter(|row| row.class == ALL_CLASSES);
    let mut table = Table::of(
        "slices",
        slices(),
        &[
            ("block", Whole, |row| row.block.into()),
            ("position", Whole, |row| row.position.into()),
            ("epoch", Whole, |row| row.epoch.into()),
            ("contender", Text, |row| (&row.contender).into()),
            ("clients", Whole, |row| row.clients.into()),
            ("start_ms", Whole, |row| row.start_ms.into()),
            ("measured_s", Real, |row| row.measured_s.into()),
            ("ok", Whole, |row| row.ok.into()),
            ("failed", Whole, |row| row.failed.into()),
            ("retries", Whole, |row| row.retries.into()),
            ("latency_us_sum", Real, |row| row.latency_us_sum.into()),
            ("latency_us_p50", Real, |row| row.latency_us_p50.into()),
            ("latency_us_p95", Real, |row| row.latency_us_p95.into()),
            ("latency_us_p99", Real, |row| row.latency_us_p99.into()),
            ("latency_us_max", Real, |row| row.latency_us_max.into()),
        ],
    );
    let names = columns.iter();
    table
        .columns
        .extend(names.map(|(source, metric)| (format!("{source}.{metric}"), Real)));
    for (cells, row) in table.rows.iter_mut().zip(slices()) {
        let values = columns.iter().map(|(source, metric)| {
            let value = readings.get(&(row.slice(), *source, *metric));
            Cell::from(value.copied())
        });
        cells.extend(values);
    }
    table
}

pub fn ticks(record: &Record) -> Table {
    Table::of(
        "ticks",
        &record.ticks,
        &[
            ("block", Whole, |row| row.block.into()),
            ("position", Whole, |row| row.position.into()),
            ("offset_s", Real, |row| row.offset_s.into()),
            ("length_s", Real, |row| row.length_s.into()),
            ("ok", Whole, |row| row.ok.into()),
            ("failed", Whole, |row| row.failed.into()),
            ("latency_us_sum", Real, |row| row.latency_us_sum.into()),
            ("latency_us_max", Real, |row| row.latency_us_max.into()),
        ],
    )
}

/// Per-second readings of the samplers.
pub fn seconds(record: &Record) -> Table {
    Table::of(
        "seconds",
        &record.seconds,
        &[
            ("block", Whole, |row| row.block.into()),
            ("position", Whole, |row| row.position.into()),
            ("offset_s", Real, |row| row.offset_s.into()),
            ("length_s", Real, |row| row.length_s.into()),
            ("source", Text, |row| (&row.source).into()),
            ("metric", Text, |row| (&row.metric).into()),
            ("value", Real, |row| row.value.into()),
        ],
    )
}
