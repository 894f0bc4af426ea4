//! Rows as values of a prepared INSERT that MariaDB executes for many of them at once.
//!
//! The rows come as the SQL text that the other methods send, so that the same stream makes the same rows by every
//! method. As with the other methods, no character set is applied to the bytes of a string.

use std::ops::Range;

use dbduel_driver::{BulkKind, Dialect, Value};

use super::rows::Rows;
use crate::Table;

/// The statement that inserts one row. Decimals become whole numbers in a dialect without decimals.
pub(super) fn statement(dialect: Dialect, table: &Table) -> String {
    let value = |column| match table.scaled.iter().find(|(scaled, _)| *scaled == column) {
        Some((_, places)) => format!("CAST(ROUND(? * {}) AS INTEGER)", 10_u64.pow(*places)),
        None => "?".to_owned(),
    };
    let places: Vec<String> = table.column_names().map(value).collect();
    let places = places.join(", ");
    format!("INSERT INTO {} VALUES ({places})", table.filled(dialect))
}

/// Position of a value in a batch's text.
#[derive(Debug, Clone)]
enum Piece {
    Null,
    /// A number, as text.
    Number(Range<usize>),
    /// A string without its quotes.
    Text(Range<usize>),
    /// Range in [`Batch::decoded`] of the bytes of hexadecimal digits.
    Decoded(Range<usize>),
}

/// The rows of one request.
#[derive(Debug, Default)]
pub(super) struct Batch {
    text: String,
    decoded: Vec<u8>,
    pieces: Vec<Piece>,
    columns: usize,
    units: u64,
}

impl Batch {
    /// For rows of this table.
    pub(super) fn new(table: &Table) -> Self {
        Batch {
            columns: table.column_names().count(),
            ..Batch::default()
        }
    }

    /// Takes the next rows, with at least `bytes` of text unless they are the last; false when there are none.
    pub(super) fn refill(&mut self, rows: &mut Rows<'_>, bytes: usize) -> bool {
        self.text.clear();
        self.decoded.clear();
        self.pieces.clear();
        self.units = 0;
        while self.text.len() < bytes && rows.write(&mut self.text) {
            self.units += 1;
        }
        self.divide();
        !self.pieces.is_empty()
    }

    /// Number of [`Table::rows`] units: rows, or groups of rows that are made together.
    pub(super) fn units(&self) -> u64 {
        self.units
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> u64 {
        (self.pieces.len() / self.columns) as u64
    }

    /// Splits the text into values: between commas and parentheses, or between quotes.
    fn divide(&mut self) {
        let text = self.text.as_bytes();
        let mut at = 0;
        while at < text.len() {
            let start = at;
            match text[at] {
                b'(' | b')' | b',' => at += 1,
                b'\'' => {
                    at = end_of(text, at + 1, |byte| byte == b'\'');
                    self.pieces.push(Piece::Text(start + 1..at));
                    at += 1;
                }
                b'x' => {
                    at = end_of(text, at + 2, |byte| byte == b'\'');
                    let first = self.decoded.len();
                    decode(&text[start + 2..at], &mut self.decoded);
                    self.pieces.push(Piece::Decoded(first..self.decoded.len()));
                    at += 1;
                }
                _ => {
                    at = end_of(text, at, |byte| matches!(byte, b',' | b')'));
                    self.pieces.push(match &text[start..at] {
                        b"NULL" => Piece::Null,
                        _ => Piece::Number(start..at),
                    });
                }
            }
        }
    }

    /// Kinds of the columns: integers, if all non-NULL values are, otherwise bytes.
    pub(super) fn kinds(&self) -> Vec<BulkKind> {
        let mut kinds = vec![BulkKind::Integer; self.columns];
        for row in self.pieces.chunks_exact(self.columns) {
            for (piece, kind) in row.iter().zip(&mut kinds) {
                match piece {
                    Piece::Null => {}
                    Piece::Number(place) if self.text[place.clone()].parse::<i64>().is_ok() => {}
                    _ => *kind = BulkKind::Bytes,
                }
            }
        }
        kinds
    }

    /// The rows with values of these kinds.
    pub(super) fn values<'a>(
        &'a self,
        kinds: &'a [BulkKind],
    ) -> impl Iterator<Item = Vec<Value<'a>>> {
        self.pieces.chunks_exact(self.columns).map(move |row| {
            let values = row.iter().zip(kinds);
            values
                .map(|(piece, kind)| self.value(piece, *kind))
                .collect()
        })
    }

    fn value(&self, piece: &Piece, kind: BulkKind) -> Value<'_> {
        match piece {
            Piece::Null => Value::Null,
            Piece::Decoded(place) => Value::Bytes(&self.decoded[place.clone()]),
            Piece::Text(place) => Value::Bytes(&self.text.as_bytes()[place.clone()]),
            Piece::Number(place) => {
                let text = &self.text[place.clone()];
                match text.parse() {
                    Ok(number) if kind == BulkKind::Integer => Value::Signed(number),
                    _ => Value::Bytes(text.as_bytes()),
                }
            }
        }
    }
}

