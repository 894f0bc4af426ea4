//! Rows of horizontal bars with their names: beside the bars, or above them where names would be cut too short to be
//! distinguishable.

use super::frame::Plot;
use super::style::fitted;
use super::svg::{Anchor, Svg};

/// Height of a bar, pixels.
pub const BAR: f64 = 14.0;
/// Height of a row with its name beside its bar, and with its name above.
const ROW: f64 = 26.0;
const ROW_NARROW: f64 = 38.0;
/// Drawings below this width are narrow: names are above the bars.
const NARROW: f64 = 480.0;

/// The rows of a drawing.
pub struct BarRows {
    pub plot: Plot,
    pub is_narrow: bool,
    /// Room behind a name above its bar, pixels.
    digits: f64,
    /// Top of the next row.
    top: f64,
}

impl BarRows {
    /// Room for `count` rows in a drawing of this width: names beside bars take at most `names`, and `right` is left free
    /// beside the plot; `digits` is the room that values take behind names above their bars. All in pixels.
    pub fn new(width: f64, count: usize, names: f64, right: f64, digits: f64) -> Self {
        let is_narrow = width < NARROW;
        let (left, height) = match is_narrow {
            // Half of the digit below the axis needs room.
            true => (4.0, ROW_NARROW),
            false => ((0.36 * width).min(names), ROW),
        };
        let top = 44.0;
        let plot = Plot {
            left,
            top,
            right: width - right,
            bottom: top + height * count as f64,
        };
        Self {
            plot,
            is_narrow,
            digits,
            top,
        }
    }

    /// Writes the name of the next row and returns the vertical middle of its bar, pixels.
    pub fn name(&mut self, svg: &mut Svg, class: &str, text: &str) -> f64 {
        let (start, end, base, middle, height) = match self.is_narrow {
            true => {
                // Beside the axis.
                let start = self.plot.left + 5.0;
                let end = self.plot.right - self.digits;
                (start, end, self.top + 12.0, self.top + 25.0, ROW_NARROW)
            }
            false => {
                let middle = self.top + ROW / 2.0;
                (0.0, self.plot.left - 12.0, middle + 4.0, middle, ROW)
            }
        };
        let text = fitted(text, end - start);
        svg.text((start, base), Anchor::Start, class, &text);
        self.top += height;
        middle
    }
}
