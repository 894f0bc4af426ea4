//! Functions shared by all other files: mean, variance, median, and percentage points of the usual distributions.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// A number truncated to a count; 0 when it is negative or not a number, the largest count when it is beyond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, as the contract says"
)]
pub(crate) fn as_count(value: f64) -> usize {
    value as usize
}

/// √(a² + b²) of two non-negative numbers without their squares, which may overflow for a large ratio. Not
/// `f64::hypot`, which needs the C library of 2022 (glibc 2.35) and differs between C libraries.
pub(crate) fn root_of_squares(a: f64, b: f64) -> f64 {
    let (small, large) = (a.min(b), a.max(b));
    if large == 0.0 {
        return 0.0;
    }
    large * (1.0 + (small / large).powi(2)).sqrt()
}

/// Arithmetic mean; NaN for an empty slice.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sum of squared deviations from the mean.
pub(crate) fn deviation_squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

/// Sample variance with n − 1; NaN below two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    deviation_squares(values) / (values.len() as f64 - 1.0)
}

/// Median of the values, which are reordered: of an even number the mean of the two in the middle; `None` without values.
#[must_use]
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values.get(middle).copied(),
        _ => Some(f64::midpoint(
            *values.get(middle.checked_sub(1)?)?,
            values[middle],
        )),
    }
}

/// Below this probability the inverse of statrs loses digits, so the distribution itself is searched.
const SEARCHED_ALPHA: f64 = 1e-6;

/// Two-sided percentage point of Student's t: |t| exceeds it with probability `alpha`.
pub(crate) fn t_point(degrees: f64, alpha: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, degrees) {
        Ok(t) if alpha >= SEARCHED_ALPHA => t.inverse_cdf(1.0 - 0.5 * alpha),
        Ok(t) => searched_point(&t, 0.5 * alpha),
        Err(_) => f64::INFINITY,
    }
}

/// The point beyond which the upper tail is at most `tail`, by doubling and then halving: found from above,
/// and infinite where it is beyond 2⁵⁰⁰, since the search has a bound.
fn searched_point(t: &StudentsT, tail: f64) -> f64 {
    const DOUBLINGS: usize = 500;
    const HALVINGS: usize = 60;
    let (mut low, mut high) = (0.0, 1.0);
    let reached = (0..DOUBLINGS).any(|_| {
        if t.cdf(-high) <= tail {
            return true;
        }
        (low, high) = (high, 2.0 * high);
        false
    });
    if !reached {
        return f64::INFINITY;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if t.cdf(-middle) <= tail {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Half of Student's interval for a value with this standard error: infinite without degrees of freedom, and zero for
/// an error of zero.
pub(crate) fn t_half_width(degrees: f64, alpha: f64, error: f64) -> f64 {
    // At a tiny alpha the percentage point may be infinite, and 0 · ∞ is no number.
    if error == 0.0 {
        0.0
    } else {
        t_point(degrees, alpha) * error
    }
}

/// Two-sided p-value of a t statistic; 1 when there are no degrees of freedom.
pub(crate) fn t_p_value(t: f64, degrees: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, degrees) {
        Ok(distribution) if !t.is_nan() => 2.0 * distribution.cdf(-t.abs()),
        _ => 1.0,
    }
}

/// Upper-tail p-value of an F statistic; 1 when there are no degrees of freedom.
pub(crate) fn f_p_value(f: f64, numerator: f64, denominator: f64) -> f64 {
    match FisherSnedecor::new(numerator, denominator) {
        Ok(distribution) if !f.is_nan() => distribution.sf(f.max(0.0)),
        _ => 1.0,
    }
}

/// Φ(z), the standard normal distribution function.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Φ⁻¹(p).
pub(crate) fn normal_point(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentage_points_match_printed_tables() {
        for (degrees, expected) in [(1.0, 12.7062), (9.0, 2.2622), (59.0, 2.0010)] {
            assert!((t_point(degrees, 0.05) - expected).abs() < 1e-4);
        }
        assert!((t_p_value(2.2622, 9.0) - 0.05).abs() < 1e-5);
        assert!((f_p_value(4.2565, 2.0, 9.0) - 0.05).abs() < 1e-5);
        assert!((normal_point(0.975) - 1.959_964).abs() < 1e-6);
        assert!((normal_cdf(1.959_964) - 0.975).abs() < 1e-6);
    }

    #[test]
    fn percentage_points_of_any_probability_grow_and_never_panic() {
        for degrees in [1.0, 2.0, 9.0, 55.0, 1000.0] {
            let mut before = 0.0;
            for power in 1..=323 {
                let point = t_point(degrees, 10_f64.powi(-power));
                assert!(point >= before, "{degrees} 1e-{power}: {point} {before}");
                before = point;
            }
        }
        for alpha in [0.05, 1e-3, 2e-6, 1e-7, 1e-9, 1e-20] {
            let with_one_degree = 1.0 / (0.5 * std::f64::consts::PI * alpha).tan();
            let point = t_point(1.0, alpha);
            assert!(
                (point / with_one_degree - 1.0).abs() < 1e-4,
                "{alpha}: {point} {with_one_degree}"
            );
        }
        assert_eq!(t_half_width(3.0, 1e-320, 0.0), 0.0);
    }

    #[test]
    fn degenerate_arguments_do_not_panic() {
        assert!(t_point(0.0, 0.05).is_infinite());
        assert_eq!(t_p_value(f64::NAN, 3.0), 1.0);
        assert!(t_p_value(f64::INFINITY, 3.0) < 1e-12);
        assert!(f_p_value(f64::INFINITY, 3.0, 2.0) < 1e-12);
        assert_eq!(median(&mut []), None);
    }
}
