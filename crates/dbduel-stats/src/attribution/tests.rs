use super::*;
use crate::random::RandomStream;

/// Factors of every kind and size of design.
fn sizes() -> impl Iterator<Item = usize> {
    1..=FACTORS_MAX
}

#[test]
fn runs_are_as_many_as_the_tables_say() {
    let runs = |factors| FactorialDesign::new(factors).unwrap().runs().len();
    let expected = [
        (2, 4),
        (3, 8),
        (4, 16),
        (5, 16),
        (7, 16),
        (8, 24),
        (11, 24),
        (12, 32),
        (15, 32),
        (16, 40),
        (23, 48),
    ];
    for (factors, count) in expected {
        assert_eq!(runs(factors), count, "{factors}");
    }
    assert!(FactorialDesign::new(0).is_err() && FactorialDesign::new(24).is_err());
}

#[test]
fn main_effects_are_clear_of_each_other_and_of_interactions_of_two() {
    for factors in sizes() {
        let design = FactorialDesign::new(factors).unwrap();
        assert_eq!(design.runs()[0], vec![false; factors]);
        assert_eq!(design.runs()[1], vec![true; factors]);
        for one in 0..factors {
            let weights = design.main_effect(one);
            assert!(weights.iter().sum::<f64>().abs() < 1e-12);
            for interaction in design.interactions() {
                assert!(
                    dot(&weights, &interaction.weights).abs() < 1e-12,
                    "{factors}"
                );
            }
        }
        let pairs: usize = design
            .interactions()
            .iter()
            .map(|one| one.pairs.len())
            .sum();
        assert_eq!(pairs, factors * (factors - 1) / 2);
    }
}

#[test]
fn four_factors_have_all_interactions_clear_and_five_share_one_contrast_of_two_pairs() {
    let clear = FactorialDesign::new(4).unwrap().interactions();
    assert!(clear.iter().all(|one| one.pairs.len() == 1 && one.is_clear));
    let shared = FactorialDesign::new(5).unwrap().interactions();
    assert!(shared.len() < 10 && shared.iter().all(|one| one.is_clear));
    // In the matrix of twelve rows every interaction has parts of others in it.
    let partly = FactorialDesign::new(8).unwrap().interactions();
    assert!(partly.len() == 28 && partly.iter().all(|one| !one.is_clear));
}

/// Every weight has its counterpart, the condition for the exactness of the tests.
#[test]
fn every_contrast_is_its_own_negative_with_runs_exchanged() {
    for factors in sizes() {
        let design = FactorialDesign::new(factors).unwrap();
        let mut contrasts: Vec<Vec<f64>> =
            (0..factors).map(|one| design.main_effect(one)).collect();
        contrasts.extend(design.interactions().into_iter().map(|one| one.weights));
        contrasts.extend(design.gap());
        let listed = design.sum_of(0..factors.div_ceil(2));
        let whole = design.whole();
        contrasts.push(
            listed
                .iter()
                .zip(&whole)
                .map(|(part, all)| part - 0.7 * all)
                .collect(),
        );
        contrasts.push(whole);
        for weights in contrasts {
            let mut sorted = weights.clone();
            sorted.sort_by(f64::total_cmp);
            let mut negated: Vec<f64> = weights.iter().map(|weight| -weight).collect();
            negated.sort_by(f64::total_cmp);
            let pairs = sorted.iter().zip(&negated);
            assert!(
                pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-12),
                "{factors}: {weights:?}"
            );
        }
    }
}

/// Shapley values by brute force over all orders of adding factors, from the marginal contributions of subsets.
fn shapley(factors: usize, value: impl Fn(&[bool]) -> f64) -> Vec<f64> {
    let factorial = |n: usize| (1..=n).map(|i| i as f64).product::<f64>();
    let of = |factor: usize| {
        let subsets = combinations(factors).into_iter().filter(|run| !run[factor]);
        let marginal = subsets.map(|mut run| {
            let size = run.iter().filter(|is_in| **is_in).count();
            let weight = factorial(size) * factorial(factors - size - 1) / factorial(factors);
            let without = value(&run);
            run[factor] = true;
            weight * (value(&run) - without)
        });
        marginal.sum()
    };
    (0..factors).map(of).collect()
}

