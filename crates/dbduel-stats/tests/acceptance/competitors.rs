//! How others decide: one run of everything after the other, given the same machine and the same time.
//!
//! Rules of thumb and methods from the field, written from their published descriptions. They exist to
//! be compared with in tables and tests; nothing of the library uses them.

use dbduel_stats::simulate::{Contender, Machine, Noise, two_contenders};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// What a method says of B against A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    Faster,
    Slower,
    /// The method calls them equal.
    Equal,
    /// It calls nothing.
    Nothing,
}

/// Two-sided error probability of the tests.
const ALPHA: f64 = 0.05;

/// Throughput second by second of one contender that runs alone.
fn run(machine: &mut Machine, contender: &mut Contender, seconds: usize) -> Vec<f64> {
    (0..seconds).map(|_| contender.step(machine)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample variance with n − 1.
fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// Half of the time on A, then half on B; a difference of the two figures beyond `margin` is believed.
pub fn one_long_run(noise: Noise, effect: f64, seconds: usize, margin: f64, seed: u64) -> Said {
    let mut machine = Machine::new(noise, seed);
    let [mut a, mut b] = two_contenders(&noise, effect, &mut machine);
    let before = mean(&run(&mut machine, &mut a, seconds / 2));
    let after = mean(&run(&mut machine, &mut b, seconds / 2));
    match after / before {
        ratio if ratio > 1.0 + margin => Said::Faster,
        ratio if ratio < 1.0 / (1.0 + margin) => Said::Slower,
        _ => Said::Equal,
    }
}

/// Three runs of A, then three of B, and Welch's t test on the six means (Welch 1947).
pub fn three_runs_welch(noise: Noise, effect: f64, seconds: usize, seed: u64) -> Said {
    let mut machine = Machine::new(noise, seed);
    let [mut a, mut b] = two_contenders(&noise, effect, &mut machine);
    let mut runs = |contender: &mut Contender| -> Vec<f64> {
        let results = (0..3).map(|_| mean(&run(&mut machine, contender, seconds / 6)));
        results.collect()
    };
    let (a, b) = (runs(&mut a), runs(&mut b));
    welch((mean(&a), variance(&a), 3.0), (mean(&b), variance(&b), 3.0))
}

/// One long run each and Welch's test with the effective number of seconds in place of their number, as
/// latte does it: the autocorrelation time is the largest of batch length × variance of batch means ÷
/// variance of the series over dyadic batches, up to the first that is below a fifth of its batch.
pub fn effective_size_welch(noise: Noise, effect: f64, seconds: usize, seed: u64) -> Said {
    let mut machine = Machine::new(noise, seed);
    let [mut a, mut b] = two_contenders(&noise, effect, &mut machine);
    let sample = |series: &[f64]| (mean(series), variance(series), effective_size(series));
    let a = sample(&run(&mut machine, &mut a, seconds / 2));
    let b = sample(&run(&mut machine, &mut b, seconds / 2));
    welch(a, b)
}

fn effective_size(series: &[f64]) -> f64 {
    let whole = variance(series);
    let mut batches = series.to_vec();
    let (mut length, mut time) = (1.0, 1.0_f64);
    while batches.len() >= 2 {
        let own = length * variance(&batches) / whole;
        if own <= 0.2 * length {
            break;
        }
        time = time.max(own);
        batches = batches.chunks_exact(2).map(mean).collect();
        length *= 2.0;
    }
    (series.len() as f64 / time).floor().max(2.0)
}

/// Welch's test on two samples given as mean, variance and size.
fn welch(a: (f64, f64, f64), b: (f64, f64, f64)) -> Said {
    let (error_a, error_b) = (a.1 / a.2, b.1 / b.2);
    let error = error_a + error_b;
    let degrees = error.powi(2) / (error_a.powi(2) / (a.2 - 1.0) + error_b.powi(2) / (b.2 - 1.0));
    let t = (b.0 - a.0) / error.sqrt();
    let p = StudentsT::new(0.0, 1.0, degrees).map_or(1.0, |student| 2.0 * student.cdf(-t.abs()));
    match (p < ALPHA, t > 0.0) {
        (false, _) => Said::Nothing,
        (true, true) => Said::Faster,
        (true, false) => Said::Slower,
    }
}
