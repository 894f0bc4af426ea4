//! From blocks to paired differences, and plain summaries of those differences.
//!
//! A mirrored block is a random permutation of the contenders and its reverse, one slice each, so drift, neighbours and
//! heat fall on all contenders alike and cancel in the difference of logarithms within the block. A block of a random
//! permutation alone takes half the time. Linear drift does not cancel in it, but it gives each contender of a pair the
//! better place with equal probability, so the sign of a difference is as fair a coin as that of a mirrored block.

use crate::error::{StatsError, all_finite, all_positive, at_least, open_fraction};
use crate::estimate::Estimate;
use crate::moments::as_count;
use crate::moments::{mean, median, t_half_width, t_point, variance};
use crate::sequential::DEFAULT_RESERVE;
use crate::waves::cosine_coefficients;

/// One slice's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceValue {
    /// Number of the contender that ran, from 0.
    pub contender: usize,
    /// A positive figure: a rate, or a quantile of latency.
    pub value: f64,
}

/// The slices of one block in the order they ran, two per contender in a mirrored one, otherwise one.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockSlices {
    /// Measured length of each slice; one length holds for the whole block.
    pub length: f64,
    /// The slices in running order.
    pub slices: Vec<SliceValue>,
}

impl BlockSlices {
    /// Checks that the slices are a permutation of `contenders`, alone or followed by its reverse, and that every value has
    /// a logarithm.
    ///
    /// # Errors
    /// [`StatsError::Shape`] when a contender is missing, repeated or not mirrored;
    /// [`StatsError::NotPositive`] for a zero, such as a slice in which nothing was completed;
    /// [`StatsError::OutOfRange`] for a NaN, an infinity or a number too large to compute with.
    pub fn check(&self, contenders: usize) -> Result<(), StatsError> {
        let wrong = |problem: String| {
            Err(StatsError::Shape {
                what: "block",
                problem,
            })
        };
        let count = self.slices.len();
        let is_mirrored = count == contenders.saturating_mul(2);
        if contenders < 2 || !(is_mirrored || count == contenders) {
            return wrong(format!("{count} slices for {contenders} contenders"));
        }
        if all_positive("slice length", &[self.length]).is_err() {
            return wrong(format!("slice length {}", self.length));
        }
        let mut seen = vec![false; contenders];
        for slice in self.slices.iter().take(contenders) {
            match seen.get_mut(slice.contender) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    return wrong(format!(
                        "contender {} is unknown or repeated",
                        slice.contender
                    ));
                }
            }
        }
        let mut mirror = self.slices.iter().zip(self.slices.iter().rev());
        if is_mirrored && mirror.any(|(slice, mirror)| slice.contender != mirror.contender) {
            return wrong("the second half is not the reverse of the first".to_owned());
        }
        let values: Vec<f64> = self.slices.iter().map(|slice| slice.value).collect();
        all_positive("block", &values)
    }

    /// Mean logarithm of the contender's slices.
    fn level(&self, contender: usize) -> f64 {
        let own = self
            .slices
            .iter()
            .filter(|slice| slice.contender == contender);
        let (sum, count) = own.fold((0.0, 0.0), |(sum, count), slice| {
            (sum + slice.value.ln(), count + 1.0)
        });
        sum / count
    }
}

/// Log ratios of every contender to `baseline`, one per block: `result[contender][block]`. The
/// baseline's own row is all zeros.
///
/// # Errors
/// An unknown baseline, or a block that [`BlockSlices::check`] refuses.
pub fn block_differences(
    blocks: &[BlockSlices],
    contenders: usize,
    baseline: usize,
) -> Result<Vec<Vec<f64>>, StatsError> {
    if baseline >= contenders {
        return Err(StatsError::Parameter {
            name: "baseline",
            value: baseline as f64,
            requirement: "the number of a contender",
        });
    }
    for block in blocks {
        block.check(contenders)?;
    }
    let difference =
        |block: &BlockSlices, contender| block.level(contender) - block.level(baseline);
    Ok((0..contenders)
        .map(|contender| {
            blocks
                .iter()
                .map(|block| difference(block, contender))
                .collect()
        })
        .collect())
}

/// Median of all pairwise means, the differences themselves included (Hodges & Lehmann 1963). Far from
/// the mean it indicates skewed differences: a contender stalls.
///
/// # Errors
/// No difference, or one that is not finite.
pub fn hodges_lehmann(differences: &[f64]) -> Result<f64, StatsError> {
    at_least("paired differences", 1, differences.len())?;
    all_finite("paired differences", differences)?;
    let mut means = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (index, first) in differences.iter().enumerate() {
        means.extend(
            differences[index..]
                .iter()
                .map(|second| 0.5 * (first + second)),
        );
    }
    Ok(median(&mut means).unwrap_or(f64::NAN))
}

