//! Diagnosis of the running order: carry-over from the contender that ran before. It informs and never excludes a
//! block.

use crate::compare::BlockSlices;
use crate::error::{StatsError, open_fraction};
use crate::estimate::Estimate;
use crate::moments::{mean, t_half_width, variance};

/// Carry-over of every contender: mean log value of its slices that follow another contender minus
/// that of its slices that follow itself, relative to the level of their block. Clearly below zero, a
/// switch costs more than the guard covers: lengthen the guard. `None` for a contender with fewer than
/// two slices of either kind. Entries overlap over contenders; `alpha` is per contender.
///
/// # Errors
/// A block that [`BlockSlices::check`] refuses, or `alpha` outside (0, 1).
pub fn carry_over(
    blocks: &[BlockSlices],
    contenders: usize,
    alpha: f64,
) -> Result<Vec<Option<Estimate>>, StatsError> {
    open_fraction("alpha", alpha)?;
    let mut after_other = vec![Vec::new(); contenders];
    let mut after_self = vec![Vec::new(); contenders];
    let mut previous = None;
    for block in blocks {
        block.check(contenders)?;
        let logs: Vec<f64> = block.slices.iter().map(|slice| slice.value.ln()).collect();
        let level = mean(&logs);
        for (slice, log) in block.slices.iter().zip(logs) {
            match previous {
                Some(before) if before == slice.contender => {
                    after_self[slice.contender].push(log - level);
                }
                Some(_) => after_other[slice.contender].push(log - level),
                None => {}
            }
            previous = Some(slice.contender);
        }
    }
    Ok(after_other
        .iter()
        .zip(&after_self)
        .map(|(other, own)| difference_of_means(other, own, alpha))
        .collect())
}

/// Difference of two means with Welch's interval (1947).
fn difference_of_means(one: &[f64], other: &[f64], alpha: f64) -> Option<Estimate> {
    if one.len() < 2 || other.len() < 2 {
        return None;
    }
    let square_error = |values: &[f64]| variance(values) / values.len() as f64;
    let (a, b) = (square_error(one), square_error(other));
    let weight = |square: f64, values: &[f64]| square * square / (values.len() as f64 - 1.0);
    let scatter = weight(a, one) + weight(b, other);
    // Where nothing scatters the degrees of freedom are 0/0, and the half width is zero whatever they are.
    let half = t_half_width((a + b).powi(2) / scatter, alpha, (a + b).sqrt());
    let value = mean(one) - mean(other);
    Some(Estimate {
        value,
        low: value - half,
        high: value + half,
        n: one.len() + other.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::SliceValue;
    use crate::random::RandomStream;

    /// Blocks in which every slice after another contender loses `cost`.
    fn blocks(cost: f64) -> Vec<BlockSlices> {
        let mut random = RandomStream::new(8, 0);
        let mut previous = None;
        (0..60)
            .map(|_| {
                let first = random.below(2);
                let order = [first, 1 - first, 1 - first, first];
                let slices = order.iter().map(|contender| {
                    let switched = previous.is_some_and(|before| before != *contender);
                    previous = Some(*contender);
                    let log = 0.5 * *contender as f64 + 0.01 * random.normal()
                        - if switched { cost } else { 0.0 };
                    SliceValue {
                        contender: *contender,
                        value: log.exp(),
                    }
                });
                BlockSlices {
                    length: 15.0,
                    slices: slices.collect(),
                }
            })
            .collect()
    }

    #[test]
    fn carry_over_is_found_per_contender() {
        for estimate in carry_over(&blocks(0.05), 2, 0.01).unwrap() {
            let estimate = estimate.unwrap();
            assert!(estimate.high < 0.0 && estimate.low < -0.03, "{estimate:?}");
        }
        for estimate in carry_over(&blocks(0.0), 2, 0.001).unwrap() {
            assert!(estimate.unwrap().contains(0.0));
        }
    }

    #[test]
    fn without_blocks_nothing_is_said() {
        assert_eq!(carry_over(&[], 2, 0.05).unwrap(), [None, None]);
    }
}