fn end_of(text: &[u8], from: usize, is_end: impl Fn(u8) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let length = rest.iter().position(|&byte| is_end(byte));
    length.map_or(text.len(), |length| from + length)
}

/// Appends the bytes of pairs of hexadecimal digits.
pub(super) fn decode(digits: &[u8], bytes: &mut Vec<u8>) {
    let value = |digit: u8| (digit & 0xF) + if digit.is_ascii_alphabetic() { 9 } else { 0 };
    let pairs = digits.chunks_exact(2);
    bytes.extend(pairs.map(|pair| value(pair[0]) << 4 | value(pair[1])));
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::table;
    use super::*;

    fn divided(text: &str, columns: usize) -> Batch {
        let mut batch = Batch {
            text: text.to_owned(),
            columns,
            ..Batch::default()
        };
        batch.divide();
        batch
    }

    #[test]
    fn every_kind_of_value_is_found() {
        let batch = divided("(1,'a,(b)',NULL,x'00fF'),(-2,'',3.5,x'')", 4);
        assert_eq!(batch.rows(), 2);
        let kinds = batch.kinds();
        assert_eq!(
            kinds,
            [
                BulkKind::Integer,
                BulkKind::Bytes,
                BulkKind::Bytes,
                BulkKind::Bytes
            ]
        );
        let values: Vec<_> = batch.values(&kinds).collect();
        assert_eq!(
            values,
            [
                vec![
                    Value::Signed(1),
                    Value::Bytes(b"a,(b)"),
                    Value::Null,
                    Value::Bytes(&[0, 255])
                ],
                vec![
                    Value::Signed(-2),
                    Value::Bytes(b""),
                    Value::Bytes(b"3.5"),
                    Value::Bytes(b"")
                ],
            ]
        );
    }

    #[test]
    fn numbers_beyond_an_integer_stay_text() {
        let batch = divided("(18446744073709551615),(7)", 1);
        let kinds = batch.kinds();
        let values: Vec<_> = batch.values(&kinds).flatten().collect();
        assert_eq!(
            values,
            [Value::Bytes(b"18446744073709551615"), Value::Bytes(b"7")]
        );
    }

    #[test]
    fn a_chunk_is_handed_out_once_and_whole() {
        let table = table(3_000);
        let mut rows = Rows::new(&table, &(0..1), 1);
        let mut batch = Batch::new(&table);
        let mut next = 1;
        while batch.refill(&mut rows, 64 << 10) {
            let kinds = batch.kinds();
            assert_eq!(
                kinds,
                [
                    BulkKind::Integer,
                    BulkKind::Integer,
                    BulkKind::Bytes,
                    BulkKind::Bytes
                ]
            );
            for row in batch.values(&kinds) {
                assert_eq!(row[0], Value::Signed(next));
                next += 1;
            }
        }
        assert_eq!(next, 3_001);
    }
}
