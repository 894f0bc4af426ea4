//! Ratios and differences of what two contenders took per transaction, which an explanation states.
//!
//! Both are of the totals over all blocks, as the amounts beside them are, so that a sentence does not contradict its own
//! numbers. The interval is over the blocks: each has what it adds to the ratio or difference of the totals to first order
//! (linearised ratio estimators, Cochran 1977), contender and baseline of a block together, so that what disturbs both
//! cancels. An interval is refused below the number of blocks whose tossed order could show a difference at all.

use dbduel_stats::compare::paired_mean;

use crate::evidence::figures::linearised;
use crate::summary::{Figure, How};

/// How the blocks of one explanation are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paired {
    /// Probability that one interval misses its truth.
    pub alpha: f64,
    /// Blocks below which there is no interval.
    pub blocks_needed: usize,
}

/// Amounts of one side, block by block, and their divisors: transactions, or slices for a level.
#[derive(Debug, Default, Clone)]
pub(super) struct Taken {
    pub amounts: Vec<f64>,
    /// Their divisors.
    pub by: Vec<f64>,
}

impl Taken {
    /// Amount and divisor of each block.
    pub fn new(blocks: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (amounts, by) = blocks.into_iter().unzip();
        Self { amounts, by }
    }

    /// True when no block has any of it.
    pub fn is_none(&self) -> bool {
        self.amounts.iter().all(|amount| *amount <= 0.0)
    }

    /// The amount per transaction of each block.
    pub fn each(&self) -> impl Iterator<Item = f64> {
        let pairs = self.amounts.iter().zip(&self.by);
        pairs.map(|(amount, by)| amount / by)
    }
}

impl Paired {
    pub fn difference(self, baseline: &Taken, contender: &Taken) -> Figure {
        let Some([(_, before), (_, after)]) = linearised_sides(baseline, contender) else {
            return nothing_committed();
        };
        let pairs = after.iter().zip(before);
        let differences: Vec<f64> = pairs.map(|(after, before)| after - before).collect();
        self.mean(&differences, |value| value)
    }

    /// Contender ÷ baseline; both must have taken some.
    pub fn ratio(self, baseline: &Taken, contender: &Taken) -> Figure {
        let Some([(of_before, before), (of_after, after)]) = linearised_sides(baseline, contender)
        else {
            return nothing_committed();
        };
        let centre = (of_after / of_before).ln();
        let pairs = after.iter().zip(before);
        // The mean of both quotients is one.
        let logarithms =
            pairs.map(|(after, before)| centre + after / of_after - before / of_before);
        self.mean(&logarithms.collect::<Vec<f64>>(), f64::exp)
    }

    /// The mean of `values`, one for each block, after a strictly increasing `map`.
    fn mean(self, values: &[f64], map: fn(f64) -> f64) -> Figure {
        let n = values.len();
        let how = How::PairedTotals;
        let estimate = if n < self.blocks_needed {
            Err(format!(
                "{n} of at least {} blocks, too few for an interval",
                self.blocks_needed
            ))
        } else {
            paired_mean(values, self.alpha).map_err(|error| error.to_string())
        };
        match estimate.map(|estimate| estimate.map_increasing(map)) {
            Ok(estimate) => Figure::Estimated {
                value: estimate.value,
                low: estimate.low,
                high: Some(estimate.high).filter(|high| high.is_finite()),
                confidence: 1.0 - self.alpha,
                n,
                how,
            },
            Err(why) => Figure::Bare {
                value: map(values.iter().sum::<f64>() / n.max(1) as f64),
                n,
                how,
                why,
            },
        }
    }
}

/// The amount per transaction of both sides, and a series with that mean for each.
fn linearised_sides(baseline: &Taken, contender: &Taken) -> Option<[(f64, Vec<f64>); 2]> {
    let of_side = |side: &Taken| linearised(&side.amounts, &side.by);
    Some([of_side(baseline)?, of_side(contender)?])
}

