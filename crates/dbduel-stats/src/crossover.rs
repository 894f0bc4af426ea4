//! Crossings of two curves over a grid of sizes, claimed only when both sides are certain.
//!
//! Noise makes any two equal curves cross somewhere. A crossing is therefore claimed only between sizes whose signs
//! are certified simultaneously, and its location is never stated more finely than the grid.

use crate::error::{StatsError, all_finite, all_positive, at_least, open_fraction};
use crate::estimate::Estimate;
use crate::moments::{deviation_squares, mean, t_half_width, t_point};

/// Points per grid step at which the interpolated band is tested.
const STEPS: usize = 200;

/// The block differences measured at one size.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeDifferences {
    /// The size; positive.
    pub size: f64,
    /// Log ratios of the blocks at this size.
    pub differences: Vec<f64>,
}

/// One certified crossing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// The certified size before it.
    pub after_size: f64,
    /// The certified size after it.
    pub before_size: f64,
    /// Whether the difference turns from negative to positive.
    pub rising: bool,
    /// The size at which the interpolated difference is zero, with its interval; its `n` counts the
    /// sizes from one certified end to the other.
    pub at: Estimate,
}

/// The curve with its simultaneous intervals, and the crossings it proves. An empty list means "none
/// demonstrated in this range", not "none".
#[derive(Debug, Clone, PartialEq)]
pub struct Crossovers {
    /// Mean difference at every size; all intervals hold together with probability `1 − alpha`.
    pub curve: Vec<Estimate>,
    /// The crossings, in order of size.
    pub crossings: Vec<Crossing>,
}

/// Finds the crossings of a curve measured with a common scatter at ascending sizes.
///
/// The place is found by linear interpolation against the log of the size; its interval holds the
/// sizes at which the interpolated band includes zero (inversion after Fieller 1954), widened to the
/// grid step around the crossing.
///
/// # Errors
/// Fewer than two sizes, fewer than two differences at one, sizes that do not ascend from above zero, a
/// difference that is not finite, or `alpha` outside (0, 1).
pub fn find_crossovers(sizes: &[SizeDifferences], alpha: f64) -> Result<Crossovers, StatsError> {
    open_fraction("alpha", alpha)?;
    at_least("sizes", 2, sizes.len())?;
    for size in sizes {
        at_least("differences at one size", 2, size.differences.len())?;
        all_finite("differences at one size", &size.differences)?;
    }
    let places: Vec<f64> = sizes.iter().map(|size| size.size).collect();
    all_positive("sizes", &places)?;
    if !places.is_sorted_by(|one, next| one < next) {
        return Err(StatsError::Shape {
            what: "sizes",
            problem: "they do not ascend".to_owned(),
        });
    }
    let degrees: f64 = sizes
        .iter()
        .map(|size| size.differences.len() as f64 - 1.0)
        .sum();
    let pooled = sizes
        .iter()
        .map(|size| deviation_squares(&size.differences))
        .sum::<f64>()
        / degrees;
    let points: Vec<Point> = sizes
        .iter()
        .map(|size| Point {
            log_size: size.size.ln(),
            value: mean(&size.differences),
            square_error: pooled / size.differences.len() as f64,
        })
        .collect();

    let curve: Vec<Estimate> = points
        .iter()
        .zip(sizes)
        .map(|(point, size)| {
            let half = t_half_width(
                degrees,
                alpha / sizes.len() as f64,
                point.square_error.sqrt(),
            );
            Estimate {
                value: point.value,
                low: point.value - half,
                high: point.value + half,
                n: size.differences.len(),
            }
        })
        .collect();
    let certified: Vec<usize> = (0..sizes.len())
        .filter(|index| !curve[*index].contains(0.0))
        .collect();
    let single = t_point(degrees, alpha);
    let crossings = certified
        .windows(2)
        .filter(|pair| (curve[pair[0]].value > 0.0) != (curve[pair[1]].value > 0.0))
        .map(|pair| Crossing {
            after_size: sizes[pair[0]].size,
            before_size: sizes[pair[1]].size,
            rising: curve[pair[1]].value > 0.0,
            at: locate(&points[pair[0]..=pair[1]], single),
        })
        .collect();
    Ok(Crossovers { curve, crossings })
}

