//! Intervals of ratios drawn in lines of a terminal, below each other on one logarithmic scale.

use dbduel_judge::summary::Figure;

/// Columns of the drawing.
const COLUMNS: usize = 40;

/// The scale that lines share.
pub(super) struct IntervalScale {
    least: f64,
    /// Logarithm of the ratio of the largest value to the smallest.
    width: f64,
}

impl IntervalScale {
    /// A scale from the smallest to the largest of the values, all above zero; values outside are drawn at the ends.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let (least, most) = values
            .into_iter()
            .fold((f64::INFINITY, 0.0), |(least, most), value| {
                (f64::min(least, value), f64::max(most, value))
            });
        Self {
            least,
            width: (most / least).ln().max(f64::MIN_POSITIVE),
        }
    }

    fn column(&self, ratio: f64) -> usize {
        let share = ((ratio / self.least).ln() / self.width).clamp(0.0, 1.0);
        (share * (COLUMNS - 1) as f64).round() as usize
    }

    /// The interval with a dot for its value.
    pub(super) fn line(&self, figure: &Figure) -> String {
        let mut line = vec![' '; COLUMNS];
        if let Some((low, high)) = figure.interval() {
            line[self.column(low)..=self.column(high)].fill('─');
        }
        if let Some(value) = figure.value() {
            line[self.column(value)] = '●';
        }
        line.into_iter().collect()
    }
}
