//! Initial content of the tables (TPC-C 4.3.3).
//!
//! Every row follows from the seed and its own number, so warehouse 3 is the same in three or three hundred
//! warehouses. Values that two tables share, such as the number of lines of an order, are computed by both from the
//! same named stream instead of being stored.
//!
//! One deviation: dates of loading are a constant, because all contenders must get the same rows.

mod orders;

use dbduel_client::random::Random;

use super::row_writer::RowWriter;
use super::settings::{DISTRICTS, Population, Settings};
use super::values::{LastName, append_digits, between, percent};
use crate::RowContent;
use orders::{order, order_lines};

/// Time of loading in the data.
const LOADED_AT: &str = "'2000-01-01 00:00:00'";

/// Longest `c_data`; payments truncate it to this.
pub(super) const CUSTOMER_DATA_MAX: usize = 500;

/// Facts stored with the data, in the order of their rows.
pub(super) const FACT_NAMES: [&str; 4] = ["warehouses", "items", "customers", "nurand_last_load"];

/// Table of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Facts,
    Skips,
    Warehouse,
    District,
    Customer,
    History,
    NewOrder,
    Orders,
    OrderLine,
    Item,
    Stock,
}

/// Writes the rows of one table.
pub(super) struct Filler {
    content: Content,
    settings: Settings,
    seed: u64,
}

impl Filler {
    pub(super) fn new(content: Content, settings: Settings) -> Self {
        Filler {
            content,
            settings,
            seed: 0,
        }
    }
}

impl RowContent for Filler {
    fn seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn write(&self, row: u64, random: &mut Random, sql: &mut String) {
        let Filler {
            content,
            settings,
            seed,
        } = self;
        let population = settings.population;
        let index = row - 1;
        let mut values = RowWriter::new(sql, random);
        match content {
            Content::Facts => fact(index, settings, &mut values),
            Content::Skips => values.numbers(&[row, 0, 0]),
            Content::Warehouse => warehouse(row, &population, &mut values),
            Content::District => district(Place::of(index, 1), &population, &mut values),
            Content::Customer => customer(
                Place::of(index, population.customers),
                settings,
                &mut values,
            ),
            Content::History => history(Place::of(index, population.customers), &mut values),
            Content::NewOrder => {
                let place = Place::of(index, population.open_orders);
                let delivered = population.customers - population.open_orders;
                values.numbers(&[delivered + place.number, place.district, place.warehouse]);
            }
            Content::Orders => order(
                Place::of(index, population.customers),
                &population,
                *seed,
                &mut values,
            ),
            Content::OrderLine => {
                order_lines(
                    Place::of(index, population.customers),
                    &population,
                    *seed,
                    &mut values,
                );
            }
            Content::Item => item(row, &mut values),
            Content::Stock => {
                let place = Place {
                    warehouse: index / population.items + 1,
                    district: 0,
                    number: index % population.items + 1,
                };
                stock(place, &mut values);
            }
        }
        values.end();
    }
}

/// Position of a row in a district; all counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    warehouse: u64,
    district: u64,
    number: u64,
}

impl Place {
    fn of(index: u64, per_district: u64) -> Self {
        Place {
            warehouse: index / (per_district * DISTRICTS) + 1,
            district: index / per_district % DISTRICTS + 1,
            number: index % per_district + 1,
        }
    }
}

fn fact(index: u64, settings: &Settings, values: &mut RowWriter<'_>) {
    let Settings {
        warehouses,
        population,
        last_name_load,
        ..
    } = settings;
    let facts = [
        *warehouses,
        population.items,
        population.customers,
        *last_name_load,
    ];
    let index = index as usize % FACT_NAMES.len();
    values.raw(&format!("'{}'", FACT_NAMES[index]));
    values.numbers(&[facts[index]]);
}

/// Amount that every customer has paid so far, whole units; the sums of districts and warehouses follow from it.
const PAID: u64 = 10;

