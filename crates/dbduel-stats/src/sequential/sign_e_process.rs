//! An e-process against symmetry of the units: evidence that may be checked without a time limit.
//!
//! Each factor exp(λz)/cosh(λz) has mean one when the sign of z is a fair coin, so the mixture over λ exceeds 1/α with
//! probability at most α at any time, with no horizon (Ville 1939; de la Peña 1999; Vovk & Wang 2024).

use super::balance::LimitShares;
use super::flip_spend::{Rejection, Side};

/// Bet sizes: small ones win in the long run on small effects, large ones early on large effects.
const BETS: [f64; 4] = [0.2, 0.5, 1.2, 3.0];

/// State of the e-process for one hypothesis after the units seen so far.
#[derive(Debug, Clone)]
pub(super) struct SignEProcess {
    /// ln of the wealth of each bet, upwards and downwards.
    log_wealth: [[f64; 2]; BETS.len()],
    squares: f64,
    sum: f64,
    units: usize,
    log_bar: f64,
    rejection: Option<Rejection>,
    limit_shares: LimitShares,
}

impl SignEProcess {
    pub(super) fn new(alpha: f64) -> Self {
        SignEProcess {
            log_wealth: [[0.0; 2]; BETS.len()],
            squares: 0.0,
            sum: 0.0,
            units: 0,
            log_bar: -alpha.ln(),
            rejection: None,
            limit_shares: LimitShares::default(),
        }
    }

    pub(super) fn rejection(&self) -> Option<Rejection> {
        self.rejection
    }

    pub(super) fn limit_shares(&self) -> LimitShares {
        self.limit_shares
    }

    /// Adds one unit. After a rejection it changes nothing.
    pub(super) fn push(&mut self, unit: f64) {
        if self.rejection.is_some() {
            return;
        }
        self.units += 1;
        self.sum += unit;
        self.squares += unit * unit;
        if unit != 0.0 {
            // The scale uses |d| only, the present one included: given it, the sign is still a fair coin.
            let scaled = unit / (self.squares / self.units as f64).sqrt();
            for (wealth, bet) in self.log_wealth.iter_mut().zip(BETS) {
                let gain = bet * scaled;
                let size = gain.abs();
                let log_cosh = size + (-2.0 * size).exp().ln_1p() - std::f64::consts::LN_2;
                wealth[0] += gain - log_cosh;
                wealth[1] -= gain + log_cosh;
            }
        }
        let (evidence, side) = (self.log_evidence(), Side::of(self.sum));
        self.limit_shares.add(side, evidence / self.log_bar);
        if evidence >= self.log_bar {
            self.rejection = Some(Rejection {
                at: self.units,
                side,
            });
        }
    }

    /// ln E: the mean wealth over all bets.
    fn log_evidence(&self) -> f64 {
        let all = self.log_wealth.as_flattened();
        let top = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = all.iter().map(|wealth| (wealth - top).exp()).sum();
        top + (sum / all.len() as f64).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn the_mean_over_all_sign_paths_is_one() {
        let mut random = RandomStream::new(1, 0);
        let sizes: Vec<f64> = (0..10).map(|_| random.normal().abs()).collect();
        let mut total = 0.0;
        for signs in 0..1024_usize {
            let mut process = SignEProcess::new(1e-300);
            for (index, size) in sizes.iter().enumerate() {
                process.push(if signs >> index & 1 == 1 {
                    -size
                } else {
                    *size
                });
            }
            total += process.log_evidence().exp();
        }
        assert!((total / 1024.0 - 1.0).abs() < 1e-12, "{total}");
    }

    #[test]
    fn false_alarms_stay_within_one_percent_over_500_looks() {
        let mut random = RandomStream::new(6, 0);
        let alarms = (0..1000)
            .filter(|_| {
                let mut process = SignEProcess::new(0.01);
                for _ in 0..500 {
                    process.push(random.normal());
                }
                process.rejection().is_some()
            })
            .count();
        // Binomial 99.9 % point of 1000 trials at 1 %.
        assert!(alarms <= 21, "{alarms}");
    }

    #[test]
    fn zeros_carry_no_evidence() {
        let mut process = SignEProcess::new(0.5);
        for _ in 0..100 {
            process.push(0.0);
        }
        assert_eq!(process.log_evidence(), 0.0);
        assert_eq!(process.rejection(), None);
    }
}
