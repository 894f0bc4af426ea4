//! Tests of locks: random ones of many with empty loops in between, and one of a few, held while the thread yields.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::yield_now;

use dbduel_client::random::Random;
use dbduel_client::run::Counts;
use dbduel_record::seed::named_seed;

use super::{Machine, Next, Worker};

/// Takes random locks of many, with empty loops in between. Each worker has a single event.
#[derive(Debug)]
pub struct Mutexes {
    mutexes: Vec<Mutex<()>>,
    locks: u64,
    loops: u64,
    seed: u64,
    /// Counter that the locks protect.
    global: AtomicU64,
}

impl Mutexes {
    /// An event takes `locks` of `mutexes` mutexes, at least one, with `loops` empty loops before each.
    #[must_use]
    pub fn new(mutexes: u32, locks: u64, loops: u64, seed: u64) -> Self {
        Mutexes {
            mutexes: (0..mutexes.max(1)).map(|_| Mutex::new(())).collect(),
            locks,
            loops,
            seed,
            global: AtomicU64::new(0),
        }
    }
}

impl Machine for Mutexes {
    fn worker(&self, number: u32) -> Result<Box<dyn Worker + '_>, String> {
        Ok(Box::new(MutexWorker {
            test: self,
            random: Random::new(named_seed(self.seed, &format!("mutex/{number}"))),
            is_done: false,
        }))
    }
}

struct MutexWorker<'a> {
    test: &'a Mutexes,
    random: Random,
    is_done: bool,
}

impl Worker for MutexWorker<'_> {
    fn event(&mut self, _number: u64, _counts: &mut Counts) -> Result<Next, String> {
        if self.is_done {
            return Ok(Next::NoMore);
        }
        self.is_done = true;
        let Mutexes {
            mutexes,
            locks,
            loops,
            global,
            ..
        } = self.test;
        for _ in 0..*locks {
            let mutex = &mutexes[self.random.below(mutexes.len() as u64) as usize];
            for _ in 0..*loops {
                // Keeps the loop, and nothing else; a fence for the compiler would not.
                // SAFETY: there is no instruction.
                unsafe { std::arch::asm!("", options(nostack, preserves_flags)) };
            }
            let held = mutex.lock().unwrap_or_else(PoisonError::into_inner);
            // Two mutexes may be held at a time, so the sum itself is of no worth, as in sysbench.
            global.store(global.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            drop(held);
        }
        Ok(Next::Done)
    }
}

/// Repeatedly takes one of a few locks and yields while holding it.
#[derive(Debug)]
pub struct Threads {
    yields: u32,
    locks: Vec<Mutex<()>>,
}

impl Threads {
    /// An event locks and yields `yields` times, on one of `locks` locks; at least one.
    #[must_use]
    pub fn new(yields: u32, locks: u32) -> Self {
        Threads {
            yields,
            locks: (0..locks.max(1)).map(|_| Mutex::new(())).collect(),
        }
    }
}

impl Machine for Threads {
    fn worker(&self, _number: u32) -> Result<Box<dyn Worker + '_>, String> {
        Ok(Box::new(self))
    }
}

impl Worker for &Threads {
    fn event(&mut self, number: u64, _counts: &mut Counts) -> Result<Next, String> {
        let lock = &self.locks[(number % self.locks.len() as u64) as usize];
        for _ in 0..self.yields {
            let held = lock.lock().unwrap_or_else(PoisonError::into_inner);
            yield_now();
            drop(held);
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_one_event_with_all_locks() {
        let test = Mutexes::new(16, 500, 3, 1);
        let mut worker = test.worker(0).unwrap();
        let mut counts = Counts::default();
        assert_eq!(worker.event(0, &mut counts), Ok(Next::Done));
        assert_eq!(worker.event(1, &mut counts), Ok(Next::NoMore));
        assert_eq!(test.global.load(Ordering::Relaxed), 500);
    }

    /// The compiler once took the loops away, and a run of a second lasted for less than a millisecond.
    #[test]
    fn empty_loops_take_their_time() {
        let test = Mutexes::new(1, 2, 20_000_000, 1);
        let began = std::time::Instant::now();
        let mut worker = test.worker(0).unwrap();
        assert_eq!(worker.event(0, &mut Counts::default()), Ok(Next::Done));
        // No processor does ten of them in a nanosecond.
        assert!(began.elapsed() > std::time::Duration::from_millis(4));
    }
}
