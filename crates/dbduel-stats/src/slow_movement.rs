//! How far the mean of a series is from the mean of all such series, where the machine moves slowly.
//!
//! A movement that takes minutes shifts a run as a whole and hardly scatters its parts, so the scatter of
//! neighbours says too little. What it leaves behind is in the slowest twelve waves of the series (Müller and Watson
//! 2016; equal weights on them: Lazarus, Lewis, Stock and Watson 2018).
//! The mean has the density at zero, which no series shows and a hypothesis must give:
//! A movement that takes much longer than the series cannot be seen in it.
//!
//! * *none*: the values are independent, all frequencies are alike, and the mean is Student's;
//! * *some*: beside their independent scatter the values have a movement of the same variance, or of four times that,
//!   autoregressive with a memory of eight values.
//!
//! Before the series none and some are equally likely, and so are the two kinds of some. Its coefficients change the
//! odds, and the interval leaves out `alpha` of the mixture of all three. So it keeps its promise on average over the
//! odds, and not under each hypothesis alone: more often where nothing moves slowly, and less often where the movement
//! is strong and the series short. Of intervals at 95 %, percent that hold the truth, by the number of values:
//!
//! | values | 14 | 28 | 56 | 112 |
//! | --- | ---: | ---: | ---: | ---: |
//! | independent | 100 | 99 | 99 | 98 |
//! | scatter and a movement of the same variance | 93 | 91 | 91 | 91 |
//! | scatter and a movement of four times its variance | 85 | 87 | 89 | 90 |
//! | the movement alone, beyond the hypotheses | 76 | 83 | 88 | 90 |
//!
//! Memory, variances and odds were chosen for coverage at little width on simulated machines, in the acceptance suite.

use std::f64::consts::PI;

use crate::moments::{t_p_value, t_point};
use crate::waves::cosine_coefficients;

/// Maximum number of coefficients that are used.
const COSINES: usize = 12;

/// Number of values after which the autocorrelation of the slow movement has fallen to 1/e.
const MEMORY: f64 = 8.0;

/// Hypotheses with their prior probabilities: variances of the slow movement as multiples of that of the independent
/// scatter.
const HYPOTHESES: [(f64, f64); 3] = [(0.0, 0.5), (1.0, 0.25), (4.0, 0.25)];

/// Evidence of the coefficients for one hypothesis.
struct Hypothesis {
    log_likelihood: f64,
    /// Standard error of the mean.
    error: f64,
}

/// Half of the interval of the mean of `values` in time order, at least two finite ones; zero when all are equal.
pub(crate) fn half_width(values: &[f64], alpha: f64) -> f64 {
    let mut coefficients = cosine_coefficients(values, COSINES.min(values.len() - 1));
    let sizes = coefficients.iter().map(|coefficient| coefficient.abs());
    let largest = sizes.fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    // Squares of very small coefficients would have no place in a float.
    for coefficient in &mut coefficients {
        *coefficient /= largest;
    }
    largest * half_width_of(&coefficients, values.len(), alpha)
}

/// [`half_width`] of `n` values that have these coefficients, the largest of them of size 1.
fn half_width_of(coefficients: &[f64], n: usize, alpha: f64) -> f64 {
    let found =
        HYPOTHESES.map(|(variance, prior)| (prior, Hypothesis::new(coefficients, n, variance)));
    let likelihoods = found.iter().map(|(_, found)| found.log_likelihood);
    let highest = likelihoods.fold(f64::NEG_INFINITY, f64::max);
    let weighed = found.map(|(prior, found)| {
        let weight = prior * (found.log_likelihood - highest).exp();
        (weight, found.error)
    });
    let total: f64 = weighed.iter().map(|(weight, _)| weight).sum();
    let degrees = coefficients.len() as f64;
    let outside = |half: f64| {
        let parts = weighed.iter();
        let tails = parts.map(|(weight, error)| weight * t_p_value(half / error, degrees));
        tails.sum::<f64>() / total
    };
    let point = t_point(degrees, alpha);
    let points = weighed.map(|(_, error)| error * point);
    // The point of a mixture lies between those of its parts.
    halved(
        points.into_iter().fold(f64::INFINITY, f64::min),
        points.into_iter().fold(0.0, f64::max),
        |half| outside(half) <= alpha,
    )
}

