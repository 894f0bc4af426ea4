//! Which of several settings is worth what: two-level designs and their effects.
//!
//! Up to four settings get all their combinations; more get a Plackett–Burman design with its foldover
//! (Plackett & Burman 1946; Box & Wilson 1951). There a setting's effect is free of all two-way
//! interactions, and when nothing beyond these exists it equals the setting's Shapley value, so that
//! the effects add up to the whole difference. It does not know what the settings are.

mod design;

pub use design::Design;

use crate::error::{StatsError, all_finite, at_least, open_fraction};
use crate::estimate::Estimate;
use crate::moments::{mean, median, t_p_value, t_point, variance};

/// One contrast's worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Mean of "on − off" over all combinations of the others; the intervals of all settings hold
    /// together with probability `1 − alpha` (Bonferroni).
    pub estimate: Estimate,
    /// p-value of "worth nothing", adjusted for the number of effects (Holm 1979).
    pub p_value: f64,
}

/// The settings' effects.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// One per setting, in the units of the responses.
    pub effects: Vec<Effect>,
    /// Sum of the effects: what they explain of the difference between all on and all off.
    pub total: f64,
    /// Standard error of one effect.
    pub standard_error: f64,
    /// Degrees of freedom behind it.
    pub degrees: f64,
    /// Contrasts that hold sums of two-way interactions. A small p-value: measure all combinations of
    /// the few largest settings before explaining any single one.
    pub interactions: Vec<Effect>,
}

/// Effects from the responses of every row of the design, each with the same number of independent
/// runs. The error comes from the scatter between runs; without repeated runs from the bulk of small
/// contrasts (Lenth 1989), which holds only when few settings matter.
///
/// # Errors
/// Responses that do not match the design, a value that is not finite, or `alpha` outside (0, 1).
pub fn attribute(
    design: &Design,
    responses: &[Vec<f64>],
    alpha: f64,
) -> Result<Attribution, StatsError> {
    open_fraction("alpha", alpha)?;
    let rows = design.contrasts[0].len();
    if responses.len() != rows {
        return Err(StatsError::Shape {
            what: "responses",
            problem: format!("{} configurations for a design of {rows}", responses.len()),
        });
    }
    let runs = responses[0].len();
    at_least("runs of a configuration", 1, runs)?;
    for response in responses {
        if response.len() != runs {
            return Err(StatsError::Shape {
                what: "responses",
                problem: format!(
                    "{} and {runs} runs; give every configuration the same",
                    response.len()
                ),
            });
        }
        all_finite("responses", response)?;
    }
    let means: Vec<f64> = responses.iter().map(|response| mean(response)).collect();
    let values: Vec<f64> = design
        .contrasts
        .iter()
        .map(|column| {
            2.0 / rows as f64 * column.iter().zip(&means).map(|(x, y)| x * y).sum::<f64>()
        })
        .collect();
    let (standard_error, degrees) = if runs > 1 {
        let within = mean(
            &responses
                .iter()
                .map(|response| variance(response))
                .collect::<Vec<_>>(),
        );
        (
            2.0 * (within / (rows * runs) as f64).sqrt(),
            (rows * (runs - 1)) as f64,
        )
    } else {
        (pseudo_standard_error(&values), values.len() as f64 / 3.0)
    };
    let family = |values: &[f64]| {
        let half = t_point(degrees, alpha / values.len().max(1) as f64) * standard_error;
        let p_values = holm(
            values
                .iter()
                .map(|value| p_value(*value, standard_error, degrees))
                .collect(),
        );
        let effect = |(value, p_value): (&f64, f64)| Effect {
            estimate: Estimate {
                value: *value,
                low: value - half,
                high: value + half,
                n: rows * runs,
            },
            p_value,
        };
        values.iter().zip(p_values).map(effect).collect::<Vec<_>>()
    };
    let main = &values[..design.settings()];
    Ok(Attribution {
        effects: family(main),
        total: main.iter().sum(),
        standard_error,
        degrees,
        interactions: family(&values[design.odd..]),
    })
}

impl Attribution {
    /// What the effects leave unexplained of a directly measured difference between all on and all off,
    /// with its interval. Zero outside the interval tells of interactions of three or more settings.
    /// The reverse does not hold: in some columns an interaction of three looks exactly like the effect
    /// of a fourth setting and leaves no gap, so a surprising effect deserves a comparison of its own.
    pub fn closure_gap(&self, direct: f64, direct_standard_error: f64, alpha: f64) -> Estimate {
        let gap = direct - self.total;
        let settings = self.effects.len() as f64;
        let error = (direct_standard_error.powi(2) + settings * self.standard_error.powi(2)).sqrt();
        let half = t_point(self.degrees, alpha) * error;
        Estimate {
            value: gap,
            low: gap - half,
            high: gap + half,
            n: self.effects.len(),
        }
    }
}

fn p_value(value: f64, standard_error: f64, degrees: f64) -> f64 {
    if value == 0.0 {
        1.0
    } else {
        t_p_value(value / standard_error, degrees)
    }
}

