//! Numbers that look random and never repeat.
//!
//! The permutation of sysbench: quadratic residues modulo a prime just below 2^32, twice. Knows no
//! generator: the n-th number is a function of n.

/// The largest prime below 2^32 that is 3 modulo 4.
const PRIME: u64 = 4_294_967_291;
const OFFSET: u32 = 0x4679_0905;
const MASK: u32 = 0x5bf0_3635;

/// The n-th number: every n gives another one.
pub(crate) fn unique(n: u32) -> u32 {
    permute(permute(n).wrapping_add(OFFSET) ^ MASK)
}

/// Squares modulo the prime are distinct below its half; the upper half is mirrored. The five numbers
/// from the prime on stay where they are.
fn permute(x: u32) -> u32 {
    let x = u64::from(x);
    if x >= PRIME {
        return x as u32;
    }
    let residue = x * x % PRIME;
    if x <= PRIME / 2 {
        residue as u32
    } else {
        (PRIME - residue) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_do_not_repeat() {
        let starts = [0, 1 << 30, (PRIME / 2) as u32 - 50_000, u32::MAX - 100_000];
        let numbers: Vec<u32> = starts
            .iter()
            .flat_map(|start| (0..100_000).map(move |n| unique(start + n)))
            .collect();
        assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), numbers.len());
    }

    #[test]
    fn neighbours_lie_far_apart() {
        let near = (0..10_000)
            .filter(|&n| unique(n).abs_diff(unique(n + 1)) < 1 << 20)
            .count();
        assert!(near < 20, "{near} of 10000 neighbours are close");
    }
}
