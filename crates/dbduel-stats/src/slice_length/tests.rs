//! Choices from series of known spectra.

use super::*;
use crate::random::RandomStream;

const RULE: SliceRule = SliceRule {
    tick_s: 0.05,
    unmeasured_s: 0.05,
    floor_s: 0.05,
    cap_s: 4.0,
    contenders: 2,
};

/// Four minutes of ticks: white scatter, and a random walk of the logarithm by a tick.
fn series(white: f64, walk: f64) -> Vec<Vec<f64>> {
    let of_contender = |stream: u64| {
        let mut random = RandomStream::new(stream, 14);
        let mut level = 0.0;
        let tick = |_| {
            level += walk * random.normal();
            1000.0 * f64::exp(level + white * random.normal())
        };
        (0..2400).map(tick).collect()
    };
    (0..2).map(of_contender).collect()
}

fn widths(choice: &SliceChoice) -> Vec<f64> {
    let candidates = choice.candidates.iter();
    candidates.filter_map(|one| one.half_width).collect()
}

#[test]
fn white_noise_asks_for_long_slices_by_their_gaps_alone() {
    let choice = choose_slice_length(&series(0.2, 0.0), &RULE).unwrap();
    assert!(choice.length_s >= 0.5, "{choice:?}");
    // A slice of 0.05 s with a gap of as much takes twice the time, and of 0.25 s 1.2 times.
    let (shortest, quarter) = (choice.candidates[0], choice.candidates[3]);
    assert_eq!(quarter.length_s, 0.25);
    let ratio = shortest.half_width.unwrap() / quarter.half_width.unwrap();
    assert!(
        (ratio / (2.0_f64 / 1.2).sqrt() - 1.0).abs() < 0.1,
        "{ratio}"
    );
    // A tick scatters by 20 %, four slices of a tick so too.
    assert!((shortest.block_sd.unwrap() / 0.2 - 1.0).abs() < 0.1);
}

#[test]
fn a_random_walk_asks_for_the_shortest() {
    let choice = choose_slice_length(&series(0.0, 0.02), &RULE).unwrap();
    assert_eq!(
        (choice.length_s, choice.reason),
        (0.05, SliceReason::Variance)
    );
    assert!(widths(&choice).is_sorted());
    let floor = SliceRule {
        floor_s: 0.6,
        ..RULE
    };
    let choice = choose_slice_length(&series(0.0, 0.02), &floor).unwrap();
    assert_eq!((choice.length_s, choice.reason), (0.6, SliceReason::Floor));
}

#[test]
fn scatter_on_a_walk_asks_for_a_length_between() {
    let choice = choose_slice_length(&series(0.3, 0.02), &RULE).unwrap();
    assert!((0.25..=1.0).contains(&choice.length_s), "{choice:?}");
    assert_eq!(choice.reason, SliceReason::Variance);
    let capped = SliceRule { cap_s: 0.1, ..RULE };
    let choice = choose_slice_length(&series(0.3, 0.02), &capped).unwrap();
    assert_eq!((choice.length_s, choice.reason), (0.1, SliceReason::Cap));
}

#[test]
fn blocks_of_more_contenders_span_more_time_and_scatter_more() {
    let four = SliceRule {
        contenders: 4,
        ..RULE
    };
    let series = series(0.05, 0.02);
    let choices = [RULE, four].map(|rule| choose_slice_length(&series, &rule).unwrap());
    let [two, four] = choices.each_ref().map(|choice| choice.candidates[3]);
    assert!(four.block_sd.unwrap() > 1.2 * two.block_sd.unwrap());
    assert!(choices[1].length_s <= choices[0].length_s);
}

#[test]
fn lengths_with_empty_slices_are_not_chosen() {
    // Ten transactions a second: most ticks have none.
    let sparse: Vec<f64> = (0..2400)
        .map(|tick| f64::from(tick % 2 * (tick / 2 % 2)))
        .collect();
    let choice = choose_slice_length(&[sparse], &RULE).unwrap();
    assert!(choice.candidates[0].empty_slices > 0 && choice.candidates[0].block_sd.is_none());
    assert!(
        choice.length_s >= 0.15
            && choice
                .candidates
                .iter()
                .all(|one| one.length_s < choice.length_s || one.empty_slices == 0)
    );
    let dead = choose_slice_length(&[vec![0.0; 2400]], &RULE).unwrap();
    assert_eq!(dead.reason, SliceReason::TooLittleData);
}

#[test]
fn short_series_choose_the_floor_and_say_so() {
    for series in [vec![], vec![vec![]], vec![vec![1.0; 50]]] {
        let choice = choose_slice_length(&series, &RULE).unwrap();
        assert_eq!(
            (choice.length_s, choice.reason),
            (0.05, SliceReason::TooLittleData)
        );
    }
}

#[test]
fn rules_that_no_slice_can_follow_are_refused() {
    for rule in [
        SliceRule {
            tick_s: 0.0,
            ..RULE
        },
        SliceRule {
            tick_s: f64::NAN,
            ..RULE
        },
        SliceRule {
            unmeasured_s: -1.0,
            ..RULE
        },
        SliceRule {
            floor_s: 0.01,
            ..RULE
        },
        SliceRule {
            cap_s: 0.01,
            ..RULE
        },
        SliceRule {
            contenders: 1,
            ..RULE
        },
    ] {
        assert!(
            choose_slice_length(&[vec![1.0; 100]], &rule).is_err(),
            "{rule:?}"
        );
    }
    for bad in [-1.0, f64::NAN] {
        assert!(choose_slice_length(&[vec![1.0, bad]], &RULE).is_err());
    }
}
