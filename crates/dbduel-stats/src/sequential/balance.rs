//! Estimate where earlier looks exclude that of all units: the balance of the tests.

use super::flip_spend::Side;

/// Upper bound of halvings; reached only where the range is far wider than the precision.
const HALVINGS_MAX: usize = 60;

/// Largest share of its limit that a test's statistic has reached at any look, by the side on which the data lay. A test
/// rejects at 1.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LimitShares {
    above: f64,
    below: f64,
}

impl LimitShares {
    /// Adds a look at which the data lay on `side` and the statistic was this share of its limit.
    pub(crate) fn add(&mut self, side: Side, share: f64) {
        let largest = match side {
            Side::Above => &mut self.above,
            Side::Below => &mut self.below,
        };
        *largest = largest.max(share);
    }

    /// The larger shares of two tests of one hypothesis.
    pub(super) fn larger(self, other: LimitShares) -> LimitShares {
        LimitShares {
            above: self.above.max(other.above),
            below: self.below.max(other.below),
        }
    }

    /// The side on which a rejection is nearer; above where both are equally near.
    pub(crate) fn nearer_side(self) -> Side {
        Side::of(self.above - self.below)
    }
}

/// The balance of tests within `low..high`: the effect at which a rejection is equally near on both sides, located to
/// `precision` by bisection (after Hodges and Lehmann 1963, who take as estimate the value at which a test favours neither side;
/// here the test is the largest share of its limit at any look). `nearer_side` is the side of the data on which the
/// hypothesis of an effect is, or is nearest to being, rejected.
///
/// The result lies strictly between two finite ends, unless there is no number between them.
pub(crate) fn balance(
    mut low: f64,
    mut high: f64,
    precision: f64,
    nearer_side: impl Fn(f64) -> Side,
) -> f64 {
    for _ in 0..HALVINGS_MAX {
        if high - low <= precision {
            break;
        }
        let middle = low.midpoint(high);
        match nearer_side(middle) {
            Side::Above => low = middle,
            Side::Below => high = middle,
        }
    }
    low.midpoint(high)
}