impl Hypothesis {
    /// A slow movement of `variance` times the variance of the independent scatter.
    fn new(coefficients: &[f64], n: usize, variance: f64) -> Self {
        let (count, n) = (coefficients.len() as f64, n as f64);
        let memory = MEMORY / n;
        // Density of the movement at zero, where that of the scatter is 1.
        let strength = 2.0 * MEMORY * variance;
        let densities = (1..=coefficients.len())
            .map(|frequency| 1.0 + strength / (1.0 + (PI * frequency as f64 * memory).powi(2)));
        // The variance of a mean of autoregressive values that do not go on for ever, n times.
        let at_zero = 1.0 + strength * (1.0 - memory * (1.0 - (-1.0 / memory).exp()));
        let (mut energy, mut log_density) = (0.0, 0.0);
        for (coefficient, density) in coefficients.iter().zip(densities) {
            energy += coefficient * coefficient / density;
            log_density += density.ln();
        }
        Hypothesis {
            // The scale is unknown and integrated out, as behind Student's t.
            log_likelihood: -0.5 * (log_density + count * energy.ln()),
            error: (at_zero * energy / count / n).sqrt(),
        }
    }
}

/// The least sufficient number from `low` to `high`, found from above by halving.
fn halved(mut low: f64, mut high: f64, is_enough: impl Fn(f64) -> bool) -> f64 {
    const HALVINGS: usize = 50;
    if !high.is_finite() {
        return high;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments::variance;
    use crate::random::RandomStream;

    fn independent(n: usize, seed: u64) -> Vec<f64> {
        let mut random = RandomStream::new(seed, 0);
        (0..n).map(|_| random.normal()).collect()
    }

    #[test]
    fn the_width_lies_between_that_of_independent_values_and_that_of_slow_ones() {
        for seed in 0..50 {
            let values = independent(28, seed);
            let coefficients = cosine_coefficients(&values, COSINES);
            let widths = HYPOTHESES.map(|(variance, _)| {
                Hypothesis::new(&coefficients, 28, variance).error * t_point(12.0, 0.05)
            });
            let half = half_width(&values, 0.05);
            assert!(widths.iter().any(|width| *width < half), "{seed}");
            assert!(widths.iter().any(|width| half < *width), "{seed}");
        }
    }

    #[test]
    fn a_slow_movement_widens_the_interval_more_than_it_scatters_the_values() {
        let scatter = independent(56, 2);
        let moved: Vec<f64> = (0..56)
            .map(|index| scatter[index] + (2.0 * PI * index as f64 / 40.0).sin())
            .collect();
        let more_scatter = (variance(&moved) / variance(&scatter)).sqrt();
        let wider = half_width(&moved, 0.05) / half_width(&scatter, 0.05);
        assert!(wider > 1.3 * more_scatter, "{more_scatter} {wider}");
        // The same values in any other order are not slow.
        let shuffled: Vec<f64> = (0..56).map(|index| moved[index * 17 % 56]).collect();
        assert!(half_width(&shuffled, 0.05) < 0.6 * half_width(&moved, 0.05));
    }

    #[test]
    fn the_unit_of_the_values_does_not_matter_however_small_or_large() {
        let values = independent(20, 4);
        let half = half_width(&values, 0.05);
        for unit in [1e-300, 1e-200, 1e-162, 1e-9, 1e99] {
            let scaled: Vec<f64> = values.iter().map(|value| unit * value).collect();
            let ratio = half_width(&scaled, 0.05) / unit / half;
            assert!((ratio - 1.0).abs() < 1e-9, "{unit}: {ratio}");
        }
    }

    #[test]
    fn two_values_and_any_confidence_have_a_width() {
        assert!(half_width(&[1.0, 2.0], 0.05) > 6.0);
        assert_eq!(half_width(&[3.0; 9], 1e-320), 0.0);
        let values = independent(20, 3);
        let mut before = 0.0;
        for power in 1..=300 {
            let half = half_width(&values, 10_f64.powi(-power));
            assert!(half >= before, "1e-{power}: {half} {before}");
            before = half;
        }
    }
}
