//! From values to pixels, and where to put ticks.
//!
//! Knows no unit and draws nothing.

/// A mapping of values to pixels along one direction.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    is_logarithmic: bool,
}

impl Scale {
    /// Equal differences get equal distances.
    #[must_use]
    pub fn linear((from, to): (f64, f64), (start, end): (f64, f64)) -> Self {
        Self {
            from,
            to: if to > from { to } else { from + 1.0 },
            start,
            end,
            is_logarithmic: false,
        }
    }

    /// Equal ratios get equal distances. Both ends must be positive.
    #[must_use]
    pub fn logarithmic((from, to): (f64, f64), (start, end): (f64, f64)) -> Self {
        let from = from.max(f64::MIN_POSITIVE);
        Self {
            from: from.ln(),
            to: to.max(from * 1.0001).ln(),
            start,
            end,
            is_logarithmic: true,
        }
    }

    /// The pixel of a value; values beyond the ends lie beyond the ends.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.is_logarithmic {
            value.ln()
        } else {
            value
        };
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// The pixel of a value, held between the ends.
    #[must_use]
    pub fn held(&self, value: f64) -> f64 {
        let (low, high) = (self.start.min(self.end), self.start.max(self.end));
        let at = self.at(value);
        if at.is_nan() {
            low
        } else {
            at.clamp(low, high)
        }
    }
}

/// Round numbers between `from` and `to`, at most about `count`, 1–2–5 steps.
#[must_use]
pub fn ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    let span = to - from;
    if !(span > 0.0 && span.is_finite()) {
        return vec![from];
    }
    let step = nice_step(span / count.max(1) as f64);
    let first = (from / step).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last).map(|index| index as f64 * step).collect()
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `step`.
#[must_use]
pub fn nice_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|nice| *nice >= step * 0.999)
        .unwrap_or(10.0 * power)
}

/// A round number at or above `value`, so that an axis from zero ends on a tick.
#[must_use]
pub fn nice_end(value: f64, count: usize) -> f64 {
    if !(value > 0.0 && value.is_finite()) {
        return 1.0;
    }
    let step = nice_step(value / count.max(1) as f64);
    (value / step).ceil() * step
}

/// 1, 2 and 5 times powers of ten between positive ends; powers of ten alone when there are many.
#[must_use]
pub fn logarithmic_ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    let (first, last) = (from.log10().floor() as i32, to.log10().ceil() as i32);
    let within = |tick: &f64| *tick >= from * 0.999 && *tick <= to * 1.001;
    for factors in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
        let powers = (first..=last).flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        });
        let ticks: Vec<f64> = powers.filter(within).collect();
        if ticks.len() <= count || factors.len() == 1 {
            return ticks;
        }
    }
    Vec::new()
}

/// Ratios that are worth a line on an axis of ratios: round percentages near one, round multiples far
/// from it.
#[must_use]
pub fn ratio_ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    if to / from < 2.5 && from > 0.5 && to < 2.0 {
        return ticks(100.0 * (from - 1.0), 100.0 * (to - 1.0), count)
            .into_iter()
            .map(|percent| 1.0 + percent / 100.0)
            .collect();
    }
    let multiples = [
        0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0,
        20.0, 50.0, 100.0,
    ];
    let within: Vec<f64> = multiples
        .into_iter()
        .filter(|tick| (from..=to).contains(tick))
        .collect();
    if within.len() <= count {
        return within;
    }
    let round = [0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0];
    round
        .into_iter()
        .filter(|tick| (from..=to).contains(tick))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(-3.0, 3.0, 4), [-2.0, 0.0, 2.0]);
        assert_eq!(
            logarithmic_ticks(0.9, 60.0, 8),
            [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
        );
        assert_eq!(nice_end(8731.0, 5), 10_000.0);
        assert_eq!(
            ratio_ticks(0.4, 4.0, 9),
            [0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0]
        );
    }

    #[test]
    fn degenerate_ranges_do_not_divide_by_zero() {
        assert!(Scale::linear((3.0, 3.0), (0.0, 100.0)).at(3.0).is_finite());
        assert!(
            Scale::logarithmic((0.0, 0.0), (0.0, 100.0))
                .at(1.0)
                .is_finite()
        );
        assert_eq!(ticks(1.0, 1.0, 5), [1.0]);
        assert_eq!(nice_end(0.0, 5), 1.0);
    }
}
