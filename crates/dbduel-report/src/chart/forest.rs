//! The ratio of every comparison with its interval, against the horizon.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Comparison, Duel};
use dbduel_record::Verdict;

use crate::{words, wrap};

use super::frame::{Plot, SMALL_CHARACTER, are_touching, half_width, inside};
use super::number_of;
use super::scale::{Scale, ratio_ticks};
use super::style::{CHARACTER, colour, fitted, mark, marker};
use super::svg::{Anchor, Svg};

/// Below this width labels stand above their row instead of beside it.
const NARROW: f64 = 640.0;

/// Distance from the baseline's line to the middle of the label on either side, pixels.
const SIDE: f64 = 36.0;

/// Height of the line above the rows of a level, pixels.
const HEAD: f64 = 26.0;

/// The forest chart of all duels.
#[must_use]
pub fn forest(summary: &Summary, width: f64) -> String {
    let mut svg = Svg::new(width);
    let forest = Forest::of(summary, width);
    let plot = forest.plot;
    forest.backdrop(&mut svg);
    let mut top = plot.top + 3.0;
    for duel in &summary.duels {
        if forest.has_heads {
            let at = (forest.start(), top + 17.0);
            svg.text(at, Anchor::Start, "title", &duel.label);
            top += HEAD;
        }
        for comparison in &duel.comparisons {
            forest.comparison(&mut svg, duel, comparison, top);
            top += forest.row;
        }
    }
    let horizon = words::share(summary.rule.horizon);
    svg.text(
        (f64::midpoint(plot.left, plot.right), plot.bottom + 34.0),
        Anchor::Middle,
        "small",
        &match forest.is_narrow {
            true => format!(
                "against {}; shaded: ±{horizon}",
                fitted(&summary.baseline, 130.0)
            ),
            false => format!(
                "throughput against {}; shaded: horizon of ±{horizon}",
                fitted(&summary.baseline, 160.0)
            ),
        },
    );
    let mut bottom = plot.bottom + 44.0;
    let comparisons = summary.duels.iter().flat_map(|duel| &duel.comparisons);
    let legend = words::starred(comparisons.map(|one| &one.ratio));
    if !legend.is_empty() {
        for line in wrap(legend, (width / SMALL_CHARACTER) as usize, 0, 0) {
            bottom += 14.0;
            svg.text((0.0, bottom - 4.0), Anchor::Start, "small", &line);
        }
    }
    svg.finish(
        bottom,
        &format!(
            "Throughput ratios against {}: {}",
            summary.baseline,
            words::headlines(summary).join("; ")
        ),
    )
}

/// Layout of a forest chart of some width.
struct Forest<'a> {
    summary: &'a Summary,
    is_narrow: bool,
    /// True when levels stand above their rows, because rows are named after contenders.
    has_heads: bool,
    row: f64,
    plot: Plot,
    range: (f64, f64),
    scale: Scale,
}

impl<'a> Forest<'a> {
    fn of(summary: &'a Summary, width: f64) -> Self {
        let is_narrow = width < NARROW;
        let has_heads = summary.contenders.len() > 2;
        let row = if is_narrow { 50.0 } else { 30.0 };
        let heads = if has_heads { HEAD } else { 0.0 };
        let duels = summary.duels.iter();
        let rows: f64 = duels
            .map(|duel| row * duel.comparisons.len() as f64 + heads)
            .sum();
        let (left, right) = if is_narrow {
            (14.0, width - 14.0)
        } else {
            (gutter(summary), width - 310.0)
        };
        let plot = Plot {
            left,
            right,
            top: 30.0,
            bottom: 30.0 + rows + 6.0,
        };
        let range = range(summary);
        Self {
            summary,
            is_narrow,
            has_heads,
            row,
            plot,
            range,
            scale: Scale::logarithmic(range, plot.across()),
        }
    }

    /// Left edge of marks and labels, pixels.
    fn start(&self) -> f64 {
        if self.is_narrow { self.plot.left } else { 6.0 }
    }

    /// Draws the horizon, the grid, and the baseline's line with its labels on either side.
    fn backdrop(&self, svg: &mut Svg) {
        let Self {
            summary,
            plot,
            scale,
            range: (from, to),
            ..
        } = *self;
        let horizon = 1.0 + summary.rule.horizon;
        let (left, right) = (scale.held(1.0 / horizon), scale.held(horizon));
        svg.rect(
            (left, plot.top),
            (right - left, plot.height()),
            "band",
            "within the horizon: equivalent",
        );
        let ticks = ratio_ticks(from, to, (plot.width() / 70.0) as usize);
        plot.vertical_grid(svg, &scale, &ticks, |tick| tick_label(tick, to / from));
        let centre = scale.at(1.0);
        svg.line((centre, plot.top), (centre, plot.bottom), "zero");
        let baseline = format!("like {}", fitted(&summary.baseline, 180.0));
        let at = (inside(svg, centre, &baseline), plot.top - 16.0);
        svg.text(at, Anchor::Middle, "small", &baseline);
        let sides = [(centre - SIDE, "← slower"), (centre + SIDE, "faster →")];
        let [slower, faster] = sides.map(|(x, text)| (inside(svg, x, text), text));
        for ((wanted, _), (x, text)) in sides.into_iter().zip([slower, faster]) {
            // The name of a side that is all but off the chart gives way to the other.
            if x == wanted || !are_touching(slower, faster) {
                svg.text((x, plot.top - 3.0), Anchor::Middle, "small", text);
            }
        }
    }

