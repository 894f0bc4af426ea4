//! Coverage of the scaling law's coefficients, and curves that it does not describe.

use dbduel_stats::random::RandomStream;
use dbduel_stats::scaling::{Scaling, fit_scaling};

const LEVELS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0, 64.0];
const SIGMA: f64 = 0.03;
const KAPPA: f64 = 5e-4;

fn law(n: f64) -> f64 {
    1000.0 * n / (1.0 + SIGMA * (n - 1.0) + KAPPA * n * (n - 1.0))
}

/// Five sweeps with noise per point and per sweep.
fn sweeps(curve: impl Fn(f64) -> f64, noise: f64, per_sweep: f64, seed: u64) -> Vec<Vec<f64>> {
    let mut random = RandomStream::new(seed, 60);
    (0..5)
        .map(|_| {
            let mood = per_sweep * random.normal();
            LEVELS
                .iter()
                .map(|n| curve(*n) * (mood + noise * random.normal()).exp())
                .collect()
        })
        .collect()
}

fn fit(curve: impl Fn(f64) -> f64, noise: f64, per_sweep: f64, seed: u64) -> Scaling {
    fit_scaling(&LEVELS, &sweeps(curve, noise, per_sweep, seed), 0.05).unwrap()
}

#[test]
fn coefficients_are_covered_and_a_true_law_is_accepted() {
    let peak = ((1.0 - SIGMA) / KAPPA).sqrt();
    for (noise, per_sweep) in [(0.02, 0.0), (0.05, 0.0), (0.02, 0.05)] {
        let (mut refused, mut covered) = (0, [0; 3]);
        for seed in 0..1000 {
            let Scaling::Described { fit, .. } = fit(law, noise, per_sweep, seed) else {
                refused += 1;
                continue;
            };
            covered[0] += usize::from(fit.sigma.is_some_and(|sigma| sigma.contains(SIGMA)));
            covered[1] += usize::from(fit.kappa.is_some_and(|kappa| kappa.contains(KAPPA)));
            covered[2] += usize::from(fit.peak.is_some_and(|found| found.contains(peak)));
        }
        assert!(refused <= 73, "{refused}");
        for covered in covered {
            assert!(
                covered * 1000 >= 920 * (1000 - refused),
                "{noise}: {covered}"
            );
        }
    }
}

#[test]
fn curves_of_another_shape_are_refused() {
    let plateau = |n: f64| 1000.0 * n.min(12.0);
    let cliff = |n: f64| law(n) * if n > 32.0 { 0.6 } else { 1.0 };
    let superlinear = |n: f64| law(n) * if n > 1.0 { 1.15 } else { 1.0 };
    let refused = |curve: &dyn Fn(f64) -> f64| {
        (0..300)
            .filter(|seed| matches!(fit(curve, 0.02, 0.0, *seed), Scaling::NotDescribed { .. }))
            .count()
    };
    assert!(refused(&plateau) >= 297);
    assert!(refused(&cliff) >= 297);
    let found = refused(&superlinear);
    assert!(found >= 285, "{found}");
}