fn warehouse(number: u64, population: &Population, values: &mut RowWriter<'_>) {
    values.numbers(&[number]);
    values.alphanumerics(6, 10);
    values.address();
    values.decimal(0, 2_000, 4);
    values.numbers(&[DISTRICTS * population.customers * PAID]);
}

fn district(place: Place, population: &Population, values: &mut RowWriter<'_>) {
    values.numbers(&[place.district, place.warehouse]);
    values.alphanumerics(6, 10);
    values.address();
    values.decimal(0, 2_000, 4);
    values.numbers(&[population.customers * PAID, population.customers + 1]);
}

fn customer(place: Place, settings: &Settings, values: &mut RowWriter<'_>) {
    let Settings {
        population,
        last_name_load,
        ..
    } = settings;
    values.numbers(&[place.number, place.district, place.warehouse]);
    values.alphanumerics(8, 16);
    values.raw("'OE'");
    let name = match place.number - 1 {
        index if index < population.last_names => index,
        _ => population.last_name(*last_name_load).draw(values.random()),
    };
    values.quoted(|_, sql| sql.push_str(LastName::new(name).as_str()));
    values.address();
    values.quoted(|random, sql| append_digits(random, 16, sql));
    values.raw(LOADED_AT);
    let credit = if percent(values.random(), 10) {
        "'BC'"
    } else {
        "'GC'"
    };
    values.raw(credit);
    values.raw("50000.00");
    values.decimal(0, 5_000, 4);
    values.raw("-10.00,10.00,1,0");
    values.alphanumerics(300, CUSTOMER_DATA_MAX as u64);
}

fn history(place: Place, values: &mut RowWriter<'_>) {
    let Place {
        warehouse,
        district,
        number,
    } = place;
    values.numbers(&[number, district, warehouse, district, warehouse]);
    values.raw(LOADED_AT);
    values.raw("10.00");
    values.alphanumerics(12, 24);
}

fn item(number: u64, values: &mut RowWriter<'_>) {
    let image = between(values.random(), 1, 10_000);
    values.numbers(&[number, image]);
    values.alphanumerics(14, 24);
    values.decimal(100, 10_000, 2);
    values.data();
}

