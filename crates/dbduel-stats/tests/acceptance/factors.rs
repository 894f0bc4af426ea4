//! Attribution with noise: bias, error rate, and the closure test.

use dbduel_stats::factors::{Attribution, Design, attribute};
use dbduel_stats::random::RandomStream;

const MAIN: [f64; 3] = [0.12, 0.05, -0.03];
const PAIR: f64 = 0.06;

/// Several settings of which three matter, the first two with an interaction; `triple` adds a term of all three.
fn truth(on: &[bool], triple: f64) -> f64 {
    let single: f64 = MAIN
        .iter()
        .zip(on)
        .map(|(value, on)| if *on { *value } else { 0.0 })
        .sum();
    single
        + if on[0] && on[1] { PAIR } else { 0.0 }
        + if on[0] && on[1] && on[2] { triple } else { 0.0 }
}

fn measure(settings: usize, runs: usize, noise: f64, triple: f64, seed: u64) -> Attribution {
    let mut random = RandomStream::new(seed, 80);
    let design = Design::new(settings).unwrap();
    let responses: Vec<Vec<f64>> = design
        .rows()
        .iter()
        .map(|row| {
            (0..runs)
                .map(|_| truth(row, triple) + noise * random.normal())
                .collect()
        })
        .collect();
    attribute(&design, &responses, 0.05).unwrap()
}

#[test]
fn effects_are_unbiased_and_null_settings_rarely_accused() {
    // Half of the interaction goes to each partner.
    let shapley = [0.15, 0.08, -0.03, 0.0, 0.0, 0.0, 0.0];
    let mut sums = [0.0; 7];
    let (mut accused, mut squares) = (0, 0.0);
    for seed in 0..1000 {
        let found = measure(7, 6, 0.05, 0.0, seed);
        for (sum, effect) in sums.iter_mut().zip(&found.effects) {
            *sum += effect.estimate.value;
        }
        squares += (found.effects[6].estimate.value).powi(2);
        accused += usize::from(
            found.effects[3..]
                .iter()
                .any(|effect| effect.p_value < 0.05),
        );
    }
    for (sum, expected) in sums.iter().zip(shapley) {
        assert!((sum / 1000.0 - expected).abs() < 0.002, "{sums:?}");
    }
    assert!(accused <= 73, "{accused}");
    let formula = 2.0 * 0.05 / 96_f64.sqrt();
    assert!(
        ((squares / 1000.0).sqrt() / formula - 1.0).abs() < 0.07,
        "{squares}"
    );
}

#[test]
fn a_three_way_interaction_opens_the_closure_gap() {
    let flagged = |triple: f64| {
        (0..200)
            .filter(|seed| {
                // The gap's standard error is 0.3 %, from the effects and the direct difference alike.
                let found = measure(8, 8, 0.005, triple, *seed);
                let mut random = RandomStream::new(*seed, 81);
                let direct = truth(&[true; 8], triple) + 0.002 * random.normal();
                !found.closure_gap(direct, 0.002, 0.05).contains(0.0)
            })
            .count()
    };
    let found = flagged(0.12);
    assert!(found >= 160, "{found}");
    // 99.9 % point of 200 trials at 5 %.
    assert!(flagged(0.0) <= 21);
}

/// The limit stated in the documentation: with all columns in use a triple can pass for a single.
#[test]
fn a_three_way_interaction_can_hide_in_a_fourth_setting() {
    let found = measure(7, 2, 0.0, 0.12, 0);
    assert!((found.effects[4].estimate.value - 0.03).abs() < 1e-12);
    assert!(
        found
            .closure_gap(truth(&[true; 7], 0.12), 0.0, 0.05)
            .value
            .abs()
            < 1e-12
    );
}

/// Control: switching the settings on one by one credits an interaction to whoever comes last.
#[test]
fn ladders_depend_on_their_order() {
    let step = |before: &[usize], setting: usize| {
        let on = |with: bool| {
            (0..7)
                .map(|i| before.contains(&i) || (with && i == setting))
                .collect::<Vec<bool>>()
        };
        truth(&on(true), 0.0) - truth(&on(false), 0.0)
    };
    assert!((step(&[1], 0) - step(&[], 0)).abs() > 0.05);
}
