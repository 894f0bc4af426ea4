//! Number of intervals after a switch that still show the switch: averaging over many slices makes the transient
//! visible that one slice hides (Welch 1983).

use crate::error::{StatsError, all_finite, at_least, open_fraction};
use crate::moments::{mean, t_half_width, variance};

/// How many intervals after a switch throughput is shown to differ from its later level, from slices of one contender that each
/// follow a switch: windows of one, one, two, four intervals and so on are compared with the last half of the slice, by
/// Student's t over the slices at `alpha` each, until one does not differ or a third of the shortest slice is reached.
///
/// A transient that is small beside the scatter of the slices stays unseen, and one that ends later than a third of the
/// shortest slice is not seen to its end. Slices that completed nothing in their last half are passed over.
///
/// # Errors
/// [`StatsError::TooFew`] below three usable slices, or when the shortest one has fewer than six intervals;
/// [`StatsError::OutOfRange`] for a NaN, an infinity or a number too large to compute with;
/// [`StatsError::Parameter`] for `alpha` outside (0, 1).
pub fn guard_length(slices: &[Vec<f64>], alpha: f64) -> Result<usize, StatsError> {
    open_fraction("alpha", alpha)?;
    let shortest = slices.iter().map(Vec::len).min().unwrap_or(0);
    at_least("intervals of the shortest slice", 6, shortest)?;
    for slice in slices {
        all_finite("slice", slice)?;
    }
    let settled = |slice: &[f64]| mean(&slice[slice.len() / 2..]);
    let usable: Vec<&Vec<f64>> = slices.iter().filter(|slice| settled(slice) > 0.0).collect();
    at_least("slices with completions", 3, usable.len())?;
    let n = usable.len() as f64;
    let limit = shortest / 3;
    let mut shown = 0;
    while shown < limit {
        let window = shown..(shown + shown.max(1)).min(limit);
        let off: Vec<f64> = usable
            .iter()
            .map(|slice| mean(&slice[window.clone()]) / settled(slice) - 1.0)
            .collect();
        let error = (variance(&off) / n).sqrt();
        if mean(&off).abs() <= t_half_width(n - 1.0, alpha, error) {
            break;
        }
        shown = window.end;
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    const ALPHA: f64 = 0.02;

    #[test]
    fn a_slow_start_is_measured_and_bounded() {
        let slices = vec![[vec![10.0, 40.0, 80.0], vec![100.0; 15]].concat(); 4];
        assert_eq!(guard_length(&slices, ALPHA).unwrap(), 4);
        let slow = vec![
            (0..15)
                .map(|s| 100.0 - 90.0 * (-f64::from(s) / 5.0).exp())
                .collect::<Vec<_>>();
            4
        ];
        assert_eq!(guard_length(&slow, ALPHA).unwrap(), 5);
        assert_eq!(guard_length(&vec![vec![7.0; 15]; 3], ALPHA).unwrap(), 0);
    }

    fn noisy(seed: u64, first: f64) -> Vec<Vec<f64>> {
        let mut random = RandomStream::new(seed, 8);
        let slices = (0..8).map(|_| {
            let tick = |tick: usize| match tick {
                0..3 => first,
                _ => 100.0,
            };
            (0..30)
                .map(|at| tick(at) * (1.0 + 0.2 * random.normal()))
                .collect()
        });
        slices.collect()
    }

    #[test]
    fn noise_is_seldom_taken_for_a_transient_and_a_large_one_is_found_in_it() {
        let runs = 0..200;
        let found = |first: f64| {
            let guards = runs
                .clone()
                .map(|seed| guard_length(&noisy(seed, first), ALPHA).unwrap());
            guards.filter(|guard| *guard > 0).count()
        };
        let (without, with) = (found(100.0), found(30.0));
        assert!(without <= 12, "{without} of 200");
        assert!(with >= 190, "{with} of 200");
    }

    #[test]
    fn slices_of_a_dead_server_are_refused() {
        assert!(guard_length(&vec![vec![0.0; 15]; 3], ALPHA).is_err());
        assert!(guard_length(&[], ALPHA).is_err());
        assert!(guard_length(&[vec![1.0; 5]], ALPHA).is_err());
    }
}
