//! Autocorrelation of a series, and its cost in precision.
//!
//! Long-run variances (n times the variance of the mean) by batch means. Inputs are finite; callers check.

use crate::moments::as_count;
use crate::moments::{mean, variance};

/// Means of `length` consecutive values; a remainder at the end is dropped.
pub(crate) fn batch_means(series: &[f64], length: usize) -> Vec<f64> {
    series.chunks_exact(length.max(1)).map(mean).collect()
}

/// Autocovariances γ₀..γ_lags (divided by n, which keeps the sequence positive definite).
pub(crate) fn autocovariances(series: &[f64], lags: usize) -> Vec<f64> {
    let centre = mean(series);
    let n = series.len();
    (0..=lags.min(n.saturating_sub(1)))
        .map(|lag| {
            let products = series.iter().zip(&series[lag..]);
            products
                .map(|(a, b)| (a - centre) * (b - centre))
                .sum::<f64>()
                / n as f64
        })
        .collect()
}

/// Batch length of about √n, at least 1.
pub(crate) fn root_length(n: usize) -> usize {
    as_count((n as f64).sqrt().round().max(1.0))
}

/// Long-run variance from batches of about √n with the lugsail correction, which errs upwards instead
/// of downwards when batches are too short (Vats & Flegal 2022).
pub(crate) fn long_run_variance_lugsail(series: &[f64]) -> f64 {
    let length = root_length(series.len());
    let at = |length: usize| length as f64 * variance(&batch_means(series, length));
    let full = at(length);
    match length / 3 {
        0 => full,
        third => (2.0 * full - at(third)).max(full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn autoregressive(phi: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut random = RandomStream::new(seed, 0);
        let mut value = random.normal();
        (0..n)
            .map(|_| {
                value = phi * value + (1.0 - phi * phi).sqrt() * random.normal();
                value
            })
            .collect()
    }

    #[test]
    fn the_long_run_variance_agrees_with_the_closed_form() {
        // AR(1) with unit variance: the long-run variance is (1 + φ) / (1 − φ).
        for (phi, tolerance) in [(0.0, 0.25), (0.5, 0.25), (0.9, 0.3)] {
            let series = autoregressive(phi, 50_000, 3);
            let truth = (1.0 + phi) / (1.0 - phi);
            let value = long_run_variance_lugsail(&series);
            assert!((value / truth - 1.0).abs() < tolerance, "{phi}: {value}");
        }
    }

    #[test]
    fn a_constant_series_has_no_long_run_variance() {
        assert_eq!(long_run_variance_lugsail(&[4.0; 100]), 0.0);
    }
}
