//! Types of parameters and columns by their number in `pg_type`, and values in text and binary form.

use std::io::Write as _;

use crate::value::{ColumnKind, ColumnType, Value};

/// Format of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterKind {
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    /// Bytes that are the value, in binary form.
    Bytea,
    /// Any other type, in text form, which the server parses.
    Text,
}

impl ParameterKind {
    pub(super) fn by_oid(oid: u32) -> Self {
        match oid {
            21 => ParameterKind::Int2,
            23 => ParameterKind::Int4,
            20 => ParameterKind::Int8,
            700 => ParameterKind::Float4,
            701 => ParameterKind::Float8,
            17 => ParameterKind::Bytea,
            _ => ParameterKind::Text,
        }
    }

    /// Appends a value without its length; true for binary form. A number outside the type's range is written as text,
    /// so that the server refuses it with its own error.
    #[inline]
    pub(super) fn put(self, out: &mut Vec<u8>, value: &Value<'_>) -> bool {
        match (self, *value) {
            (ParameterKind::Int4, Value::Signed(number)) => match i32::try_from(number) {
                Ok(number) => out.extend_from_slice(&number.to_be_bytes()),
                Err(_) => return put_text(out, value),
            },
            (ParameterKind::Int8, Value::Signed(number)) => {
                out.extend_from_slice(&number.to_be_bytes());
            }
            (ParameterKind::Int2, Value::Signed(number)) => match i16::try_from(number) {
                Ok(number) => out.extend_from_slice(&number.to_be_bytes()),
                Err(_) => return put_text(out, value),
            },
            (
                ParameterKind::Int2 | ParameterKind::Int4 | ParameterKind::Int8,
                Value::Unsigned(number),
            ) => match i64::try_from(number) {
                Ok(number) => return self.put(out, &Value::Signed(number)),
                Err(_) => return put_text(out, value),
            },
            (ParameterKind::Float4, Value::Float(number)) => {
                out.extend_from_slice(&number.to_be_bytes());
            }
            (ParameterKind::Float8, Value::Double(number)) => {
                out.extend_from_slice(&number.to_be_bytes());
            }
            (ParameterKind::Bytea, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
            (ParameterKind::Bytea, Value::Text(text)) => out.extend_from_slice(text.as_bytes()),
            _ => return put_text(out, value),
        }
        true
    }
}

/// Appends a value as text; returns false, since it is not in binary form.
fn put_text(out: &mut Vec<u8>, value: &Value<'_>) -> bool {
    // Writing to memory does not fail.
    let _ = match *value {
        Value::Null => Ok(()),
        Value::Signed(number) => write!(out, "{number}"),
        Value::Unsigned(number) => write!(out, "{number}"),
        Value::Float(number) => write!(out, "{number}"),
        Value::Double(number) => write!(out, "{number}"),
        Value::Bytes(bytes) => out.write_all(bytes),
        Value::Text(text) => out.write_all(text.as_bytes()),
        Value::Date(date) => write!(out, "{date}"),
        Value::DateTime(moment) => write!(out, "{moment}"),
        Value::Time(span) => write!(out, "{span}"),
    };
    false
}

/// The column type for an OID; [`ColumnType::BLOB`] for all types whose values are passed through.
pub(super) fn kind_by_oid(oid: u32) -> ColumnKind {
    let column_type = match oid {
        16 => ColumnType::TINY,
        21 => ColumnType::SHORT,
        23 => ColumnType::LONG,
        20 => ColumnType::LONG_LONG,
        700 => ColumnType::FLOAT,
        701 => ColumnType::DOUBLE,
        _ => ColumnType::BLOB,
    };
    ColumnKind {
        column_type,
        unsigned: false,
    }
}

/// True when a column of this type is requested in binary form: numbers, because that is cheaper, and bytes, whose
/// size text doubles. Decimals and times come as text, as from other servers.
pub(super) fn is_binary(oid: u32) -> bool {
    matches!(oid, 16 | 17 | 20 | 21 | 23 | 700 | 701)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(kind: ParameterKind, value: Value<'_>) -> (Vec<u8>, bool) {
        let mut out = Vec::new();
        let is_binary = kind.put(&mut out, &value);
        (out, is_binary)
    }

    #[test]
    fn values_have_the_binary_form_of_their_parameter_or_are_text() {
        for (kind, value, bytes, is_binary) in [
            (
                ParameterKind::Int4,
                Value::Signed(-2),
                &b"\xff\xff\xff\xfe"[..],
                true,
            ),
            (ParameterKind::Int4, Value::Unsigned(7), b"\0\0\0\x07", true),
            (
                ParameterKind::Int4,
                Value::Signed(1 << 31),
                b"2147483648",
                false,
            ),
            (ParameterKind::Int2, Value::Signed(258), b"\x01\x02", true),
            (
                ParameterKind::Int8,
                Value::Signed(1),
                b"\0\0\0\0\0\0\0\x01",
                true,
            ),
            (
                ParameterKind::Int8,
                Value::Unsigned(u64::MAX),
                b"18446744073709551615",
                false,
            ),
            (ParameterKind::Int4, Value::Text("12"), b"12", false),
            (
                ParameterKind::Float8,
                Value::Double(1.0),
                b"\x3f\xf0\0\0\0\0\0\0",
                true,
            ),
            (ParameterKind::Bytea, Value::Bytes(b"\0\\"), b"\0\\", true),
            (ParameterKind::Text, Value::Signed(-5), b"-5", false),
            (ParameterKind::Text, Value::Double(0.5), b"0.5", false),
        ] {
            assert_eq!(
                put(kind, value),
                (bytes.to_vec(), is_binary),
                "{kind:?} {value:?}"
            );
        }
    }
}
