//! The sign-flip randomisation test with alpha spending, looked at after every unit.
//!
//! Under "no difference" the sign of each unit is a fair coin that *we* tossed when the plan was drawn, so the
//! distribution of any statistic of a path is known exactly, whatever the noise (Fisher 1935; Plamadeala & Rosenberger
//! 2012). The error budget is spent in proportion to the units seen (Lan & DeMets 1983).
//! The caller subtracts the effect that is tested from the units.

use super::coins::Coins;
use super::statistic::{NEIGHBOURS, ROUNDING, Statistic, weight};
use crate::moments::as_count;

/// On which side of the hypothesis the data lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The units lie above the tested value.
    Above,
    /// The units lie below the tested value.
    Below,
}

impl Side {
    /// The side a sum of differences lies on; zero counts as above and cannot reject anything.
    pub(super) fn of(sum: f64) -> Side {
        if sum < 0.0 { Side::Below } else { Side::Above }
    }
}

/// A hypothesis was given up: when, and where the data lay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// Number of units seen when it happened.
    pub at: usize,
    /// Where the data lay.
    pub side: Side,
}

/// State of the test for one hypothesis after the units seen so far.
///
/// Simulated paths multiply the *signed* unit by their coin instead of its absolute value. Given the absolute
/// values both have the same law, but the signed form changes little with the tested shift: in practice, though it is
/// not proved, what is rejected far from the units' mean is rejected further away too, which inversion by bisection needs.
#[derive(Debug, Clone)]
pub(super) struct FlipSpend {
    units_max: usize,
    units_min: usize,
    alpha: f64,
    paths: usize,
    units: Vec<f64>,
    squares: f64,
    /// The units as they were measured: the path without a coin.
    observed: Path,
    /// Sum of each simulated path; NaN once the path has been given up.
    sums: Vec<f64>,
    /// Weighted products of neighbours on each simulated path.
    products: Vec<f64>,
    spent: usize,
    rejection: Option<Rejection>,
    /// Buffers of one look: the statistic of each simulated path, and the largest of them.
    statistics: Vec<f64>,
    largest: Vec<f64>,
}

/// The sum of a path, and that of the products of its neighbours.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    sum: f64,
    products: f64,
}

impl FlipSpend {
    pub(super) fn new(units_max: usize, units_min: usize, alpha: f64, paths: usize) -> Self {
        let mut sums = vec![0.0; paths.div_ceil(8) * 8];
        sums[paths..].fill(f64::NAN);
        FlipSpend {
            units_max,
            units_min,
            alpha,
            paths,
            units: Vec::new(),
            squares: 0.0,
            observed: Path::default(),
            products: vec![0.0; sums.len()],
            statistics: vec![0.0; sums.len()],
            sums,
            spent: 0,
            rejection: None,
            largest: Vec::new(),
        }
    }

    pub(super) fn rejection(&self) -> Option<Rejection> {
        self.rejection
    }

    /// Adds one unit; the rows of coins up to it must exist. After a rejection or the budget's last unit it changes
    /// nothing.
    pub(super) fn push(&mut self, unit: f64, coins: &Coins) {
        let number = self.units.len();
        if self.rejection.is_some() || number >= self.units_max {
            return;
        }
        self.observed.sum += unit;
        self.squares += unit * unit;
        let own = coins.row(number).0.iter();
        add_signed(&mut self.sums, [unit], own.map(|coins| [*coins]));
        self.add_products(unit, coins);
        self.units.push(unit);
        if self.units.len() >= self.units_min {
            self.look();
        }
    }

