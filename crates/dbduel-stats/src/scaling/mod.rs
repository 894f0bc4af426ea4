//! Throughput against concurrency: the Universal Scalability Law (Gunther 2007), and whether it fits.
//!
//! X(N) = λN / (1 + σ(N−1) + κN(N−1)) with σ, κ ≥ 0: contention and crosstalk. No coefficient leaves this file before
//! the curve has passed a lack-of-fit test against the scatter between sweeps, since a law that does not describe the
//! data extrapolates nonsense.

mod curve;

use crate::error::{StatsError, all_positive, at_least, open_fraction};
use crate::estimate::Estimate;
use crate::linear::inverse;
use crate::moments::{f_p_value, mean, t_point};
use curve::{Curve, fit_curve};

/// Significance of the lack-of-fit test.
const LACK_OF_FIT_ALPHA: f64 = 0.05;

/// Largest N that is fitted: powers of larger ones lose their precision in the normal equations.
const LEVEL_MAX: f64 = 1e9;

/// The peak is stated only up to this multiple of the largest N measured.
const EXTRAPOLATION_MAX: f64 = 1.5;

/// The law's coefficients for one contender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingFit {
    /// Throughput at N = 1 on the law. Its interval leaves out the scatter common to a whole sweep.
    pub lambda: Estimate,
    /// Contention. `None`: the fit ended at zero and was repeated without it.
    pub sigma: Option<Estimate>,
    /// Crosstalk. `None`: the fit ended at zero and was repeated without it.
    pub kappa: Option<Estimate>,
    /// Correlation of the errors of σ and κ; near −1 the data cannot tell them apart.
    pub correlation: Option<f64>,
    /// N with the highest throughput, √((1−σ)/κ). `None` unless κ is above zero with confidence and the
    /// peak lies within one and a half times the largest N measured.
    pub peak: Option<Estimate>,
}

/// The outcome of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scaling {
    /// The law describes the measured curve.
    Described {
        /// Its coefficients.
        fit: ScalingFit,
        /// p-value of the lack-of-fit test.
        lack_of_fit_p: f64,
    },
    /// It does not: show the measured curve, no coefficients and no extrapolation.
    NotDescribed {
        /// p-value of the lack-of-fit test.
        lack_of_fit_p: f64,
        /// The N at which curve and law are furthest apart.
        worst_level: f64,
    },
}

/// Fits the law to sweeps over the same levels: `throughput[sweep][level]`. Each sweep's own level is
/// removed first, since the machine's mood is common to a sweep. Intervals have confidence `1 − alpha`.
///
/// # Errors
/// Fewer than two sweeps or four levels, levels that do not ascend from at least 1 to at most 10⁹, sweeps of
/// another length, a throughput that is not positive and finite, or `alpha` outside (0, 1).
pub fn fit_scaling(
    levels: &[f64],
    throughput: &[Vec<f64>],
    alpha: f64,
) -> Result<Scaling, StatsError> {
    check(levels, throughput, alpha)?;
    let sweeps = throughput.len() as f64;
    let logs = centred_logs(throughput);
    let means: Vec<f64> = (0..levels.len())
        .map(|level| logs.iter().map(|sweep| sweep[level]).sum::<f64>() / sweeps)
        .collect();
    let pure_error: f64 = logs
        .iter()
        .flat_map(|sweep| {
            sweep
                .iter()
                .zip(&means)
                .map(|(log, mean)| (log - mean).powi(2))
        })
        .sum();

    let curve = fit_curve(levels, &means);
    let residuals: Vec<f64> = levels
        .iter()
        .zip(&means)
        .map(|(n, log)| log - curve.log_at(*n))
        .collect();
    let lack = sweeps
        * residuals
            .iter()
            .map(|residual| residual * residual)
            .sum::<f64>();
    let lack_degrees = levels.len() as f64 - curve.parameters() as f64;
    let pure_degrees = (sweeps - 1.0) * (levels.len() as f64 - 1.0);
    let total: f64 = logs.iter().flatten().map(|log| log * log).sum();
    // Exact data leave rounding errors on both sides of the ratio; they are no evidence.
    let lack_of_fit_p = if lack <= 1e-20 * total {
        1.0
    } else {
        f_p_value(
            (lack / lack_degrees) / (pure_error / pure_degrees),
            lack_degrees,
            pure_degrees,
        )
    };
    if lack_of_fit_p < LACK_OF_FIT_ALPHA {
        let worst =
            (0..levels.len()).max_by(|a, b| residuals[*a].abs().total_cmp(&residuals[*b].abs()));
        return Ok(Scaling::NotDescribed {
            lack_of_fit_p,
            worst_level: levels[worst.unwrap_or(0)],
        });
    }
    let degrees = lack_degrees + pure_degrees;
    let error_variance = (lack + pure_error) / degrees;
    let quantile = t_point(degrees, alpha);
    let fit = with_intervals(&curve, levels, throughput.len(), error_variance, quantile);
    Ok(Scaling::Described { fit, lack_of_fit_p })
}

