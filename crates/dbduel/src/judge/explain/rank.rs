//! Which costs to speak of first.

use super::relevance::telling;
use super::{Cost, Moved};

/// How much a detail weighs against a main resource that moved as far.
const DETAIL: f64 = 0.2;
/// Ratios beyond this are all alike: a hundred times nothing is still little.
const FAR: f64 = 8.0;

/// Indices of what moved, the most telling first; of main resources that are the same; and of main
/// resources that are unclear. What can tell nothing of a difference is in none of them.
pub fn rank(costs: &[Cost]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let is_telling = telling(costs);
    let with = |moved: &[Moved]| -> Vec<usize> {
        (0..costs.len())
            .filter(|&index| is_telling[index] && moved.contains(&costs[index].moved))
            .collect()
    };
    let is_main = |index: &usize| costs[*index].is_main;
    let mut moved = with(&[Moved::Less, Moved::More]);
    moved.sort_by(|one, other| weight(&costs[*other]).total_cmp(&weight(&costs[*one])));
    let same = with(&[Moved::Same]).into_iter().filter(is_main).collect();
    let unclear = with(&[Moved::Unclear])
        .into_iter()
        .filter(is_main)
        .collect();
    (moved, same, unclear)
}

fn weight(cost: &Cost) -> f64 {
    let distance = cost
        .ratio
        .value()
        .map_or(FAR.ln(), |ratio| ratio.ln().abs().min(FAR.ln()));
    distance * if cost.is_main { 1.0 } else { DETAIL }
}
