//! Whether enough stalls were seen to rest the interval of a ratio on.
//!
//! A test by sign flips is exact where both contenders stall by the same law. Of two with different laws it takes contributions
//! for symmetric that are not: mostly a little above their mean, and far below it in the blocks that hold a stall. Their sum is
//! as symmetric as it must be once it holds many stalls. Before that intervals are too short on the side of the stalls, and an
//! interval that was made before the first of them excludes what they cost. Here the cost of the stalls seen gets an interval of
//! its own, from their number alone, and an interval of the ratio that does not reach as far rests on too few.

use statrs::distribution::{ContinuousCDF as _, Gamma};

use crate::error::{StatsError, finite, open_fraction};
use crate::moments::root_of_squares;
use crate::sequential::Interval;

/// Number of effective stalls from which on an interval of the ratio is trusted with their cost.
///
/// In simulated duels in which one contender stalls for a second at random, intervals of the ratio of totals hold the
/// truth in 90 to 97 of 100 with 37 stalls on average or more, and in 72 to 91 with 19
/// (`examples/stalled_turns_table.rs`).
pub const EFFECTIVE_STALLS_MIN: f64 = 25.0;

/// Margins below this share of the interval's width do not matter.
const MATERIAL_SHARE: f64 = 0.1;

/// Number of stalls beyond which it is as good as exact.
const STALLS_MAX: f64 = 1e6;

/// Possible effect of chance in the number of stalls seen on one contender's throughput.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StallChance {
    /// All excess divided by the largest piece: this many stalls as long as the longest cost the same. It is the
    /// number of stalls where they are equal, and small where few long ones cost most. Zero without any.
    pub effective: f64,
    /// Share of the contender's time that the excess took.
    pub share: f64,
    /// How far ln of the long-run throughput may lie below the measured one, because too few stalls occurred.
    pub below: f64,
    /// How far it may lie above, because too many occurred.
    pub above: f64,
}

/// Possible effect of chance in the number of stalls on a contender that spent `time`, of which stalls added `excess`, one
/// piece for each stall or for each slice.
///
/// A piece is the time in excess of what is usual: of a stall within a slice its length, of a slice by how much its last
/// transactions outlast it beyond the median of the slices, in the unit of `time`, which is client time where several clients
/// wait. Zeros do not matter. The number of stalls is taken as Poisson's, as many as are effective, with the exact interval at
/// `alpha` (Garwood 1936), and their cost as proportional to it.
///
/// # Errors
/// [`StatsError::OutOfRange`] for a piece that is negative or cannot be computed with, [`StatsError::Parameter`] for a `time` that
/// is not more than all excess, or for `alpha` outside (0, 1).
pub fn stall_chance(excess: &[f64], time: f64, alpha: f64) -> Result<StallChance, StatsError> {
    open_fraction("alpha", alpha)?;
    for (index, piece) in excess.iter().enumerate() {
        finite("excess of stalls", index, *piece)?;
        if *piece < 0.0 {
            return Err(StatsError::OutOfRange {
                what: "excess of stalls",
                index,
                value: *piece,
            });
        }
    }
    let sum: f64 = excess.iter().sum();
    finite("time", 0, time)?;
    if time.partial_cmp(&sum) != Some(std::cmp::Ordering::Greater) {
        return Err(StatsError::Parameter {
            name: "time",
            value: time,
            requirement: "more than the excess of all stalls",
        });
    }
    let longest = excess.iter().copied().fold(0.0, f64::max);
    if longest == 0.0 {
        return Ok(StallChance::default());
    }
    let effective = (sum / longest).min(STALLS_MAX);
    let cost = sum / (time - sum);
    // Of the mean of a Poisson number, as a multiple of what was met.
    let most = gamma_point(effective + 1.0, 1.0 - 0.5 * alpha) / effective;
    let least = gamma_point(effective, 0.5 * alpha) / effective;
    Ok(StallChance {
        effective,
        share: sum / time,
        below: (most * cost).ln_1p() - cost.ln_1p(),
        above: cost.ln_1p() - (least * cost).ln_1p(),
    })
}

/// The point below which a number of Gamma's law with this shape lies with this probability.
fn gamma_point(shape: f64, probability: f64) -> f64 {
    Gamma::new(shape, 1.0).map_or(f64::NAN, |law| law.inverse_cdf(probability))
}

/// The stalls of two contenders, against the interval of the log ratio of their throughputs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RatioStalls {
    /// Stalls of the numerator of the ratio.
    pub contender: StallChance,
    /// Stalls of the denominator.
    pub reference: StallChance,
}

impl RatioStalls {
    /// Whether the stalls of one of the two are fewer than [`EFFECTIVE_STALLS_MIN`] and chance in them may move the log ratio
    /// of all measurements, `centre`, further than `interval` reaches. Without a stall they are never too few: what was not
    /// seen is bounded by [`super::unseen_rate_bound`].
    #[must_use]
    pub fn are_too_few(&self, centre: f64, interval: &Interval) -> bool {
        let width = interval.high - interval.low;
        let material = if width.is_finite() {
            MATERIAL_SHARE * width
        } else {
            0.0
        };
        let is_beyond = |margin: f64, reach: f64| margin > material && margin > reach;
        let are_few = |of: &StallChance, below: f64, above: f64| {
            let is_short =
                is_beyond(below, centre - interval.low) || is_beyond(above, interval.high - centre);
            of.effective > 0.0 && of.effective < EFFECTIVE_STALLS_MIN && is_short
        };
        let (one, other) = (self.contender, self.reference);
        are_few(&one, one.below, one.above) || are_few(&other, other.above, other.below)
    }