    /// Draws one row: contender, result in words, and interval with its mark.
    fn comparison(&self, svg: &mut Svg, duel: &Duel, comparison: &Comparison, top: f64) {
        let Self { plot, .. } = *self;
        let contender = number_of(self.summary, &comparison.contender);
        let name = if self.has_heads {
            &comparison.contender
        } else {
            &duel.label
        };
        let (sign, result) = (
            words::sign(comparison.verdict),
            result(self.summary, comparison),
        );
        let start = self.start();
        let (middle, text, label_width) = if self.is_narrow {
            let text = top + 15.0;
            // Above its row a text may lie over the line of the baseline.
            let size = (plot.width() + 2.0, 16.0);
            svg.rect((start - 1.0, text - 12.0), size, "paper", "");
            let result = format!("{sign} {result}");
            svg.text((plot.right, text), Anchor::End, "small", &result);
            let taken = 24.0 + 2.0 * half_width(&result);
            (top + 34.0, text, plot.width() - taken)
        } else {
            let middle = top + self.row / 2.0;
            let text = middle + 4.0;
            let verdict = format!("{sign} {}", comparison.verdict.word());
            svg.text((plot.right + 16.0, text), Anchor::Start, "strong", &verdict);
            svg.text((plot.right + 118.0, text), Anchor::Start, "small", &result);
            (middle, text, plot.left - 40.0)
        };
        mark(svg, contender, (start + 6.0, text - 4.0), 4.5, "");
        let name = fitted(name, label_width);
        svg.text((start + 18.0, text), Anchor::Start, "label", &name);
        self.ratio(svg, duel, comparison, middle);
    }

    /// Draws the interval with its mark; nothing without a measured ratio.
    fn ratio(&self, svg: &mut Svg, duel: &Duel, comparison: &Comparison, y: f64) {
        let Some(value) = comparison.ratio.value() else {
            return;
        };
        let contender = number_of(self.summary, &comparison.contender);
        let class = colour(contender);
        let (low, high) = comparison.ratio.interval().unwrap_or((value, value));
        let at = |ratio: f64| (self.scale.held(ratio), y);
        svg.line(at(low), at(high), &format!("whisker {class}"));
        if !high.is_finite() {
            svg.text((self.plot.right, y + 4.0), Anchor::End, "small", "→");
        }
        let shape = if comparison.verdict == Verdict::Void {
            "hollow"
        } else {
            "mark"
        };
        let title = format!(
            "{} at {}: {}, {} after {}",
            comparison.contender,
            duel.label,
            result(self.summary, comparison),
            comparison.verdict.word(),
            words::things(comparison.blocks.len() as u64, "block")
        );
        let mark = marker(contender, at(value), 6.0);
        svg.path(&mark, &format!("{shape} {class}"), &title);
    }
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

/// The ratio and its interval in words.
fn result(summary: &Summary, comparison: &Comparison) -> String {
    let unit = words::verdict_unit(summary);
    if comparison.ratio.value().is_none() {
        return words::NOT_MEASURED.to_owned();
    }
    let value = unit.value(&comparison.ratio);
    match unit.short_interval(&comparison.ratio) {
        interval if interval.is_empty() => format!("{value}, no interval"),
        interval => format!("{value} ({interval})"),
    }
}

/// Ends of the axis: include every interval and the horizon, with a margin.
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

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::summarise;
    use dbduel_judge::summary::Figure;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn an_estimate_near_an_end_of_its_interval_has_a_star_and_a_legend() {
        let (mut summary, _) = summarise(&Scenario::duel().record());
        for comparison in summary
            .duels
            .iter_mut()
            .flat_map(|duel| &mut duel.comparisons)
        {
            let Figure::Estimated {
                value, low, high, ..
            } = &mut comparison.ratio
            else {
                panic!("no interval")
            };
            (*low, *high) = (0.9 * *value, Some(1.1 * *value));
        }
        for width in [320.0, 960.0] {
            assert!(!forest(&summary, width).contains('*'));
        }
        if let Figure::Estimated { value, high, .. } = &mut summary.duels[0].comparisons[0].ratio {
            *high = Some(1.001 * *value);
        }
        for width in [320.0, 960.0] {
            let drawn = forest(&summary, width);
            assert!(
                drawn.contains("*)<") && drawn.contains(">* Estimate near"),
                "{drawn}"
            );
        }
    }

    #[test]
    fn the_side_of_a_mark_has_its_name_wherever_the_baseline_stands() {
        for (speed, name) in [
            (0.3, "← slower"),
            (0.9, "← slower"),
            (1.1, "faster →"),
            (4.0, "faster →"),
        ] {
            let mut scenario = Scenario {
                clients: vec![16],
                ..Scenario::duel()
            };
            scenario.sides[1].speed = vec![speed];
            let summary = summarise(&scenario.record()).0;
            for width in [320.0, 480.0, 960.0] {
                let drawn = forest(&summary, width);
                assert!(drawn.contains(name), "{speed} {width}: {drawn}");
            }
        }
    }
}
