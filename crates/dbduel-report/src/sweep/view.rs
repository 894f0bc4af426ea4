//! The numbers of a sweep as words, the same in every format.

use dbduel_judge::records::sweep::{
    CellState, FactorCrossing, FactorCrossings, FactorCurve, SweepSummary, SweptCell,
    SweptExtension,
};
use dbduel_record::Verdict;
use dbduel_record::sweep::{Factor, FactorKind, FactorLevel};
use serde::Serialize;

use crate::scaling::sides;
use crate::words::{self, RatioUnit};

/// Content of the report on a sweep, common to all formats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SweepView {
    pub question: String,
    pub when: String,
    /// Progress of the sweep, and meaning of its intervals.
    pub notes: Vec<String>,
    pub curves: Vec<CurveView>,
    /// Every cell in running order.
    pub cells: Vec<CellView>,
}

/// The cells along one factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CurveView {
    /// The factor, and the fixed levels of the others.
    pub title: String,
    pub heads: Vec<String>,
    /// One row per level and contender.
    pub rows: Vec<Vec<String>>,
    /// Crossings of the contenders, or why they are unknown.
    pub sentences: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

fn notes(summary: &SweepSummary) -> Vec<String> {
    let over = summary.cells.iter();
    let over = over.filter(|cell| cell.state == CellState::Over).count();
    let factors: Vec<String> = summary
        .factors
        .iter()
        .map(|factor| format!("{} ({} levels)", factor.name, factor.levels.len()))
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
    let heads = [
        factor.name.as_str(),
        "contender",
        "transactions/s",
        "interval",
        "p99 latency",
        "ratio to the baseline",
        "interval",
        "verdict",
    ];
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
        heads: heads.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        sentences: curve
            .crossings
            .iter()
            .map(|one| crossing(factor, baseline, one))
            .collect(),
    }
}

fn level_rows(label: &str, cell: &SweptCell, duel: usize, unit: RatioUnit) -> Vec<Vec<String>> {
    let Some(duel) = cell.duels.get(duel) else {
        let mut row = vec![label.to_owned(), state(cell.state).to_owned()];
        row.resize(8, String::new());
        return vec![row];
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
        vec![
            if number == 0 {
                label.to_owned()
            } else {
                String::new()
            },
            one.contender.clone(),
            words::value(&one.throughput_per_s, words::number),
            words::rate_doubt(&one.throughput_per_s),
            words::value(&one.latency_us_p99, words::latency),
            ratio,
            interval,
            verdict,
        ]
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
                _ => String::new(),
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