fn nothing_committed() -> Figure {
    Figure::NotMeasured {
        why: "nothing was committed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_stats::random::RandomStream;

    const PAIRED: Paired = Paired {
        alpha: 0.05,
        blocks_needed: 6,
    };

    fn taken(blocks: &[(f64, f64)]) -> Taken {
        Taken::new(blocks.iter().copied())
    }

    #[test]
    fn a_ratio_is_that_of_the_amounts_beside_it() {
        // Bursts: the mean of the blocks' log ratios would be 1.
        let baseline = taken(&[(118.0, 1.0); 6]);
        let mut blocks = [(40.0, 1.0); 6];
        blocks[3].0 = 183.4;
        let contender = taken(&blocks);
        let ratio = PAIRED.ratio(&baseline, &contender).value().unwrap();
        let total: f64 = contender.amounts.iter().sum();
        assert!((ratio - total / (6.0 * 118.0)).abs() < 1e-12, "{ratio}");
        let difference = PAIRED.difference(&baseline, &contender).value().unwrap();
        assert!((difference - (total / 6.0 - 118.0)).abs() < 1e-9);
    }

    #[test]
    fn too_few_blocks_give_a_value_and_the_reason_why_it_has_no_interval() {
        let baseline = taken(&[(1.0, 1.0); 6]);
        let contender = taken(&[
            (1.1, 1.0),
            (1.12, 1.0),
            (1.09, 1.0),
            (1.11, 1.0),
            (1.1, 1.0),
            (1.08, 1.0),
        ]);
        assert!(PAIRED.ratio(&baseline, &contender).interval().is_some());
        let three = |side: &Taken| Taken {
            amounts: side.amounts[..3].to_vec(),
            by: side.by[..3].to_vec(),
        };
        let Figure::Bare {
            value, n: 3, why, ..
        } = PAIRED.ratio(&three(&baseline), &three(&contender))
        else {
            panic!("three blocks have an interval")
        };
        assert!((value - 3.31 / 3.0).abs() < 1e-12);
        assert_eq!(why, "3 of at least 6 blocks, too few for an interval");
    }

    /// Of 400 simulated explanations of 14 blocks: how many intervals of a ratio hold the truth. Costs are bursts, of
    /// which a block has `bursts` on average, beside a steady part; machine noise of 20 % is common to a block.
    fn covered(bursts: f64, ratio: f64) -> usize {
        let mut random = RandomStream::new(20, 3);
        let mut side = |factor: f64, machine: f64| {
            let transactions = 1000.0 * machine * (0.02 * random.normal()).exp();
            let burst = (0..8).filter(|_| random.uniform() < bursts / 8.0).count() as f64;
            let cost = 0.5 + 0.5 * burst / bursts;
            (factor * cost * 1000.0, transactions)
        };
        let mut noise = RandomStream::new(21, 3);
        let held = (0..400).filter(|_| {
            let blocks: Vec<_> = (0..14)
                .map(|_| {
                    let machine = (0.2 * noise.normal()).exp();
                    (side(1.0, machine), side(ratio, machine))
                })
                .collect();
            let baseline = Taken::new(blocks.iter().map(|block| block.0));
            let contender = Taken::new(blocks.iter().map(|block| block.1));
            let (low, high) = PAIRED.ratio(&baseline, &contender).interval().unwrap();
            low <= ratio && ratio <= high
        });
        held.count()
    }

    #[test]
    fn intervals_of_ratios_of_bursts_hold_the_truth_as_promised() {
        // 380 of 400 are promised; three standard deviations of chance are 13.
        for (bursts, ratio) in [(4.0, 1.0), (4.0, 0.5), (1.0, 1.0), (1.0, 3.0)] {
            let covered = covered(bursts, ratio);
            assert!(covered >= 367, "{covered} with {bursts} bursts, {ratio}");
        }
    }
}
