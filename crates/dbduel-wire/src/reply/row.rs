//! Rows in text and in binary form, decoded value by value and only on demand.

use crate::bytes::Cursor;
use crate::error::WireError;
use crate::value::{ColumnKind, Value};

/// Format of a reply's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowFormat {
    /// Reply to a text query: every value is a string.
    #[default]
    Text,
    /// Reply to an execution of a prepared statement: values in binary form.
    Binary,
    /// PostgreSQL's reply to a text query: every value is a string.
    PostgresText,
    /// PostgreSQL's reply to an execution: numbers in binary form.
    PostgresBinary,
}

/// One row, still encoded.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    payload: &'a [u8],
    format: RowFormat,
    kinds: &'a [ColumnKind],
}

impl<'a> Row<'a> {
    /// A row with columns of the given kinds.
    #[must_use]
    pub fn new(payload: &'a [u8], format: RowFormat, kinds: &'a [ColumnKind]) -> Self {
        Row {
            payload,
            format,
            kinds,
        }
    }

    /// The encoded row.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// True for a row without columns, which no server sends.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The values in order. After the first error the iteration ends.
    #[must_use]
    pub fn values(&self) -> Values<'a> {
        let cursor = Cursor::new("row", self.payload);
        // Two bits are reserved before the first column's, and one byte stands before the bits.
        let nulls_end = 1 + (self.kinds.len() + 9) / 8;
        let (nulls, broken, cursor) = match self.format {
            RowFormat::Text => (&[][..], false, cursor),
            RowFormat::Binary => match self.payload.split_at_checked(nulls_end) {
                Some((head, rest)) => (&head[1..], false, Cursor::new("row", rest)),
                None => (&[][..], true, cursor),
            },
            RowFormat::PostgresText | RowFormat::PostgresBinary => {
                match self.payload.split_first_chunk::<2>() {
                    Some((&count, rest))
                        if usize::from(u16::from_be_bytes(count)) == self.len() =>
                    {
                        (&[][..], false, Cursor::new("row", rest))
                    }
                    _ => (&[][..], true, cursor),
                }
            }
        };
        Values {
            cursor,
            format: self.format,
            kinds: self.kinds,
            index: 0,
            nulls,
            broken,
        }
    }

    /// The value of one column, counted from 0; `None` when there is no such column.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when the row ends early.
    pub fn value(&self, index: usize) -> Option<Result<Value<'a>, WireError>> {
        let mut values = self.values();
        for _ in 0..index {
            if let Err(error) = values.next()? {
                return Some(Err(error));
            }
        }
        values.next()
    }
}

/// Iterator over the values of a [`Row`].
#[derive(Clone)]
pub struct Values<'a> {
    cursor: Cursor<'a>,
    format: RowFormat,
    kinds: &'a [ColumnKind],
    index: usize,
    nulls: &'a [u8],
    broken: bool,
}

impl<'a> Values<'a> {
    #[inline]
    fn read(&mut self, kind: ColumnKind, index: usize) -> Result<Value<'a>, WireError> {
        match self.format {
            RowFormat::Text if self.cursor.rest().first() == Some(&0xFB) => {
                self.cursor.u8()?;
                Ok(Value::Null)
            }
            RowFormat::Text => self.cursor.length_bytes().map(Value::Bytes),
            RowFormat::Binary => {
                if self.broken {
                    return Err(self.cursor.wrong("ends inside its NULL bits"));
                }
                let bit = index + 2;
                let null = self
                    .nulls
                    .get(bit / 8)
                    .is_some_and(|byte| byte >> (bit % 8) & 1 == 1);
                if null {
                    Ok(Value::Null)
                } else {
                    Value::read(&mut self.cursor, kind)
                }
            }
            RowFormat::PostgresText | RowFormat::PostgresBinary => {
                if self.broken {
                    return Err(self
                        .cursor
                        .wrong("has a different number of values than columns"));
                }
                let length = i32::from_be_bytes(self.cursor.array()?);
                if length == -1 {
                    return Ok(Value::Null);
                }
                // No length below zero fits the row.
                let bytes = self
                    .cursor
                    .bytes(usize::try_from(length).unwrap_or(usize::MAX))?;
                match self.format {
                    RowFormat::PostgresBinary => {
                        Value::from_big_endian(bytes, kind).ok_or_else(|| {
                            self.cursor.wrong("a number has the length of another type")
                        })
                    }
                    _ => Ok(Value::Bytes(bytes)),
                }
            }
        }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<Value<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let kind = *self.kinds.get(self.index)?;
        let value = self.read(kind, self.index);
        self.index = if value.is_ok() {
            self.index + 1
        } else {
            self.kinds.len()
        };
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::ColumnType;

    const KINDS: [ColumnKind; 3] = [
        ColumnKind {
            column_type: ColumnType::LONG,
            unsigned: false,
        },
        ColumnKind {
            column_type: ColumnType::VAR_STRING,
            unsigned: false,
        },
        ColumnKind {
            column_type: ColumnType::TINY,
            unsigned: true,
        },
    ];

    fn values(payload: &[u8], format: RowFormat) -> Vec<Option<Value<'_>>> {
        Row::new(payload, format, &KINDS)
            .values()
            .map(Result::ok)
            .collect()
    }

    #[test]
    fn text_values_are_strings_or_null() {
        let row = values(b"\x02-1\xfb\x03255", RowFormat::Text);
        assert_eq!(
            row,
            [
                Some(Value::Bytes(b"-1")),
                Some(Value::Null),
                Some(Value::Bytes(b"255"))
            ]
        );
        assert_eq!(row[0].and_then(|value| value.as_i64()), Some(-1));
    }

    #[test]
    fn binary_values_have_the_width_of_their_type() {
        let row = values(b"\x00\x00\xff\xff\xff\xff\x02ab\xff", RowFormat::Binary);
        assert_eq!(
            row,
            [
                Some(Value::Signed(-1)),
                Some(Value::Bytes(b"ab")),
                Some(Value::Unsigned(255))
            ]
        );
        let row = values(b"\x00\x0c\x07", RowFormat::Binary);
        assert_eq!(
            row,
            [
                Some(Value::Null),
                Some(Value::Null),
                Some(Value::Unsigned(7))
            ]
        );
    }

    #[test]
    fn a_row_that_ends_early_gives_an_error_and_then_ends() {
        assert_eq!(
            values(b"\x02-1\x09ab", RowFormat::Text),
            [Some(Value::Bytes(b"-1")), None]
        );
        assert_eq!(values(b"\x00", RowFormat::Binary), [None]);
        assert_eq!(
            values(b"\x00\x00\x01\x00\x00\x00", RowFormat::Binary),
            [Some(Value::Signed(1)), None]
        );
        let row = Row::new(b"\x01a", RowFormat::Text, &KINDS);
        assert_eq!(row.value(0), Some(Ok(Value::Bytes(b"a"))));
        assert!(matches!(row.value(1), Some(Err(_))));
        assert_eq!(
            row.value(3).map(|value| value.is_err()),
            Some(true),
            "the error comes first"
        );
    }
}
