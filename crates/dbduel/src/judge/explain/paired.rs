//! The means over paired blocks that an explanation states.
//!
//! An interval assumes much where there are few blocks and then says little: it is refused below the
//! number of blocks whose tossed order could show a difference at all. Knows no resource.

use dbduel_stats::compare::paired_mean;

use crate::judge::summary::{Figure, How};

/// How the differences of one explanation's blocks are averaged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paired {
    /// Probability that one interval misses its truth.
    pub alpha: f64,
    /// Blocks below which there is no interval.
    pub blocks_needed: usize,
}

impl Paired {
    /// The mean of `differences` after a strictly increasing `map`, such as `exp` for log ratios.
    pub fn figure(self, differences: &[f64], map: fn(f64) -> f64) -> Figure {
        let n = differences.len();
        let estimate = if n < self.blocks_needed {
            Err(format!(
                "{n} of at least {} blocks, too few for an interval",
                self.blocks_needed
            ))
        } else {
            paired_mean(differences, self.alpha).map_err(|error| error.to_string())
        };
        match estimate.map(|estimate| estimate.map_increasing(map)) {
            Ok(estimate) => Figure::Estimated {
                value: estimate.value,
                low: estimate.low,
                high: Some(estimate.high).filter(|high| high.is_finite()),
                confidence: 1.0 - self.alpha,
                n,
                how: How::PairedMean,
            },
            Err(why) => Figure::Bare {
                value: map(differences.iter().sum::<f64>() / n.max(1) as f64),
                n,
                how: How::PairedMean,
                why,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_blocks_give_a_value_and_the_reason_why_it_has_no_interval() {
        let paired = Paired {
            alpha: 0.001,
            blocks_needed: 6,
        };
        let differences = [0.1, 0.12, 0.09, 0.11, 0.1, 0.08];
        assert!(paired.figure(&differences, f64::exp).interval().is_some());
        let Figure::Bare {
            value, n: 3, why, ..
        } = paired.figure(&differences[..3], f64::exp)
        else {
            panic!("three blocks have an interval")
        };
        assert!((value.ln() - 0.31 / 3.0).abs() < 1e-12);
        assert_eq!(why, "3 of at least 6 blocks, too few for an interval");
    }
}
