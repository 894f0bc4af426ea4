//! The initial orders of a district, and their lines.

use dbduel_client::random::Random;
use dbduel_record::seed::named_seed;

use super::super::row_writer::RowWriter;
use super::super::settings::Population;
use super::super::values::{Permutation, between};
use super::{LOADED_AT, Place};

/// Values shared by an order and its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OrderFacts {
    customer: u64,
    lines: u64,
    delivered: bool,
}

impl OrderFacts {
    fn of(place: Place, population: &Population, seed: u64) -> Self {
        let Place {
            warehouse,
            district,
            number,
        } = place;
        let mut random = Random::new(named_seed(seed, &format!("orders/{warehouse}/{district}")));
        let customers = Permutation::new(population.customers, &mut random);
        let mut random = Random::new(named_seed(
            seed,
            &format!("orders/{warehouse}/{district}/{number}"),
        ));
        OrderFacts {
            customer: customers.at(number - 1) + 1,
            lines: between(&mut random, 5, 15),
            delivered: number <= population.customers - population.open_orders,
        }
    }
}

/// A row of `orders`.
pub(super) fn order(place: Place, population: &Population, seed: u64, values: &mut RowWriter<'_>) {
    let facts = OrderFacts::of(place, population, seed);
    values.numbers(&[
        place.number,
        place.district,
        place.warehouse,
        facts.customer,
    ]);
    values.raw(LOADED_AT);
    if facts.delivered {
        let carrier = between(values.random(), 1, 10);
        values.numbers(&[carrier]);
    } else {
        values.raw("NULL");
    }
    values.numbers(&[facts.lines, 1]);
}

/// All rows of an order in `order_line`.
pub(super) fn order_lines(
    place: Place,
    population: &Population,
    seed: u64,
    values: &mut RowWriter<'_>,
) {
    let facts = OrderFacts::of(place, population, seed);
    for line in 1..=facts.lines {
        if line > 1 {
            values.next_row();
        }
        let item = between(values.random(), 1, population.items);
        values.numbers(&[
            place.number,
            place.district,
            place.warehouse,
            line,
            item,
            place.warehouse,
        ]);
        values.raw(if facts.delivered { LOADED_AT } else { "NULL" });
        values.numbers(&[5]);
        if facts.delivered {
            values.raw("0.00");
        } else {
            values.decimal(1, 999_999, 2);
        }
        values.letters(24);
    }
}
