//! The simulated coins: for every unit one fair sign per simulated path.
//!
//! A row depends on the seed and the unit's number alone, so a replay, a longer duel and every shifted hypothesis see
//! the same coins.

use crate::random::RandomStream;

/// Streams of the coins lie far from the small numbers that callers give their own streams: a caller
/// who draws the running order from the same seed must not get the coins it is tested with.
const COIN_STREAMS: u64 = 0x636F_696E_0000_0000;

/// Signs of all simulated paths at one unit, one bit each (set = minus).
#[derive(Debug, Clone)]
pub(super) struct CoinRow(pub(super) Box<[u8]>);

/// Rows of coins, made as units arrive.
#[derive(Debug, Clone)]
pub(super) struct Coins {
    seed: u64,
    paths: usize,
    rows: Vec<CoinRow>,
}

impl Coins {
    pub(super) fn new(seed: u64, paths: usize) -> Self {
        Coins {
            seed,
            paths,
            rows: Vec::new(),
        }
    }

    /// Makes the rows of units `0..units` available.
    pub(super) fn extend_to(&mut self, units: usize) {
        for unit in self.rows.len()..units {
            let mut stream = RandomStream::new(self.seed, COIN_STREAMS + unit as u64);
            let words = self.paths.div_ceil(64);
            let mut bytes: Vec<u8> = (0..words)
                .flat_map(|_| stream.bits().to_le_bytes())
                .collect();
            bytes.truncate(self.paths.div_ceil(8));
            self.rows.push(CoinRow(bytes.into_boxed_slice()));
        }
    }

    /// Given coins, such as all possible ones.
    #[cfg(test)]
    pub(super) fn of_rows(rows: Vec<CoinRow>) -> Self {
        Coins {
            seed: 0,
            paths: 0,
            rows,
        }
    }

    /// The row of `unit`; `extend_to` must have reached it.
    pub(super) fn row(&self, unit: usize) -> &CoinRow {
        &self.rows[unit]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_depends_on_seed_and_unit_only() {
        let mut at_once = Coins::new(5, 4999);
        at_once.extend_to(10);
        let mut stepwise = Coins::new(5, 4999);
        for units in 1..=10 {
            stepwise.extend_to(units);
        }
        for unit in 0..10 {
            assert_eq!(at_once.row(unit).0, stepwise.row(unit).0);
        }
        assert_ne!(at_once.row(0).0, at_once.row(1).0);
    }

    #[test]
    fn coins_are_fair() {
        let mut coins = Coins::new(11, 4999);
        coins.extend_to(100);
        let minus: u32 = (0..100)
            .flat_map(|unit| coins.row(unit).0.iter())
            .map(|byte| byte.count_ones())
            .sum();
        // 500 000 coins: four standard deviations are 1414.
        assert!(minus.abs_diff(250_000) < 1500, "{minus}");
    }
}