/// Lenth's pseudo standard error of unreplicated contrasts.
fn pseudo_standard_error(contrasts: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = contrasts.iter().map(|contrast| contrast.abs()).collect();
    let initial = 1.5 * median(&mut sizes);
    let mut small: Vec<f64> = sizes
        .into_iter()
        .filter(|size| *size < 2.5 * initial)
        .collect();
    if small.is_empty() {
        0.0
    } else {
        1.5 * median(&mut small)
    }
}

/// Holm's step-down adjustment.
fn holm(p_values: Vec<f64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = p_values;
    let mut largest: f64 = 0.0;
    for (done, index) in order.iter().enumerate() {
        let factor = (order.len() - done) as f64;
        largest = largest.max((factor * adjusted[*index]).min(1.0));
        adjusted[*index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    /// A game with random main effects and two-way interactions.
    struct Game {
        main: Vec<f64>,
        pairs: Vec<Vec<f64>>,
    }

    impl Game {
        fn new(settings: usize, seed: u64) -> Self {
            let mut random = RandomStream::new(seed, 0);
            let main = (0..settings).map(|_| random.normal()).collect();
            let pairs = (0..settings)
                .map(|_| (0..settings).map(|_| random.normal()).collect())
                .collect();
            Game { main, pairs }
        }

        fn value(&self, on: &[bool]) -> f64 {
            let active: Vec<usize> = (0..on.len()).filter(|index| on[*index]).collect();
            let single: f64 = active.iter().map(|i| self.main[*i]).sum();
            let pairs = active
                .iter()
                .flat_map(|i| active.iter().map(move |j| (*i, *j)));
            single
                + pairs
                    .filter(|(i, j)| i < j)
                    .map(|(i, j)| self.pairs[i][j])
                    .sum::<f64>()
        }

        /// Shapley value by the definition: mean marginal worth over all coalitions, weighted by size.
        fn shapley(&self, setting: usize) -> f64 {
            let k = self.main.len();
            let factorial = |n: usize| (1..=n).map(|x| x as f64).product::<f64>();
            let coalitions = (0..1_usize << k).filter(|members| members >> setting & 1 == 0);
            coalitions
                .map(|members| {
                    let mut on: Vec<bool> = (0..k).map(|i| members >> i & 1 == 1).collect();
                    let size = members.count_ones() as usize;
                    let before = self.value(&on);
                    on[setting] = true;
                    factorial(size) * factorial(k - size - 1) / factorial(k)
                        * (self.value(&on) - before)
                })
                .sum()
        }
    }

    #[test]
    fn effects_are_shapley_values_and_add_up() {
        for settings in 2..=7 {
            let game = Game::new(settings, settings as u64);
            let design = Design::new(settings).unwrap();
            let responses: Vec<Vec<f64>> = design
                .rows()
                .iter()
                .map(|row| vec![game.value(row); 2])
                .collect();
            let found = attribute(&design, &responses, 0.05).unwrap();
            for (setting, effect) in found.effects.iter().enumerate() {
                assert!((effect.estimate.value - game.shapley(setting)).abs() < 1e-12);
            }
            let whole = game.value(&vec![true; settings]);
            assert!((found.total - whole).abs() < 1e-11);
            assert!(found.closure_gap(whole, 0.0, 0.05).value.abs() < 1e-11);
        }
    }

    #[test]
    fn lenth_finds_the_few_among_the_many() {
        let mut random = RandomStream::new(5, 0);
        let design = Design::new(7).unwrap();
        let responses: Vec<Vec<f64>> = design
            .rows()
            .iter()
            .map(|row| vec![if row[2] { 1.0 } else { 0.0 } + 0.05 * random.normal()])
            .collect();
        let found = attribute(&design, &responses, 0.05).unwrap();
        assert!(found.effects[2].p_value < 0.01 && found.effects[2].estimate.contains(1.0));
        assert!(
            found
                .effects
                .iter()
                .enumerate()
                .all(|(i, effect)| i == 2 || effect.p_value > 0.05)
        );
    }

    #[test]
    fn holm_is_monotone_and_matches_a_worked_case() {
        let adjusted = holm(vec![0.01, 0.04, 0.03, 0.005]);
        for (value, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((value - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn constant_and_bad_responses_have_stated_outcomes() {
        let design = Design::new(3).unwrap();
        let flat = attribute(&design, &vec![vec![1.0, 1.0]; 8], 0.05).unwrap();
        assert!(flat.effects.iter().all(|effect| effect.p_value == 1.0));
        assert!(attribute(&design, &vec![vec![1.0]; 7], 0.05).is_err());
        assert!(attribute(&design, &vec![vec![]; 8], 0.05).is_err());
        let mut uneven = vec![vec![1.0, 2.0]; 8];
        uneven[3].pop();
        assert!(attribute(&design, &uneven, 0.05).is_err());
        assert!(attribute(&design, &vec![vec![f64::NAN]; 8], 0.05).is_err());
    }
}
