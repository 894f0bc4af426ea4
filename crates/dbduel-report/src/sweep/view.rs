//! The numbers of a sweep as words, the same in every format.

use dbduel_judge::records::sweep::{
    CellState, FactorCrossing, FactorCrossings, FactorCurve, SweepSummary, SweptCell,
    SweptComparison, SweptExtension,
};
use dbduel_judge::summary::Figure;
use dbduel_record::Verdict;
use dbduel_record::sweep::{Factor, FactorKind, FactorLevel};
use dbduel_text::from_to;
use serde::Serialize;

use crate::scaling::sides;
use crate::view::table::{Cell, Column, Row, STACK, TEXT, Table};
use crate::words::{self, RatioUnit};

/// Headings of the figures of a curve.
const FIGURES: [&str; 5] = [
    "ratio to the baseline",
    "interval",
    "transactions/s",
    "interval",
    "p99 latency",
];
/// Columns of the table of a curve.
const COLUMNS: usize = 3 + FIGURES.len();

/// Content of the report on a sweep, common to all formats.
#[derive(Debug, Clone, Serialize)]
pub struct SweepView {
    pub question: String,
    pub when: String,
    /// The result of each contender in a sentence.
    pub headlines: Vec<String>,
    /// Progress of the sweep, and meaning of its intervals.
    pub notes: Vec<String>,
    pub curves: Vec<CurveView>,
    /// Every cell in running order.
    pub cells: Vec<CellView>,
}

/// The cells along one factor.
#[derive(Debug, Clone, Serialize)]
pub struct CurveView {
    /// The factor, and the fixed levels of the others.
    pub title: String,
    /// One row per level and contender.
    pub table: Table,
    /// Crossings of the contenders, or why they are unknown.
    pub sentences: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct CellView {
    /// Label of the cell.
    pub label: String,
    /// Name of its directory.
    pub name: String,
    /// Progress of the cell, and its extensions.
    pub state: String,
    pub verdicts: Vec<String>,
    /// True when there is a report to look at.
    pub has_report: bool,
}

impl SweepView {
    pub fn of(summary: &SweepSummary) -> Self {
        Self {
            question: summary.question.clone(),
            when: summary.created.clone(),
            headlines: headlines(summary),
            notes: notes(summary),
            curves: summary
                .curves
                .iter()
                .map(|curve| curve_view(summary, curve))
                .collect(),
            cells: summary.cells.iter().map(cell_view).collect(),
        }
    }
}

/// Places that a headline names at most; more are counted.
const NAMED_MAX: usize = 3;

/// One sentence per contender other than the baseline: each verdict, where it holds, and the sizes of the differences.
fn headlines(summary: &SweepSummary) -> Vec<String> {
    let Some(baseline) = &summary.baseline else {
        return vec!["No cell has a verdict yet.".to_owned()];
    };
    let others = summary.contenders.iter().filter(|name| *name != baseline);
    let sentences = others.map(|contender| headline(summary, contender, baseline));
    sentences.collect()
}

fn headline(summary: &SweepSummary, contender: &str, baseline: &str) -> String {
    // Cells run in random order.
    let mut cells: Vec<&SweptCell> = summary.cells.iter().collect();
    cells.sort_by(|one, other| one.levels.cmp(&other.levels));
    let duels = cells.into_iter().flat_map(|cell| {
        let several = cell.duels.len() > 1;
        cell.duels.iter().map(move |duel| match several {
            true => (format!("{}, {}", cell.label, duel.label), duel),
            false => (cell.label.clone(), duel),
        })
    });
    let compared: Vec<(String, &SweptComparison)> = duels
        .filter_map(|(place, duel)| {
            let mut comparisons = duel.comparisons.iter();
            let found = comparisons.find(|one| one.contender == contender)?;
            Some((place, found))
        })
        .collect();
    let verdicts = [
        Verdict::Faster,
        Verdict::Slower,
        Verdict::Equivalent,
        Verdict::Undecided,
        Verdict::Void,
    ];
    let parts = verdicts.iter().filter_map(|verdict| {
        let of_it = compared.iter().filter(|(_, one)| one.verdict == *verdict);
        let of_it: Vec<&(String, &SweptComparison)> = of_it.collect();
        let places: Vec<&str> = of_it.iter().map(|(place, _)| place.as_str()).collect();
        let place = match places.len() {
            0 => return None,
            1..=NAMED_MAX => format!("at {}", words::joined(&places)),
            some => format!("in {some} of {}", compared.len()),
        };
        let size = match verdict {
            Verdict::Faster | Verdict::Slower => span(of_it.iter().map(|(_, one)| &one.ratio)),
            Verdict::Equivalent | Verdict::Undecided | Verdict::Void => String::new(),
        };
        Some(format!("{} {place}{size}", verdict.word()))
    });
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => format!("{contender} against {baseline}: no verdict yet."),
        false => format!("{contender} against {baseline}: {}.", parts.join("; ")),
    }
}

