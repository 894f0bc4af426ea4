//! From series and histograms to figures with intervals.
//!
//! The intervals come from `dbduel-stats`; this file arranges its input and turns its refusals into reasons.

use dbduel_stats::mean::series_mean;
use dbduel_stats::quantile::{BatchCount, EPISODES_MIN, NotCertifiable, quantile_estimate};
use hdrhistogram::Histogram;

use crate::summary::{Figure, How};

/// Σ numerators / Σ denominators over slices in time order, such as processor seconds over transactions.
pub fn ratio_over_slices(numerators: &[f64], denominators: &[f64], alpha: f64, how: How) -> Figure {
    let Some((value, series)) = linearised(numerators, denominators) else {
        return Figure::NotMeasured {
            why: "nothing was committed".to_owned(),
        };
    };
    match series_mean(&series, alpha) {
        Ok(estimate) => estimated(
            value,
            estimate.low.max(0.0),
            estimate.high,
            alpha,
            estimate.n,
            how,
        ),
        Err(error) => Figure::Bare {
            value,
            n: series.len(),
            how,
            why: error.to_string(),
        },
    }
}

/// The ratio of two sums, and a series whose mean is that ratio and whose spread is the ratio's own to
/// first order (linearised ratio estimator, Cochran 1977).
pub fn linearised(numerators: &[f64], denominators: &[f64]) -> Option<(f64, Vec<f64>)> {
    let total: f64 = denominators.iter().sum();
    let ratio = numerators.iter().sum::<f64>() / total;
    let mean_denominator = total / denominators.len() as f64;
    let pairs = numerators.iter().zip(denominators);
    let series = pairs.map(|(numerator, denominator)| {
        ratio + (numerator - ratio * denominator) / mean_denominator
    });
    ratio.is_finite().then(|| (ratio, series.collect()))
}

/// A quantile of all latencies of a contender, microseconds.
///
/// `slices` are the histograms of its slices in nanoseconds, `merged` is their sum, `maxima` the largest latencies of
/// its ticks in time order, NaN where none ended.
pub fn latency_quantile(
    q: f64,
    alpha: f64,
    slices: &[Histogram<u64>],
    merged: &Histogram<u64>,
    maxima: &[f64],
) -> Figure {
    let quantile_us = |q: f64| merged.value_at_quantile(q) as f64 / 1e3;
    let value = quantile_us(q);
    let bar_ns = merged.value_at_quantile(q);
    let batches: Vec<BatchCount> = slices
        .iter()
        .map(|slice| BatchCount {
            total: slice.len(),
            at_or_below: slice.count_between(0, bar_ns),
        })
        .collect();
    let (n, how) = (slices.len(), How::MergedHistograms);
    match quantile_estimate(q, alpha, &batches, quantile_us, maxima) {
        Ok(estimate) => match estimate.interval {
            Ok(interval) => estimated(value, interval.low, interval.high, alpha, n, how),
            Err(reason) => Figure::Bare {
                value,
                n,
                how,
                why: reason_text(reason),
            },
        },
        Err(error) => Figure::Bare {
            value,
            n,
            how,
            why: error.to_string(),
        },
    }
}

fn reason_text(reason: NotCertifiable) -> String {
    match reason {
        NotCertifiable::Requests { needed, got } => {
            format!("{got} transactions; an interval of this quantile needs {needed}")
        }
        NotCertifiable::Steps { got } => {
            format!(
                "the largest latency is known for {got} ticks only; an interval needs {EPISODES_MIN}"
            )
        }
        NotCertifiable::Episodes { got } => {
            format!(
                "the tail was seen in {got} separate episodes; an interval needs {EPISODES_MIN}"
            )
        }
    }
}

fn estimated(value: f64, low: f64, high: f64, alpha: f64, n: usize, how: How) -> Figure {
    Figure::Estimated {
        value,
        low,
        high: Some(high).filter(|high| high.is_finite()),
        confidence: 1.0 - alpha,
        n,
        how,
    }
}