    /// Adds the products of a unit, the next one, with those before it.
    fn add_products(&mut self, unit: f64, coins: &Coins) {
        let number = self.units.len();
        // Where there are not so many before it, the product is zero, and any coins will do.
        let products: [f64; NEIGHBOURS] = std::array::from_fn(|place| {
            let lag = place + 1;
            let before = number.checked_sub(lag).map(|before| self.units[before]);
            before.map_or(0.0, |before| weight(lag) * unit * before)
        });
        let rows: [&[u8]; NEIGHBOURS] =
            std::array::from_fn(|place| &*coins.row(number.saturating_sub(place + 1)).0);
        for product in products {
            self.observed.products += product;
        }
        let own = coins.row(number).0.iter().enumerate();
        let differ = own.map(|(at, own)| rows.map(|row| own ^ row[at]));
        add_signed(&mut self.products, products, differ);
    }

    /// How many of the paths (the observed one included) may have been given up by now.
    fn allowance(&self) -> usize {
        let share = self.units.len() as f64 / self.units_max as f64;
        // The tiny addend undoes rounding in products such as 0.05 · 0.2 · 5000 that are whole numbers.
        as_count((self.alpha * share * (self.paths + 1) as f64 + 1e-9).floor())
    }

    fn look(&mut self) {
        let slots = self.allowance().saturating_sub(self.spent);
        if slots == 0 || self.squares == 0.0 {
            return;
        }
        let statistic = Statistic::new(self.units.len(), self.squares);
        let observed = statistic.of(self.observed.sum, self.observed.products);
        let paths = self.sums.iter().zip(&self.products);
        for (value, (sum, products)) in self.statistics.iter_mut().zip(paths) {
            *value = statistic.of(*sum, *products);
        }
        let cut = kth_largest(&self.statistics, slots, &mut self.largest);
        // Fewer than `slots` simulated paths reach the observed one: it is among those given up.
        let Some(cut) = cut.filter(|cut| *cut >= observed * (1.0 - ROUNDING)) else {
            self.rejection = Some(Rejection {
                at: self.units.len(),
                side: Side::of(self.observed.sum),
            });
            return;
        };
        let bar = cut * (1.0 - ROUNDING);
        let mut given_up = Vec::with_capacity(2 * slots);
        for_each_above(&self.statistics, bar, |path, value| {
            given_up.push((path, value));
            bar
        });
        if given_up.len() > slots {
            // Ties at the cut: giving up only the strictly larger paths errs on the safe side.
            given_up.retain(|(_, value)| *value > cut * (1.0 + ROUNDING));
        }
        for (path, _) in &given_up {
            self.sums[*path] = f64::NAN;
        }
        self.spent += given_up.len();
    }
}

/// Adds `±number` of every number to every sum, by the coins of eight paths at a time, four paths per table entry: this
/// loop is most of the cost of a verdict.
fn add_signed<const N: usize>(
    sums: &mut [f64],
    numbers: [f64; N],
    coins: impl Iterator<Item = [u8; N]>,
) {
    let tables: [[[f64; 4]; 16]; N] = numbers.map(|number| {
        std::array::from_fn(|bits| {
            let is_minus = |path: usize| bits >> path & 1 == 1;
            std::array::from_fn(|path| if is_minus(path) { -number } else { number })
        })
    });
    let (eights, _) = sums.as_chunks_mut::<8>();
    for (eight, bytes) in eights.iter_mut().zip(coins) {
        for (signed, byte) in tables.iter().zip(bytes) {
            let low = &signed[usize::from(byte & 15)];
            let high = &signed[usize::from(byte >> 4)];
            for path in 0..4 {
                eight[path] += low[path];
                eight[path + 4] += high[path];
            }
        }
    }
}

/// Calls `visit` with the position and value of every number at or above a bar, which each visit may raise. Eight are
/// compared at once, since almost none reaches the bar.
fn for_each_above(values: &[f64], mut bar: f64, mut visit: impl FnMut(usize, f64) -> f64) {
    let (eights, _) = values.as_chunks::<8>();
    for (index, eight) in eights.iter().enumerate() {
        if eight.iter().fold(false, |any, value| any | (*value >= bar)) {
            for (offset, value) in eight.iter().enumerate() {
                if *value >= bar {
                    bar = visit(8 * index + offset, *value);
                }
            }
        }
    }
}

