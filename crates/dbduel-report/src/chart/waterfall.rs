//! From the baseline's latency to the contender's, part by part.
//!
//! A bar that goes left is time that a transaction no longer takes. Faint bars are differences whose
//! interval holds zero.

use dbduel_judge::Summary;
use dbduel_judge::explain::{Explanation, Latency, Part};
use dbduel_judge::summary::Figure;

use crate::words;

use super::bar_rows::{BAR, BarRows};
use super::frame::titled;
use super::number_of;
use super::scale::{Scale, nice_end, ticks};
use super::style::{colour, interval_on_bar};
use super::svg::{Anchor, Svg};

/// Smallest share of a transaction that gets a row; a smaller part's bar would be invisible.
const LEAST: f64 = 1e-3;

/// Draws the chart; `None` when the latency could not be divided, or compared.
#[must_use]
pub fn waterfall(summary: &Summary, explanation: &Explanation, width: f64) -> Option<String> {
    let Latency::Divided(division) = &explanation.latency else {
        return None;
    };
    if !explanation.has_enough_blocks() {
        return None;
    }
    let (from, to) = (
        division.baseline_us.value()?,
        division.contender_us.value()?,
    );
    let (factor, unit) = words::latency_unit(from.max(to));
    let is_seen = |part: &Part| {
        [&part.baseline_us, &part.contender_us]
            .iter()
            .any(|figure| figure.value().is_some_and(|us| us > LEAST * from.max(to)))
    };
    let rows = division.parts.iter().filter(|part| is_seen(part)).count();
    let names = BarRows::new(width, rows + 2, 210.0, 64.0, 0.0);
    let plot = names.plot;
    let mut svg = titled(width, "Time per transaction: change by part", unit);
    svg.text(
        (0.0, 32.0),
        Anchor::Start,
        "small",
        match names.is_narrow {
            true => "faint: interval includes zero · line: interval",
            false => "solid: interval excludes zero · faint: includes it · line: interval",
        },
    );
    // The highest point that the running sum reaches on its way.
    let mut sum = from;
    let mut highest = from.max(to);
    for part in &division.parts {
        sum += part.difference_us.value().unwrap_or(0.0);
        highest = highest.max(sum);
    }
    let end = nice_end(highest / factor, 5);
    let scale = Scale::linear((0.0, end), plot.across());
    plot.vertical_grid(&mut svg, &scale, &ticks(0.0, end, 5), words::trimmed);
    let mut row = Rows {
        svg: &mut svg,
        names,
        scale,
        factor,
    };
    row.total(
        &summary.baseline,
        number_of(summary, &summary.baseline),
        from,
    );
    let mut at = from;
    for part in &division.parts {
        let to = at + part.difference_us.value().unwrap_or(0.0);
        if is_seen(part) {
            row.part(part.doing.name(), at, to, &part.difference_us);
        }
        at = to;
    }
    row.total(
        &explanation.contender,
        number_of(summary, &explanation.contender),
        to,
    );
    svg.line((plot.left, plot.top), (plot.left, plot.bottom), "axis");
    Some(svg.finish(
        plot.bottom + 24.0,
        &format!(
            "Time of a transaction from {} ({}) to {} ({}), part by part; the table below has the figures",
            summary.baseline,
            words::latency(from),
            explanation.contender,
            words::latency(to)
        ),
    ))
}

struct Rows<'s> {
    svg: &'s mut Svg,
    names: BarRows,
    scale: Scale,
    factor: f64,
}

impl Rows<'_> {
    fn total(&mut self, name: &str, number: usize, us: f64) {
        let middle = self.names.name(self.svg, "strong", name);
        let end = self.scale.at(us / self.factor);
        self.svg.rect(
            (self.names.plot.left, middle - BAR / 2.0),
            (end - self.names.plot.left, BAR),
            &format!("bar {}", colour(number)),
            &format!("{name}: {} per transaction", words::latency(us)),
        );
        self.svg.text(
            (end + 6.0, middle + 4.0),
            Anchor::Start,
            "strong",
            &self.digits(us),
        );
    }

    /// A number of microseconds in the axis's unit, with the same two decimals in every row.
    fn digits(&self, us: f64) -> String {
        format!("{:.2}", us.abs() / self.factor)
    }

    fn part(&mut self, name: &str, from: f64, to: f64, difference: &Figure) {
        let middle = self.names.name(self.svg, "label", name);
        let at = |us: f64| self.scale.at(us / self.factor);
        let (left, right) = (at(from.min(to)), at(from.max(to)));
        let direction = if to <= from { "less" } else { "more" };
        let interval = difference.interval();
        let unsure = match interval {
            Some((low, high)) if high < 0.0 || low > 0.0 => "",
            _ => " unsure",
        };
        let signed = |us: f64| {
            let sign = if us < 0.0 { "−" } else { "+" };
            format!("{sign}{}", words::latency(us.abs()))
        };
        let range = interval.map_or(String::new(), |(low, high)| {
            format!(" [{}, {}]", signed(low), signed(high))
        });
        let (low, high) = interval.unwrap_or((0.0, 0.0));
        let (whisker_from, whisker_to) = (
            self.scale.held((from + low) / self.factor),
            self.scale.held((from + high) / self.factor),
        );
        self.svg.rect(
            (left, middle - BAR / 2.0),
            ((right - left).max(1.0), BAR),
            &format!("fall {direction}{unsure}"),
            &format!("{name}: {}{range}", signed(to - from)),
        );
        if interval.is_some() {
            interval_on_bar(self.svg, (whisker_from, middle), (whisker_to, middle));
        }
        let beyond = right.max(whisker_from).max(whisker_to);
        let digits = self.digits(to - from);
        let sign = match to - from {
            _ if digits == "0.00" => "±",
            change if change < 0.0 => "−",
            _ => "+",
        };
        self.svg.text(
            (beyond + 6.0, middle + 4.0),
            Anchor::Start,
            "tick",
            &format!("{sign}{digits}"),
        );
    }
}
