//! Intervals that others would make of what a duel shows: controls for ours, and columns beside them.

use dbduel_stats::Estimate;

use crate::coverage::ALPHA;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A way to an interval of a mean of slices.
type Method = fn(&[f64]) -> Estimate;

/// Other intervals of a mean of slices: names and methods.
pub const RIVALS: [(&str, Method); 4] = [
    ("slices as independent", |slices| student(slices, ALPHA)),
    ("ten batches", ten_batches),
    ("three cosines", |slices| equal_cosines(slices, 3, ALPHA)),
    ("two cosines", |slices| equal_cosines(slices, 2, ALPHA)),
];

/// Student's interval over the means of ten batches (Law and Kelton).
fn ten_batches(slices: &[f64]) -> Estimate {
    let ends: Vec<usize> = (0..=10).map(|batch| batch * slices.len() / 10).collect();
    let batches: Vec<f64> = (ends.windows(2))
        .map(|ends| mean(&slices[ends[0]..ends[1]]))
        .collect();
    student(&batches, ALPHA)
}

/// The long-run variance from the first `count` cosine coefficients with equal weights, and Student's t with as many
/// degrees of freedom (Lazarus, Lewis, Stock and Watson 2018).
fn equal_cosines(values: &[f64], count: usize, alpha: f64) -> Estimate {
    let (n, centre) = (values.len() as f64, mean(values));
    let coefficient = |frequency: usize| {
        let step = std::f64::consts::PI * frequency as f64 / n;
        let waves = (0..values.len()).map(|index| (step * (index as f64 + 0.5)).cos());
        let products = waves
            .zip(values)
            .map(|(wave, value)| wave * (value - centre));
        products.sum::<f64>() * (2.0 / n).sqrt()
    };
    let squares = (1..=count).map(|frequency| coefficient(frequency).powi(2));
    let error = (squares.sum::<f64>() / count as f64 / n).sqrt();
    around(values, t_point(count as f64, alpha) * error)
}

/// Student's interval of the mean of independent values.
pub fn student(values: &[f64], alpha: f64) -> Estimate {
    let (n, centre) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    around(values, t_point(n - 1.0, alpha) * error)
}

/// The mean with `half` of its interval.
fn around(values: &[f64], half: f64) -> Estimate {
    let value = mean(values);
    Estimate {
        value,
        low: value - half,
        high: value + half,
        n: values.len(),
    }
}

fn t_point(degrees: f64, alpha: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees)
        .unwrap()
        .inverse_cdf(1.0 - 0.5 * alpha)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
