//! Scales from values to pixels, and positions of ticks.
//!
//! No units, no drawing.

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
    /// A linear scale: equal differences get equal distances.
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

    /// A logarithmic scale: equal ratios get equal distances. Both ends must be positive.
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

    /// The pixel of a value, clamped to the ends.
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

/// Least number of labels on an axis; one or two do not show its width.
const TICKS_MIN: usize = 3;

/// Largest power of ten, positive or negative, at an end of an axis.
const POWER_MAX: i32 = 300;

/// 1, 2 and 5 times powers of ten between positive ends, at most `count`; fewer of a power where there are
/// many powers. More than `count` where the next coarser ones would be too few to read, and equal steps where
/// the axis is short.
#[must_use]
pub fn logarithmic_ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    let power = |end: f64| (end.log10() as i32).clamp(-POWER_MAX, POWER_MAX);
    let (first, last) = (power(from) - 1, power(to) + 1);
    let within = |tick: &f64| *tick >= from * 0.999 && *tick <= to * 1.001;
    let of = |factors: &'static [f64], stride: i32| -> Vec<f64> {
        let powers = (first..=last).filter(|power| power % stride == 0);
        let ticks = powers.flat_map(|power| {
            let factors = factors.iter();
            factors.map(move |factor| factor * 10_f64.powi(power))
        });
        ticks.filter(within).collect()
    };
    let finest: &[f64] = &[1.0, 2.0, 5.0];
    let coarser: [(&[f64], i32); 6] = [
        (&[1.0, 3.0], 1),
        (&[1.0], 1),
        (&[1.0], 2),
        (&[1.0], 5),
        (&[1.0], 10),
        (&[1.0], 50),
    ];
    let mut ticks = of(finest, 1);
    if ticks.len() < TICKS_MIN {
        return equal_steps(from, to, count);
    }
    for (factors, stride) in coarser {
        if ticks.len() <= count {
            break;
        }
        let fewer = of(factors, stride);
        if fewer.len() < TICKS_MIN {
            break;
        }
        ticks = fewer;
    }
    ticks
}

/// [`ticks`] with steps short enough for the least number of labels: of 1, 2 and 5, the next one up may be more than
/// twice what was asked for.
fn equal_steps(from: f64, to: f64, count: usize) -> Vec<f64> {
    (count..=count.max(3 * TICKS_MIN))
        .map(|count| ticks(from, to, count))
        .find(|steps| steps.len() >= TICKS_MIN)
        .unwrap_or_else(|| ticks(from, to, count))
}

/// Ticks for an axis of ratios, at most about `count` and at least three: round percentages near one, round multiples
/// far from it.
#[must_use]
pub fn ratio_ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    if to / from < 2.5 && from > 0.5 && to < 2.0 {
        let percents = equal_steps(100.0 * (from - 1.0), 100.0 * (to - 1.0), count).into_iter();
        return percents.map(|percent| 1.0 + percent / 100.0).collect();
    }
    let multiples = [
        0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0,
    ];
    let within: Vec<f64> = multiples
        .into_iter()
        .filter(|tick| (from..=to).contains(tick))
        .collect();
    // On an axis that goes beyond them they would all stand at one end of it.
    let is_covered = from >= multiples[0] && to <= multiples[multiples.len() - 1];
    if is_covered && (TICKS_MIN..=count).contains(&within.len()) {
        return within;
    }
    logarithmic_ticks(from, to, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let shown = |ticks: &[f64]| -> Vec<String> {
            let texts = ticks.iter().map(|tick| format!("{tick:.2}"));
            texts.collect()
        };
        assert_eq!(ticks(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(-3.0, 3.0, 4), [-2.0, 0.0, 2.0]);
        assert_eq!(
            logarithmic_ticks(0.9, 60.0, 8),
            [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
        );
        let short = shown(&logarithmic_ticks(1.1, 1.9, 4));
        assert_eq!(short, ["1.20", "1.40", "1.60", "1.80"]);
        assert_eq!(nice_end(8731.0, 5), 10_000.0);
        assert_eq!(
            ratio_ticks(0.4, 4.0, 9),
            [0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0]
        );
        let narrow = shown(&ratio_ticks(0.958, 1.042, 4));
        assert_eq!(narrow, ["0.96", "0.98", "1.00", "1.02", "1.04"]);
        let wide = shown(&ratio_ticks(0.3, 35.0, 4));
        assert_eq!(wide, ["0.30", "1.00", "3.00", "10.00", "30.00"]);
        let very_wide = shown(&ratio_ticks(1e-9, 1e9, 5));
        assert_eq!(very_wide, ["0.00", "1.00", "100000.00"]);
    }

    /// Largest share of an axis that may be without a label: a little more than between three evenly spaced ones.
    const GAP_MAX: f64 = 0.6;

    /// Largest share of an axis of ratios without a label, ends included.
    fn largest_gap(from: f64, to: f64, ticks: &[f64]) -> f64 {
        let places = [&[from], ticks, &[to]].concat();
        let gaps = places.windows(2).map(|pair| (pair[1] / pair[0]).ln());
        gaps.fold(0.0, f64::max) / (to / from).ln()
    }

    #[test]
    fn an_axis_of_ratios_far_from_one_has_labels_all_along() {
        for count in 3..10 {
            for below in 1..200 {
                let to = 0.4;
                let from = to / 10_f64.powf(f64::from(below) / 30.0).max(1.05);
                let ticks = ratio_ticks(from, to, count);
                let gap = largest_gap(from, to, &ticks);
                assert!(gap <= GAP_MAX, "{from}..{to}, {count}: {gap} {ticks:?}");
            }
        }
        assert_eq!(ratio_ticks(0.001, 0.4, 5).len(), 3);
    }

    #[test]
    fn an_axis_of_ratios_has_at_least_three_labels_and_never_a_crowd() {
        for count in 3..10 {
            for below in 1..400 {
                for above in [1, 2, 5, 20, 100, 399] {
                    let end = |steps: i32| 10_f64.powf(f64::from(steps) / 60.0);
                    let (from, to) = (1.0 / end(below), end(above));
                    if to / from < 1.02 {
                        continue;
                    }
                    let ticks = ratio_ticks(from, to, count);
                    assert!(
                        (3..=count + 3).contains(&ticks.len()),
                        "{from}..{to}, {count}: {ticks:?}"
                    );
                    let gap = largest_gap(from, to, &ticks);
                    assert!(gap <= GAP_MAX, "{from}..{to}, {count}: {gap} {ticks:?}");
                }
            }
        }
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
        assert!(logarithmic_ticks(0.0, f64::INFINITY, 5).len() < 20);
        assert_eq!(nice_end(0.0, 5), 1.0);
    }
}
