//! Schedule of due transactions, in a slice of a contest or in a run.
//!
//! Numbers in, instants out, so that an hour of schedule is tested in a millisecond. Instants are nanoseconds since
//! the start of the slice or the run.
//!
//! A due instant is never moved and never dropped. A client that comes late finds a past instant and runs at once; the
//! wait is part of the latency, which is the point.

use dbduel_record::plan::Arrival;
use dbduel_record::seed::named_seed;

use crate::random::Random;
use crate::share::Share;

/// Maximum number of arrivals that are counted one by one, so that the backlog of a hopeless overload is computed in
/// milliseconds.
pub(crate) const COUNTED_MAX: u64 = 1_000_000;

/// Nanoseconds of a second.
const NS_PER_S: f64 = 1e9;

/// Due instants of the transactions of one thread's clients.
#[derive(Debug, Clone)]
pub struct Schedule {
    end_ns: u64,
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    /// Due when the client's previous transaction is done, plus the think time.
    Closed { think_ns: u64 },
    /// Due at scheduled instants; a free client takes the earliest.
    Open {
        arrivals: Arrivals,
        share: Share,
        next_ns: u64,
    },
}

impl Schedule {
    /// The schedule of one thread in a slice that ends at `end_ns`.
    ///
    /// All threads derive the same arrivals from `seed` and take disjoint shares of them, so that the
    /// whole load is the same for any number of threads and for every contender.
    #[must_use]
    pub fn new(arrival: Arrival, share: Share, end_ns: u64, seed: u64) -> Self {
        let open = |gap: Gap, per_second: f64| {
            let arrivals = Arrivals {
                gap,
                per_second,
                count: 0,
                at_s: 0.0,
            };
            let mut schedule = Schedule {
                end_ns,
                rule: Rule::Open {
                    arrivals,
                    share,
                    next_ns: 0,
                },
            };
            schedule.find_next();
            schedule
        };
        match arrival {
            Arrival::Closed { think_ms } => Schedule {
                end_ns,
                rule: Rule::Closed {
                    think_ns: (think_ms * 1e6) as u64,
                },
            },
            Arrival::Constant { per_second } => open(Gap::Constant, per_second),
            Arrival::Poisson { per_second } => open(
                Gap::Exponential(Random::new(named_seed(seed, "arrivals"))),
                per_second,
            ),
        }
    }

    /// When the next transaction of a client that is free since `free_ns` is due; `None` when that is at or after the
    /// end of the slice.
    #[inline]
    pub fn take(&mut self, free_ns: u64) -> Option<u64> {
        let due_ns = match &self.rule {
            Rule::Closed { think_ns } => free_ns.saturating_add(*think_ns),
            Rule::Open { next_ns, .. } => *next_ns,
        };
        if due_ns >= self.end_ns {
            return None;
        }
        if let Rule::Open { .. } = self.rule {
            self.find_next();
        }
        Some(due_ns)
    }

    /// When the next transaction is due, if any client is free; never in a closed loop.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        match &self.rule {
            Rule::Closed { .. } => u64::MAX,
            Rule::Open { next_ns, .. } => *next_ns,
        }
    }

    /// Takes the arrivals up to `now_ns` and before the end, at most `most`; returns their number.
    pub fn pass(&mut self, now_ns: u64, most: u64) -> u64 {
        let mut passed = 0;
        while passed < most && self.next_ns() <= now_ns && self.next_ns() < self.end_ns {
            self.find_next();
            passed += 1;
        }
        passed
    }

    /// Counts the arrivals up to `now_ns` that no client has taken, up to a million of them.
    #[must_use]
    pub fn waiting(&self, now_ns: u64) -> u64 {
        self.clone().pass(now_ns, COUNTED_MAX)
    }

    fn find_next(&mut self) {
        let Rule::Open {
            arrivals,
            share,
            next_ns,
        } = &mut self.rule
        else {
            return;
        };
        if share.own_clients() == 0 {
            *next_ns = u64::MAX;
            return;
        }
        loop {
            let number = arrivals.count;
            *next_ns = arrivals.next();
            // Beyond the end ownership does not matter: no client takes it.
            if *next_ns >= self.end_ns || share.owns(number) {
                return;
            }
        }
    }
}

/// Instants at which transactions of the whole load fall due, in order.
#[derive(Debug, Clone)]
struct Arrivals {
    gap: Gap,
    per_second: f64,
    count: u64,
    at_s: f64,
}

#[derive(Debug, Clone)]
enum Gap {
    Constant,
    Exponential(Random),
}

