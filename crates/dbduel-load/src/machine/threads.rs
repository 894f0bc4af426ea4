//! Takes one of a few locks and gives the processor away while holding it, again and again.

use std::sync::{Mutex, PoisonError};
use std::thread::yield_now;

use super::{Machine, Next, Worker};
use crate::run::Counts;

/// The test.
#[derive(Debug)]
pub struct Threads {
    yields: u32,
    locks: Vec<Mutex<()>>,
}

impl Threads {
    /// An event locks and yields so many times, on one of so many locks; at least one.
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
