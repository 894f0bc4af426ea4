//! A figure of one contender along an axis: a line, a mark at every place, and the interval around it.
//!
//! Knows neither what the axis counts nor the unit of the figure.

use super::style::{colour, marker};
use super::svg::{Svg, polyline};
use crate::judge::summary::Figure;

/// Distance between curves at one place, so that intervals do not hide each other, pixels.
const ASIDE: f64 = 6.0;

/// How far curve number `index` of `count` is moved from its places, pixels.
#[must_use]
pub fn aside(index: usize, count: usize) -> f64 {
    (index as f64 - count.saturating_sub(1) as f64 / 2.0) * ASIDE
}

/// The class of a mark: hollow where the value has no interval.
#[must_use]
pub fn shape(figure: &Figure) -> &'static str {
    match figure.interval() {
        Some(_) => "mark",
        None => "hollow",
    }
}

/// Draws the curve. `height` is the pixel of a value, and `title` what is said of a place by its number and value;
/// the line breaks where nothing was measured.
pub fn curve(
    svg: &mut Svg,
    contender: usize,
    places: &[(f64, Option<&Figure>)],
    height: impl Fn(f64) -> f64,
    title: impl Fn(usize, &Figure, f64) -> String,
) {
    let class = colour(contender);
    let line = places.iter().map(|(x, figure)| {
        let value = figure.and_then(Figure::value);
        (*x, value.map_or(f64::NAN, &height))
    });
    svg.path(&polyline(line), &format!("curve {class}"), "");
    for (index, (x, figure)) in places.iter().enumerate() {
        let Some((figure, value)) = figure.and_then(|figure| Some((figure, figure.value()?)))
        else {
            continue;
        };
        if let Some((low, high)) = figure.interval() {
            let (low, high) = (height(low), height(high));
            svg.line((*x, low), (*x, high), &format!("whisker thin {class}"));
        }
        svg.path(
            &marker(contender, (*x, height(value)), 4.5),
            &format!("{} {class}", shape(figure)),
            &title(index, figure, value),
        );
    }
}
