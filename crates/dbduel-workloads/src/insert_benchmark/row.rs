//! The rows: a function of a seed, a table and the row's number, so that every server gets the same bytes independent
//! of its speed.

use std::fmt::Write as _;

use dbduel_client::random::Random;
use dbduel_record::seed::named_seed;

use crate::RowContent;

/// Upper bounds of the values, which are uniform from 0 to below these.
pub(super) const CASH_REGISTERS: u64 = 1_000;
pub(super) const CUSTOMERS: u64 = 100_000;
pub(super) const PRODUCTS: u64 = 10_000;
pub(super) const PRICES: u64 = 500;

/// Shortest and longest text of a row.
const DATA_LENGTH: (u64, u64) = (10, 20);
/// One in this many letters of the text is random, the first ones; the others are equal, so that the text can be
/// compressed.
const RANDOM_IN: u64 = 3;

/// Rows that share a second as their time. A wall clock would give servers of different speed different rows.
const ROWS_PER_SECOND: u64 = 1_000;
/// The first row's day, in days since 1970-01-01: 2000-01-01.
const FIRST_DAY: u64 = 10_957;

const SECONDS_PER_DAY: u64 = 86_400;
/// Odd, so that different rows have different seeds; of a Weyl sequence (Steele, Lea and Flood, 2014).
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// The rows of one table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    seed: u64,
}

impl Rows {
    /// Rows of the table with that number, from 1.
    pub(super) fn new(seed: u64, table: u64) -> Self {
        let seed = named_seed(seed, &format!("insert-benchmark/{table}"));
        Rows { seed }
    }

    /// Appends the values of all columns except the key, separated by commas.
    pub(super) fn write_values(&self, row: u64, sql: &mut String) {
        let mut random = Random::new(self.seed.wrapping_add(row.wrapping_mul(WEYL)));
        let (register, customer) = (random.below(CASH_REGISTERS), random.below(CUSTOMERS));
        let (product, price) = (random.below(PRODUCTS), random.below(PRICES));
        // Writing to memory does not fail.
        sql.push('\'');
        write_time(row, sql);
        let _ = write!(sql, "',{register},{customer},{product},{price},'");
        let (shortest, longest) = DATA_LENGTH;
        let length = shortest + random.below(longest - shortest + 1);
        for place in 0..length {
            let letter = match place < length / RANDOM_IN {
                true => b'a' + random.below(26) as u8,
                false => b'x',
            };
            sql.push(char::from(letter));
        }
        sql.push('\'');
    }
}

impl RowContent for Rows {
    fn write(&self, row: u64, _random: &mut Random, sql: &mut String) {
        let _ = write!(sql, "({row},");
        self.write_values(row, sql);
        sql.push(')');
    }
}

/// Appends the time of a row.
fn write_time(row: u64, sql: &mut String) {
    let second = row / ROWS_PER_SECOND;
    let (year, month, day) = date(FIRST_DAY + second / SECONDS_PER_DAY);
    let second = second % SECONDS_PER_DAY;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let _ = write!(
        sql,
        "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
    );
}

/// Date of a day given as days since 1970-01-01, in the Gregorian calendar: year, month, day (Hinnant, 2013:
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
fn date(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + 400 * era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(seed: u64, table: u64, row: u64) -> String {
        let mut sql = String::new();
        Rows::new(seed, table).write_values(row, &mut sql);
        sql
    }

    #[test]
    fn days_have_their_dates() {
        for (day, expected) in [
            (0, (1970, 1, 1)),
            (FIRST_DAY, (2000, 1, 1)),
            (FIRST_DAY + 59, (2000, 2, 29)),
            (FIRST_DAY + 60, (2000, 3, 1)),
            (FIRST_DAY + 366, (2001, 1, 1)),
            (20_781, (2026, 11, 24)),
        ] {
            assert_eq!(date(day), expected);
        }
    }

    #[test]
    fn a_row_follows_from_seed_table_and_number() {
        assert_eq!(values(1, 1, 7), values(1, 1, 7));
        let others = [values(2, 1, 7), values(1, 2, 7), values(1, 1, 8)];
        assert!(others.iter().all(|other| *other != values(1, 1, 7)));
        // Part of the definition of every dataset.
        assert_eq!(values(1, 1, 86_400_000)[..22], *"'2000-01-02 00:00:00',");
    }

    #[test]
    fn values_are_in_their_ranges_and_a_third_of_the_text_is_random() {
        let (mut lengths, mut largest) = (Vec::new(), [0; 4]);
        for row in 1..=20_000 {
            let text = values(1, 1, row);
            let fields: Vec<&str> = text.split(',').collect();
            for (largest, field) in largest.iter_mut().zip(&fields[1..5]) {
                *largest = field.parse::<u64>().unwrap().max(*largest);
            }
            let data = fields[5].trim_matches('\'');
            let equal = &data[data.len() / RANDOM_IN as usize..];
            assert_eq!(equal.trim_matches('x'), "");
            lengths.push(data.len());
        }
        assert_eq!(lengths.iter().min(), Some(&10));
        assert_eq!(lengths.iter().max(), Some(&20));
        let limits = [CASH_REGISTERS, CUSTOMERS, PRODUCTS, PRICES];
        for (largest, limit) in largest.iter().zip(limits) {
            assert!(
                (limit - limit / 100..limit).contains(largest),
                "{largest} of {limit}"
            );
        }
    }
}
