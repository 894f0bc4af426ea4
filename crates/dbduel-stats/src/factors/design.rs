//! Which configurations to measure. It does not know the responses.

use crate::error::StatsError;

/// Largest number of settings with all combinations.
const FULL_FACTORIAL_MAX: usize = 4;

/// First rows of the cyclic Plackett–Burman matrices of 8, 12, 16, 20 and 24 rows.
const GENERATORS: [&str; 5] = [
    "+++-+--",
    "++-+++---+-",
    "++++-+-++--+---",
    "++--++++-+-+----++-",
    "+++++-+-++--++--+-+----",
];

/// The configurations to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    settings: usize,
    /// All orthogonal contrasts as columns of ±1: first the settings', then the rest.
    pub(super) contrasts: Vec<Vec<f64>>,
    /// How many of the contrasts are estimates of main effects or their error, the settings first.
    pub(super) odd: usize,
}

impl Design {
    /// The design for a number of settings. It always holds the two configurations "all off" and "all on".
    ///
    /// # Errors
    /// [`StatsError::Parameter`] unless there are 2 to 23 settings.
    pub fn new(settings: usize) -> Result<Self, StatsError> {
        match settings {
            2..=FULL_FACTORIAL_MAX => Ok(Design::full_factorial(settings)),
            5..=23 => Ok(Design::folded_over(settings)),
            _ => Err(StatsError::Parameter {
                name: "settings",
                value: settings as f64,
                requirement: "between 2 and 23",
            }),
        }
    }

    fn full_factorial(settings: usize) -> Self {
        let rows = 1_usize << settings;
        let column = |members: usize| -> Vec<f64> {
            (0..rows)
                .map(|row| {
                    if (members & !row).count_ones().is_multiple_of(2) {
                        1.0
                    } else {
                        -1.0
                    }
                })
                .collect()
        };
        let single = (0..settings).map(|setting| 1 << setting);
        let higher = |odd: bool| {
            (1..rows).filter(move |members: &usize| {
                members.count_ones() > 1 && (members.count_ones() % 2 == 1) == odd
            })
        };
        let contrasts: Vec<Vec<f64>> = single
            .chain(higher(true))
            .chain(higher(false))
            .map(column)
            .collect();
        Design {
            settings,
            contrasts,
            odd: rows / 2,
        }
    }

    fn folded_over(settings: usize) -> Self {
        let half = plackett_burman(settings);
        let rows = half.len();
        let fold = |column: &[f64], sign: f64| -> Vec<f64> {
            column
                .iter()
                .copied()
                .chain(column.iter().map(|x| sign * x))
                .collect()
        };
        let columns: Vec<Vec<f64>> = (0..rows - 1)
            .map(|column| half.iter().map(|row| row[column]).collect())
            .collect();
        let constant = vec![1.0; rows];
        let odd = columns
            .iter()
            .chain([&constant])
            .map(|column| fold(column, -1.0));
        let even = columns.iter().map(|column| fold(column, 1.0));
        Design {
            settings,
            contrasts: odd.chain(even).collect(),
            odd: rows,
        }
    }

    /// Number of settings.
    pub fn settings(&self) -> usize {
        self.settings
    }

    /// The configurations, one row each; `true` where the setting is on. Run them in random order.
    pub fn rows(&self) -> Vec<Vec<bool>> {
        (0..self.contrasts[0].len())
            .map(|row| {
                self.contrasts[..self.settings]
                    .iter()
                    .map(|column| column[row] > 0.0)
                    .collect()
            })
            .collect()
    }
}

/// The cyclic matrix with room for `settings` columns: shifts of the generator and a row of minus.
fn plackett_burman(settings: usize) -> Vec<Vec<f64>> {
    let generator = GENERATORS
        .iter()
        .find(|generator| generator.len() >= settings)
        .unwrap_or(&GENERATORS[GENERATORS.len() - 1]);
    let mut row: Vec<f64> = generator
        .chars()
        .map(|sign| if sign == '+' { 1.0 } else { -1.0 })
        .collect();
    let mut rows = Vec::with_capacity(row.len() + 1);
    for _ in 0..row.len() {
        rows.push(row.clone());
        row.rotate_right(1);
    }
    rows.push(vec![-1.0; row.len()]);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contrasts_of_all_designs_are_orthogonal() {
        for settings in 2..=23 {
            let design = Design::new(settings).unwrap();
            let rows = design.contrasts[0].len();
            assert_eq!(design.contrasts.len(), rows - 1);
            for (i, one) in design.contrasts.iter().enumerate() {
                assert_eq!(one.iter().sum::<f64>(), 0.0);
                for other in &design.contrasts[i + 1..] {
                    assert_eq!(one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>(), 0.0);
                }
            }
        }
        assert!(Design::new(1).is_err() && Design::new(24).is_err());
    }

    #[test]
    fn main_effects_are_orthogonal_to_all_two_way_products() {
        for settings in 2..=23 {
            let design = Design::new(settings).unwrap();
            let columns = &design.contrasts[..settings];
            for a in 0..settings {
                for b in 0..a {
                    for c in columns {
                        let product: f64 = (0..c.len())
                            .map(|row| columns[a][row] * columns[b][row] * c[row])
                            .sum();
                        assert_eq!(product, 0.0, "{settings}: {a} {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn both_end_points_are_in_every_design() {
        for settings in 2..=23 {
            let rows = Design::new(settings).unwrap().rows();
            assert!(rows.contains(&vec![true; settings]) && rows.contains(&vec![false; settings]));
        }
    }
}
