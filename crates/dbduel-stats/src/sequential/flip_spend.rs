//! The sign-flip randomisation test with alpha spending, looked at after every unit.
//!
//! Under "no difference" the sign of each unit is a fair coin that *we* tossed when the plan was drawn,
//! so the distribution of the sum is known exactly, whatever the noise (Fisher 1935; Plamadeala &
//! Rosenberger 2012). The error budget is spent in proportion to the units seen (Lan & DeMets 1983).
//! It does not know which effect is being tested: the caller shifts the units.

use super::coins::CoinRow;

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
/// Simulated paths multiply the *signed* unit by their coin instead of its absolute value. Given the
/// absolute values both have the same law, but the signed form makes a single look monotone in the
/// tested shift: a value below a rejected one is rejected too, which inversion by bisection needs.
#[derive(Debug, Clone)]
pub(super) struct FlipSpend {
    units_max: usize,
    units_min: usize,
    alpha: f64,
    paths: usize,
    /// Sum of each simulated path; NaN once the path has been given up.
    sums: Vec<f64>,
    spent: usize,
    units: usize,
    observed: f64,
    total_absolute: f64,
    rejection: Option<Rejection>,
    scratch: Vec<f64>,
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
            sums,
            spent: 0,
            units: 0,
            observed: 0.0,
            total_absolute: 0.0,
            rejection: None,
            scratch: Vec::new(),
        }
    }

    pub(super) fn rejection(&self) -> Option<Rejection> {
        self.rejection
    }

    /// Adds one unit. After a rejection or the budget's last unit it changes nothing.
    pub(super) fn push(&mut self, unit: f64, coins: &CoinRow) {
        if self.rejection.is_some() || self.units >= self.units_max {
            return;
        }
        self.units += 1;
        self.observed += unit;
        self.total_absolute += unit.abs();
        add_signed(&mut self.sums, unit, coins);
        if self.units >= self.units_min {
            self.look();
        }
    }

    /// How many of the paths (the observed one included) may have been given up by now.
    fn allowance(&self) -> usize {
        let share = self.units as f64 / self.units_max as f64;
        // The tiny addend undoes rounding in products such as 0.05 · 0.2 · 5000 that are whole numbers.
        (self.alpha * share * (self.paths + 1) as f64 + 1e-9).floor() as usize
    }

    fn look(&mut self) {
        let slots = self.allowance().saturating_sub(self.spent);
        if slots == 0 {
            return;
        }
        // Sums of the same terms in another order differ by rounding; such paths are ties.
        let rounding = 1e-12 * self.total_absolute;
        let cut = kth_largest_absolute(&self.sums, slots, &mut self.scratch);
        // Fewer than `slots` simulated paths reach the observed one: it is among those given up.
        let Some(cut) = cut.filter(|cut| *cut >= self.observed.abs() - rounding) else {
            self.rejection = Some(Rejection {
                at: self.units,
                side: Side::of(self.observed),
            });
            return;
        };
        let mut given_up = Vec::with_capacity(2 * slots);
        for_each_above(&self.sums, cut - rounding, |path, size| {
            given_up.push((path, size));
            cut - rounding
        });
        if given_up.len() > slots {
            // Ties at the cut: giving up only the strictly larger paths errs on the safe side.
            given_up.retain(|(_, size)| *size > cut + rounding);
        }
        for (path, _) in &given_up {
            self.sums[*path] = f64::NAN;
        }
        self.spent += given_up.len();
    }
}

/// Adds `±unit` to every sum, four paths per table entry: this loop is the whole cost of a verdict.
fn add_signed(sums: &mut [f64], unit: f64, coins: &CoinRow) {
    let signed: [[f64; 4]; 16] = std::array::from_fn(|bits| {
        std::array::from_fn(|path| if bits >> path & 1 == 1 { -unit } else { unit })
    });
    let (eights, _) = sums.as_chunks_mut::<8>();
    for (eight, byte) in eights.iter_mut().zip(&coins.0) {
        let low = &signed[usize::from(byte & 15)];
        let high = &signed[usize::from(byte >> 4)];
        for path in 0..4 {
            eight[path] += low[path];
            eight[path + 4] += high[path];
        }
    }
}