/// The `k`-th largest among those that are numbers; `None` when there are fewer.
fn kth_largest(values: &[f64], k: usize, scratch: &mut Vec<f64>) -> Option<f64> {
    let select = |sizes: &mut Vec<f64>| {
        let (_, kth, _) = sizes.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
        *kth
    };
    scratch.clear();
    let capacity = 4 * k + 64;
    let mut bar = 0.0;
    for_each_above(values, bar, |_, size| {
        scratch.push(size);
        if scratch.len() == capacity {
            bar = select(scratch);
            scratch.truncate(k);
        }
        bar
    });
    (scratch.len() >= k).then(|| select(scratch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;
    use crate::sequential::coins::CoinRow;

    fn run(units: &[f64], test: &mut FlipSpend, coins: &Coins) -> Option<Rejection> {
        for unit in units {
            test.push(*unit, coins);
        }
        test.rejection()
    }

    /// All 2^units sign paths except the identity (path 0), packed like simulated coins.
    fn every_sign_path(units: usize) -> Coins {
        let rows = (0..units).map(|unit| {
            let mut bytes = vec![0_u8; 1 << (units - 3)];
            for path in 1..1_usize << units {
                bytes[(path - 1) / 8] |= u8::from(path >> unit & 1 == 1) << ((path - 1) % 8);
            }
            CoinRow(bytes.into_boxed_slice())
        });
        Coins::of_rows(rows.collect())
    }

    fn with_signs(sizes: &[f64], signs: usize) -> Vec<f64> {
        let sign = |index: usize| if signs >> index & 1 == 1 { -1.0 } else { 1.0 };
        sizes
            .iter()
            .enumerate()
            .map(|(index, size)| sign(index) * size)
            .collect()
    }

    #[test]
    fn the_error_is_exact_by_enumeration_of_all_sign_paths() {
        let mut random = RandomStream::new(2, 0);
        let every_path = every_sign_path(10);
        for alpha in [0.05, 0.2] {
            for shape in 0..4 {
                let sizes: Vec<f64> = (0..10)
                    .map(|index| match shape {
                        0 => random.normal(),
                        1 => 1.0,
                        2 => f64::from(index),
                        _ => random.normal() / random.uniform().max(0.01),
                    })
                    .collect();
                let stopped = (0..1024)
                    .filter(|signs| {
                        let mut test = FlipSpend::new(10, 6, alpha, 1023);
                        run(&with_signs(&sizes, *signs), &mut test, &every_path).is_some()
                    })
                    .count();
                assert!(stopped as f64 <= alpha * 1024.0, "shape {shape}: {stopped}");
                // It must also use what it may: without ties all but the last fraction of a path.
                if shape == 0 || shape == 3 {
                    assert!(
                        stopped as f64 >= alpha * 1024.0 - 2.0,
                        "shape {shape}: {stopped}"
                    );
                }
            }
        }
    }

    /// With so many units that their neighbours are heeded. A duel whose signs are those of a path is rejected when that
    /// path was given up in another duel of the same sizes, so one duel tells of all.
    #[test]
    fn the_error_is_exact_where_neighbours_are_heeded() {
        const UNITS: usize = 16;
        let every_path = every_sign_path(UNITS);
        let mut random = RandomStream::new(5, 0);
        for alpha in [0.01, 0.05, 0.2] {
            let sizes: Vec<f64> = (0..UNITS).map(|_| random.normal()).collect();
            let duel = |signs: usize| {
                let mut test = FlipSpend::new(UNITS, 6, alpha, (1 << UNITS) - 1);
                let is_rejected = run(&with_signs(&sizes, signs), &mut test, &every_path).is_some();
                (is_rejected, test)
            };
            // Signs in turns: a sum that nothing can call far.
            let (is_rejected, undecided) = duel(0x5555);
            assert!(!is_rejected);
            let given_up = |path: usize| path != 0 && undecided.sums[path - 1].is_nan();
            let count = (0..1 << UNITS).filter(|path| given_up(*path)).count();
            let allowed = alpha * f64::from(1 << UNITS);
            assert!(
                allowed - 2.0 <= count as f64 && count as f64 <= allowed,
                "{alpha}: {count} of {allowed}"
            );
            let given_up_paths = (0..1 << UNITS).filter(|path| given_up(*path));
            let some_given_up = given_up_paths
                .enumerate()
                .filter(|(place, _)| place % 61 == 0);
            for (_, path) in some_given_up {
                assert!(duel(0x5555 ^ path).0, "{alpha}: {path:b}");
            }
            for path in (0..1 << UNITS).filter(|path| path % 2039 == 1 && !given_up(*path)) {
                let (is_rejected, other) = duel(0x5555 ^ path);
                assert!(!is_rejected, "{alpha}: {path:b}");
                // The path made from coins is what a duel with those signs measures.
                let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
                assert!(
                    near(other.observed.sum, undecided.sums[path - 1]),
                    "{path:b}"
                );
                assert!(
                    near(other.observed.products, undecided.products[path - 1]),
                    "{path:b}"
                );
            }
        }
    }

    #[test]
    fn simulated_coins_come_within_their_sampling_error_of_the_enumeration() {
        const SEEDS: u64 = 16;
        let mut random = RandomStream::new(3, 0);
        let sizes: Vec<f64> = (0..10).map(|_| random.normal()).collect();
        let stopped_with = |seed: u64| {
            let mut coins = Coins::new(seed, 4999);
            coins.extend_to(10);
            let stops = |signs: &usize| {
                let mut test = FlipSpend::new(10, 6, 0.05, 4999);
                run(&with_signs(&sizes, *signs), &mut test, &coins).is_some()
            };
            (0..1024).filter(stops).count() as f64 / 1024.0
        };
        let stopped = (0..SEEDS).map(stopped_with).sum::<f64>() / SEEDS as f64;
        // One standard deviation of 4999 coin paths is 0.3 %, of sixteen times as many 0.08 %. With ten units every path
        // has about five doubles, and ties are resolved on the safe side, so it may also stay below.
        assert!(0.045 < stopped && stopped < 0.0525, "{stopped}");
    }

    #[test]
    fn no_decision_comes_before_the_coins_allow_it() {
        // 2 · 2^-n ≤ alpha · n / n_max gives 7, 8, 9 up to n_max 22, 51, 115 at alpha 0.05; the cases keep
        // clear of those limits, where simulated coins fall on either side.
        for (units_max, first) in [(16, 7), (35, 8), (80, 9)] {
            let mut coins = Coins::new(1, 4999);
            coins.extend_to(units_max);
            let mut test = FlipSpend::new(units_max, 6, 0.05, 4999);
            let units = vec![1.0; units_max];
            let rejection = run(&units, &mut test, &coins);
            assert_eq!(
                rejection,
                Some(Rejection {
                    at: first,
                    side: Side::Above
                })
            );
        }
    }

    #[test]
    fn zeros_never_reject() {
        let mut coins = Coins::new(1, 999);
        coins.extend_to(30);
        let mut test = FlipSpend::new(30, 6, 0.05, 999);
        assert_eq!(run(&[0.0; 30], &mut test, &coins), None);
    }

    #[test]
    fn the_kth_largest_agrees_with_sorting() {
        let mut random = RandomStream::new(4, 0);
        let mut values: Vec<f64> = (0..3000).map(|_| random.normal().abs()).collect();
        values[17] = f64::NAN;
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        for k in [1, 2, 7, 200, 2999] {
            assert_eq!(
                kth_largest(&values, k, &mut Vec::new()),
                Some(sorted[k - 1])
            );
        }
        assert_eq!(kth_largest(&values, 3000, &mut Vec::new()), None);
    }
}