/// Largest ratio of Student's point to that of the usual interval that resting on slow waves alone may cost, at any
/// `alpha`.
const PRICE: f64 = 1.08;

/// How much larger beyond that for each unit of `alpha`: an interval holds the truth too often by at most `alpha`, so coming
/// nearer to the promise is worth the more the larger that is. Chosen so that at 0.05 a third suffices from 12 differences on,
/// by which the simulated machines of the acceptance suite are covered within two points of the promise.
const PRICE_PER_ALPHA: f64 = 4.5;

/// The share of waves that are slow enough to show how well a mean is known: one in this many. The quicker ones show
/// the difference between neighbours, which the mean does not have.
const ONE_IN: usize = 3;

/// Mean of the differences in time order with its interval, for a number of blocks fixed beforehand. Looking
/// at it while blocks arrive and stopping on what it shows is not covered; use [`crate::sequential`].
///
/// Differences that follow each other need not be independent: a contender whose dips come every 45 s has one in a
/// block and none in the next, so that the mean is known better than the differences scatter, and a ratio that wanders is
/// known worse. How well the mean is known shows in the slow waves of the differences, so the interval is Student's over
/// the slowest third of them (equal weights: Lazarus, Lewis, Stock and Watson 2018), and over more where so few figures
/// would make Student's point larger than that of all waves by more than 30.5 % at `alpha` 0.05, or by more than 8 % at an
/// `alpha` next to nothing: at 0.05 there are 4 waves of 8 and of 14 differences and 18 of 56, at 0.001 there are 11 of 14
/// and 23 of 56. Where differences are independent and normal, the price at 0.05 is 23 % of width with 14 of them, 8 % with
/// 28 and 4 % with 56. Intervals of different `alpha` may rest on different waves, so that the surer one of the same
/// differences may be the narrower; each keeps its own promise.
///
/// # Errors
/// Fewer than two differences, one that is not finite, or `alpha` outside (0, 1).
pub fn paired_mean(differences: &[f64], alpha: f64) -> Result<Estimate, StatsError> {
    at_least("paired differences", 2, differences.len())?;
    all_finite("paired differences", differences)?;
    open_fraction("alpha", alpha)?;
    let n = differences.len();
    let waves = slow_waves(n, alpha);
    let coefficients = cosine_coefficients(differences, waves);
    let squares: f64 = coefficients.iter().map(|one| one * one).sum();
    let error = (squares / waves as f64 / n as f64).sqrt();
    let half = t_half_width(waves as f64, alpha, error);
    let value = mean(differences);
    Ok(Estimate {
        value,
        low: value - half,
        high: value + half,
        n,
    })
}

/// Mean over several series of paired differences, each with the same weight however long it is, with the interval of a number of
/// differences fixed beforehand. The variance is that of independent means, its degrees of freedom are those of Satterthwaite
/// (1946). It says how well the mean of these series is known, and nothing of others that could have been measured.
///
/// # Errors
/// No series, one of fewer than two differences, one that is not finite, or `alpha` outside (0, 1).
pub fn mean_of_means(series: &[&[f64]], alpha: f64) -> Result<Estimate, StatsError> {
    at_least("series of paired differences", 1, series.len())?;
    open_fraction("alpha", alpha)?;
    let (mut sum, mut squares, mut scatter) = (0.0, 0.0, 0.0);
    for differences in series {
        at_least("paired differences", 2, differences.len())?;
        all_finite("paired differences", differences)?;
        let n = differences.len() as f64;
        let square_error = variance(differences) / n;
        sum += mean(differences);
        squares += square_error;
        scatter += square_error * square_error / (n - 1.0);
    }
    let count = series.len() as f64;
    let half = t_half_width(squares * squares / scatter, alpha, squares.sqrt() / count);
    let value = sum / count;
    Ok(Estimate {
        value,
        low: value - half,
        high: value + half,
        n: series.len(),
    })
}

