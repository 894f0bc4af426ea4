//! From the baseline's throughput to the contender's, factor by factor, on a logarithmic axis, so that bars add up.
//!
//! Faint bars are effects whose interval holds none.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Figure};

use crate::chart::bar_rows::{BAR, BarRows};
use crate::chart::frame::titled;
use crate::chart::scale::{Scale, ratio_ticks};
use crate::chart::style::{colour, interval_on_bar};
use crate::chart::svg::{Anchor, Svg};
use crate::number_of;
use crate::words::{self, RatioUnit};

/// Room for a value beside a name, pixels.
const DIGITS: f64 = 52.0;
/// Room at both ends of the axis, as a share of its length.
const MARGIN: f64 = 0.06;

/// Draws the chart; `None` without a division of the difference.
#[must_use]
pub fn effects(summary: &Summary, duel: &Duel, width: f64) -> Option<String> {
    let attribution = duel.attribution.as_ref()?;
    let whole = &duel.comparisons.first()?.ratio;
    let total = whole.value()?;
    let mut steps: Vec<(&str, &Figure)> = super::by_size(attribution)
        .into_iter()
        .map(|(_, effect)| (effect.factor.as_str(), &effect.ratio))
        .filter(|(_, ratio)| ratio.value().is_some())
        .collect();
    if steps.is_empty() {
        return None;
    }
    steps.extend(
        attribution
            .gap
            .as_ref()
            .map(|gap| ("three or more together", gap)),
    );
    // Where each bar begins, and all that the axis must hold.
    let mut at = 1.0;
    let mut ends = vec![1.0, total];
    let mut bars = Vec::new();
    for (name, ratio) in steps {
        let value = ratio.value().unwrap_or(1.0);
        bars.push((name, at, ratio));
        ends.push(at * value);
        ends.extend(
            ratio
                .interval()
                .into_iter()
                .flat_map(|(low, high)| [at * low, at * high]),
        );
        at *= value;
    }
    ends.extend(
        whole
            .interval()
            .into_iter()
            .flat_map(|(low, high)| [low, high]),
    );
    ends.retain(|end| end.is_finite() && *end > 0.0);
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let room = ((high / low).ln() * MARGIN).max(0.005);
    let (low, high) = (low * (-room).exp(), high * room.exp());
    let names = BarRows::new(width, bars.len() + 2, 270.0, 8.0, DIGITS);
    let plot = names.plot;
    let mut svg = titled(width, "Throughput by factor", &duel.label);
    let key = match names.is_narrow {
        true => "solid: effect shown · line: interval",
        false => "solid: interval excludes zero effect · faint: includes it · line: interval",
    };
    svg.text((0.0, 32.0), Anchor::Start, "small", key);
    let scale = Scale::logarithmic((low, high), plot.across());
    let unit = RatioUnit::of_values([low, high]);
    plot.vertical_grid(&mut svg, &scale, &ratio_ticks(low, high, 6), |tick| {
        unit.write(tick)
    });
    let mut rows = Rows {
        svg: &mut svg,
        names,
        scale,
        unit,
    };
    rows.total(
        &summary.baseline,
        number_of(summary, &summary.baseline),
        1.0,
        None,
    );
    for (name, from, ratio) in bars {
        rows.effect(name, from, ratio);
    }
    rows.total(
        &attribution.target,
        number_of(summary, &attribution.target),
        total,
        whole.interval(),
    );
    let label = format!(
        "From {} to {}, {} in all, factor by factor; the table has the figures",
        summary.baseline,
        attribution.target,
        unit.write(total)
    );
    Some(svg.finish(plot.bottom + 24.0, &label))
}

struct Rows<'s> {
    svg: &'s mut Svg,
    names: BarRows,
    scale: Scale,
    unit: RatioUnit,
}

impl Rows<'_> {
    /// Draws the row of a contender's total ratio to the baseline.
    fn total(&mut self, name: &str, number: usize, ratio: f64, interval: Option<(f64, f64)>) {
        let middle = self.names.name(self.svg, "strong", name);
        let (none, end) = (self.scale.at(1.0), self.scale.at(ratio));
        let title = format!("{name}: {}", self.unit.write(ratio));
        self.svg.rect(
            (none.min(end) - 1.0, middle - BAR / 2.0),
            ((end - none).abs() + 2.0, BAR),
            &format!("bar {}", colour(number)),
            &title,
        );
        self.interval(1.0, interval, middle);
        if interval.is_some() {
            self.digits(ratio, [none, end], interval, middle);
        }
    }

    fn effect(&mut self, name: &str, from: f64, ratio: &Figure) {
        let middle = self.names.name(self.svg, "label", name);
        let value = ratio.value().unwrap_or(1.0);
        let interval = ratio.interval();
        let (start, end) = (self.scale.at(from), self.scale.at(from * value));
        // More throughput is the better direction here, unlike in a chart of latency.
        let direction = if value >= 1.0 { "less" } else { "more" };
        let unsure = match interval {
            Some((low, high)) if low > 1.0 || high < 1.0 => "",
            _ => " unsure",
        };
        let title = format!(
            "{name}: {} ({})",
            self.unit.value(ratio),
            words::ratio_interval(ratio)
        );
        self.svg.rect(
            (start.min(end), middle - BAR / 2.0),
            ((end - start).abs().max(1.0), BAR),
            &format!("fall {direction}{unsure}"),
            &title,
        );
        self.interval(from, interval, middle);
        self.digits(
            value,
            [start, end],
            interval.map(|(low, high)| (from * low, from * high)),
            middle,
        );
    }

    fn interval(&mut self, from: f64, interval: Option<(f64, f64)>, middle: f64) {
        if let Some((low, high)) = interval {
            let ends = [low, high].map(|end| self.scale.held(from * end));
            interval_on_bar(self.svg, (ends[0], middle), (ends[1], middle));
        }
    }

    /// The value beside bar and interval: on the right, or on the left where there is no room. In a narrow drawing it
    /// stands at the end of the line with the name.
    fn digits(&mut self, value: f64, bar: [f64; 2], interval: Option<(f64, f64)>, middle: f64) {
        let text = self.unit.write(value);
        if self.names.is_narrow {
            let at = (self.names.plot.right, middle - 13.0);
            self.svg.text(at, Anchor::End, "tick", &text);
            return;
        }
        let ends = interval.map(|(low, high)| [low, high].map(|end| self.scale.held(end)));
        let ends = ends.unwrap_or(bar);
        let left = ends.into_iter().chain(bar).fold(f64::INFINITY, f64::min) - 6.0;
        let right = ends.into_iter().chain(bar).fold(0.0, f64::max) + 6.0;
        let is_full = right + 7.0 * text.chars().count() as f64 > self.names.plot.right;
        let (at, anchor) = match is_full {
            true => (left, Anchor::End),
            false => (right, Anchor::Start),
        };
        self.svg.text((at, middle + 4.0), anchor, "tick", &text);
    }
}
