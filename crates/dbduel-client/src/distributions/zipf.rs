//! Zipf's law over the ranks 1..=n by rejection-inversion (Hörmann & Derflinger, 1996).
//!
//! No table: the cost of a draw does not depend on n.

use crate::random::Random;

/// Ranks from 1 to `count`, rank k in proportion to k^-exponent.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    count: f64,
    exponent: f64,
    /// H(1.5) − 1, the integral at the left end of the first rank's box.
    integral_first: f64,
    /// H(count + 0.5), the integral at the right end.
    integral_last: f64,
    /// Ranks this close to the inverse are accepted without evaluating H again.
    shortcut: f64,
}

impl Zipf {
    pub(super) fn new(count: u64, exponent: f64) -> Self {
        let count = count as f64;
        Zipf {
            count,
            exponent,
            integral_first: integral(1.5, exponent) - 1.0,
            integral_last: integral(count + 0.5, exponent),
            shortcut: 2.0 - inverse(integral(2.5, exponent) - density(2.0, exponent), exponent),
        }
    }

    /// One rank. More than half of the candidates are accepted, so the loop is short.
    pub(super) fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let at =
                self.integral_last + random.uniform() * (self.integral_first - self.integral_last);
            let x = inverse(at, self.exponent);
            let rank = (x + 0.5).floor().clamp(1.0, self.count);
            let accepted = rank - x <= self.shortcut
                || at >= integral(rank + 0.5, self.exponent) - density(rank, self.exponent);
            if accepted {
                return rank as u64;
            }
        }
    }
}

/// h(x) = x^-e.
fn density(x: f64, exponent: f64) -> f64 {
    (-exponent * x.ln()).exp()
}

/// H(x) = (x^(1−e) − 1) / (1 − e), and ln x for e = 1.
fn integral(x: f64, exponent: f64) -> f64 {
    let log = x.ln();
    exp_m1_over((1.0 - exponent) * log) * log
}

/// The inverse of [`integral`].
fn inverse(value: f64, exponent: f64) -> f64 {
    // Rounding may push the product below −1, where the logarithm has no value.
    let product = (value * (1.0 - exponent)).max(-1.0);
    (ln_1p_over(product) * value).exp()
}

/// (e^x − 1) / x, continued through 0 by its series.
fn exp_m1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x * 0.5 * (1.0 + x / 3.0 * (1.0 + 0.25 * x))
    }
}

/// ln(1 + x) / x, continued through 0 by its series.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_against_the_law(count: u64, exponent: f64) {
        let zipf = Zipf::new(count, exponent);
        let mut random = Random::new(5);
        let draws = 200_000;
        let mut counts = vec![0.0; count as usize];
        for _ in 0..draws {
            counts[zipf.rank(&mut random) as usize - 1] += 1.0;
        }
        let weights: Vec<f64> = (1..=count)
            .map(|rank| (rank as f64).powf(-exponent))
            .collect();
        let total: f64 = weights.iter().sum();
        let chi_square: f64 = counts
            .iter()
            .zip(&weights)
            .map(|(count, weight)| {
                let expected = weight / total * f64::from(draws);
                (count - expected).powi(2) / expected
            })
            .sum();
        // Mean n − 1 and variance 2(n − 1); five standard deviations.
        let freedom = (count - 1) as f64;
        let bound = freedom + 5.0 * (2.0 * freedom).sqrt() + 5.0;
        assert!(
            chi_square < bound,
            "n {count}, exponent {exponent}: {chi_square} over {bound}"
        );
    }

    #[test]
    fn ranks_follow_the_law_for_exponents_below_at_and_above_one() {
        for exponent in [0.0, 0.5, 0.8, 1.0, 1.2, 2.0] {
            check_against_the_law(50, exponent);
        }
        check_against_the_law(1_000, 0.8);
    }

    #[test]
    fn integral_and_inverse_undo_each_other() {
        for exponent in [0.0, 0.3, 0.8, 1.0, 1.7] {
            for x in [1.0, 1.5, 2.5, 100.0, 1e6] {
                let back = inverse(integral(x, exponent), exponent);
                assert!(
                    (back / x - 1.0).abs() < 1e-9,
                    "exponent {exponent}: {x} came back as {back}"
                );
            }
        }
    }

    #[test]
    fn a_single_rank_is_always_drawn() {
        let zipf = Zipf::new(1, 0.8);
        let mut random = Random::new(1);
        assert!((0..100).all(|_| zipf.rank(&mut random) == 1));
    }
}