/// Number of slow waves for `n` differences: the slowest third, or as many more as [`PRICE`] requires, since their
/// size is known from fewer figures than that of all n − 1. Never a single wave, which is zero where the series equals
/// its own reverse.
fn slow_waves(n: usize, alpha: f64) -> usize {
    let allowed = (PRICE + PRICE_PER_ALPHA * alpha) * t_point(n as f64 - 1.0, alpha);
    // Where even all waves have no finite point, no number of them is worth less than another.
    ((n / ONE_IN).max(2)..n - 1)
        .find(|waves| allowed.is_finite() && t_point(*waves as f64, alpha) <= allowed)
        .unwrap_or(n - 1)
}

/// The fewest paired differences that can show anything at error probability `alpha`, two-sided: when nothing
/// differs, the signs of `n` of them agree with probability 2^(1−n), so no statement that rests on the tossed
/// order of the contenders can be surer than that. An interval from fewer rests on its assumptions alone, and is
/// wide for the same reason: at α = 0.05 [`paired_mean`] is 9 standard deviations of one difference to either side with
/// 2 of them, 2.5 with 3, and 1.3 with 6, the fewest. Never below 2; unbounded for an `alpha` of zero.
#[must_use]
pub fn fewest_pairs(alpha: f64) -> usize {
    as_count((1.0 - alpha.log2()).ceil().max(2.0))
}