#[test]
fn main_effects_are_shapley_values_where_two_interact_and_no_more() {
    for factors in 2..=7 {
        let mut random = RandomStream::new(factors as u64, 9);
        let own: Vec<f64> = (0..factors).map(|_| random.normal()).collect();
        let together: Vec<Vec<f64>> = (0..factors)
            .map(|_| (0..factors).map(|_| random.normal()).collect())
            .collect();
        let value = |run: &[bool]| {
            let mut sum = 0.0;
            for one in (0..factors).filter(|one| run[*one]) {
                sum += own[one];
                sum += (0..one)
                    .filter(|other| run[*other])
                    .map(|other| together[one][other])
                    .sum::<f64>();
            }
            sum
        };
        let design = FactorialDesign::new(factors).unwrap();
        let values: Vec<f64> = design.runs().iter().map(|run| value(run)).collect();
        for (factor, expected) in shapley(factors, value).into_iter().enumerate() {
            let found = contrast(&design.main_effect(factor), &values);
            assert!(
                (found - expected).abs() < 1e-12,
                "{factors}: {found} {expected}"
            );
        }
        let gap = design
            .gap()
            .map_or(0.0, |weights| contrast(&weights, &values));
        assert!(gap.abs() < 1e-12);
        for interaction in design.interactions().iter().filter(|one| one.is_clear) {
            let expected: f64 = interaction
                .pairs
                .iter()
                .map(|([a, b], is_negative)| {
                    together[*b][*a] * if *is_negative { -1.0 } else { 1.0 }
                })
                .sum();
            assert!((contrast(&interaction.weights, &values) - expected).abs() < 1e-12);
        }
    }
}

#[test]
fn an_interaction_of_three_shows_in_the_gap() {
    let design = FactorialDesign::new(3).unwrap();
    let value = |run: &Vec<bool>| {
        if run.iter().all(|is_second| *is_second) {
            1.0
        } else {
            0.0
        }
    };
    let values: Vec<f64> = design.runs().iter().map(value).collect();
    assert!((contrast(&design.gap().unwrap(), &values) - 0.25).abs() < 1e-12);
}

#[test]
fn runs_that_are_no_design_are_refused() {
    let design = FactorialDesign::new(3).unwrap();
    let without_one = design.runs()[1..].to_vec();
    let twice = [design.runs(), &design.runs()[..1]].concat();
    let together = vec![vec![false; 2], vec![true; 2]];
    let ragged = vec![vec![false], vec![true, true]];
    for runs in [without_one, twice, together, ragged, Vec::new()] {
        assert!(
            FactorialDesign::from_runs(runs.clone()).is_err(),
            "{runs:?}"
        );
    }
    assert_eq!(
        FactorialDesign::from_runs(design.runs().to_vec()),
        Ok(design)
    );
}

/// The variance of an effect times the slices it takes is that of a duel of two, for any number of factors: leaving
/// out runs would not make a design measure the other effects sooner.
#[test]
fn an_effect_costs_as_many_slices_in_every_design() {
    for factors in sizes() {
        let design = FactorialDesign::new(factors).unwrap();
        for factor in 0..factors {
            let weights = design.main_effect(factor);
            let cost = dot(&weights, &weights) * weights.len() as f64;
            assert!((cost - 4.0).abs() < 1e-12, "{factors}: {cost}");
        }
    }
}

/// Why settled factors are not dropped from a foldover: without the runs at one of their levels it is no design, and
/// two factors that change together put two other pairs of factors into one column each.
#[test]
fn a_foldover_of_seven_factors_loses_its_balance_without_some_of_its_runs() {
    let design = FactorialDesign::new(7).unwrap();
    let runs = |is_kept: &dyn Fn(&[bool]) -> bool| {
        let runs = design.runs().iter();
        let kept = runs.filter(|run| is_kept(run.as_slice()));
        kept.cloned().collect::<Vec<Vec<bool>>>()
    };
    for one in 0..7 {
        assert!(FactorialDesign::from_runs(runs(&|run| !run[one])).is_err());
        for other in 0..one {
            let tied = runs(&|run| run[one] == run[other]);
            assert_eq!(tied.len(), 8);
            let is_alike = |[a, b]: [usize; 2]| {
                let same = tied.iter().filter(|run| run[a] == run[b]).count();
                same == 0 || same == tied.len()
            };
            let others: Vec<usize> = (0..7).filter(|at| *at != one && *at != other).collect();
            let pairs = others
                .iter()
                .flat_map(|a| others.iter().map(move |b| [*a, *b]));
            let alike = pairs.filter(|[a, b]| a < b && is_alike([*a, *b])).count();
            assert_eq!(alike, 2, "{one} {other}");
        }
    }
}