#[derive(Debug, Clone, Copy)]
struct Point {
    log_size: f64,
    value: f64,
    square_error: f64,
}

/// Root and interval inside a bracket whose ends have opposite signs.
fn locate(bracket: &[Point], quantile: f64) -> Estimate {
    // With an odd number of sign changes inside the bracket the middle one stands for all.
    let steps: Vec<&[Point]> = bracket
        .windows(2)
        .filter(|step| (step[0].value > 0.0) != (step[1].value > 0.0))
        .collect();
    let (first, last) = (bracket[0], bracket[bracket.len() - 1]);
    let step = steps.get(steps.len() / 2).copied().unwrap_or(bracket);
    let (from, to) = (step[0], step[step.len() - 1]);
    let root = from.log_size + (to.log_size - from.log_size) * from.value / (from.value - to.value);

    let (mut low, mut high) = (from.log_size, to.log_size);
    for step in bracket.windows(2) {
        for part in 0..=STEPS {
            let weight = part as f64 / STEPS as f64;
            let value = (1.0 - weight) * step[0].value + weight * step[1].value;
            let square_error = (1.0 - weight).powi(2) * step[0].square_error
                + weight.powi(2) * step[1].square_error;
            if value.abs() <= quantile * square_error.sqrt() {
                let log_size = (1.0 - weight) * step[0].log_size + weight * step[1].log_size;
                low = low.min(log_size);
                high = high.max(log_size);
            }
        }
    }
    let bounded = |log_size: f64| log_size.clamp(first.log_size, last.log_size);
    Estimate {
        value: root,
        low: bounded(low),
        high: bounded(high),
        n: bracket.len(),
    }
    .map_increasing(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(values: &[f64], scatter: f64) -> Vec<SizeDifferences> {
        let at = |(index, value): (usize, &f64)| SizeDifferences {
            size: 2_f64.powi(index as i32),
            differences: vec![value - scatter, *value, value + scatter],
        };
        values.iter().enumerate().map(at).collect()
    }

    #[test]
    fn one_crossing_is_located_between_its_neighbours() {
        let found = find_crossovers(&sizes(&[-3.0, -1.0, 1.0, 3.0], 0.05), 0.05).unwrap();
        let [crossing] = found.crossings[..] else {
            panic!("{found:?}")
        };
        assert!(crossing.rising);
        assert_eq!((crossing.after_size, crossing.before_size), (2.0, 4.0));
        assert!((crossing.at.value - 8_f64.sqrt()).abs() < 1e-9);
        // Never finer than the grid.
        assert!((crossing.at.low - 2.0).abs() < 1e-9 && (crossing.at.high - 4.0).abs() < 1e-9);
    }

    #[test]
    fn an_uncertain_size_inside_widens_the_bracket() {
        let found = find_crossovers(&sizes(&[1.0, 0.01, -1.0], 0.05), 0.05).unwrap();
        let [crossing] = found.crossings[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (crossing.after_size, crossing.before_size, crossing.rising),
            (1.0, 4.0, false)
        );
        assert!(crossing.at.low < 2.0 && crossing.at.high > 3.99);
    }

    #[test]
    fn two_crossings_are_two_findings_and_noise_is_none() {
        assert_eq!(
            find_crossovers(&sizes(&[1.0, -1.0, -1.0, 1.0], 0.05), 0.05)
                .unwrap()
                .crossings
                .len(),
            2
        );
        assert!(
            find_crossovers(&sizes(&[0.1, -0.1, 0.1], 1.0), 0.05)
                .unwrap()
                .crossings
                .is_empty()
        );
        assert!(
            find_crossovers(&sizes(&[0.0, 0.0], 0.0), 0.05)
                .unwrap()
                .crossings
                .is_empty()
        );
    }

    #[test]
    fn bad_sweeps_are_refused() {
        assert!(find_crossovers(&sizes(&[1.0], 0.1), 0.05).is_err());
        let mut descending = sizes(&[1.0, 2.0], 0.1);
        descending.reverse();
        assert!(find_crossovers(&descending, 0.05).is_err());
        assert!(find_crossovers(&sizes(&[1.0, f64::NAN], 0.1), 0.05).is_err());
    }
}