/// The effect that a duel of `blocks` planned units finds four times out of five, given the standard deviation of one unit
/// and in its units, where units are independent and `alpha` is the duel's error probability. Where contenders have
/// rhythms of their own less is enough: a sixth less on the simulated machine [`crate::simulate::TYPICAL`].
///
/// Four fifths of `alpha` are spent within the planned units. One look at a mean whose error is known by half as many
/// figures as there are units would ask for `t + 0.84` standard errors, `t` being Student's point; looking at every unit
/// and heeding neighbours asks for 1.15 times that, which came within 6 % of what simulation took for 14 to 100 units and
/// `alpha` from 0.05 to 0.0017, and 10 to 16 % above it for ten units. Infinite where so few units can decide nothing, and for
/// an `alpha` that is no probability.
///
/// ```
/// use dbduel_stats::compare::minimum_detectable_effect;
///
/// // Blocks that scatter by 5 %: an hour of 56 blocks finds differences of 2.3 %.
/// let effect = minimum_detectable_effect(0.05, 56, 0.05);
/// assert!((0.022..0.024).contains(&effect));
/// ```
#[must_use]
pub fn minimum_detectable_effect(unit_deviation: f64, blocks: usize, alpha: f64) -> f64 {
    const WITHIN_PLAN: f64 = 1.0 - DEFAULT_RESERVE;
    const FOR_EVERY_LOOK: f64 = 1.15;
    /// Degrees of freedom from which on Student's points equal those of the normal distribution; they cost ever more
    /// to compute.
    const DEGREES_MAX: f64 = 1e6;
    /// The 80 % point of the standard normal distribution.
    const FOUR_OF_FIVE: f64 = 0.8416;
    let (n, within_plan) = (blocks as f64, WITHIN_PLAN * alpha);
    let is_probability = 0.0 < alpha && alpha < 1.0;
    if !is_probability || blocks < fewest_pairs(within_plan) {
        return f64::INFINITY;
    }
    let errors = t_point((0.5 * n).min(DEGREES_MAX), within_plan) + FOUR_OF_FIVE;
    FOR_EVERY_LOOK * errors * unit_deviation / n.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(order: &[usize], values: &[f64]) -> BlockSlices {
        let slices = order.iter().zip(values);
        BlockSlices {
            length: 10.0,
            slices: slices
                .map(|(contender, value)| SliceValue {
                    contender: *contender,
                    value: *value,
                })
                .collect(),
        }
    }

    #[test]
    fn linear_drift_of_the_logarithm_cancels() {
        let drift = |step: usize| (0.1 * step as f64).exp();
        let values: Vec<f64> = [1.0, 2.0, 3.0, 3.0, 2.0, 1.0]
            .iter()
            .enumerate()
            .map(|(step, x)| x * drift(step))
            .collect();
        let differences = block_differences(&[block(&[0, 1, 2, 2, 1, 0], &values)], 3, 0).unwrap();
        assert_eq!(differences[0], [0.0]);
        assert!((differences[1][0] - 2_f64.ln()).abs() < 1e-12);
        assert!((differences[2][0] - 3_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_block_may_hold_every_contender_once() {
        let blocks = [
            block(&[2, 0, 1], &[4.0, 1.0, 2.0]),
            block(&[0, 1, 2], &[1.0; 3]),
        ];
        let differences = block_differences(&blocks, 3, 0).unwrap();
        assert_eq!(differences[1], [2_f64.ln(), 0.0]);
        assert_eq!(differences[2], [4_f64.ln(), 0.0]);
        assert!(block_differences(&[block(&[0, 1], &[1.0, 2.0])], 3, 0).is_err());
    }

    #[test]
    fn blocks_of_the_wrong_shape_are_refused() {
        for order in [
            &[0, 1, 0, 1][..],
            &[0, 0, 0, 0],
            &[0, 2, 2, 0],
            &[0],
            &[0, 0],
            &[0, 2],
            &[0, 1, 1],
        ] {
            let result = block_differences(&[block(order, &[1.0; 4])], 2, 0);
            assert!(matches!(result, Err(StatsError::Shape { .. })), "{order:?}");
        }
    }

    #[test]
    fn a_slice_without_completions_is_refused_by_position() {
        let result = block_differences(&[block(&[0, 1, 1, 0], &[5.0, 0.0, 5.0, 5.0])], 2, 0);
        assert!(matches!(
            result,
            Err(StatsError::NotPositive { index: 1, .. })
        ));
        let result = block_differences(&[block(&[0, 1, 1, 0], &[5.0, 4.0, f64::NAN, 5.0])], 2, 0);
        assert!(matches!(
            result,
            Err(StatsError::OutOfRange { index: 2, .. })
        ));
        assert!(block_differences(&[], 2, 2).is_err());
    }

    #[test]
    fn the_mean_of_means_weights_series_alike_and_matches_a_hand_computed_case() {
        // Square errors of 1/3 and 4/3, each with two degrees of freedom.
        let estimate = mean_of_means(&[&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]], 0.05).unwrap();
        assert_eq!((estimate.value, estimate.n), (3.0, 2));
        let (error, degrees) = ((5.0_f64 / 3.0).sqrt() / 2.0, 25.0 / 9.0 / (17.0 / 18.0));
        let by_hand = t_half_width(degrees, 0.05, error);
        assert!((estimate.high - estimate.value - by_hand).abs() < 1e-12);
        assert!((2.0..2.2).contains(&by_hand), "{by_hand}");
        assert_eq!(mean_of_means(&[&[2.0; 3]], 0.05).unwrap().low, 2.0);
        assert!(mean_of_means(&[], 0.05).is_err());
        assert!(mean_of_means(&[&[1.0]], 0.05).is_err());
    }

    #[test]
    fn hodges_lehmann_resists_one_outlier() {
        assert_eq!(hodges_lehmann(&[1.0]).unwrap(), 1.0);
        assert_eq!(hodges_lehmann(&[1.0, 2.0, 3.0]).unwrap(), 2.0);
        assert!(hodges_lehmann(&[1.0, 1.1, 0.9, 1.0, 1.05, 500.0]).unwrap() < 1.2);
        assert!(hodges_lehmann(&[]).is_err());
    }

    #[test]
    fn the_fewest_pairs_are_those_whose_signs_do_not_agree_by_chance() {
        for (alpha, expected) in [(0.5, 2), (0.1, 5), (0.05, 6), (1.0 / 32.0, 6), (0.01, 8)] {
            assert_eq!(fewest_pairs(alpha), expected, "{alpha}");
            assert!(0.5_f64.powi(expected as i32 - 1) <= alpha);
        }
    }

    #[test]
    fn a_third_of_the_waves_is_used_and_more_where_that_would_cost_much() {
        for (n, alpha, expected) in [
            (2, 0.05, 1),
            (3, 0.05, 2),
            (3, 0.5, 2),
            (4, 0.2, 2),
            (6, 0.05, 3),
            (8, 0.05, 4),
            (14, 0.05, 4),
            (14, 0.001, 11),
            (56, 0.05, 18),
            (56, 0.001, 23),
            (14, 1e-320, 13),
        ] {
            assert_eq!(slow_waves(n, alpha), expected, "{n} {alpha}");
        }
    }

    #[test]
    fn the_interval_of_a_mean_matches_a_hand_computed_case() {
        // The first and the third of three waves hold the whole sum of squares of a straight line of five, which is 10.
        let estimate = paired_mean(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.05).unwrap();
        let by_hand = 3.182_446 * (10.0_f64 / 3.0 / 5.0).sqrt();
        assert!((estimate.high - estimate.value - by_hand).abs() < 1e-5);
        assert!(paired_mean(&[1.0], 0.05).is_err());
        assert_eq!(paired_mean(&[2.0, 2.0], 0.05).unwrap().low, 2.0);
    }
}
