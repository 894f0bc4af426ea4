//! The ratio of every comparison with its interval, against the horizon.

use crate::judge::Summary;
use crate::judge::summary::{Comparison, Duel, Verdict};
use crate::report::words;

use super::frame::Plot;
use super::number_of;
use super::scale::{Scale, ratio_ticks};
use super::style::{CHARACTER, colour, fitted, marker};
use super::svg::{Anchor, Svg};

/// Below this width labels stand above their row instead of beside it.
const NARROW: f64 = 640.0;

/// The forest chart of all duels.
#[must_use]
pub fn forest(summary: &Summary, width: f64) -> String {
    let is_narrow = width < NARROW;
    let several = summary.contenders.len() > 2;
    let (row, head) = if is_narrow {
        (50.0, 26.0)
    } else {
        (30.0, 26.0)
    };
    let mut svg = Svg::new(width);
    let mut plot = Plot {
        left: gutter(summary),
        right: width - 310.0,
        top: 30.0,
        bottom: 30.0,
    };
    if is_narrow {
        (plot.left, plot.right) = (14.0, width - 14.0);
    }
    let rows: f64 = summary
        .duels
        .iter()
        .map(|duel| row * duel.comparisons.len() as f64 + if several { head } else { 0.0 })
        .sum();
    plot.bottom = plot.top + rows + 6.0;

    let (from, to) = range(summary);
    let scale = Scale::logarithmic((from, to), plot.across());
    let horizon = 1.0 + summary.rule.horizon;
    let (left, right) = (scale.held(1.0 / horizon), scale.held(horizon));
    svg.rect(
        (left, plot.top),
        (right - left, plot.bottom - plot.top),
        "band",
        "within the horizon: equivalent",
    );
    let ticks = ratio_ticks(from, to, ((plot.right - plot.left) / 70.0) as usize);
    plot.vertical_grid(&mut svg, &scale, &ticks, |tick| tick_label(tick, to / from));
    svg.line(
        (scale.at(1.0), plot.top),
        (scale.at(1.0), plot.bottom),
        "zero",
    );
    svg.text(
        (scale.at(1.0), plot.top - 16.0),
        Anchor::Middle,
        "small",
        &format!("like {}", fitted(&summary.baseline, 180.0)),
    );
    let centre = scale.at(1.0);
    svg.text(
        (centre - 12.0, plot.top - 3.0),
        Anchor::End,
        "small",
        "← slower",
    );
    svg.text(
        (centre + 12.0, plot.top - 3.0),
        Anchor::Start,
        "small",
        "faster →",
    );

    let mut top = plot.top + 3.0;
    for duel in &summary.duels {
        if several {
            svg.text(
                (if is_narrow { plot.left } else { 6.0 }, top + 17.0),
                Anchor::Start,
                "title",
                &duel.label,
            );
            top += head;
        }
        for comparison in &duel.comparisons {
            let contender = number_of(summary, &comparison.contender);
            let name = if several {
                comparison.contender.as_str()
            } else {
                duel.label.as_str()
            };
            let middle = if is_narrow {
                top + 34.0
            } else {
                top + row / 2.0
            };
            let text = if is_narrow { top + 15.0 } else { middle + 4.0 };
            let start = if is_narrow { plot.left } else { 6.0 };
            svg.path(
                &marker(contender, (start + 6.0, text - 4.0), 4.5),
                &format!("mark {}", colour(contender)),
                "",
            );
            let label_width = if is_narrow {
                plot.right * 0.32
            } else {
                plot.left - 40.0
            };
            svg.text(
                (start + 18.0, text),
                Anchor::Start,
                "label",
                &fitted(name, label_width),
            );
            let result = result(comparison);
            if is_narrow {
                let result = format!("{} {result}", words::sign(comparison.verdict));
                svg.text((plot.right, text), Anchor::End, "small halo", &result);
            } else {
                let verdict = format!(
                    "{} {}",
                    words::sign(comparison.verdict),
                    comparison.verdict.word()
                );
                svg.text((plot.right + 16.0, text), Anchor::Start, "strong", &verdict);
                svg.text((plot.right + 118.0, text), Anchor::Start, "small", &result);
            }
            draw(&mut svg, comparison, duel, contender, &scale, middle, plot);
            top += row;
        }
    }
    svg.text(
        (f64::midpoint(plot.left, plot.right), plot.bottom + 34.0),
        Anchor::Middle,
        "small",
        &format!(
            "throughput against {}; shaded: horizon of ±{}",
            fitted(&summary.baseline, 160.0),
            words::share(summary.rule.horizon)
        ),
    );
    svg.finish(
        plot.bottom + 44.0,
        &format!(
            "Throughput ratios against {}: {}",
            summary.baseline,
            words::headlines(summary).join("; ")
        ),
    )
}

