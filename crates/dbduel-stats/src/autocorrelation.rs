//! How much the neighbours in a series resemble each other, and what that costs in precision.
//!
//! Long-run variances (n times the variance of the mean) by batch means and by an autoregressive fit.
//! It knows nothing of what the series measures. Inputs are finite; callers check.

use std::ops::Range;

use crate::moments::{deviation_squares, mean, variance};

/// Largest order of the autoregressive fit.
const ORDER_MAX: usize = 6;

/// Means of `length` consecutive values; a remainder at the end is dropped.
pub(crate) fn batch_means(series: &[f64], length: usize) -> Vec<f64> {
    series.chunks_exact(length.max(1)).map(mean).collect()
}

/// At most `count` consecutive groups of `n` things, as equal in size as can be.
pub(crate) fn groups(n: usize, count: usize) -> impl Iterator<Item = Range<usize>> {
    let count = count.min(n);
    (0..count).map(move |group| group * n / count..(group + 1) * n / count)
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

/// Long-run variance from `count` batch means (Law & Kelton).
pub(crate) fn long_run_variance_batches(series: &[f64], count: usize) -> f64 {
    let length = series.len() / count;
    let means = batch_means(&series[..length * count], length);
    length as f64 * variance(&means)
}

/// Batch length of about √n, at least 1.
pub(crate) fn root_length(n: usize) -> usize {
    (n as f64).sqrt().round().max(1.0) as usize
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

/// Long-run variance from an autoregressive fit (Yule–Walker by the Levinson–Durbin recursion), order
/// 0 to 6 by Akaike's criterion.
pub(crate) fn long_run_variance_autoregressive(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let covariances = autocovariances(series, ORDER_MAX.min(series.len().saturating_sub(3)));
    let mut innovation = covariances[0];
    if innovation <= 0.0 {
        return 0.0;
    }
    let mut coefficients: Vec<f64> = Vec::new();
    let mut best = (n * innovation.ln(), innovation * n / (n - 1.0));
    for order in 1..covariances.len() {
        let predicted: f64 = coefficients
            .iter()
            .enumerate()
            .map(|(index, phi)| phi * covariances[order - 1 - index])
            .sum();
        let reflection = (covariances[order] - predicted) / innovation;
        let reversed: Vec<f64> = coefficients.iter().rev().copied().collect();
        for (phi, mirror) in coefficients.iter_mut().zip(reversed) {
            *phi -= reflection * mirror;
        }
        coefficients.push(reflection);
        innovation *= 1.0 - reflection * reflection;
        if innovation <= f64::EPSILON * covariances[0] {
            break;
        }
        let criterion = n * innovation.ln() + 2.0 * order as f64;
        if criterion < best.0 {
            let gain = 1.0 - coefficients.iter().sum::<f64>();
            let unbiased = innovation * n / (n - order as f64 - 1.0);
            best = (criterion, unbiased / (gain * gain));
        }
    }
    best.1
}

/// How many independent values the series is worth for its mean, at most its length.
pub(crate) fn effective_size(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let long_run = long_run_variance_autoregressive(series);
    if long_run <= 0.0 {
        return n;
    }
    (deviation_squares(series) / long_run).min(n)
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
    fn long_run_variances_agree_with_the_closed_form() {
        // AR(1) with unit variance: the long-run variance is (1 + φ) / (1 − φ).
        for (phi, tolerance) in [(0.0, 0.25), (0.5, 0.25), (0.9, 0.3)] {
            let series = autoregressive(phi, 50_000, 3);
            let truth = (1.0 + phi) / (1.0 - phi);
            for (name, value) in [
                ("autoregressive", long_run_variance_autoregressive(&series)),
                ("batches", long_run_variance_batches(&series, 200)),
                ("lugsail", long_run_variance_lugsail(&series)),
            ] {
                assert!(
                    (value / truth - 1.0).abs() < tolerance,
                    "{name} {phi}: {value}"
                );
            }
        }
    }

    #[test]
    fn constant_series_have_no_long_run_variance() {
        let series = [4.0; 100];
        assert_eq!(long_run_variance_autoregressive(&series), 0.0);
        assert_eq!(long_run_variance_lugsail(&series), 0.0);
        assert_eq!(effective_size(&series), 100.0);
    }

    #[test]
    fn effective_size_counts_what_neighbours_repeat() {
        let size = effective_size(&autoregressive(0.9, 20_000, 5));
        assert!((size / 20_000.0 * 19.0 - 1.0).abs() < 0.2, "{size}");
    }
}
