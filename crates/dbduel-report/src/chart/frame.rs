//! The parts that charts share: axes with their lines and labels, and curves with intervals.

use dbduel_judge::summary::Figure;

use super::scale::{Scale, logarithmic_ticks};
use super::style::{CHARACTER, colour, fitted, marker};
use super::svg::{Anchor, Svg, polyline};
use crate::words;

/// Average width of a character of the small texts, pixels.
pub const SMALL_CHARACTER: f64 = 6.4;

/// The same of the titles.
const TITLE_CHARACTER: f64 = 7.2;

/// A drawing with its title at the top left and a note, which may be empty, at the top right. A title that would reach the
/// note is shortened.
#[must_use]
pub fn titled(width: f64, title: &str, note: &str) -> Svg {
    let mut svg = Svg::new(width);
    let room = match note.is_empty() {
        true => width,
        false => width - 2.0 * half_width(note) - 8.0,
    };
    let title = fitted(title, room * CHARACTER / TITLE_CHARACTER);
    svg.text((0.0, 14.0), Anchor::Start, "title", &title);
    if !note.is_empty() {
        svg.text((width, 14.0), Anchor::End, "small", note);
    }
    svg
}

/// The rectangle that data are drawn in, pixels.
#[derive(Debug, Clone, Copy)]
pub struct Plot {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Plot {
    #[must_use]
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    #[must_use]
    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Left and right, as a scale takes them.
    #[must_use]
    pub fn across(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// Bottom and top, as a scale takes them: values grow upwards.
    #[must_use]
    pub fn upwards(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// Horizontal lines with their labels on the left.
    pub fn horizontal_grid(
        &self,
        svg: &mut Svg,
        scale: &Scale,
        ticks: &[f64],
        label: impl Fn(f64) -> String,
    ) {
        for &tick in ticks {
            let y = scale.at(tick);
            svg.line((self.left, y), (self.right, y), "grid");
            svg.text(
                (self.left - 7.0, y + 4.0),
                Anchor::End,
                "tick",
                &label(tick),
            );
        }
    }

    /// A logarithmic axis of latencies in microseconds, upwards, with its grid.
    #[must_use]
    pub fn latencies(&self, svg: &mut Svg, (low, high): (f64, f64)) -> Scale {
        let scale = Scale::logarithmic((low, high), self.upwards());
        let ticks = logarithmic_ticks(low, high, 7);
        self.horizontal_grid(svg, &scale, &ticks, words::latency_tick);
        scale
    }

    /// Draws the horizontal axis with its caption below the labels.
    pub fn axis(&self, svg: &mut Svg, caption: &str) {
        svg.line((self.left, self.bottom), (self.right, self.bottom), "axis");
        let middle = inside(svg, f64::midpoint(self.left, self.right), caption);
        svg.text(
            (middle, self.bottom + 31.0),
            Anchor::Middle,
            "small",
            caption,
        );
    }

    /// Draws the horizontal axis with a tick and a label at every place, and its caption below.
    pub fn axis_of_places(
        &self,
        svg: &mut Svg,
        places: &[f64],
        labels: impl IntoIterator<Item = String>,
        caption: &str,
    ) {
        for &x in places {
            svg.line((x, self.bottom), (x, self.bottom + 4.0), "axis");
        }
        self.labels_below(svg, places.iter().copied().zip(labels));
        self.axis(svg, caption);
    }

    /// Vertical lines with their labels below.
    pub fn vertical_grid(
        &self,
        svg: &mut Svg,
        scale: &Scale,
        ticks: &[f64],
        label: impl Fn(f64) -> String,
    ) {
        for &tick in ticks {
            let x = scale.at(tick);
            svg.line((x, self.top), (x, self.bottom), "grid");
        }
        self.labels_below(svg, ticks.iter().map(|&tick| (scale.at(tick), label(tick))));
    }

    /// Labels below the axis, in ascending order of their places. A label that would touch the one before is left out.
    pub fn labels_below(&self, svg: &mut Svg, labels: impl IntoIterator<Item = (f64, String)>) {
        let mut free = f64::NEG_INFINITY;
        for (x, text) in labels {
            let at = inside(svg, x, &text);
            let half = half_width(&text);
            if at - half >= free {
                svg.text((at, self.bottom + 16.0), Anchor::Middle, "tick", &text);
                free = at + half + 8.0;
            }
        }
    }
}

/// Half of the approximate width of a small text, pixels.
pub fn half_width(text: &str) -> f64 {
    let wide = |c: char| if "%+−×".contains(c) { 1.5 } else { 1.0 };
    0.5 * SMALL_CHARACTER * text.chars().map(wide).sum::<f64>()
}

/// True when two small texts on one line, each centred at its position, leave no gap between them.
pub fn are_touching((one, text): (f64, &str), (other, other_text): (f64, &str)) -> bool {
    (one - other).abs() <= half_width(text) + half_width(other_text)
}

/// Position of the middle of a small text that belongs to `x`, shifted so that no part is cut off.
pub fn inside(svg: &Svg, x: f64, text: &str) -> f64 {
    let half = half_width(text);
    x.min(svg.width() - half).max(half)
}

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

/// Draws the curve. `height` maps a value to a pixel, `title` makes the tooltip of a point from its index and value;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_ends_before_the_note() {
        let drawn = |title: &str| titled(340.0, title, "transactions/s").finish(20.0, "");
        assert!(
            drawn("Throughput over time, 16 clients")
                .contains(">Throughput over time, 16 clients<")
        );
        let long = drawn("Throughput over time, 1024 clients, 20000/s Poisson");
        assert!(long.contains('…') && long.contains("Poisson<"), "{long}");
    }

    #[test]
    fn a_label_that_would_touch_the_one_before_is_left_out() {
        let plot = Plot {
            left: 20.0,
            top: 0.0,
            right: 180.0,
            bottom: 50.0,
        };
        let mut svg = Svg::new(200.0);
        let labels = [
            (40.0, "1024"),
            (60.0, "2048"),
            (120.0, "4096"),
            (199.0, "16384"),
        ];
        plot.labels_below(&mut svg, labels.map(|(x, text)| (x, text.to_owned())));
        let drawn = svg.finish(60.0, "");
        for (text, is_there) in [
            ("1024", true),
            ("2048", false),
            ("4096", true),
            ("16384", true),
        ] {
            assert_eq!(drawn.contains(text), is_there, "{text}: {drawn}");
        }
        // The last is moved to the left, so that it is not cut.
        assert!(drawn.contains("x=\"184\""), "{drawn}");
    }
}
