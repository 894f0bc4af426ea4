//! Writes a row as a parenthesised SQL list, value by value, with the kinds of values of the specification.

use std::fmt::Write as _;

use dbduel_client::random::Random;

use super::values::{append_alphanumerics, append_digits, append_letters, between, percent};

/// The word in the data of a tenth of the items and of the stock.
pub(super) const ORIGINAL: &str = "ORIGINAL";

/// Appends the values of one row: every method appends one value, or several of a kind.
pub(super) struct RowWriter<'a> {
    sql: &'a mut String,
    random: &'a mut Random,
    separator: char,
}

impl<'a> RowWriter<'a> {
    /// Begins a row after the existing text.
    pub(super) fn new(sql: &'a mut String, random: &'a mut Random) -> Self {
        RowWriter {
            sql,
            random,
            separator: '(',
        }
    }

    /// The source of the values.
    pub(super) fn random(&mut self) -> &mut Random {
        self.random
    }

    /// Ends the row.
    pub(super) fn end(self) {
        self.sql.push(')');
    }

    fn separate(&mut self) {
        self.sql.push(self.separator);
        self.separator = ',';
    }

    /// Ends a row and begins another one.
    pub(super) fn next_row(&mut self) {
        self.sql.push_str("),");
        self.separator = '(';
    }

    /// A literal, or several with commas between them.
    pub(super) fn raw(&mut self, literal: &str) {
        self.separate();
        self.sql.push_str(literal);
    }

    /// Numbers.
    pub(super) fn numbers(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.separate();
            // Writing to memory does not fail.
            let _ = write!(self.sql, "{number}");
        }
    }

    /// A uniform decimal between two bounds, given in units of its last place.
    pub(super) fn decimal(&mut self, low: u64, high: u64, places: usize) {
        let value = between(self.random, low, high);
        let unit = 10_u64.pow(places as u32);
        self.separate();
        let _ = write!(self.sql, "{}.{:0places$}", value / unit, value % unit);
    }

    /// A string of letters and digits, appended by the closure.
    pub(super) fn quoted(&mut self, append: impl FnOnce(&mut Random, &mut String)) {
        self.separate();
        self.sql.push('\'');
        append(self.random, self.sql);
        self.sql.push('\'');
    }

    /// A string of letters and digits of uniform length.
    pub(super) fn alphanumerics(&mut self, low: u64, high: u64) {
        self.quoted(|random, sql| append_alphanumerics(random, low, high, sql));
    }

    /// A string of this many letters.
    pub(super) fn letters(&mut self, length: u64) {
        self.quoted(|random, sql| append_letters(random, length, sql));
    }

    /// Two streets, a city, a state and a zip code.
    pub(super) fn address(&mut self) {
        for _ in 0..3 {
            self.alphanumerics(10, 20);
        }
        self.letters(2);
        self.quoted(|random, sql| {
            append_digits(random, 4, sql);
            sql.push_str("11111");
        });
    }

    /// 26 to 50 characters, with ORIGINAL somewhere in a tenth of the rows.
    pub(super) fn data(&mut self) {
        self.quoted(|random, sql| {
            let start = sql.len();
            append_alphanumerics(random, 26, 50, sql);
            if percent(random, 10) {
                let last = sql.len() - start - ORIGINAL.len();
                let at = start + between(random, 0, last as u64) as usize;
                sql.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
            }
        });
    }
}