/// Calls `visit` with the position and absolute value of every number at or above a bar, which each
/// visit may raise. Eight sums are compared at once, since almost none reaches the bar.
fn for_each_above(sums: &[f64], mut bar: f64, mut visit: impl FnMut(usize, f64) -> f64) {
    let (eights, _) = sums.as_chunks::<8>();
    for (index, eight) in eights.iter().enumerate() {
        if eight
            .iter()
            .fold(false, |any, sum| any | (sum.abs() >= bar))
        {
            for (offset, sum) in eight.iter().enumerate() {
                if sum.abs() >= bar {
                    bar = visit(8 * index + offset, sum.abs());
                }
            }
        }
    }
}

/// The `k`-th largest absolute value among those that are numbers; `None` when there are fewer.
fn kth_largest_absolute(sums: &[f64], k: usize, scratch: &mut Vec<f64>) -> Option<f64> {
    let select = |sizes: &mut Vec<f64>| {
        let (_, kth, _) = sizes.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
        *kth
    };
    scratch.clear();
    let capacity = 4 * k + 64;
    let mut bar = 0.0;
    for_each_above(sums, bar, |_, size| {
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
    use crate::sequential::coins::Coins;

    fn run(
        units: &[f64],
        test: &mut FlipSpend,
        row: impl Fn(usize) -> CoinRow,
    ) -> Option<Rejection> {
        for (index, unit) in units.iter().enumerate() {
            test.push(*unit, &row(index));
        }
        test.rejection()
    }

    /// Row `unit` of all 2^10 sign paths except the identity (path 0), packed like simulated coins.
    fn every_sign_path(unit: usize) -> CoinRow {
        let mut bytes = vec![0_u8; 128];
        for path in 1..1024_usize {
            bytes[(path - 1) / 8] |= u8::from(path >> unit & 1 == 1) << ((path - 1) % 8);
        }
        CoinRow(bytes.into_boxed_slice())
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
                        run(&with_signs(&sizes, *signs), &mut test, every_sign_path).is_some()
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

    #[test]
    fn simulated_coins_come_within_their_sampling_error_of_the_enumeration() {
        let mut random = RandomStream::new(3, 0);
        let sizes: Vec<f64> = (0..10).map(|_| random.normal()).collect();
        let mut coins = Coins::new(17, 4999);
        coins.extend_to(10);
        let stopped = (0..1024)
            .filter(|signs| {
                let mut test = FlipSpend::new(10, 6, 0.05, 4999);
                run(&with_signs(&sizes, *signs), &mut test, |unit| {
                    coins.row(unit).clone()
                })
                .is_some()
            })
            .count() as f64
            / 1024.0;
        // One standard deviation of 4999 coin paths is 0.3 %. With ten units every path has about five
        // doubles, and ties are resolved on the safe side, so it may also stay below.
        assert!(0.025 < stopped && stopped < 0.0625, "{stopped}");
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
            let rejection = run(&units, &mut test, |unit| coins.row(unit).clone());
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
        assert_eq!(
            run(&[0.0; 30], &mut test, |unit| coins.row(unit).clone()),
            None
        );
    }

    #[test]
    fn the_kth_largest_agrees_with_sorting() {
        let mut random = RandomStream::new(4, 0);
        let mut values: Vec<f64> = (0..3000).map(|_| random.normal()).collect();
        values[17] = f64::NAN;
        let mut sorted: Vec<f64> = values
            .iter()
            .map(|x| x.abs())
            .filter(|x| !x.is_nan())
            .collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        for k in [1, 2, 7, 200, 2999] {
            assert_eq!(
                kth_largest_absolute(&values, k, &mut Vec::new()),
                Some(sorted[k - 1])
            );
        }
        assert_eq!(kth_largest_absolute(&values, 3000, &mut Vec::new()), None);
    }
}
