//! Input of a New-Order.

use dbduel_client::random::Random;

use super::super::home::{Home, any_district, other_warehouse};
use super::super::settings::Settings;
use super::super::values::{between, percent};

/// The terminal's input.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub home: Home,
    pub customer: u64,
    /// In processing order.
    pub lines: Vec<Line>,
    /// Whether the last line has an unused item number.
    pub invalid: bool,
    pub all_local: bool,
}

/// A line of the order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// Position in the order, from 1.
    pub number: u64,
    pub item: u64,
    pub supply: u64,
    pub quantity: u64,
}

impl Input {
    /// Overwrites the input with the next one.
    pub(super) fn draw(&mut self, home: Home, random: &mut Random, settings: &Settings) {
        let Settings {
            warehouses,
            item,
            customer,
            population,
            ..
        } = settings;
        self.home = Home {
            district: any_district(random),
            ..home
        };
        self.customer = customer.draw(random);
        self.lines.clear();
        let count = between(random, 5, 15);
        self.invalid = percent(random, 1);
        for number in 1..=count {
            // An unused number: one beyond the last item.
            let item = if self.invalid && number == count {
                population.items + 1
            } else {
                item.draw(random)
            };
            let supply = if percent(random, 1) {
                other_warehouse(random, home.warehouse, *warehouses)
            } else {
                home.warehouse
            };
            self.lines.push(Line {
                number,
                item,
                supply,
                quantity: between(random, 1, 10),
            });
        }
        self.all_local = self.lines.iter().all(|line| line.supply == home.warehouse);
        // All orders lock stock in one order, so that they cannot wait for each other in a circle. Lines
        // keep their numbers, and the invalid one stays last.
        self.lines.sort_unstable_by_key(|line| {
            (
                line.item > population.items,
                line.supply,
                line.item,
                line.number,
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{find, parameters::resolve};
    use dbduel_record::plan::Parameters;

    fn settings(warehouses: u64) -> Settings {
        let given = Parameters::from([("warehouses".to_owned(), warehouses.into())]);
        Settings::new(&resolve(find("order-entry").unwrap(), &given).unwrap())
    }

    #[test]
    fn the_input_varies_within_the_specified_tolerances() {
        let settings = settings(5);
        let (mut random, mut input) = (Random::new(7), Input::default());
        let home = Home {
            warehouse: 3,
            district: 4,
        };
        let (orders, mut lines, mut invalid, mut remote, mut local_orders) = (100_000, 0, 0, 0, 0);
        for _ in 0..orders {
            input.draw(home, &mut random, &settings);
            lines += input.lines.len();
            invalid += usize::from(input.invalid);
            remote += input.lines.iter().filter(|line| line.supply != 3).count();
            local_orders += usize::from(input.all_local);
            assert_eq!(input.invalid, input.lines.last().unwrap().item == 100_001);
            assert!(
                input
                    .lines
                    .iter()
                    .rev()
                    .skip(1)
                    .all(|line| line.item <= 100_000)
            );
        }
        let share = |count: usize, of: usize| 100.0 * count as f64 / of as f64;
        assert!((9.5..=10.5).contains(&(lines as f64 / f64::from(orders))));
        assert!((0.9..=1.1).contains(&share(invalid, orders as usize)));
        assert!((0.95..=1.05).contains(&share(remote, lines)));
        assert!((90.0..=91.0).contains(&share(local_orders, orders as usize)));
    }

    #[test]
    fn lines_are_worked_on_in_one_order_and_keep_their_numbers() {
        let settings = settings(5);
        let (mut random, mut input) = (Random::new(8), Input::default());
        for _ in 0..2_000 {
            input.draw(
                Home {
                    warehouse: 1,
                    district: 1,
                },
                &mut random,
                &settings,
            );
            let valid = &input.lines[..input.lines.len() - usize::from(input.invalid)];
            assert!(valid.is_sorted_by_key(|line| (line.supply, line.item)));
            let mut numbers: Vec<u64> = input.lines.iter().map(|line| line.number).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (1..=input.lines.len() as u64).collect::<Vec<_>>());
        }
    }
}