fn stock(place: Place, values: &mut RowWriter<'_>) {
    let quantity = between(values.random(), 10, 100);
    values.numbers(&[place.number, place.warehouse, quantity]);
    for _ in 0..DISTRICTS {
        values.letters(24);
    }
    values.numbers(&[0, 0, 0]);
    values.data();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Table, find, parameters::resolve};
    use dbduel_driver::Dialect;
    use dbduel_record::plan::Parameters;
    use std::collections::{BTreeMap, BTreeSet};

    fn tables(seed: u64) -> Vec<Table> {
        let workload = find("order-entry").unwrap();
        let given = Parameters::from([("warehouses".to_owned(), 2.into())]);
        let mut tables = workload.tables(Dialect::MySql, &resolve(workload, &given).unwrap());
        tables.iter_mut().for_each(|table| table.content.seed(seed));
        tables
    }

    /// The rows of a table as lists of unquoted values.
    fn rows(
        tables: &[Table],
        name: &str,
        numbers: std::ops::RangeInclusive<u64>,
    ) -> Vec<Vec<String>> {
        let table = tables.iter().find(|table| table.name == name).unwrap();
        let columns = table.columns.split(", ").count();
        let mut random = Random::new(9);
        let mut rows = Vec::new();
        for number in numbers {
            let mut sql = String::new();
            table.content.write(number, &mut random, &mut sql);
            for row in sql
                .trim_start_matches('(')
                .trim_end_matches(')')
                .split("),(")
            {
                let values: Vec<String> = row
                    .split(',')
                    .map(|value| value.trim_matches('\'').to_owned())
                    .collect();
                assert_eq!(values.len(), columns, "{name}: {row}");
                rows.push(values);
            }
        }
        rows
    }

    fn share(rows: &[Vec<String>], wanted: impl Fn(&[String]) -> bool) -> f64 {
        rows.iter().filter(|row| wanted(row)).count() as f64 / rows.len() as f64
    }

    #[test]
    fn tables_have_the_rows_of_the_specification() {
        let counts: BTreeMap<_, _> = tables(1)
            .into_iter()
            .map(|table| (table.name, table.rows))
            .collect();
        for (name, count) in [
            ("warehouse", 2),
            ("district", 20),
            ("customer", 60_000),
            ("history", 60_000),
            ("orders", 60_000),
            ("new_order", 18_000),
            ("stock", 200_000),
            ("item", 100_000),
        ] {
            assert_eq!(counts[name], count, "{name}");
        }
    }

    #[test]
    fn every_customer_of_a_district_has_one_order_and_every_order_5_to_15_lines() {
        let tables = tables(1);
        let orders = rows(&tables, "orders", 3_001..=6_000);
        let customers: BTreeSet<&String> = orders.iter().map(|order| &order[3]).collect();
        assert_eq!(customers.len(), 3_000);
        assert!(
            orders
                .iter()
                .all(|order| order[1] == "2" && order[2] == "1")
        );
        assert!(
            orders
                .iter()
                .enumerate()
                .all(|(index, order)| (order[5] == "NULL") == (index >= 2_100))
        );
        let lines = rows(&tables, "order_line", 3_001..=6_000);
        let mut counts: BTreeMap<&String, u64> = BTreeMap::new();
        lines
            .iter()
            .for_each(|line| *counts.entry(&line[0]).or_default() += 1);
        for order in &orders {
            assert_eq!(
                counts[&order[0]].to_string(),
                order[6],
                "lines of order {}",
                order[0]
            );
        }
        assert_eq!(
            counts.values().collect::<BTreeSet<_>>(),
            (5..=15).collect::<Vec<_>>().iter().collect()
        );
        assert!((share(&lines, |line| line[6] == "NULL") - 0.3).abs() < 0.02);
        assert!(
            lines
                .iter()
                .all(|line| (line[6] == "NULL") == (line[8] != "0.00"))
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_orders_and_another_seed_others() {
        let orders = |seed| rows(&tables(seed), "orders", 1..=50);
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
    }

    #[test]
    fn customers_have_the_names_and_credit_of_the_specification() {
        let customers = rows(&tables(1), "customer", 1..=6_000);
        for (index, customer) in customers
            .iter()
            .enumerate()
            .filter(|(index, _)| index % 3_000 < 1_000)
        {
            assert_eq!(customer[5], LastName::new(index as u64 % 3_000).as_str());
        }
        assert!((share(&customers, |customer| customer[13] == "BC") - 0.1).abs() < 0.015);
        assert!(
            customers
                .iter()
                .all(|customer| (300..=500).contains(&customer[20].len()))
        );
        assert!(
            customers
                .iter()
                .all(|customer| customer[10].len() == 9 && customer[10].ends_with("11111"))
        );
        let discounts = customers
            .iter()
            .map(|customer| customer[15].parse::<f64>().unwrap());
        assert!(
            discounts
                .clone()
                .all(|discount| (0.0..=0.5).contains(&discount))
        );
        assert!((discounts.sum::<f64>() / 6_000.0 - 0.25).abs() < 0.01);
    }

    #[test]
    fn a_tenth_of_items_and_stock_is_original() {
        let tables = tables(1);
        for (name, column, length) in [("item", 4, 26..=50), ("stock", 16, 26..=50)] {
            let rows = rows(&tables, name, 1..=10_000);
            let original = share(&rows, |row| row[column].contains("ORIGINAL"));
            // Within 5 % of the target in the mean; three standard deviations of 10 000 rows are 9 %.
            assert!((original - 0.1).abs() < 0.009, "{name}: {original}");
            assert!(rows.iter().all(|row| length.contains(&row[column].len())));
        }
    }
}
