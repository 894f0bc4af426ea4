//! The law as a curve, and the curve nearest to a set of points.

use crate::linear::inverse;

/// Starting points (σ, κ) of the fit; it keeps the best end.
const STARTS: [(f64, f64); 4] = [(0.02, 1e-4), (0.2, 1e-3), (0.001, 1e-6), (0.5, 1e-5)];

/// Maximum number of steps per start; convergence takes a few dozen.
const STEPS_MAX: usize = 500;

/// Below these a coefficient counts as zero.
const SIGMA_ZERO: f64 = 1e-9;
const KAPPA_ZERO: f64 = 1e-12;

/// The law with some coefficients possibly fixed at zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Curve {
    pub(super) log_lambda: f64,
    pub(super) sigma: f64,
    pub(super) kappa: f64,
    pub(super) sigma_free: bool,
    pub(super) kappa_free: bool,
}

impl Curve {
    fn denominator(&self, n: f64) -> f64 {
        1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0)
    }

    pub(super) fn log_at(&self, n: f64) -> f64 {
        n.ln() + self.log_lambda - self.denominator(n).ln()
    }

    pub(super) fn parameters(&self) -> usize {
        1 + usize::from(self.sigma_free) + usize::from(self.kappa_free)
    }

    /// Derivatives of the log throughput by ln λ and the free coefficients, in this order.
    pub(super) fn gradient(&self, n: f64) -> Vec<f64> {
        let denominator = self.denominator(n);
        let mut gradient = vec![1.0];
        if self.sigma_free {
            gradient.push(-(n - 1.0) / denominator);
        }
        if self.kappa_free {
            gradient.push(-n * (n - 1.0) / denominator);
        }
        gradient
    }

    fn squares(&self, levels: &[f64], logs: &[f64]) -> f64 {
        levels
            .iter()
            .zip(logs)
            .map(|(n, log)| (log - self.log_at(*n)).powi(2))
            .sum()
    }

    /// The curve after a step of the root coefficients s = √σ, k = √κ; squares keep σ and κ positive.
    fn moved(&self, step: &[f64]) -> Curve {
        let mut moved = *self;
        let mut step = step.iter();
        let mut next = || step.next().copied().unwrap_or(0.0);
        moved.log_lambda += next();
        if self.sigma_free {
            moved.sigma = (self.sigma.sqrt() + next()).powi(2);
        }
        if self.kappa_free {
            moved.kappa = (self.kappa.sqrt() + next()).powi(2);
        }
        moved
    }

    /// Factors from derivatives by σ, κ to derivatives by their roots.
    fn root_factors(&self) -> Vec<f64> {
        let mut factors = vec![1.0];
        if self.sigma_free {
            factors.push(2.0 * self.sigma.sqrt());
        }
        if self.kappa_free {
            factors.push(2.0 * self.kappa.sqrt());
        }
        factors
    }
}

/// Least squares on the mean log curve; coefficients that end at zero are fixed there and the rest refitted.
pub(super) fn fit_curve(levels: &[f64], logs: &[f64]) -> Curve {
    let best = |sigma_free: bool, kappa_free: bool| {
        let mut fits = STARTS.map(|(sigma, kappa)| {
            let start = Curve {
                log_lambda: logs[0] - levels[0].ln(),
                sigma: if sigma_free { sigma } else { 0.0 },
                kappa: if kappa_free { kappa } else { 0.0 },
                sigma_free,
                kappa_free,
            };
            levenberg_marquardt(start, levels, logs)
        });
        let squares = |curve: &Curve| curve.squares(levels, logs);
        fits.sort_by(|a, b| squares(a).total_cmp(&squares(b)));
        fits[0]
    };
    let mut curve = best(true, true);
    for _ in 0..2 {
        let drop_sigma = curve.sigma_free && curve.sigma < SIGMA_ZERO;
        let drop_kappa = curve.kappa_free && curve.kappa < KAPPA_ZERO;
        if !drop_sigma && !drop_kappa {
            break;
        }
        curve = best(
            curve.sigma_free && !drop_sigma,
            curve.kappa_free && !drop_kappa,
        );
    }
    curve
}

/// Levenberg (1944), Marquardt (1963), with the damping on the diagonal of the normal equations.
fn levenberg_marquardt(start: Curve, levels: &[f64], logs: &[f64]) -> Curve {
    let mut curve = start;
    let mut squares = curve.squares(levels, logs);
    let mut damping = 1e-3;
    for _ in 0..STEPS_MAX {
        let size = curve.parameters();
        let factors = curve.root_factors();
        let mut normal = vec![vec![0.0; size]; size];
        let mut slope = vec![0.0; size];
        for (n, log) in levels.iter().zip(logs) {
            let gradient: Vec<f64> = curve
                .gradient(*n)
                .iter()
                .zip(&factors)
                .map(|(g, f)| g * f)
                .collect();
            let residual = log - curve.log_at(*n);
            for i in 0..size {
                slope[i] += gradient[i] * residual;
                for j in 0..size {
                    normal[i][j] += gradient[i] * gradient[j];
                }
            }
        }
        for (i, row) in normal.iter_mut().enumerate() {
            // The addend keeps the system solvable when a coefficient has reached zero.
            row[i] = row[i] * (1.0 + damping) + 1e-30;
        }
        let Some(inverse) = inverse(&normal) else {
            break;
        };
        let step: Vec<f64> = inverse
            .iter()
            .map(|row| row.iter().zip(&slope).map(|(a, b)| a * b).sum())
            .collect();
        let next = curve.moved(&step);
        let next_squares = next.squares(levels, logs);
        if next_squares < squares {
            let gain = squares - next_squares;
            (curve, squares) = (next, next_squares);
            damping = (damping * 0.3).max(1e-15);
            if gain <= 1e-16 * squares {
                break;
            }
        } else {
            damping *= 4.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    curve
}