fn check(levels: &[f64], throughput: &[Vec<f64>], alpha: f64) -> Result<(), StatsError> {
    open_fraction("alpha", alpha)?;
    at_least("sweeps", 2, throughput.len())?;
    at_least("levels", 4, levels.len())?;
    let is_possible = |level: &f64| (1.0..=LEVEL_MAX).contains(level);
    if !(levels.is_sorted_by(|one, next| one < next) && levels.iter().all(is_possible)) {
        return Err(StatsError::Shape {
            what: "levels",
            problem: format!("{levels:?} do not ascend from at least 1 to at most {LEVEL_MAX}"),
        });
    }
    for sweep in throughput {
        if sweep.len() != levels.len() {
            return Err(StatsError::Shape {
                what: "sweep",
                problem: format!("{} values for {} levels", sweep.len(), levels.len()),
            });
        }
        all_positive("sweep", sweep)?;
    }
    Ok(())
}

/// Logarithms with every sweep moved to the common mean.
fn centred_logs(throughput: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let logs: Vec<Vec<f64>> = throughput
        .iter()
        .map(|sweep| sweep.iter().map(|value| value.ln()).collect())
        .collect();
    let levels: Vec<f64> = logs.iter().map(|sweep| mean(sweep)).collect();
    let common = mean(&levels);
    logs.iter()
        .zip(levels)
        .map(|(sweep, level)| sweep.iter().map(|log| log - level + common).collect())
        .collect()
}