/// The smallest and the largest of ratios, in brackets; empty without any.
fn span<'f>(ratios: impl Iterator<Item = &'f Figure>) -> String {
    let mut values: Vec<f64> = ratios.filter_map(Figure::value).collect();
    values.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return String::new();
    };
    let unit = RatioUnit::of_values(values.iter().copied());
    format!(" ({})", from_to(&unit.write(*first), &unit.write(*last)))
}

fn notes(summary: &SweepSummary) -> Vec<String> {
    let over = summary.cells.iter();
    let over = over.filter(|cell| cell.state == CellState::Over).count();
    let factors: Vec<String> = summary
        .factors
        .iter()
        .map(|factor| {
            let levels = words::things(factor.levels.len() as u64, "level");
            format!("{} ({levels})", factor.name)
        })
        .collect();
    let mut notes = vec![format!(
        "{over} of {} cells finished; factors: {}",
        summary.cells.len(),
        factors.join(", ")
    )];
    if let (Some(confidence), Some(horizon), Some(baseline)) =
        (summary.confidence, summary.horizon, &summary.baseline)
    {
        notes.push(format!(
            "ratios to {baseline}, within blocks; {} confidence per duel, however often the run was checked; crossings: jointly \
             for all levels of a curve. Horizon of equivalence: {}",
            words::share(confidence),
            words::share(horizon)
        ));
        notes.push(
            "cells ran one after the other in random order: drift of the machine between cells is not in the intervals of \
             throughput, and cancels in the ratios"
                .to_owned(),
        );
    }
    notes
}

fn curve_view(summary: &SweepSummary, curve: &FactorCurve) -> CurveView {
    let factor = &summary.factors[curve.factor];
    let title = match curve.held.as_slice() {
        [] => factor.name.clone(),
        held => format!("{} at {}", factor.name, held.join(", ")),
    };
    let names = [factor.name.as_str(), "contender", "verdict"].map(|head| ("", head));
    let columns = names.into_iter().chain(FIGURES.map(|head| (TEXT, head)));
    let levels = factor.levels.iter().zip(&curve.cells);
    let duels = curve.cells.iter();
    let duels = duels.filter_map(|&cell| summary.cells[cell].duels.get(curve.duel));
    let unit = RatioUnit::of(duels.flat_map(|duel| duel.comparisons.iter().map(|one| &one.ratio)));
    let rows = levels.flat_map(|(level, &cell)| {
        level_rows(&level.label, &summary.cells[cell], curve.duel, unit)
    });
    let baseline = summary.baseline.as_deref().unwrap_or_default();
    CurveView {
        title,
        table: Table {
            class: STACK,
            ..Table::new(columns.map(Column::from).collect(), rows)
        },
        sentences: curve
            .crossings
            .iter()
            .map(|one| crossing(factor, baseline, one))
            .collect(),
    }
}

