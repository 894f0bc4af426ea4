//! A sweep as one HTML page that needs nothing else; every cell has a page of its own, which it links to.

use dbduel_judge::records::sweep::{FactorCrossing, FactorCurve, SweepSummary, SweptDuel};
use dbduel_judge::summary::Figure;
use dbduel_text::multiple;
use serde::Serialize;

use super::view::{SweepView, place_text};
use crate::chart::FactorChart;
use crate::html::{PAGE_STYLE, Pair};
use crate::template::rendered;
use crate::words::RatioUnit;
use crate::{chart, words};

#[derive(Serialize)]
struct Page<'a> {
    view: &'a SweepView,
    style: String,
    charts: Vec<Vec<Pair>>,
}

pub fn page(summary: &SweepSummary, view: &SweepView) -> String {
    let page = Page {
        view,
        style: format!("{}{PAGE_STYLE}", chart::STYLE),
        charts: summary
            .curves
            .iter()
            .map(|curve| charts(summary, curve))
            .collect(),
    };
    rendered("sweep.html", &page)
}

/// The ratio to the baseline, which may be compared across cells, then throughput.
fn charts(summary: &SweepSummary, curve: &FactorCurve) -> Vec<Pair> {
    let drawn = [ratios(summary, curve), throughput(summary, curve)];
    drawn
        .iter()
        .filter_map(|chart| Pair::maybe(|width| chart.draw(width)))
        .collect()
}

fn throughput<'a>(summary: &'a SweepSummary, curve: &FactorCurve) -> FactorChart<'a> {
    let figure = |duel: &SweptDuel, contender: &str| {
        let mut measures = duel.contenders.iter();
        let found = measures.find(|measures| measures.contender == contender)?;
        Some(found.throughput_per_s.clone())
    };
    FactorChart {
        title: "Throughput",
        unit: "transactions/s",
        series: series(summary, curve, figure),
        reference: None,
        text: words::number,
        ..empty(summary, curve)
    }
}

fn ratios<'a>(summary: &'a SweepSummary, curve: &FactorCurve) -> FactorChart<'a> {
    let figure = |duel: &SweptDuel, contender: &str| {
        let mut comparisons = duel.comparisons.iter();
        let found = comparisons.find(|comparison| comparison.contender == contender)?;
        Some(found.ratio.clone())
    };
    let crossings = curve.crossings.iter().flat_map(|one| {
        let number = number_of(summary, &one.contender);
        let points = match &one.outcome {
            FactorCrossing::Found { points } => points.as_slice(),
            FactorCrossing::NoneDemonstrated { .. } | FactorCrossing::NotKnown { .. } => &[],
        };
        points
            .iter()
            .map(move |point| (point.at.low, point.at.value, point.at.high, number))
    });
    let series = series(summary, curve, figure);
    let figures = series.iter().flat_map(|(_, figures)| figures).flatten();
    FactorChart {
        title: "Throughput against the baseline",
        unit: "ratio",
        reference: Some(1.0),
        crossings: crossings.collect(),
        text: match RatioUnit::of(figures) {
            RatioUnit::Percent => words::ratio,
            RatioUnit::Factor => multiple,
        },
        series,
        ..empty(summary, curve)
    }
}

/// The axis of the factor, without a figure.
fn empty<'a>(summary: &'a SweepSummary, curve: &FactorCurve) -> FactorChart<'a> {
    let factor = &summary.factors[curve.factor];
    FactorChart {
        title: "",
        unit: "",
        factor: &factor.name,
        labels: factor
            .levels
            .iter()
            .map(|level| level.label.clone())
            .collect(),
        sizes: factor.sizes(),
        size_text: place_text(factor),
        contenders: &summary.contenders,
        series: Vec::new(),
        reference: None,
        horizon: summary.horizon.unwrap_or(0.0),
        crossings: Vec::new(),
        text: words::number,
    }
}

/// A figure of every contender that has it, level by level.
fn series(
    summary: &SweepSummary,
    curve: &FactorCurve,
    figure: impl Fn(&SweptDuel, &str) -> Option<Figure>,
) -> Vec<(usize, Vec<Option<Figure>>)> {
    let of_cell = |cell: &usize, contender: &str| {
        let duel = summary.cells[*cell].duels.get(curve.duel)?;
        figure(duel, contender)
    };
    let all = summary.contenders.iter().enumerate().map(|(number, name)| {
        let figures = curve.cells.iter().map(|cell| of_cell(cell, name));
        (number, figures.collect::<Vec<_>>())
    });
    all.filter(|(_, figures)| figures.iter().any(Option::is_some))
        .collect()
}

fn number_of(summary: &SweepSummary, contender: &str) -> usize {
    let mut names = summary.contenders.iter();
    names.position(|name| name == contender).unwrap_or(0)
}
