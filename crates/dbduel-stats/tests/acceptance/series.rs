//! Intervals of one run's mean and quantiles under autocorrelation and stalls.

use crate::queue::{Latencies, draw_stalls, serve};
use dbduel_stats::mean::series_mean;
use dbduel_stats::quantile::{BatchCount, IntervalLatency, QuantileEstimate, quantile_estimate};
use dbduel_stats::random::RandomStream;
use dbduel_stats::simulate::autoregressive_series;

/// Of 1000 series: how many got an interval, and how many of these intervals held the truth.
fn coverage(correlation: f64, n: usize) -> (usize, usize) {
    let (mut open, mut covered) = (0, 0);
    for seed in 0..1000 {
        let mut random = RandomStream::new(seed, 20);
        let series = autoregressive_series(correlation, n, &mut random);
        if let Some(estimate) = series_mean(&series, 0.05).unwrap().estimate {
            open += 1;
            covered += usize::from(estimate.contains(0.0));
        }
    }
    (open, covered)
}

#[test]
fn means_are_covered_where_the_gate_is_open() {
    for (correlation, n) in [
        (0.0, 300),
        (0.0, 1200),
        (0.5, 300),
        (0.5, 1200),
        (0.9, 1200),
    ] {
        let (open, covered) = coverage(correlation, n);
        assert!(open >= 900, "{correlation} {n}: {open}");
        assert!(
            covered * 1000 >= 927 * open,
            "{correlation} {n}: {covered} of {open}"
        );
    }
}

#[test]
fn the_gate_is_shut_where_no_method_covers() {
    for (correlation, n) in [(0.97, 300), (0.9, 300)] {
        let (open, _) = coverage(correlation, n);
        assert!(open <= 10, "{correlation} {n}: {open}");
    }
}

/// Control: the standard error of independent values.
#[test]
fn the_naive_standard_error_does_not_cover() {
    let covered = (0..1000)
        .filter(|seed| {
            let mut random = RandomStream::new(*seed, 21);
            let series = autoregressive_series(0.9, 1200, &mut random);
            let n = series.len() as f64;
            let mean = series.iter().sum::<f64>() / n;
            let variance = series.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
            mean.abs() <= 1.96 * (variance / n).sqrt()
        })
        .count();
    assert!(covered < 500, "{covered}");
}

/// A run of the queue reduced to what the estimator takes.
struct Run {
    pooled: Latencies,
    requests: Vec<(f64, f64)>,
    intervals: Vec<IntervalLatency>,
    length: f64,
}

impl Run {
    fn new(length: f64, seed: u64) -> Self {
        let mut random = RandomStream::new(seed, 22);
        let stalls = draw_stalls(40.0, length, &mut random);
        let requests = serve(0.0, length, 400.0, &stalls, |_| 1.0, &mut random);
        let mut seconds = vec![(0.0_f64, 0_usize, 0.0_f64); length as usize];
        for (arrival, latency) in &requests {
            let (sum, count, max) = &mut seconds[*arrival as usize];
            *sum += latency;
            *count += 1;
            *max = max.max(*latency);
        }
        let intervals = seconds
            .iter()
            .map(|(sum, count, max)| IntervalLatency {
                mean: sum / *count as f64,
                max: *max,
            })
            .collect();
        let pooled = Latencies::new(requests.iter().map(|(_, latency)| *latency));
        Run {
            pooled,
            requests,
            intervals,
            length,
        }
    }

    fn quantile(&self, q: f64) -> QuantileEstimate {
        let bar = self.pooled.quantile(q);
        let mut batches = vec![
            BatchCount {
                total: 0,
                at_or_below: 0
            };
            10
        ];
        for (arrival, latency) in &self.requests {
            let batch = &mut batches[(arrival / self.length * 10.0) as usize];
            batch.total += 1;
            batch.at_or_below += u64::from(*latency <= bar);
        }
        quantile_estimate(
            q,
            0.05,
            &batches,
            |q| self.pooled.quantile(q),
            &self.intervals,
        )
        .unwrap()
    }
}

#[test]
fn quantiles_of_a_stalling_queue_are_covered() {
    // One run of four hours stands for the truth.
    let long = Run::new(14_400.0, 1_000_000);
    let truth = [0.5, 0.95, 0.99].map(|q| (q, long.pooled.quantile(q)));
    let mut open = [0; 3];
    let mut covered = [0; 3];
    for seed in 0..60 {
        let run = Run::new(1200.0, seed);
        for (index, (q, truth)) in truth.into_iter().enumerate() {
            if let Ok(interval) = run.quantile(q).interval {
                open[index] += 1;
                covered[index] += usize::from(interval.contains(truth));
            }
        }
    }
    assert!(open.iter().all(|open| *open >= 40), "{open:?}");
    for (covered, open) in covered.iter().zip(open) {
        assert!(covered * 100 >= 85 * open, "{covered} of {open}");
    }
}

#[test]
fn extreme_quantiles_of_short_runs_are_refused() {
    let refused = (0..30)
        .filter(|seed| Run::new(300.0, *seed).quantile(0.999).interval.is_err())
        .count();
    assert!(refused >= 27, "{refused}");
}
