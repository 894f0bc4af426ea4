//! A figure of every contender over the levels of a factor.

use dbduel_judge::summary::Figure;

use crate::words;

use super::frame::{Plot, aside, curve, titled};
use super::scale::{Scale, nice_end, ratio_ticks, ticks};
use super::style::{colour, legend};
use super::svg::Svg;

/// Data of a chart over the levels of a factor.
pub struct FactorChart<'a> {
    /// Title of the chart.
    pub title: &'a str,
    /// Unit of the values, for the corner.
    pub unit: &'a str,
    /// Name of the factor, below the axis.
    pub factor: &'a str,
    /// One per level, in their order.
    pub labels: Vec<String>,
    /// The levels as ascending numbers from above zero; absent when they have none.
    pub sizes: Option<Vec<f64>>,
    /// How a size between two levels is written.
    pub size_text: fn(f64) -> String,
    /// Names of the contenders, in their order.
    pub contenders: &'a [String],
    /// Number of a contender and its figure at each level; absent where nothing was measured.
    pub series: Vec<(usize, Vec<Option<Figure>>)>,
    /// Value marked by a horizontal line: equality, where ratios are shown.
    pub reference: Option<f64>,
    /// Half-width around the reference that counts as equal.
    pub horizon: f64,
    /// Crossings, as lower end, estimate and upper end of the size, and index of the contender.
    pub crossings: Vec<(f64, f64, f64, usize)>,
    /// How a value is written.
    pub text: fn(f64) -> String,
}

impl FactorChart<'_> {
    /// Draws the chart; `None` when nothing was measured.
    #[must_use]
    pub fn draw(&self, width: f64) -> Option<String> {
        let (low, high) = self.range()?;
        let mut svg = titled(width, self.title, self.unit);
        let names: Vec<&str> = self.contenders.iter().map(String::as_str).collect();
        let top = legend(&mut svg, &names);
        let plot = Plot {
            left: 58.0,
            top: top + 6.0,
            right: width - 14.0,
            bottom: top + 210.0,
        };
        let (values, grid) = match self.reference {
            None => (
                Scale::linear((low, high), plot.upwards()),
                ticks(low, high, 5),
            ),
            // A ratio and its inverse are equally far from equality.
            Some(_) => (
                Scale::logarithmic((low, high), plot.upwards()),
                ratio_ticks(low, high, 5),
            ),
        };
        if let Some(reference) = self.reference {
            let (above, below) = (
                values.held(reference * (1.0 + self.horizon)),
                values.held(reference * (1.0 - self.horizon)),
            );
            let size = (plot.width(), below - above);
            svg.rect((plot.left, above), size, "band", "within the horizon");
        }
        plot.horizontal_grid(&mut svg, &values, &grid, self.text);
        if let Some(reference) = self.reference {
            let y = values.at(reference);
            svg.line((plot.left, y), (plot.right, y), "zero");
        }
        self.levels(&mut svg, plot);
        self.crossed(&mut svg, plot);
        for (place, (contender, figures)) in self.series.iter().enumerate() {
            let aside = aside(place, self.series.len());
            self.draw_curve(&mut svg, plot, &values, *contender, figures, aside);
        }
        let label = format!("{} against {}, {}", self.title, self.factor, self.unit);
        Some(svg.finish(plot.bottom + 37.0, &label))
    }

    /// The ends of the axis of values: from zero, or around the reference.
    fn range(&self) -> Option<(f64, f64)> {
        let mut ends: Vec<f64> = Vec::new();
        for figure in self
            .series
            .iter()
            .flat_map(|(_, figures)| figures)
            .flatten()
        {
            let Some(value) = figure.value().filter(|value| value.is_finite()) else {
                continue;
            };
            let (low, high) = figure.interval().unwrap_or((value, value));
            // One wild end must not flatten all curves.
            ends.extend([value, low.max(0.5 * value), high.min(1.5 * value)]);
        }
        let largest = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let smallest = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let is_drawable = match self.reference {
            None => largest > 0.0,
            Some(_) => smallest > 0.0,
        };
        if ends.is_empty() || !is_drawable {
            return None;
        }
        Some(match self.reference {
            None => (0.0, nice_end(largest, 4)),
            Some(reference) => {
                // Equality and what counts as it are always in sight.
                let margin = 1.5 * self.horizon + 0.01;
                let low = smallest.min(reference / (1.0 + margin));
                let high = largest.max(reference * (1.0 + margin));
                let air = (high / low).powf(0.06);
                (low / air, high * air)
            }
        })
    }

    fn levels(&self, svg: &mut Svg, plot: Plot) {
        let labels = self.labels.iter().cloned();
        plot.axis_of_places(svg, &self.places(plot), labels, self.factor);
    }

    /// Draws a crossing: the interval as a span, the estimate as a line.
    fn crossed(&self, svg: &mut Svg, plot: Plot) {
        let Some(scale) = self.scale(plot) else {
            return;
        };
        for (low, at, high, contender) in &self.crossings {
            let (left, right) = (scale.held(*low), scale.held(*high));
            let class = format!("span {}", colour(*contender));
            let title = format!(
                "{} crosses the baseline between {} and {}",
                self.contenders.get(*contender).map_or("", String::as_str),
                (self.size_text)(*low),
                (self.size_text)(*high)
            );
            let size = (right - left, plot.height());
            svg.rect((left, plot.top), size, &class, &title);
            let x = scale.held(*at);
            svg.line((x, plot.top), (x, plot.bottom), "pause");
        }
    }

    fn draw_curve(
        &self,
        svg: &mut Svg,
        plot: Plot,
        values: &Scale,
        contender: usize,
        figures: &[Option<Figure>],
        aside: f64,
    ) {
        let places = self.places(plot).into_iter().zip(figures);
        let places: Vec<(f64, Option<&Figure>)> = places
            .map(|(x, figure)| (x + aside, figure.as_ref()))
            .collect();
        let name = self.contenders.get(contender).map_or("", String::as_str);
        let title = |level: usize, figure: &Figure, value: f64| {
            format!(
                "{name} at {} = {}: {} ({})",
                self.factor,
                self.labels.get(level).map_or("", String::as_str),
                (self.text)(value),
                words::doubt(figure, self.text)
            )
        };
        curve(svg, contender, &places, |value| values.held(value), title);
    }

    /// The axis of sizes; `None` without sizes.
    fn scale(&self, plot: Plot) -> Option<Scale> {
        let sizes = self.sizes.as_ref()?;
        let (first, last) = (sizes.first()?, sizes.last()?);
        let inner = (plot.left + 30.0, plot.right - 30.0);
        Some(Scale::logarithmic((*first, *last), inner))
    }

    /// Position of each level: by the logarithm of its size where it has one, otherwise in order.
    fn places(&self, plot: Plot) -> Vec<f64> {
        if let (Some(scale), Some(sizes)) = (self.scale(plot), &self.sizes) {
            return sizes.iter().map(|&size| scale.at(size)).collect();
        }
        let inner = (plot.left + 30.0, plot.right - 30.0);
        let last = self.labels.len().saturating_sub(1) as f64;
        let scale = Scale::linear((0.0, last), inner);
        (0..self.labels.len())
            .map(|at| scale.at(at as f64))
            .collect()
    }
}
