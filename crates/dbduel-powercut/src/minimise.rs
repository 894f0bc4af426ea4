//! The smallest part that still shows a fault: delta debugging (Zeller and Hildebrandt, 2002).

/// Reduces `items` to a subset that still fails and from which no single part of the last division can be removed. The
/// empty set is tried first: a fault may need no item. `fails` is called at most `tries` times; returns the subset and
/// whether it is known to be minimal (no single item can be removed).
///
/// # Errors
/// Those of `fails`.
pub fn minimise<T: Clone, E>(
    items: &[T],
    tries: u32,
    mut fails: impl FnMut(&[T]) -> Result<bool, E>,
) -> Result<(Vec<T>, bool), E> {
    let mut left = items.to_vec();
    let mut parts = 2;
    let mut tries = tries;
    if left.is_empty() {
        return Ok((left, true));
    }
    if tries == 0 {
        return Ok((left, false));
    }
    tries -= 1;
    if fails(&[])? {
        return Ok((Vec::new(), true));
    }
    while left.len() > 1 {
        let size = left.len().div_ceil(parts);
        let chunks: Vec<Vec<T>> = left.chunks(size).map(<[T]>::to_vec).collect();
        let mut smaller = None;
        // Parts alone first: a fault that needs one item is found in logarithmic time.
        for alone in [true, false] {
            for number in 0..chunks.len() {
                let candidate: Vec<T> = match alone {
                    true => chunks[number].clone(),
                    false if chunks.len() == 2 => continue,
                    false => {
                        let others = chunks.iter().enumerate();
                        let others = others.filter(|(other, _)| *other != number);
                        others.flat_map(|(_, chunk)| chunk.clone()).collect()
                    }
                };
                if tries == 0 {
                    return Ok((left, false));
                }
                tries -= 1;
                if fails(&candidate)? {
                    smaller = Some((candidate, alone));
                    break;
                }
            }
            if smaller.is_some() {
                break;
            }
        }
        match smaller {
            Some((candidate, alone)) => {
                left = candidate;
                parts = if alone { 2 } else { (parts - 1).max(2) };
            }
            None if size == 1 => return Ok((left, true)),
            None => parts = (parts * 2).min(left.len()),
        }
    }
    Ok((left, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn found(needed: &[u32], tries: u32) -> (Vec<u32>, bool, u32) {
        let all: Vec<u32> = (0..200).collect();
        let mut calls = 0;
        let (left, minimal) = minimise(&all, tries, |items| {
            calls += 1;
            Ok::<_, Infallible>(needed.iter().all(|item| items.contains(item)))
        })
        .unwrap();
        (left, minimal, calls)
    }

    #[test]
    fn one_item_is_found_in_logarithmic_time_and_several_are_found_too() {
        let (left, minimal, calls) = found(&[137], 100);
        assert_eq!((left, minimal), (vec![137], true));
        assert!(calls <= 20, "{calls}");
        let (left, minimal, _) = found(&[3, 90, 199], 1000);
        assert_eq!((left, minimal), (vec![3, 90, 199], true));
    }

    #[test]
    fn a_fault_that_needs_no_item_is_found_at_once() {
        assert_eq!(found(&[], 100), (Vec::new(), true, 1));
        let (left, minimal, calls) = found(&[], 0);
        assert_eq!((left.len(), minimal, calls), (200, false, 0));
    }

    #[test]
    fn a_search_that_may_not_go_on_says_so_and_keeps_what_fails() {
        let (left, minimal, calls) = found(&[3, 90, 199], 10);
        assert!(!minimal && calls == 10);
        assert!([3, 90, 199].iter().all(|item| left.contains(item)));
    }
}