/// Delta-method intervals (Bates & Watts 1988).
fn with_intervals(
    curve: &Curve,
    levels: &[f64],
    sweeps: usize,
    error_variance: f64,
    quantile: f64,
) -> ScalingFit {
    let size = curve.parameters();
    let mut normal = vec![vec![0.0; size]; size];
    for n in levels {
        let gradient = curve.gradient(*n);
        for i in 0..size {
            for j in 0..size {
                normal[i][j] += sweeps as f64 * gradient[i] * gradient[j];
            }
        }
    }
    let covariance = inverse(&normal).unwrap_or_else(|| vec![vec![f64::INFINITY; size]; size]);
    let count = sweeps * levels.len();
    let estimate = |value: f64, variance: f64| {
        let half = quantile * (error_variance * variance).sqrt();
        Estimate {
            value,
            low: value - half,
            high: value + half,
            n: count,
        }
    };
    let sigma_at = 1;
    let kappa_at = 1 + usize::from(curve.sigma_free);
    let sigma = curve
        .sigma_free
        .then(|| estimate(curve.sigma, covariance[sigma_at][sigma_at]));
    let kappa = curve
        .kappa_free
        .then(|| estimate(curve.kappa, covariance[kappa_at][kappa_at]));
    let peak = kappa
        .filter(|kappa| kappa.low > 0.0 && curve.sigma < 1.0)
        .map(|_| {
            let peak = ((1.0 - curve.sigma) / curve.kappa).sqrt();
            let by_kappa = -0.5 * peak / curve.kappa;
            let mut variance = by_kappa * by_kappa * covariance[kappa_at][kappa_at];
            if curve.sigma_free {
                let by_sigma = -0.5 / ((1.0 - curve.sigma) * curve.kappa).sqrt();
                variance += by_sigma * by_sigma * covariance[sigma_at][sigma_at]
                    + 2.0 * by_sigma * by_kappa * covariance[sigma_at][kappa_at];
            }
            estimate(peak, variance)
        });
    let largest = levels.last().copied().unwrap_or(1.0);
    let correlation = (curve.sigma_free && curve.kappa_free)
        .then(|| covariance[1][2] / (covariance[1][1] * covariance[2][2]).sqrt());
    ScalingFit {
        lambda: estimate(curve.log_lambda, covariance[0][0]).map_increasing(f64::exp),
        sigma,
        kappa,
        correlation,
        peak: peak.filter(|peak| peak.value <= EXTRAPOLATION_MAX * largest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0, 64.0];

    fn law(lambda: f64, sigma: f64, kappa: f64) -> Vec<f64> {
        LEVELS
            .iter()
            .map(|n| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)))
            .collect()
    }

    fn described(scaling: Scaling) -> ScalingFit {
        match scaling {
            Scaling::Described { fit, .. } => fit,
            Scaling::NotDescribed { .. } => panic!("{scaling:?}"),
        }
    }

    #[test]
    fn exact_data_give_exact_coefficients() {
        for (sigma, kappa) in [(0.03, 5e-4), (0.2, 1e-5), (0.001, 2e-3)] {
            let fit =
                described(fit_scaling(&LEVELS, &vec![law(900.0, sigma, kappa); 3], 0.05).unwrap());
            assert!((fit.lambda.value / 900.0 - 1.0).abs() < 1e-8, "{fit:?}");
            assert!(
                (fit.sigma.unwrap().value / sigma - 1.0).abs() < 1e-7,
                "{fit:?}"
            );
            assert!(
                (fit.kappa.unwrap().value / kappa - 1.0).abs() < 1e-7,
                "{fit:?}"
            );
        }
    }

    #[test]
    fn vanishing_coefficients_are_left_out() {
        let fit = described(fit_scaling(&LEVELS, &vec![law(900.0, 0.05, 0.0); 3], 0.05).unwrap());
        assert_eq!((fit.kappa, fit.peak, fit.correlation), (None, None, None));
        assert!((fit.sigma.unwrap().value - 0.05).abs() < 1e-6);
        let fit = described(fit_scaling(&LEVELS, &vec![law(900.0, 0.0, 0.0); 3], 0.05).unwrap());
        assert_eq!((fit.sigma, fit.kappa), (None, None));
    }

    #[test]
    fn a_sweep_on_a_slower_machine_changes_nothing() {
        let slower: Vec<f64> = law(900.0, 0.03, 5e-4).iter().map(|x| 0.7 * x).collect();
        let fit = described(fit_scaling(&LEVELS, &[law(900.0, 0.03, 5e-4), slower], 0.05).unwrap());
        assert!((fit.sigma.unwrap().value - 0.03).abs() < 1e-8);
    }

    #[test]
    fn a_plateau_is_not_described() {
        let plateau = |wobble: f64| -> Vec<f64> {
            LEVELS
                .iter()
                .enumerate()
                .map(|(i, n)| n.min(12.0) * (1.0 + wobble * (i as f64).sin()))
                .collect()
        };
        let scaling = fit_scaling(&LEVELS, &[plateau(0.01), plateau(-0.01)], 0.05).unwrap();
        assert!(
            matches!(scaling, Scaling::NotDescribed { lack_of_fit_p, .. } if lack_of_fit_p < 0.01)
        );
    }

    #[test]
    fn bad_sweeps_are_refused() {
        let good = law(1.0, 0.1, 1e-4);
        assert!(fit_scaling(&LEVELS, std::slice::from_ref(&good), 0.05).is_err());
        assert!(fit_scaling(&LEVELS, &[good.clone(), good[1..].to_vec()], 0.05).is_err());
        assert!(fit_scaling(&LEVELS[..3], &[vec![1.0; 3], vec![1.0; 3]], 0.05).is_err());
        let mut dead = good.clone();
        dead[8] = 0.0;
        assert!(matches!(
            fit_scaling(&LEVELS, &[good, dead], 0.05),
            Err(StatsError::NotPositive { index: 8, .. })
        ));
        assert!(fit_scaling(&[2.0, 1.0, 3.0, 4.0], &[vec![1.0; 4], vec![1.0; 4]], 0.05).is_err());
    }

    #[test]
    fn constant_throughput_has_a_fit_or_a_refusal_but_no_panic() {
        assert!(fit_scaling(&LEVELS, &vec![vec![5.0; 9]; 3], 0.05).is_ok());
    }
}
