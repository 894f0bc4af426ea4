//! A figure of every contender against the load level.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Figure, Measures};
use dbduel_record::plan::Arrival;

use crate::words;

use super::frame::{Plot, aside, curve, titled};
use super::names;
use super::scale::{Scale, nice_end, ticks};
use super::style::legend;
use super::svg::Svg;

/// Data of a chart over the load levels.
#[derive(Clone, Copy)]
pub struct LevelChart {
    /// Title of the chart.
    pub title: &'static str,
    /// The figure, and how many of its units make one of the axis.
    pub figure: fn(&Measures) -> &Figure,
    /// Unit for a largest value: how many of the figure's units, and its name.
    pub unit: fn(f64) -> (f64, &'static str),
}

/// Draws the chart; the axis of values starts at zero. `None` when nothing was measured.
#[must_use]
pub fn by_level(summary: &Summary, chart: &LevelChart, width: f64) -> Option<String> {
    let largest = largest(summary, chart).filter(|&largest| largest > 0.0)?;
    let (factor, unit) = (chart.unit)(largest);
    let mut svg = titled(width, chart.title, unit);
    let top = legend(&mut svg, &names(summary));
    let plot = Plot {
        left: 52.0,
        top: top + 6.0,
        right: width - 14.0,
        bottom: top + 190.0,
    };
    let end = nice_end(largest / factor, 4);
    let values = Scale::linear((0.0, end), plot.upwards());
    plot.horizontal_grid(&mut svg, &values, &ticks(0.0, end, 4), words::trimmed);
    let places = places(summary, plot);
    axis_of_levels(&mut svg, summary, plot, &places);

    let contenders = summary.contenders.len();
    for (contender, facts) in summary.contenders.iter().enumerate() {
        let aside = aside(contender, contenders);
        let points = summary.duels.iter().zip(&places).map(|(duel, x)| {
            let measures = duel.contenders.get(contender);
            (x + aside, measures.map(|measures| (chart.figure)(measures)))
        });
        let text = |value: f64| format!("{} {unit}", words::number(value / factor));
        let title = |level: usize, figure: &Figure, value: f64| {
            format!(
                "{} at {}: {} ({})",
                facts.name,
                summary.duels[level].label,
                text(value),
                words::doubt(figure, text)
            )
        };
        let height = |value: f64| values.held(value / factor);
        let points: Vec<(f64, Option<&Figure>)> = points.collect();
        curve(&mut svg, contender, &points, height, title);
    }
    Some(svg.finish(
        plot.bottom + 37.0,
        &format!("{} against the number of clients, {unit}", chart.title),
    ))
}

/// Largest value that the axis must include; `None` when there is no value.
fn largest(summary: &Summary, chart: &LevelChart) -> Option<f64> {
    let measures = summary.duels.iter().flat_map(|duel| &duel.contenders);
    let ends = measures.filter_map(|measures| {
        let figure = (chart.figure)(measures);
        let value = figure.value()?;
        // One wild upper end must not flatten all curves.
        let held = |(_, high): (f64, f64)| high.min(1.5 * value);
        Some(figure.interval().map_or(value, held))
    });
    ends.reduce(f64::max)
}

/// The line at the bottom with the label of every level.
fn axis_of_levels(svg: &mut Svg, summary: &Summary, plot: Plot, places: &[f64]) {
    let labels = summary.duels.iter().map(place_label);
    let caption = match is_open(summary) {
        true => "transactions due per second",
        false => "clients",
    };
    plot.axis_of_places(svg, places, labels, caption);
}

/// True when the levels are rates.
fn is_open(summary: &Summary) -> bool {
    let mut duels = summary.duels.iter();
    duels.all(|duel| !matches!(duel.load.arrival, Arrival::Closed { .. }))
}

fn place_label(duel: &Duel) -> String {
    match duel.load.arrival {
        Arrival::Closed { .. } => duel.load.clients.to_string(),
        Arrival::Constant { per_second } | Arrival::Poisson { per_second } => {
            words::trimmed(per_second)
        }
    }
}

/// Position of each level: by the logarithm of the clients when they differ, otherwise in order.
fn places(summary: &Summary, plot: Plot) -> Vec<f64> {
    let clients: Vec<f64> = summary
        .duels
        .iter()
        .map(|duel| f64::from(duel.load.clients.max(1)))
        .collect();
    let inner = (plot.left + 26.0, plot.right - 26.0);
    let grows = clients.windows(2).all(|pair| pair[0] < pair[1]);
    match (clients.as_slice(), grows) {
        ([] | [_], _) => vec![f64::midpoint(plot.left, plot.right); clients.len()],
        ([first, .., last], true) => {
            let scale = Scale::logarithmic((*first, *last), inner);
            clients.iter().map(|&clients| scale.at(clients)).collect()
        }
        _ => {
            let scale = Scale::linear((0.0, (clients.len() - 1) as f64), inner);
            (0..clients.len())
                .map(|index| scale.at(index as f64))
                .collect()
        }
    }
}
