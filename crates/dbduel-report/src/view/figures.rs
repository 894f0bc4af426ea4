//! The tables of figures: throughput, latency, processor time, outcomes and stalls.

use dbduel_judge::summary::{Duel, Figure, How, Measures};
use serde::Serialize;

use crate::words;

#[derive(Debug, Clone, Serialize)]
pub struct LevelView {
    pub label: String,
    /// Numbers of counted and excluded blocks.
    pub blocks: String,
    pub rows: Vec<MeasuresView>,
    pub why_without: String,
    /// Why some of the figures have no interval.
    pub without_interval: Vec<String>,
}

/// The figures of one contender at one level.
#[derive(Debug, Clone, Serialize)]
pub struct MeasuresView {
    pub contender: String,
    pub number: usize,
    /// Figures in the order of [`COLUMNS`].
    pub figures: Vec<FigureView>,
    pub outcomes: String,
    pub stalls: String,
    /// Whether it was in a steady state; absent where nothing is shown.
    pub course: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct FigureView {
    /// Value, or `not measured`.
    pub value: String,
    /// Interval; empty or a reason without one.
    pub doubt: String,
    /// How it was obtained and why there is no interval.
    pub how: String,
}

/// A column of the tables of figures.
pub struct Column {
    pub head: &'static str,
    figure: fn(&Measures) -> &Figure,
    text: fn(f64) -> String,
    doubt: fn(&Figure) -> String,
}

const fn rate(head: &'static str, figure: fn(&Measures) -> &Figure) -> Column {
    Column {
        head,
        figure,
        text: words::number,
        doubt: words::rate_doubt,
    }
}

const fn time(head: &'static str, figure: fn(&Measures) -> &Figure) -> Column {
    Column {
        head,
        figure,
        text: words::latency,
        doubt: words::latency_doubt,
    }
}

/// A largest value, which has no interval.
const fn memory(head: &'static str, figure: fn(&Measures) -> &Figure) -> Column {
    Column {
        head,
        figure,
        text: words::bytes_of,
        doubt: |_| String::new(),
    }
}

/// The columns of the tables of figures.
pub const COLUMNS: [Column; 11] = [
    rate("transactions/s", |measures| &measures.throughput_per_s),
    time("mean", |measures| &measures.latency_us_mean),
    time("p50", |measures| &measures.latency_us_p50),
    time("p95", |measures| &measures.latency_us_p95),
    time("p99", |measures| &measures.latency_us_p99),
    time("p99.9", |measures| &measures.latency_us_p999),
    time("max", |measures| &measures.latency_us_max),
    time("server CPU", |measures| {
        &measures.server_cpu_us_per_transaction
    }),
    time("client CPU", |measures| {
        &measures.client_cpu_us_per_transaction
    }),
    memory("server memory", |measures| {
        &measures.server_memory_bytes_max
    }),
    memory("client memory", |measures| {
        &measures.client_memory_bytes_max
    }),
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
    LevelView {
        why_without: match without_interval.len() {
            1 => "1 figure without interval: reason".to_owned(),
            several => format!("{several} figures without interval: reasons"),
        },
        without_interval,
        label: duel.label.clone(),
        blocks: complete,
        rows: duel
            .contenders
            .iter()
            .enumerate()
            .map(|(number, one)| measures(number, one))
            .collect(),
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

fn measures(number: usize, measures: &Measures) -> MeasuresView {
    let outcomes = &measures.outcomes;
    let drained = measures.drained_share.map(words::share);
    let drained = drained.map_or_else(String::new, |share| {
        format!("; {share} of client time after the planned ends of turns")
    });
    MeasuresView {
        contender: measures.contender.clone(),
        number,
        figures: COLUMNS
            .iter()
            .map(|column| figure_view(column, (column.figure)(measures)))
            .collect(),
        outcomes: format!(
            "{} committed, {} failed, {} retried{drained}",
            words::count(outcomes.ok),
            words::count(outcomes.failed),
            words::count(outcomes.retries)
        ),
        course: measures.course.as_ref().and_then(words::course),
        stalls: match &measures.stalls {
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
        },
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

fn figure_view(column: &Column, figure: &Figure) -> FigureView {
    FigureView {
        value: words::value(figure, column.text),
        doubt: (column.doubt)(figure),
        how: how(figure),
    }
}
