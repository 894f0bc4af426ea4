//! The rank scan of one segment.

use super::{CONFIDENCE, HistoryRule, SIDE_MIN};
use crate::moments::as_count;
use crate::random::RandomStream;

/// A significant split of one segment, positions counted from its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Split {
    pub(super) at: usize,
    pub(super) between: (usize, usize),
    pub(super) p_value: f64,
}

/// Best split of one segment, if significant; short and constant segments have none.
pub(super) fn scan(segment: &[f64], rule: &HistoryRule, start: usize) -> Option<Split> {
    if segment.len() < 2 * SIDE_MIN {
        return None;
    }
    let mut ranks = centred_ranks(segment);
    if ranks.iter().all(|rank| *rank == 0.0) {
        return None;
    }
    let statistics = statistics(&ranks);
    let (best, observed) = statistics
        .iter()
        .copied()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    // The same segment sees the same permutations however the search came to it.
    let mut random = RandomStream::new(rule.seed, (start as u64) << 32 | segment.len() as u64);
    let mut permuted = Vec::with_capacity(rule.permutations);
    let mut reaching = 0;
    for _ in 0..rule.permutations {
        random.shuffle(&mut ranks);
        let value = self::statistics(&ranks).into_iter().fold(0.0, f64::max);
        reaching += usize::from(value >= observed - 1e-9);
        // No later permutation can make the split significant again.
        if (1 + reaching) as f64 > rule.alpha * (rule.permutations + 1) as f64 {
            return None;
        }
        permuted.push(value);
    }
    permuted.sort_unstable_by(f64::total_cmp);
    let band = permuted[(as_count(permuted.len() as f64 * CONFIDENCE)).min(permuted.len() - 1)];
    let inside: Vec<usize> = (0..statistics.len())
        .filter(|index| statistics[*index] >= band)
        .collect();
    let place = |index: Option<&usize>| SIDE_MIN + index.copied().unwrap_or(best);
    Some(Split {
        at: SIDE_MIN + best,
        between: (place(inside.first()), place(inside.last())),
        p_value: (1 + reaching) as f64 / (rule.permutations + 1) as f64,
    })
}

/// Ranks with ties averaged, minus their mean.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
    let equal = |value: f64| values.iter().filter(|other| **other == value).count() as f64;
    let centre = 0.5 * (values.len() as f64 - 1.0);
    values
        .iter()
        .map(|value| below(*value) + 0.5 * (equal(*value) - 1.0) - centre)
        .collect()
}

/// |difference of mean ranks| · √(τ(n−τ)/n) for every admissible τ. The common scale of the ranks is
/// left out: permutations do not change it.
fn statistics(ranks: &[f64]) -> Vec<f64> {
    let n = ranks.len();
    let mut sum: f64 = ranks[..SIDE_MIN - 1].iter().sum();
    (SIDE_MIN..=n - SIDE_MIN)
        .map(|place| {
            sum += ranks[place - 1];
            let (left, right) = (place as f64, (n - place) as f64);
            // Centred ranks sum to zero, so the right sum is the left one negated.
            sum.abs() * (1.0 / left + 1.0 / right) * (left * right / n as f64).sqrt()
        })
        .collect()
}
