//! The sign-flip randomisation test with alpha spending, looked at after every unit.
//!
//! Under "no difference" the sign of each unit is a fair coin that *we* tossed when the plan was drawn, so the
//! distribution of any statistic of a path is known exactly, whatever the noise (Fisher 1935; Plamadeala & Rosenberger
//! 2012). The error budget is spent in proportion to the planned weights of the units seen (Lan & DeMets 1983).
//! The caller subtracts the effect that is tested from the units.

use super::balance::LimitShares;
use super::coins::Coins;
use super::plan::SequentialPlan;
use super::statistic::{NEIGHBOURS, ROUNDING, Statistic, WeightSums, lag_weight};
use crate::moments::as_count;

#[cfg(test)]
mod tests;

/// Side of the hypothesis on which the data lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The units lie above the tested value.
    Above,
    /// The units lie below the tested value.
    Below,
}

impl Side {
    /// The side a sum of differences lies on; zero counts as above and cannot reject anything.
    pub(crate) fn of(sum: f64) -> Side {
        if sum < 0.0 { Side::Below } else { Side::Above }
    }
}

/// Rejection of a hypothesis: when, and on which side the data lay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// Number of units seen at that time.
    pub at: usize,
    /// Side of the data.
    pub side: Side,
}

/// State of the test for one hypothesis after the units seen so far.
///
/// Simulated paths multiply the *signed* unit by their coin instead of its absolute value. Given the absolute
/// values both have the same law, but the signed form changes little with the tested shift: in practice, though it is
/// not proved, what is rejected far from the units' mean is rejected further away too, which inversion by bisection needs.
#[derive(Debug, Clone)]
pub(super) struct FlipSpend {
    plan: SequentialPlan,
    /// Error probability that this test may spend.
    alpha: f64,
    units: Vec<f64>,
    weights: WeightSums,
    squares: f64,
    /// The observed units: the path without a coin.
    observed: Path,
    /// Sum of each simulated path; NaN once the path has been rejected.
    sums: Vec<f64>,
    /// Weighted products of neighbours on each simulated path.
    products: Vec<f64>,
    spent: usize,
    rejection: Option<Rejection>,
    limit_shares: LimitShares,
    /// Buffers of one look: the statistic of each simulated path, and the largest of them.
    statistics: Vec<f64>,
    largest: Vec<f64>,
}

/// The sum of a path, and the sum of the products of its neighbours.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    sum: f64,
    products: f64,
}

impl FlipSpend {
    pub(super) fn new(plan: &SequentialPlan, alpha: f64) -> Self {
        let mut sums = vec![0.0; plan.paths.div_ceil(8) * 8];
        sums[plan.paths..].fill(f64::NAN);
        FlipSpend {
            plan: *plan,
            alpha,
            units: Vec::new(),
            weights: WeightSums::default(),
            squares: 0.0,
            observed: Path::default(),
            products: vec![0.0; sums.len()],
            statistics: vec![0.0; sums.len()],
            sums,
            spent: 0,
            rejection: None,
            limit_shares: LimitShares::default(),
            largest: Vec::new(),
        }
    }

    pub(super) fn rejection(&self) -> Option<Rejection> {
        self.rejection
    }

    pub(super) fn limit_shares(&self) -> LimitShares {
        self.limit_shares
    }

    /// Adds one unit with its planned weight; the rows of coins up to it must exist. After a rejection or the budget's last
    /// unit it changes nothing.
    pub(super) fn push(&mut self, unit: f64, weight: f64, coins: &Coins) {
        let number = self.units.len();
        if self.rejection.is_some() || self.plan.is_spent(self.weights.sum) {
            return;
        }
        self.observed.sum += unit;
        self.squares += unit * unit;
        let own = coins.row(number).0.iter();
        add_signed(&mut self.sums, [unit], own.map(|coins| [*coins]));
        self.add_products(unit, coins);
        self.units.push(unit);
        self.weights.push(weight);
        if self.units.len() >= self.plan.n_min {
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
            before.map_or(0.0, |before| lag_weight(lag) * unit * before)
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

    /// Number of paths (the observed one included) that may have been rejected by now.
    fn allowance(&self) -> usize {
        let share = self.plan.share(self.weights.sum);
        // The tiny addend undoes rounding in products such as 0.05 · 0.2 · 5000 that are whole numbers.
        as_count((self.alpha * share * (self.plan.paths + 1) as f64 + 1e-9).floor())
    }

    fn look(&mut self) {
        let slots = self.allowance().saturating_sub(self.spent);
        if slots == 0 || self.squares == 0.0 {
            return;
        }
        let statistic = Statistic::new(&self.weights, self.squares);
        let observed = statistic.of(self.observed.sum, self.observed.products);
        let paths = self.sums.iter().zip(&self.products);
        for (value, (sum, products)) in self.statistics.iter_mut().zip(paths) {
            *value = statistic.of(*sum, *products);
        }
        let cut = kth_largest(&self.statistics, slots, &mut self.largest);
        if let Some(cut) = cut.filter(|cut| *cut > 0.0) {
            let side = Side::of(self.observed.sum);
            self.limit_shares.add(side, observed / cut);
        }
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

/// The `k`-th largest of the values that are not NaN; `None` when there are fewer.
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
