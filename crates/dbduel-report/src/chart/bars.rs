//! Processor time per transaction as bars: the server's, with the load process's behind it.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Figure, Measures};

use crate::words;

use super::frame::{Plot, titled};
use super::scale::{Scale, nice_end, ticks};
use super::style::{colour, fitted, interval_on_bar, mark};
use super::svg::{Anchor, Svg};

const BAR: f64 = 15.0;
const ROW: f64 = 22.0;
const HEAD: f64 = 22.0;

/// Draws the chart; `None` when no processor time was measured.
#[must_use]
pub fn processor_time(summary: &Summary, width: f64) -> Option<String> {
    let measures = || summary.duels.iter().flat_map(|duel| &duel.contenders);
    let largest = measures()
        .map(|one| {
            known_us(&one.server_cpu_us_per_transaction)
                + known_us(&one.client_cpu_us_per_transaction)
        })
        .fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let (factor, unit) = words::latency_unit(largest);
    let mut svg = titled(width, "Processor time per transaction", unit);
    svg.text(
        (0.0, 32.0),
        Anchor::Start,
        "small",
        "solid: server, with its interval · faint: load process",
    );
    let heads = if summary.duels.len() > 1 { HEAD } else { 0.0 };
    let rows: f64 = summary
        .duels
        .iter()
        .map(|duel| heads + ROW * duel.contenders.len() as f64)
        .sum();
    let plot = Plot {
        left: (0.34 * width).min(190.0),
        top: 42.0,
        right: width - 62.0,
        bottom: 42.0 + rows,
    };
    let end = nice_end(largest / factor, 4);
    let scale = Scale::linear((0.0, end), plot.across());
    plot.vertical_grid(&mut svg, &scale, &ticks(0.0, end, 4), words::trimmed);
    let bars = Bars {
        plot,
        scale,
        factor,
    };
    let mut top = plot.top;
    for duel in &summary.duels {
        if heads > 0.0 {
            svg.text((0.0, top + 16.0), Anchor::Start, "strong", &duel.label);
            top += heads;
        }
        for (contender, one) in duel.contenders.iter().enumerate() {
            bars.row(&mut svg, contender, one, top + ROW / 2.0);
            top += ROW;
        }
    }
    svg.line((plot.left, plot.top), (plot.left, plot.bottom), "axis");
    Some(svg.finish(
        plot.bottom + 24.0,
        &format!("Processor time of server and load process per transaction, {unit}"),
    ))
}

/// Value of a figure, 0 where nothing was measured.
fn known_us(figure: &Figure) -> f64 {
    figure.value().unwrap_or(0.0)
}

struct Bars {
    plot: Plot,
    scale: Scale,
    /// Microseconds in one of the axis's units.
    factor: f64,
}

impl Bars {
    /// Draws one contender: name, server's bar with its interval, load process's bar behind it, and their sum.
    fn row(&self, svg: &mut Svg, contender: usize, one: &Measures, middle: f64) {
        let (server, client) = (
            &one.server_cpu_us_per_transaction,
            &one.client_cpu_us_per_transaction,
        );
        let (first, second) = (
            known_us(server) / self.factor,
            known_us(client) / self.factor,
        );
        let class = colour(contender);
        mark(svg, contender, (6.0, middle), 4.0, "");
        svg.text(
            (16.0, middle + 4.0),
            Anchor::Start,
            "label",
            &fitted(&one.contender, self.plot.left - 22.0),
        );
        let title = |whose: &str, figure: &Figure| {
            format!(
                "{} of {}: {} ({})",
                whose,
                one.contender,
                words::value(figure, words::latency),
                words::doubt(figure, words::latency)
            )
        };
        let at = |value: f64| self.scale.at(value);
        let (zero, join, end) = (at(0.0), at(first), at(first + second));
        svg.rect(
            (zero, middle - BAR / 2.0),
            (join - zero, BAR),
            &format!("bar {class}"),
            &title("server", server),
        );
        svg.rect(
            (join, middle - BAR / 2.0),
            (end - join, BAR),
            &format!("bar second {class}"),
            &title("load process", client),
        );
        let mut free = end;
        if let Some((low, high)) = server.interval() {
            let held = |us: f64| self.scale.held(us / self.factor);
            interval_on_bar(svg, (held(low), middle), (held(high), middle));
            free = free.max(held(high));
        }
        svg.text(
            (free + 6.0, middle + 4.0),
            Anchor::Start,
            "tick",
            &words::number(first + second),
        );
    }
}
