//! How many intervals after a switch still carry the switch: averaging over many slices makes the transient visible
//! that one slice hides (Welch 1983).

use crate::error::{StatsError, all_finite, at_least};
use crate::moments::mean;
use crate::steady::mser;

/// Guard length, in intervals, from the series of one contender's slices: each slice is divided by the
/// mean of its last half, the slices are averaged position by position, and MSER finds the end of the
/// transient. At most a third of the shortest slice, but never below `least`.
///
/// Estimate it once, from slices that are not part of the comparison, and then keep it: changing it
/// while measuring would be choosing data by outcome. Slices that completed nothing in their last half
/// say nothing about the transient and are passed over.
///
/// # Errors
/// [`StatsError::TooFew`] without a usable slice, or when the shortest one has fewer than six intervals;
/// [`StatsError::OutOfRange`] for a NaN, an infinity or a number too large to compute with.
pub fn guard_length(slices: &[Vec<f64>], least: usize) -> Result<usize, StatsError> {
    let shortest = slices.iter().map(Vec::len).min().unwrap_or(0);
    at_least("intervals of the shortest slice", 6, shortest)?;
    for slice in slices {
        all_finite("slice", slice)?;
    }
    let scaled: Vec<(&[f64], f64)> = slices
        .iter()
        .map(|slice| (slice.as_slice(), mean(&slice[slice.len() / 2..])))
        .filter(|(_, settled)| *settled > 0.0)
        .collect();
    at_least("slices with completions", 1, scaled.len())?;
    let profile: Vec<f64> = (0..shortest)
        .map(|position| {
            mean(
                &scaled
                    .iter()
                    .map(|(slice, settled)| slice[position] / settled)
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    let transient = mser(&profile).unwrap_or(0);
    Ok(transient.min(shortest / 3).max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_start_is_measured_and_bounded() {
        let slices = vec![[vec![10.0, 40.0, 80.0], vec![100.0; 15]].concat(); 4];
        assert_eq!(guard_length(&slices, 2).unwrap(), 3);
        let slow = vec![
            (0..15)
                .map(|s| 100.0 - 90.0 * (-f64::from(s) / 5.0).exp())
                .collect::<Vec<_>>();
            4
        ];
        assert_eq!(guard_length(&slow, 2).unwrap(), 5);
        assert_eq!(guard_length(&vec![vec![7.0; 15]; 3], 2).unwrap(), 2);
    }

    #[test]
    fn slices_of_a_dead_server_are_refused() {
        assert!(guard_length(&vec![vec![0.0; 15]; 3], 2).is_err());
        assert!(guard_length(&[], 2).is_err());
        assert!(guard_length(&[vec![1.0; 5]], 2).is_err());
    }
}
