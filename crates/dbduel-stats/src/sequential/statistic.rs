//! The statistic of one path of units: its sum, relative to the variance of such sums estimated from its own units.
//!
//! Units that follow each other need not be independent. Where a contender has dips of its own, one block has one and
//! the next has none, and their sum goes less far than the units scatter; where the ratio wanders it goes further. So
//! the square of the sum is divided by the variance of such sums, in which the products of neighbours are, with weights
//! that fall with their distance (Newey and West 1987). Dividing each path by its own keeps the test exact where the
//! signs are coins, and brings it nearer to its promise where neighbours are correlated (after the studentised tests of
//! Janssen 1997). Correlation estimated from few units is mostly chance, and paths of little variance by chance
//! would be taken for far ones: with six units it is ignored, and from then on products count by a share of 1 − 6/n, half of
//! it at twelve. Reach and share were chosen on the simulated machines of the acceptance suite, for intervals that hold
//! the truth about as often as they promise and decide soonest.

/// Units to either side of a unit that may be correlated with it.
pub(super) const NEIGHBOURS: usize = 3;

/// Number of units whose correlation is not used: too few to estimate it.
const UNITS_THAT_SAY_NOTHING: f64 = 6.0;

/// Weight of the product of two units that lie `lag` apart: twice Bartlett's weight, each being the other's neighbour.
pub(super) fn lag_weight(lag: usize) -> f64 {
    2.0 * (1.0 - lag as f64 / (NEIGHBOURS + 1) as f64)
}

/// A variance below this share of the mean square is rounding: the units are equal.
const ROUNDING_SHARE: f64 = 1e-9;

/// Bound of the relative difference between statistics of equal paths whose terms were added in another order.
pub(super) const ROUNDING: f64 = 1e-6;

/// Sums of the planned weights of the units up to a look. They belong to the plan and not to a path, so that all paths
/// of one duel are judged alike.
#[derive(Debug, Clone, Default)]
pub(super) struct WeightSums {
    pub(super) units: usize,
    pub(super) sum: f64,
    squares: f64,
    /// Sums of the products of units that lie 1, 2, … apart.
    products: [f64; NEIGHBOURS],
    /// The weights of the last units, the latest first.
    latest: [f64; NEIGHBOURS],
}

impl WeightSums {
    pub(super) fn push(&mut self, weight: f64) {
        for (product, before) in self.products.iter_mut().zip(self.latest) {
            *product += weight * before;
        }
        self.latest.rotate_right(1);
        self.latest[0] = weight;
        self.units += 1;
        self.sum += weight;
        self.squares += weight * weight;
    }
}

/// Converts the sum of a path, and the weighted sum of the products of its neighbours, to its statistic at one look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statistic {
    /// Sum of the squares of the units, common to all paths.
    squares: f64,
    /// The share with which products count.
    share: f64,
    /// Contribution of the mean effect (sum of a path over sum of the weights) to squares and products, as a multiple of
    /// the square of the sum.
    centre: f64,
}

impl Statistic {
    /// The statistic at a look after units of these weights.
    pub(super) fn new(weights: &WeightSums, squares: f64) -> Self {
        let share = (1.0 - UNITS_THAT_SAY_NOTHING / weights.units as f64).max(0.0);
        let pairs = (1..).zip(weights.products);
        let pairs: f64 = pairs.map(|(lag, sum)| lag_weight(lag) * sum).sum();
        Statistic {
            squares,
            share,
            centre: (weights.squares / weights.sum + share * pairs / weights.sum) / weights.sum,
        }
    }

    /// The statistic; larger for a path that has gone further, NaN for a NaN.
    pub(super) fn of(&self, sum: f64, products: f64) -> f64 {
        let square = sum * sum;
        let variance = self.squares + self.share * products - self.centre * square;
        square / variance.max(ROUNDING_SHARE * self.squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn statistic(path: &[f64]) -> f64 {
        let squares = path.iter().map(|unit| unit * unit).sum();
        let products = (1..=NEIGHBOURS).map(|lag| {
            let pairs = path.iter().zip(path.iter().skip(lag));
            lag_weight(lag) * pairs.map(|(one, other)| one * other).sum::<f64>()
        });
        let mut weights = WeightSums::default();
        path.iter().for_each(|_| weights.push(1.0));
        Statistic::new(&weights, squares).of(path.iter().sum(), products.sum())
    }

    fn normal(n: usize, seed: u64) -> Vec<f64> {
        let mut random = RandomStream::new(seed, 60);
        (0..n).map(|_| random.normal()).collect()
    }

    #[test]
    fn paths_of_few_units_are_ordered_by_their_sums() {
        for n in [2, 4, 6] {
            let sizes = normal(n, 1);
            let mut paths: Vec<(f64, f64)> = (0..50)
                .map(|seed| {
                    let signs = normal(n, 100 + seed);
                    let path: Vec<f64> = (sizes.iter().zip(signs))
                        .map(|(size, sign)| size.abs() * sign.signum())
                        .collect();
                    (path.iter().sum::<f64>().abs(), statistic(&path))
                })
                .collect();
            paths.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(
                paths.is_sorted_by(|a, b| a.1 <= b.1 * (1.0 + ROUNDING)),
                "{n}"
            );
        }
    }

    #[test]
    fn of_equal_scatter_the_path_that_turns_back_has_gone_further() {
        let n = 48;
        let around_one = |wave: fn(usize) -> f64| {
            let path: Vec<f64> = (0..n).map(|unit| 1.0 + wave(unit)).collect();
            statistic(&path)
        };
        let turning = around_one(|unit| if unit % 2 == 0 { 1.0 } else { -1.0 });
        let wandering = around_one(|unit| if unit / 12 % 2 == 0 { 1.0 } else { -1.0 });
        // With units as independent both would have 48, the square of the sum over the squares around one.
        assert!(turning > 144.0 && wandering < 24.0, "{turning} {wandering}");
    }

    #[test]
    fn independent_units_have_the_same_statistic_on_average_with_and_without_neighbours() {
        let n = 200;
        let (mut with, mut without) = (0.0, 0.0);
        for seed in 0..500 {
            let path = normal(n, seed);
            let sum: f64 = path.iter().sum();
            let squares: f64 = path.iter().map(|unit| unit * unit).sum();
            with += statistic(&path);
            without += sum * sum / (squares - sum * sum / n as f64);
        }
        let ratio = with / without;
        assert!((0.95..1.15).contains(&ratio), "{ratio}");
    }

    #[test]
    fn equal_units_have_gone_as_far_as_can_be_told_whatever_their_rounding() {
        for unit in [0.1, 1.0 / 3.0, 1e-9, 1e9] {
            for n in [7, 20, 60] {
                let far = statistic(&vec![unit; n]);
                assert!(
                    (far * ROUNDING_SHARE / n as f64 - 1.0).abs() < ROUNDING,
                    "{unit} {n}: {far}"
                );
                let mut almost = vec![unit; n];
                almost[0] = -unit;
                assert!(statistic(&almost) < 1e-3 * far);
            }
        }
    }

    #[test]
    fn a_path_that_was_given_up_stays_so() {
        let mut weights = WeightSums::default();
        weights.push(1.0);
        assert!(Statistic::new(&weights, 1.0).of(f64::NAN, 0.3).is_nan());
    }
}
