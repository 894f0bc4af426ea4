//! Looks for primes by trial division.

use std::hint::black_box;

use super::{Machine, Next, Worker};
use crate::bridge::ledger::Counts;

/// The test: an event looks at every number from 3 to below `max_prime`.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    /// Upper limit, exclusive.
    pub max_prime: u64,
}

impl Machine for Cpu {
    fn worker(&self, _number: u32) -> Result<Box<dyn Worker + '_>, String> {
        Ok(Box::new(*self))
    }
}

impl Worker for Cpu {
    fn event(&mut self, _number: u64, _counts: &mut Counts) -> Result<Next, String> {
        black_box(primes_below(black_box(self.max_prime)));
        Ok(Next::Done)
    }
}

/// The number of odd primes below `max`. Every number is divided by 2, 3, 4, … up to its root, the even ones too:
/// another sieve would be another test. The 64-bit division is what it measures.
fn primes_below(max: u64) -> u64 {
    let mut primes = 0;
    for candidate in 3..max {
        let root = (candidate as f64).sqrt();
        let mut divisor = 2;
        while divisor as f64 <= root {
            if candidate.is_multiple_of(divisor) {
                break;
            }
            divisor += 1;
        }
        if divisor as f64 > root {
            primes += 1;
        }
    }
    primes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_is_not_counted() {
        assert_eq!(primes_below(3), 0);
        assert_eq!(primes_below(4), 1);
        assert_eq!(primes_below(10_000), 1_228);
    }
}
