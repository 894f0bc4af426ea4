//! The order in which clients of a mix draw, and where each slice begins in it.
//!
//! A write means what it meant when it was captured only once, and near the statements around it: an INSERT drawn again finds its key, a
//! DELETE drawn before the INSERT that it follows finds no row. So each transaction is drawn once before any is drawn again, and in about
//! the order of the log. The order has to serve the verdict, too. (1) *Weights*: a contest that is shorter than a pass through the capture
//! must not see its first minutes alone. The capture is therefore cut into parts of equal size that advance side by side: every round of
//! draws has one transaction of each part, in random order, and the place in the capture at which the first round begins is random, so
//! that each draw is each transaction with the same probability. (2) *Equal draws*: all contenders of a half of a block begin at the same
//! draw, and their clients take one draw after the other from a common counter, so that contenders run the same transactions in the same
//! order, and a faster one runs more of them. (3) *Unequal speed*: the next half begins after the furthest draw of any contender. Had each
//! contender its own place, a faster one would soon run other transactions than its opponent; were the place that of the slowest, the
//! others would draw what they have drawn. The price is that a slower contender skips draws: it lacks their rows, and a later UPDATE or
//! DELETE of these finds nothing, which `captured.writes-differ` reports. A capture has far more transactions than a slice draws, and
//! where all were drawn a contest restores the tables, or the order begins again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dbduel_client::random::Random;

/// Least transactions, or sessions, of a part: cuts tear what belongs together.
const PART_MIN: u64 = 500;
/// Most parts, a power of two.
const PARTS_MAX: u64 = 64;

/// Parts of a capture with so many transactions, or sessions.
fn parts_of(count: u64) -> u64 {
    (count / PART_MIN).max(1).next_power_of_two().min(PARTS_MAX)
}

/// An order of the numbers below a count, which begins again at its end: any draws in a row that are as many as the numbers have each
/// number once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawOrder {
    count: u64,
    /// A power of two.
    parts: u64,
    seed: u64,
    /// Place of the first draw.
    begin: u64,
}

impl DrawOrder {
    /// The order of a seed.
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        DrawOrder {
            count,
            parts: parts_of(count),
            seed,
            begin: Random::new(seed).below(count),
        }
    }

    /// The number that a draw has; 0 where there is none.
    pub(crate) fn number(&self, draw: u64) -> u64 {
        let place = self.begin.wrapping_add(draw).checked_rem(self.count);
        let Some(place) = place else {
            return 0;
        };
        let (round, turn) = (place / self.parts, place % self.parts);
        let part_size = self.count / self.parts;
        if round >= part_size {
            // The few numbers behind the last part.
            return place;
        }
        let random = Random::new(self.seed ^ round).bits();
        // An odd factor and a summand permute the numbers below a power of two.
        let part = turn.wrapping_mul(random | 1).wrapping_add(random >> 32) % self.parts;
        part * part_size + round
    }
}

/// Draws of all servers of this process.
#[derive(Debug)]
pub(crate) struct Draws {
    /// How many transactions, or sessions, are drawn before one is drawn again.
    pub(crate) count: u64,
    /// The order, of the seed of the first slice.
    order: OnceLock<DrawOrder>,
    /// The draw after the furthest one of all servers.
    furthest: AtomicU64,
    /// The seed and the first draw of the slices that were last begun: contenders of a half of a block have the same seed.
    begun: Mutex<Option<(u64, u64)>>,
}

impl Draws {
    /// Of so many transactions, or sessions.
    pub(crate) fn of(count: usize) -> Self {
        Draws {
            count: count as u64,
            order: OnceLock::new(),
            furthest: AtomicU64::new(0),
            begun: Mutex::new(None),
        }
    }

    /// How clients draw, in one sentence; `unit` is what they draw.
    pub(crate) fn claim(&self, unit: &str) -> String {
        let among = match parts_of(self.count) {
            1 => String::new(),
            parts => format!(", from {parts} parts of the capture that advance side by side"),
        };
        format!(
            "Clients draw each {unit} once before they draw any again, in about the order of the log{among}."
        )
    }

    /// The first draw of a slice.
    fn begin(&self, seed: u64) -> u64 {
        let mut begun = locked(&self.begun);
        match *begun {
            Some((known, first)) if known == seed => first,
            _ => {
                let first = self.furthest.load(Ordering::Relaxed);
                *begun = Some((seed, first));
                first
            }
        }
    }
}

/// Draws of one server, whose clients share them.
#[derive(Debug, Default)]
pub(crate) struct ServerDraws {
    next: AtomicU64,
    /// Seed of the slice that was last begun.
    slice: Mutex<Option<u64>>,
}

