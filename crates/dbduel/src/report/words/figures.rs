//! Figures: values with the doubt about them, in one unit and with the same digits.

use super::numbers::{NEAR_ONE, latency_unit, multiple, number, ratio};
use crate::judge::summary::Figure;

/// What stands where nothing was measured.
pub const NOT_MEASURED: &str = "not measured";

/// The value of a ratio, written like its interval; `None` when nothing was measured.
#[must_use]
pub fn ratio_value(figure: &Figure) -> Option<String> {
    figure.value().map(ratio_writer(figure))
}

/// The interval of a ratio: `+3.0 % to +5.2 %`; empty when there is none.
#[must_use]
pub fn ratio_interval(figure: &Figure) -> String {
    let ratio = ratio_writer(figure);
    match figure.interval() {
        Some((low, _)) if figure_is_open(figure) => format!("at least {}", ratio(low)),
        Some((low, high)) => format!("{} to {}", ratio(low), ratio(high)),
        None => String::new(),
    }
}

/// Percentages when all of the figure is near one, multiples for all of it otherwise.
fn ratio_writer(figure: &Figure) -> fn(f64) -> String {
    match is_near_one(figure) {
        true => ratio,
        false => multiple,
    }
}

/// True when the value and both ends of its interval are.
pub(super) fn is_near_one(figure: &Figure) -> bool {
    let ends = figure
        .interval()
        .into_iter()
        .flat_map(|(low, high)| [low, high]);
    let is_near = |value: f64| NEAR_ONE.contains(&value) || value.is_infinite();
    figure.value().into_iter().chain(ends).all(is_near)
}

fn figure_is_open(figure: &Figure) -> bool {
    matches!(figure, Figure::Estimated { high: None, .. })
}

/// The doubt about a figure, in the figure's unit: `41–44`, or the reason why there is none.
#[must_use]
pub fn doubt(figure: &Figure, text: impl Fn(f64) -> String) -> String {
    match figure {
        Figure::Estimated {
            low,
            high: Some(high),
            ..
        } => range(&text(*low), &text(*high)),
        Figure::Estimated {
            low, high: None, ..
        } => format!("at least {}", text(*low)),
        Figure::Bare { .. } => "no interval".to_owned(),
        Figure::NotMeasured { .. } => String::new(),
    }
}

/// Two numbers with one unit where they have the same.
fn range(low: &str, high: &str) -> String {
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((low, unit)), Some((high, other))) if unit == other => format!("{low}–{high} {unit}"),
        _ => format!("{low}–{high}"),
    }
}

/// The doubt about a latency in the unit of its value.
#[must_use]
pub fn latency_doubt(figure: &Figure) -> String {
    let (factor, unit) = latency_unit(figure.value().unwrap_or(0.0));
    doubt(figure, |us| format!("{} {unit}", number(us / factor)))
}

/// The doubt about a rate.
#[must_use]
pub fn rate_doubt(figure: &Figure) -> String {
    doubt(figure, number)
}

/// The figure's value, or that there is none.
#[must_use]
pub fn value(figure: &Figure, text: impl Fn(f64) -> String) -> String {
    figure.value().map_or_else(|| NOT_MEASURED.to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_and_its_interval_are_written_alike() {
        let figure = |value, low, high| Figure::Estimated {
            value,
            low,
            high: Some(high),
            confidence: 0.95,
            n: 9,
            how: crate::judge::summary::How::PairedBlocks,
        };
        let wide = figure(0.47, 0.282, 0.993);
        assert_eq!(ratio_value(&wide).unwrap(), "0.470×");
        assert_eq!(ratio_interval(&wide), "0.282× to 0.993×");
        assert_eq!(
            ratio_interval(&figure(1.04, 1.03, 1.05)),
            "+3.0 % to +5.0 %"
        );
    }
}
