//! Decomposition of a series into waves: cosines of rising frequency, nearly independent of each other, each with the
//! spectral density at its frequency as variance (Müller and Watson 2016).

use std::f64::consts::PI;

use crate::moments::mean;

/// The coefficients of the slowest `count` waves of the deviations from the mean, the slowest first, scaled so that
/// independent values give coefficients of their own variance. All n − 1 of them hold the whole sum of squares.
pub(crate) fn cosine_coefficients(values: &[f64], count: usize) -> Vec<f64> {
    let (n, centre) = (values.len() as f64, mean(values));
    (1..=count)
        .map(|frequency| {
            let step = PI * frequency as f64 / n;
            let products = (values.iter().enumerate())
                .map(|(index, value)| (value - centre) * (step * (index as f64 + 0.5)).cos());
            products.sum::<f64>() * (2.0 / n).sqrt()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments::variance;
    use crate::random::RandomStream;

    #[test]
    fn all_coefficients_together_hold_the_whole_variance() {
        let mut random = RandomStream::new(1, 0);
        for n in [2, 13, 40] {
            let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let squares = cosine_coefficients(&values, n - 1)
                .into_iter()
                .map(|x| x * x);
            let share = squares.sum::<f64>() / (n as f64 - 1.0) / variance(&values);
            assert!((share - 1.0).abs() < 1e-12, "{n}: {share}");
        }
    }

    #[test]
    fn one_wave_is_in_its_own_coefficient() {
        let wave = |index: usize| (PI * 3.0 * (index as f64 + 0.5) / 20.0).cos();
        let values: Vec<f64> = (0..20).map(|index| 7.0 + 2.0 * wave(index)).collect();
        let coefficients = cosine_coefficients(&values, 19);
        for (place, coefficient) in coefficients.iter().enumerate() {
            let expected = if place == 2 { 2.0 * 10_f64.sqrt() } else { 0.0 };
            assert!(
                (coefficient - expected).abs() < 1e-9,
                "{place}: {coefficient}"
            );
        }
    }
}