fn level_rows(label: &str, cell: &SweptCell, duel: usize, unit: RatioUnit) -> Vec<Row> {
    let Some(duel) = cell.duels.get(duel) else {
        let mut row = vec![Cell::from(label), Cell::from(state(cell.state))];
        row.resize(COLUMNS, Cell::default());
        return vec![row.into_iter().collect()];
    };
    let rows = duel.contenders.iter().enumerate().map(|(number, one)| {
        let compared = duel
            .comparisons
            .iter()
            .find(|comparison| comparison.contender == one.contender);
        let [ratio, interval, verdict] = match compared {
            None => ["1", "", "baseline"].map(str::to_owned),
            Some(comparison) => [
                unit.value(&comparison.ratio),
                unit.doubt(&comparison.ratio),
                format!(
                    "{} {}",
                    words::sign(comparison.verdict),
                    comparison.verdict.word()
                ),
            ],
        };
        let names = [
            Cell::from(if number == 0 { label } else { "" }),
            Cell::from(&one.contender),
            Cell::from(verdict),
        ];
        let figures = [
            ratio,
            interval,
            words::value(&one.throughput_per_s, words::number),
            words::rate_doubt(&one.throughput_per_s),
            words::value(&one.latency_us_p99, words::latency),
        ];
        let figures = figures.into_iter().zip(FIGURES).map(|(value, label)| Cell {
            label,
            ..Cell::from(value)
        });
        names.into_iter().chain(figures).collect()
    });
    rows.collect()
}

/// Function that writes a position on the axis of a factor: settings with units as sizes.
pub(super) fn place_text(factor: &Factor) -> fn(f64) -> String {
    let has_unit = |level: &FactorLevel| level.label.ends_with(|c: char| c.is_alphabetic());
    match factor.kind == FactorKind::Setting && factor.levels.iter().any(has_unit) {
        true => words::bytes_of,
        false => words::number,
    }
}

fn crossing(factor: &Factor, baseline: &str, one: &FactorCrossings) -> String {
    let contender = &one.contender;
    let number = place_text(factor);
    let factor = &factor.name;
    match &one.outcome {
        FactorCrossing::Found { points } => {
            let points: Vec<String> = points
                .iter()
                .map(|point| {
                    let side = sides(point.is_faster_above);
                    format!(
                        "at {factor} {} ({} to {}): {contender} is {side}",
                        number(point.at.value),
                        number(point.at.low),
                        number(point.at.high)
                    )
                })
                .collect();
            format!(
                "{contender} and {baseline} cross {}.",
                points.join("; and ")
            )
        }
        FactorCrossing::NoneDemonstrated { from, to } => format!(
            "No crossing of {contender} and {baseline} is demonstrated for {factor} from {} to {}.",
            number(*from),
            number(*to)
        ),
        FactorCrossing::NotKnown { why } => {
            format!("Crossing of {contender} and {baseline} over {factor} unknown: {why}.")
        }
    }
}

fn cell_view(cell: &SweptCell) -> CellView {
    let verdicts = cell.duels.iter().flat_map(|duel| {
        duel.comparisons.iter().map(move |comparison| {
            let why = match (&comparison.because, comparison.verdict) {
                (Some(because), Verdict::Void | Verdict::Undecided) => format!(": {because}"),
                (Some(_), Verdict::Faster | Verdict::Slower | Verdict::Equivalent) | (None, _) => {
                    String::new()
                }
            };
            format!(
                "{} at {}: {}{why}",
                comparison.contender,
                duel.label,
                comparison.verdict.word()
            )
        })
    });
    CellView {
        label: cell.label.clone(),
        name: cell.name.clone(),
        state: match &cell.extension {
            None => state(cell.state).to_owned(),
            Some(extension) => format!("{}, {}", state(cell.state), extended(extension)),
        },
        verdicts: verdicts.collect(),
        has_report: cell.state != CellState::NotBegun,
    }
}

fn extended(extension: &SweptExtension) -> String {
    let times = match extension.count {
        1 => String::new(),
        count => format!(" {count} times"),
    };
    let blocks = words::things(extension.blocks as u64, "block");
    let used = words::duration(extension.used_s);
    format!("extended{times} by {used} of load and {blocks}")
}

fn state(state: CellState) -> &'static str {
    match state {
        CellState::NotBegun => "not started",
        CellState::Unfinished => "unfinished",
        CellState::Over => "finished",
    }
}