    /// The interval widened by the possible effect of chance in the stalls of both on the log ratio of all
    /// measurements, `centre`.
    #[must_use]
    pub fn widened(&self, centre: f64, interval: &Interval) -> Interval {
        let (one, other) = (self.contender, self.reference);
        Interval {
            low: interval
                .low
                .min(centre - root_of_squares(one.below, other.above)),
            high: interval
                .high
                .max(centre + root_of_squares(one.above, other.below)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHA: f64 = 0.05;

    #[test]
    fn the_interval_of_a_poisson_number() {
        // Garwood's table: 1 has 0.0253 to 5.572, 10 have 4.795 to 18.39.
        for (number, low, high) in [(1, 0.025_32, 5.571_6), (10, 4.795_4, 18.390_4)] {
            let chance = stall_chance(&vec![1.0; number], 101.0 * number as f64, ALPHA).unwrap();
            let number = number as f64;
            assert_eq!(chance.effective, number);
            assert!((chance.share - 1.0 / 101.0).abs() < 1e-12);
            let cost = |stalls: f64| (stalls / number / 100.0).ln_1p();
            assert!((chance.below - (cost(high) - cost(number))).abs() < 1e-6);
            assert!((chance.above - (cost(number) - cost(low))).abs() < 1e-6);
        }
    }

    #[test]
    fn zeros_do_not_matter_and_no_stall_is_no_chance() {
        let one = stall_chance(&[1.0, 1.0], 50.0, ALPHA);
        assert_eq!(one, stall_chance(&[0.0, 1.0, 0.0, 1.0], 50.0, ALPHA));
        let none = stall_chance(&[0.0; 9], 50.0, ALPHA).unwrap();
        assert_eq!(none, StallChance::default());
        assert_eq!(stall_chance(&[], 1.0, ALPHA), Ok(none));
        let narrow = Interval {
            low: -1e-9,
            high: 1e-9,
        };
        assert!(!RatioStalls::default().are_too_few(0.0, &narrow));
        assert_eq!(RatioStalls::default().widened(0.0, &narrow), narrow);
    }

    #[test]
    fn a_long_stall_among_short_ones_counts_for_most() {
        let mut excess = vec![0.1; 100];
        excess.push(10.0);
        let chance = stall_chance(&excess, 1000.0, ALPHA).unwrap();
        assert!((chance.effective - 2.0).abs() < 1e-9);
        assert!(stall_chance(&[0.1; 1000], 1000.0, ALPHA).unwrap().below < 0.2 * chance.below);
    }

    #[test]
    fn few_stalls_are_too_few_for_a_short_interval_on_their_side() {
        let stalls = stall_chance(&[1.0; 4], 120.0, ALPHA).unwrap();
        let none = StallChance::default();
        let interval = |low: f64, high: f64| Interval { low, high };
        let (of_contender, of_reference) = (
            RatioStalls {
                contender: stalls,
                reference: none,
            },
            RatioStalls {
                contender: none,
                reference: stalls,
            },
        );
        let (near, far) = (0.5 * stalls.below, 1.5 * stalls.below);
        assert!(of_contender.are_too_few(0.3, &interval(0.3 - near, 0.3 + far)));
        assert!(!of_contender.are_too_few(0.3, &interval(0.3 - far, 0.3 + far)));
        assert!(of_reference.are_too_few(0.3, &interval(0.3 - far, 0.3 + near)));
        assert!(!of_reference.are_too_few(0.3, &interval(0.3 - far, 0.3 + far)));
        let open = interval(f64::NEG_INFINITY, f64::INFINITY);
        assert!(!of_contender.are_too_few(0.3, &open));
        let widened = of_contender.widened(0.3, &interval(0.29, 0.7));
        assert_eq!(widened, interval(0.3 - stalls.below, 0.7));
        let many = stall_chance(&[1.0; 40], 1200.0, ALPHA).unwrap();
        let many = RatioStalls {
            contender: many,
            reference: none,
        };
        assert!(!many.are_too_few(0.3, &interval(0.299, 0.301)));
    }

    #[test]
    fn margins_are_numbers_for_any_number_of_stalls_and_any_alpha() {
        for number in [1, 3, 30, 3000, 3_000_000] {
            for alpha in [0.2, 0.05, 0.001, 1e-5] {
                let chance = stall_chance(&vec![1.0; number], 2.0 * number as f64, alpha).unwrap();
                assert!(
                    chance.below > 0.0 && chance.above > 0.0 && chance.below.is_finite(),
                    "{number} {alpha}: {chance:?}"
                );
                assert!(chance.above <= 2.0_f64.ln());
            }
        }
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(stall_chance(&[-1.0], 5.0, ALPHA).is_err());
        assert!(stall_chance(&[f64::NAN], 5.0, ALPHA).is_err());
        assert!(stall_chance(&[1.0], f64::NAN, ALPHA).is_err());
        assert!(stall_chance(&[5.0], 5.0, ALPHA).is_err());
        assert!(stall_chance(&[1.0], 5.0, 0.0).is_err());
    }
}