impl ServerDraws {
    /// Begins a slice, unless another client has begun it.
    pub(crate) fn begin(&self, draws: &Draws, seed: u64) {
        let mut slice = locked(&self.slice);
        if *slice != Some(seed) {
            *slice = Some(seed);
            self.next.store(draws.begin(seed), Ordering::Relaxed);
        }
    }

    /// The number of the next transaction, or session.
    pub(crate) fn next(&self, draws: &Draws) -> u64 {
        let draw = self.next.fetch_add(1, Ordering::Relaxed);
        draws.furthest.fetch_max(draw + 1, Ordering::Relaxed);
        let order = draws.order.get_or_init(|| {
            let seed = locked(&draws.begun).map_or(0, |(seed, _)| seed);
            DrawOrder::new(draws.count, seed)
        });
        order.number(draw)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn numbers(order: DrawOrder, draws: std::ops::Range<u64>) -> Vec<u64> {
        draws.map(|draw| order.number(draw)).collect()
    }

    #[test]
    fn each_number_is_drawn_once_before_any_is_drawn_again() {
        for count in [1, 3, 40, 499, 1_000, 12_345, 70_001] {
            for (seed, first) in [(1, 0), (2, 17), (3, count / 2), (4, 5 * count + 1)] {
                let drawn = numbers(DrawOrder::new(count, seed), first..first + count);
                let different: BTreeSet<u64> = drawn.into_iter().collect();
                let all: BTreeSet<u64> = (0..count).collect();
                assert!(different == all, "{count} {seed} {first}");
            }
        }
    }

    #[test]
    fn each_draw_is_each_number_with_the_same_probability() {
        const SEEDS: u64 = 40_000;
        for draw in [0, 1, 33] {
            let mut times = [0_u32; 40];
            for seed in 0..SEEDS {
                times[DrawOrder::new(40, seed).number(draw) as usize] += 1;
            }
            // 1,000 each, with a standard deviation of 31.
            let is_fair = times.iter().all(|one| (850..1_150).contains(one));
            assert!(is_fair, "draw {draw}: {times:?}");
        }
    }

    /// Of a few hundred draws no part of the capture has more than its share, and each part goes on where it was.
    #[test]
    fn parts_advance_side_by_side_in_the_order_of_the_log() {
        let order = DrawOrder::new(64_000, 9);
        assert_eq!(order.parts, 64);
        // The first round.
        let first = 64_000 - order.begin;
        let drawn = numbers(order, first..first + 640);
        let rounds: Vec<Vec<u64>> = drawn
            .chunks(64)
            .map(|round| round.iter().map(|number| number / 1_000).collect())
            .collect();
        for round in &rounds {
            let parts: BTreeSet<u64> = round.iter().copied().collect();
            assert_eq!(parts.len(), 64);
        }
        assert_ne!(rounds[0], rounds[1], "the parts take turns at random");
        for part in 0..64 {
            let own: Vec<u64> = drawn
                .iter()
                .copied()
                .filter(|number| number / 1_000 == part)
                .collect();
            assert!(own.windows(2).all(|two| two[1] == two[0] + 1), "{own:?}");
        }
    }

    #[test]
    fn seeds_give_different_orders_and_equal_ones_the_same() {
        let of = |seed| numbers(DrawOrder::new(5_000, seed), 0..500);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    /// Blocks of contenders of which one draws up to three times as much as another: within a half all draw the same, and none draws
    /// anything twice until all was drawn.
    #[test]
    fn contenders_of_a_half_draw_the_same_and_nothing_twice() {
        const COUNT: u64 = 20_000;
        let draws = Draws::of(COUNT as usize);
        let servers = [ServerDraws::default(), ServerDraws::default()];
        let mut seen = [BTreeSet::new(), BTreeSet::new()];
        let mut random = Random::new(3);
        let mut seed = 0;
        while draws.furthest.load(Ordering::Relaxed) < COUNT - 1_000 {
            for order in [[0, 1], [1, 0]] {
                seed += 1;
                let mut halves = [Vec::new(), Vec::new()];
                for server in order {
                    // Each of the clients begins the slice.
                    for _ in 0..3 {
                        servers[server].begin(&draws, seed);
                    }
                    let number = 50 + random.below(100);
                    for _ in 0..number {
                        let drawn = servers[server].next(&draws);
                        assert!(seen[server].insert(drawn), "{drawn} was drawn");
                        halves[server].push(drawn);
                    }
                }
                let common = halves[0].len().min(halves[1].len());
                assert_eq!(halves[0][..common], halves[1][..common]);
                let all: usize = halves.iter().map(Vec::len).max().unwrap();
                let both: BTreeSet<&u64> = halves.iter().flatten().collect();
                assert_eq!(both.len(), all);
            }
        }
        let furthest = draws.furthest.load(Ordering::Relaxed);
        let together: BTreeSet<&u64> = seen.iter().flatten().collect();
        assert_eq!(together.len() as u64, furthest, "no draw is left out");
    }
}
