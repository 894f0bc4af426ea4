//! Looks for primes by trial division.

use std::hint::black_box;

use dbduel_client::run::Counts;

use super::{Machine, Next, Worker};

/// The test: an event checks every number from 3 to below `max_prime`.
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

/// The number of odd primes below `max`. Every number, even ones too, is divided by 2, 3, 4, … up to its root: another
/// algorithm would be another test. It measures the 64-bit division.
fn primes_below(max: u64) -> u64 {
    let mut primes = 0;
    for candidate in 3..max {
        let root = (candidate as f64).sqrt();
        let mut divisor = 2;
        while divisor as f64 <= root {
            if remainder(candidate, divisor) == 0 {
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

/// The remainder of a division of 64-bit numbers, with the processor's instruction for them. The compiler would check
/// whether 32 bits are enough and then use the shorter division, which is half the work; sysbench's compiler does not.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn remainder(number: u64, divisor: u64) -> u64 {
    assert!(divisor != 0, "a division by zero");
    let remainder;
    // SAFETY: the divisor is not 0, and with an upper half of 0 the quotient fits; nothing else is touched.
    unsafe {
        std::arch::asm!(
            "div {divisor}",
            divisor = in(reg) divisor,
            inlateout("rax") number => _,
            inlateout("rdx") 0_u64 => remainder,
            options(pure, nomem, nostack),
        );
    }
    remainder
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn remainder(number: u64, divisor: u64) -> u64 {
    number % divisor
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