/// Room for the labels beside the rows.
fn gutter(summary: &Summary) -> f64 {
    let labels = summary.duels.iter().flat_map(|duel| {
        let label = duel.label.chars().count();
        duel.comparisons
            .iter()
            .map(move |comparison| label.max(comparison.contender.chars().count()))
    });
    (46.0 + CHARACTER * labels.max().unwrap_or(0) as f64).min(220.0)
}

fn result(comparison: &Comparison) -> String {
    let Some(value) = words::ratio_value(&comparison.ratio) else {
        return words::NOT_MEASURED.to_owned();
    };
    match words::ratio_interval(&comparison.ratio) {
        interval if interval.is_empty() => format!("{value}, no interval"),
        interval => format!("{value} ({interval})"),
    }
}

fn draw(
    svg: &mut Svg,
    comparison: &Comparison,
    duel: &Duel,
    contender: usize,
    scale: &Scale,
    y: f64,
    plot: Plot,
) {
    let Some(value) = comparison.ratio.value() else {
        return;
    };
    let class = colour(contender);
    let (low, high) = comparison.ratio.interval().unwrap_or((value, value));
    svg.line(
        (scale.held(low), y),
        (scale.held(high), y),
        &format!("whisker {class}"),
    );
    if !high.is_finite() {
        svg.text((plot.right, y + 4.0), Anchor::End, "small", "→");
    }
    let shape = if comparison.verdict == Verdict::Void {
        "hollow"
    } else {
        "mark"
    };
    let title = format!(
        "{} at {}: {}, {} after {} blocks",
        comparison.contender,
        duel.label,
        result(comparison),
        comparison.verdict.word(),
        comparison.blocks.len()
    );
    svg.path(
        &marker(contender, (scale.held(value), y), 6.0),
        &format!("{shape} {class}"),
        &title,
    );
}

/// Ends of the axis: every interval and the horizon fit, with some air.
pub(super) fn range(summary: &Summary) -> (f64, f64) {
    let horizon = 1.0 + summary.rule.horizon;
    let comparisons = summary.duels.iter().flat_map(|duel| &duel.comparisons);
    let values = comparisons.filter_map(|comparison| {
        let value = comparison.ratio.value()?;
        let (low, high) = comparison.ratio.interval().unwrap_or((value, value));
        // An interval without an end must not push everything else into a corner.
        Some((
            low.clamp(value * 0.5, value),
            high.clamp(value, value * 2.0),
        ))
    });
    let (low, high) = values.fold((1.0 / horizon, horizon), |(low, high), (one, other)| {
        (low.min(one), high.max(other))
    });
    let air = (high / low).powf(0.08).max(horizon.powf(0.5));
    (low / air, high * air)
}

/// A tick of an axis of ratios: percentages near one, multiples on a wide axis.
pub(super) fn tick_label(tick: f64, spread: f64) -> String {
    if spread >= 2.5 {
        return format!("{}×", words::trimmed(tick));
    }
    let percent = 100.0 * (tick - 1.0);
    if percent.abs() < 1e-9 {
        return "0".to_owned();
    }
    let text = format!("{:.2}", percent.abs());
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!(
        "{sign}{} %",
        text.trim_end_matches('0').trim_end_matches('.')
    )
}
