//! Intervals that others would make of what a duel shows: controls for ours, and columns beside them.

use crate::coverage::ALPHA;
use dbduel_stats::Estimate;
use dbduel_stats::compare::paired_mean;

/// A way to an interval of a mean of slices.
type Method = fn(&[f64]) -> Estimate;

/// Other intervals of a mean of slices: names and methods.
pub const RIVALS: [(&str, Method); 4] = [
    ("slices as independent", |slices| {
        paired_mean(slices, ALPHA).unwrap()
    }),
    ("ten batches", ten_batches),
    ("three cosines", |slices| equal_cosines(slices, 3, 3.1824)),
    ("two cosines", |slices| equal_cosines(slices, 2, 4.3027)),
];

/// Student's interval over the means of ten batches (Law and Kelton).
fn ten_batches(slices: &[f64]) -> Estimate {
    let ends: Vec<usize> = (0..=10).map(|batch| batch * slices.len() / 10).collect();
    let batches: Vec<f64> = (ends.windows(2))
        .map(|ends| mean(&slices[ends[0]..ends[1]]))
        .collect();
    paired_mean(&batches, ALPHA).unwrap()
}

/// The long-run variance from the first `count` cosine coefficients with equal weights, and Student's t with as many
/// degrees of freedom, `t` being its point (Lazarus, Lewis, Stock and Watson 2018).
fn equal_cosines(slices: &[f64], count: usize, t: f64) -> Estimate {
    let (n, value) = (slices.len() as f64, mean(slices));
    let coefficient = |frequency: usize| {
        let step = std::f64::consts::PI * frequency as f64 / n;
        let waves = (0..slices.len()).map(|index| (step * (index as f64 + 0.5)).cos());
        let products = waves
            .zip(slices)
            .map(|(wave, slice)| wave * (slice - value));
        products.sum::<f64>() * (2.0 / n).sqrt()
    };
    let squares = (1..=count).map(|frequency| coefficient(frequency).powi(2));
    let half = t * (squares.sum::<f64>() / count as f64 / n).sqrt();
    Estimate {
        value,
        low: value - half,
        high: value + half,
        n: slices.len(),
    }
}

/// Student's interval, the variance being that of Newey and West (1987) with one lag: where a unit above the mean is
/// followed by one below it, the mean is known better than its units scatter.
pub fn with_neighbours(units: &[f64], alpha: f64) -> Estimate {
    let student = paired_mean(units, alpha).unwrap();
    let deviations: Vec<f64> = units.iter().map(|unit| unit - student.value).collect();
    let squares: f64 = deviations.iter().map(|x| x * x).sum();
    let products = deviations.windows(2).map(|pair| pair[0] * pair[1]);
    // Taken from the sample's own mean, the correlation is too low by about 1/n.
    let correlation = products.sum::<f64>() / squares + 1.0 / units.len() as f64;
    let half = (student.high - student.value) * (1.0 + correlation).max(0.0).sqrt();
    Estimate {
        low: student.value - half,
        high: student.value + half,
        ..student
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