impl Arrivals {
    fn next(&mut self) -> u64 {
        let at_s = match &mut self.gap {
            // From the number, not by adding gaps, so that rounding does not pile up.
            Gap::Constant => self.count as f64 / self.per_second,
            Gap::Exponential(random) => {
                self.at_s += random.exponential() / self.per_second;
                self.at_s
            }
        };
        self.count += 1;
        // A rate of zero gives an infinite instant, which the conversion turns into "never".
        (at_s * NS_PER_S) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Share = Share {
        thread: 0,
        threads: 1,
        clients: 1,
    };
    const SECOND: u64 = 1_000_000_000;

    fn all(arrival: Arrival, share: Share, end_ns: u64, seed: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(arrival, share, end_ns, seed);
        std::iter::from_fn(|| schedule.take(0)).collect()
    }

    #[test]
    fn a_closed_client_is_due_when_it_is_done_plus_think_time() {
        let mut schedule = Schedule::new(Arrival::Closed { think_ms: 0.0 }, ALONE, SECOND, 1);
        assert_eq!(schedule.take(5), Some(5));
        assert_eq!(schedule.take(SECOND), None);
        let mut thinking = Schedule::new(Arrival::Closed { think_ms: 2.5 }, ALONE, SECOND, 1);
        assert_eq!(thinking.take(5), Some(2_500_005));
        assert_eq!(thinking.take(SECOND - 1), None);
    }

    #[test]
    fn constant_arrivals_are_equally_spaced_however_late_the_client_is() {
        let mut schedule =
            Schedule::new(Arrival::Constant { per_second: 1000.0 }, ALONE, SECOND, 1);
        assert_eq!(schedule.take(0), Some(0));
        assert_eq!(
            schedule.take(700_000_000),
            Some(1_000_000),
            "a due instant was moved"
        );
        let rest = std::iter::from_fn(|| schedule.take(900_000_000)).collect::<Vec<_>>();
        assert_eq!(rest.len(), 998, "an arrival was dropped");
        assert!(
            rest.windows(2)
                .all(|pair| pair[1].abs_diff(pair[0] + 1_000_000) <= 1)
        );
    }

    #[test]
    fn what_is_due_and_not_taken_is_waiting() {
        let arrival = Arrival::Constant { per_second: 1000.0 };
        let mut schedule = Schedule::new(arrival, ALONE, SECOND, 1);
        assert_eq!(schedule.waiting(0), 1);
        assert_eq!(schedule.waiting(99_500_000), 100);
        let taken: Vec<_> = (0..40).map_while(|_| schedule.take(0)).collect();
        assert_eq!(taken.len(), 40);
        assert_eq!(schedule.waiting(99_500_000), 60);
        assert_eq!(schedule.waiting(10_000_000), 0);
        assert_eq!(
            schedule.waiting(u64::MAX),
            960,
            "beyond the end nothing is due"
        );
        let closed = Schedule::new(Arrival::Closed { think_ms: 0.0 }, ALONE, SECOND, 1);
        assert_eq!(closed.waiting(SECOND), 0);
    }

    #[test]
    fn threads_share_the_arrivals_without_gap_or_overlap() {
        for arrival in [
            Arrival::Poisson { per_second: 3000.0 },
            Arrival::Constant { per_second: 3000.0 },
        ] {
            let whole = all(
                arrival,
                Share {
                    thread: 0,
                    threads: 1,
                    clients: 7,
                },
                SECOND,
                9,
            );
            for threads in [2, 3, 8] {
                let mut merged: Vec<u64> = (0..threads)
                    .flat_map(|thread| {
                        all(
                            arrival,
                            Share {
                                thread,
                                threads,
                                clients: 7,
                            },
                            SECOND,
                            9,
                        )
                    })
                    .collect();
                merged.sort_unstable();
                assert_eq!(merged, whole, "{threads} threads");
            }
        }
    }

    #[test]
    fn a_thread_without_clients_gets_no_arrivals() {
        let share = Share {
            thread: 3,
            threads: 4,
            clients: 2,
        };
        assert!(all(Arrival::Constant { per_second: 100.0 }, share, SECOND, 1).is_empty());
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        // Kolmogorov-Smirnov against the exponential law; 1.95 / sqrt(n) is the 0.1 % point.
        let rate = 10_000.0;
        let instants = all(Arrival::Poisson { per_second: rate }, ALONE, 10 * SECOND, 3);
        let mut gaps: Vec<f64> = instants
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64 * rate / NS_PER_S)
            .collect();
        gaps.sort_by(f64::total_cmp);
        let count = gaps.len() as f64;
        assert!((count - 100_000.0).abs() < 1_600.0, "{count} arrivals");
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(index, gap)| ((index as f64 + 0.5) / count - (1.0 - (-gap).exp())).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / count.sqrt(), "{distance}");
    }

    #[test]
    fn the_same_seed_gives_every_contender_the_same_arrivals() {
        let poisson = Arrival::Poisson { per_second: 500.0 };
        assert_eq!(
            all(poisson, ALONE, SECOND, 4),
            all(poisson, ALONE, SECOND, 4)
        );
        assert_ne!(
            all(poisson, ALONE, SECOND, 4),
            all(poisson, ALONE, SECOND, 5)
        );
    }

    #[test]
    fn a_schedule_without_an_end_goes_on_and_counts_up_to_any_instant() {
        let arrival = Arrival::Constant { per_second: 1000.0 };
        let mut schedule = Schedule::new(arrival, ALONE, u64::MAX, 1);
        for _ in 0..10 {
            schedule.take(0);
        }
        assert_eq!(schedule.pass(SECOND / 2 - 1, u64::MAX), 490);
        assert_eq!(schedule.pass(SECOND / 2 - 1, u64::MAX), 0);
        assert_eq!(schedule.take(0), Some(SECOND / 2));
        let share = Share {
            thread: 3,
            threads: 4,
            clients: 2,
        };
        let mut without_clients = Schedule::new(arrival, share, u64::MAX, 1);
        assert_eq!(without_clients.take(0), None);
    }
}
