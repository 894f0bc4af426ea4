//! The tables of figures: throughput, latency, processor time, outcomes and stalls.

use dbduel_judge::summary::{Duel, Figure, How, Measures};
use serde::Serialize;

use super::table::{self, Cell, NAME, NUMBER, Row, Table};
use crate::words;

#[derive(Debug, Clone, Serialize)]
pub struct LevelView {
    pub label: String,
    /// Numbers of counted and excluded blocks.
    pub blocks: String,
    /// A row per contender, its outcomes, stalls and steady state as details.
    pub table: Table,
    pub why_without: String,
    /// Why some of the figures have no interval.
    pub without_interval: Vec<String>,
}

/// One of a contender's figures, with its name in tables and charts.
pub(crate) type NamedFigure = (&'static str, fn(&Measures) -> &Figure);

pub(crate) const MEAN: NamedFigure = ("mean", |measures| &measures.latency_us_mean);
pub(crate) const P50: NamedFigure = ("p50", |measures| &measures.latency_us_p50);
pub(crate) const P95: NamedFigure = ("p95", |measures| &measures.latency_us_p95);
pub(crate) const P99: NamedFigure = ("p99", |measures| &measures.latency_us_p99);
pub(crate) const P999: NamedFigure = ("p99.9", |measures| &measures.latency_us_p999);
pub(crate) const MAX: NamedFigure = ("max", |measures| &measures.latency_us_max);

/// A column of the tables of figures.
struct Column {
    head: &'static str,
    figure: fn(&Measures) -> &Figure,
    text: fn(f64) -> String,
    doubt: fn(&Figure) -> String,
}

const fn rate((head, figure): NamedFigure) -> Column {
    Column {
        head,
        figure,
        text: words::number,
        doubt: words::rate_doubt,
    }
}

const fn time((head, figure): NamedFigure) -> Column {
    Column {
        head,
        figure,
        text: words::latency,
        doubt: words::latency_doubt,
    }
}

/// A largest value, which has no interval.
const fn memory((head, figure): NamedFigure) -> Column {
    Column {
        head,
        figure,
        text: words::bytes_of,
        doubt: |_| String::new(),
    }
}

/// The columns of the tables of figures.
const COLUMNS: [Column; 11] = [
    rate(("transactions/s", |measures| &measures.throughput_per_s)),
    time(MEAN),
    time(P50),
    time(P95),
    time(P99),
    time(P999),
    time(MAX),
    time(("server CPU", |measures| {
        &measures.server_cpu_us_per_transaction
    })),
    time(("client CPU", |measures| {
        &measures.client_cpu_us_per_transaction
    })),
    memory(("server memory", |measures| {
        &measures.server_memory_bytes_max
    })),
    memory(("client memory", |measures| {
        &measures.client_memory_bytes_max
    })),
];

pub(super) fn level(duel: &Duel) -> LevelView {
    let mut complete = words::things(duel.blocks_complete.into(), "block");
    if duel.blocks_incomplete > 0 {
        complete.push_str(&format!(
            ", {} incomplete and excluded",
            duel.blocks_incomplete
        ));
    }
    let without_interval = without_interval(duel);
    let columns = COLUMNS.iter().map(|column| (NUMBER, column.head));
    let columns = [(NAME, "contender")].into_iter().chain(columns);
    let contenders = duel.contenders.iter().enumerate();
    LevelView {
        why_without: match without_interval.len() {
            1 => "1 figure without interval: reason".to_owned(),
            several => format!("{several} figures without interval: reasons"),
        },
        without_interval,
        label: duel.label.clone(),
        blocks: complete,
        table: Table::new(
            columns.map(table::Column::from).collect(),
            contenders.map(|(number, one)| measures(number, one)),
        ),
    }
}

/// Reasons for missing intervals, column by column, without the largest value, which never has one.
fn without_interval(duel: &Duel) -> Vec<String> {
    let mut reasons = Vec::new();
    for column in &COLUMNS {
        for measures in &duel.contenders {
            match (column.figure)(measures) {
                Figure::Bare { how, why, .. }
                    if !matches!(how, How::Largest | How::LargestReading) =>
                {
                    reasons.push(format!("{} of {}: {why}", column.head, measures.contender));
                }
                _ => {}
            }
        }
    }
    reasons
}

fn measures(number: usize, measures: &Measures) -> Row {
    let outcomes = &measures.outcomes;
    let drained = measures.drained_share.map(words::share);
    let drained = drained.map_or_else(String::new, |share| {
        format!("; {share} of client time after the planned ends of turns")
    });
    let outcomes = format!(
        "{} committed, {} failed, {} retried{drained}",
        words::count(outcomes.ok),
        words::count(outcomes.failed),
        words::count(outcomes.retries)
    );
    let stalls = match &measures.stalls {
        None => words::NOT_MEASURED.to_owned(),
        Some(stalls) if stalls.count == 0 => {
            format!(
                "none seen; those rarer than one per {} can be missed",
                words::duration(stalls.unseen_if_rarer_than_s)
            )
        }
        Some(stalls) => format!(
            "{} in {}, {} lost",
            words::count(stalls.count),
            words::duration(measures.active_s),
            match stalls.lost_s {
                ..0.5 => "less than a second".to_owned(),
                lost_s => words::duration(lost_s),
            }
        ),
    };
    let course = measures.course.as_ref().and_then(words::course);
    let name = Cell {
        hover: measures.contender.clone(),
        ..Cell::of_contender(number, &measures.contender)
    };
    let figures = COLUMNS.iter().map(|column| {
        let figure = (column.figure)(measures);
        Cell {
            note: (column.doubt)(figure),
            hover: how(figure),
            ..Cell::from(words::value(figure, column.text))
        }
    });
    let details = [outcomes, format!("stalls: {stalls}")];
    Row {
        details: details.into_iter().chain(course).collect(),
        ..[name].into_iter().chain(figures).collect()
    }
}

/// How a figure was obtained, and why it has no interval.
pub fn how(figure: &Figure) -> String {
    match figure {
        Figure::Estimated {
            how, confidence, n, ..
        } => {
            format!(
                "{}; {} interval, n = {n}",
                how.text(),
                words::share(*confidence)
            )
        }
        Figure::Bare { how, why, .. } => format!("{}; no interval: {why}", how.text()),
        Figure::NotMeasured { why } => why.clone(),
    }
}
