//! Values of parameters and columns, and their binary form.
//!
//! Dates are three numbers and are not validated.

use std::fmt;

use crate::bytes::{Cursor, put_length_bytes};
use crate::error::WireError;

/// Type code of a column or parameter on the wire. Unknown codes are read as byte strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnType(pub u8);

impl ColumnType {
    /// DECIMAL of old servers, as text.
    pub const OLD_DECIMAL: Self = Self(0);
    /// TINYINT, one byte.
    pub const TINY: Self = Self(1);
    /// SMALLINT, two bytes.
    pub const SHORT: Self = Self(2);
    /// INT, four bytes.
    pub const LONG: Self = Self(3);
    /// FLOAT, four bytes.
    pub const FLOAT: Self = Self(4);
    /// DOUBLE, eight bytes.
    pub const DOUBLE: Self = Self(5);
    /// NULL, no bytes.
    pub const NULL: Self = Self(6);
    /// TIMESTAMP.
    pub const TIMESTAMP: Self = Self(7);
    /// BIGINT, eight bytes.
    pub const LONG_LONG: Self = Self(8);
    /// MEDIUMINT, four bytes in rows.
    pub const INT24: Self = Self(9);
    /// DATE.
    pub const DATE: Self = Self(10);
    /// TIME.
    pub const TIME: Self = Self(11);
    /// DATETIME.
    pub const DATETIME: Self = Self(12);
    /// YEAR, two bytes.
    pub const YEAR: Self = Self(13);
    /// VARCHAR.
    pub const VARCHAR: Self = Self(15);
    /// DECIMAL, as text.
    pub const DECIMAL: Self = Self(246);
    /// Binary strings of any length.
    pub const BLOB: Self = Self(252);
    /// Text of variable length.
    pub const VAR_STRING: Self = Self(253);
    /// Text of fixed length.
    pub const STRING: Self = Self(254);
}

/// A type code together with its sign: all that is needed to decode a binary value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnKind {
    /// The type code.
    pub column_type: ColumnType,
    /// True for unsigned integers.
    pub unsigned: bool,
}

/// A calendar date as sent; zero dates are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Date {
    /// Year, 0 to 9999.
    pub year: u16,
    /// Month, 1 to 12; 0 in incomplete dates.
    pub month: u8,
    /// Day of the month, 1 to 31; 0 in incomplete dates.
    pub day: u8,
}

/// A date and a time of day, without zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateTime {
    /// The date.
    pub date: Date,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
    /// Microsecond, 0 to 999 999.
    pub microsecond: u32,
}

/// A signed span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Time {
    /// True when the span is below zero.
    pub negative: bool,
    /// Whole days.
    pub days: u32,
    /// Hours, 0 to 23.
    pub hours: u8,
    /// Minutes, 0 to 59.
    pub minutes: u8,
    /// Seconds, 0 to 59.
    pub seconds: u8,
    /// Microseconds, 0 to 999 999.
    pub microseconds: u32,
}

/// One value: a parameter to bind or a column of a row.
///
/// In text rows every value that is not NULL is [`Value::Bytes`]; [`Value::as_i64`] reads the digits. In binary rows strings, decimals and everything unknown are [`Value::Bytes`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A signed integer, sent as BIGINT.
    Signed(i64),
    /// An unsigned integer, sent as BIGINT UNSIGNED.
    Unsigned(u64),
    /// Single precision.
    Float(f32),
    /// Double precision.
    Double(f64),
    /// A binary string; sent without a character set.
    Bytes(&'a [u8]),
    /// Text in the connection's character set.
    Text(&'a str),
    /// A date.
    Date(Date),
    /// A date with a time of day.
    DateTime(DateTime),
    /// A span of time.
    Time(Time),
}

impl<'a> Value<'a> {
    /// The type under which the value is sent as a parameter.
    #[must_use]
    pub const fn kind(&self) -> ColumnKind {
        let column_type = match self {
            Value::Null => ColumnType::NULL,
            Value::Signed(_) | Value::Unsigned(_) => ColumnType::LONG_LONG,
            Value::Float(_) => ColumnType::FLOAT,
            Value::Double(_) => ColumnType::DOUBLE,
            Value::Bytes(_) => ColumnType::BLOB,
            Value::Text(_) => ColumnType::VAR_STRING,
            Value::Date(_) => ColumnType::DATE,
            Value::DateTime(_) => ColumnType::DATETIME,
            Value::Time(_) => ColumnType::TIME,
        };
        ColumnKind {
            column_type,
            unsigned: matches!(self, Value::Unsigned(_)),
        }
    }

    /// The value as an integer: a number that fits, or numeric text.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::Signed(value) => Some(value),
            Value::Unsigned(value) => i64::try_from(value).ok(),
            Value::Bytes(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The value's bytes if it is a string.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// Appends the binary form; NULL has none, since it is a bit elsewhere.
    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Value::Null => {}
            Value::Signed(value) => out.extend_from_slice(&value.to_le_bytes()),
            Value::Unsigned(value) => out.extend_from_slice(&value.to_le_bytes()),
            Value::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
            Value::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
            Value::Bytes(bytes) => put_length_bytes(out, bytes),
            Value::Text(text) => put_length_bytes(out, text.as_bytes()),
            Value::Date(date) => {
                out.push(4);
                put_date(out, date);
            }
            Value::DateTime(moment) => put_datetime(out, &moment),
            Value::Time(span) => put_time(out, &span),
        }
    }

    /// Reads a binary value of the given kind.
    #[inline]
    pub(crate) fn read(cursor: &mut Cursor<'a>, kind: ColumnKind) -> Result<Self, WireError> {
        let whole = |unsigned: u64, signed: i64| match kind.unsigned {
            true => Value::Unsigned(unsigned),
            false => Value::Signed(signed),
        };
        Ok(match kind.column_type {
            ColumnType::TINY => {
                let number = cursor.u8()?;
                whole(number.into(), i64::from(number as i8))
            }
            ColumnType::SHORT | ColumnType::YEAR => {
                let number = cursor.u16()?;
                whole(number.into(), i64::from(number as i16))
            }
            ColumnType::LONG | ColumnType::INT24 => {
                let number = cursor.u32()?;
                whole(number.into(), i64::from(number as i32))
            }
            ColumnType::LONG_LONG => {
                let number = cursor.u64()?;
                whole(number, number as i64)
            }
            ColumnType::FLOAT => Value::Float(f32::from_le_bytes(cursor.array()?)),
            ColumnType::DOUBLE => Value::Double(f64::from_le_bytes(cursor.array()?)),
            ColumnType::NULL => Value::Null,
            ColumnType::DATE => Value::Date(read_datetime(cursor)?.date),
            ColumnType::DATETIME | ColumnType::TIMESTAMP => Value::DateTime(read_datetime(cursor)?),
            ColumnType::TIME => Value::Time(read_time(cursor)?),
            _ => Value::Bytes(cursor.length_bytes()?),
        })
    }

    /// A value in PostgreSQL's binary form; `None` when a number has the length of another type.
    #[inline]
    pub(crate) fn from_big_endian(bytes: &'a [u8], kind: ColumnKind) -> Option<Self> {
        Some(match kind.column_type {
            ColumnType::TINY => Value::Signed(i64::from(u8::from_be_bytes(bytes.try_into().ok()?))),
            ColumnType::SHORT => {
                Value::Signed(i64::from(i16::from_be_bytes(bytes.try_into().ok()?)))
            }
            ColumnType::LONG => {
                Value::Signed(i64::from(i32::from_be_bytes(bytes.try_into().ok()?)))
            }
            ColumnType::LONG_LONG => Value::Signed(i64::from_be_bytes(bytes.try_into().ok()?)),
            ColumnType::FLOAT => Value::Float(f32::from_be_bytes(bytes.try_into().ok()?)),
            ColumnType::DOUBLE => Value::Double(f64::from_be_bytes(bytes.try_into().ok()?)),
            _ => Value::Bytes(bytes),
        })
    }
}

/// As in an SQL literal, without the quotes.
impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// As in an SQL literal, without the quotes.
impl fmt::Display for DateTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DateTime {
            date,
            hour,
            minute,
            second,
            microsecond,
        } = self;
        write!(
            out,
            "{date} {hour:02}:{minute:02}:{second:02}.{microsecond:06}"
        )
    }
}

/// As in an SQL literal, without the quotes: in hours, even beyond a day.
impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let hours = u64::from(self.days) * 24 + u64::from(self.hours);
        let (minutes, seconds, microseconds) = (self.minutes, self.seconds, self.microseconds);
        write!(
            out,
            "{sign}{hours:02}:{minutes:02}:{seconds:02}.{microseconds:06}"
        )
    }
}

fn put_date(out: &mut Vec<u8>, date: Date) {
    out.extend_from_slice(&date.year.to_le_bytes());
    out.extend_from_slice(&[date.month, date.day]);
}

fn put_datetime(out: &mut Vec<u8>, moment: &DateTime) {
    let DateTime {
        date,
        hour,
        minute,
        second,
        microsecond,
    } = *moment;
    out.push(if microsecond != 0 { 11 } else { 7 });
    put_date(out, date);
    out.extend_from_slice(&[hour, minute, second]);
    if microsecond != 0 {
        out.extend_from_slice(&microsecond.to_le_bytes());
    }
}

fn put_time(out: &mut Vec<u8>, span: &Time) {
    let Time {
        negative,
        days,
        hours,
        minutes,
        seconds,
        microseconds,
    } = *span;
    out.push(if microseconds != 0 { 12 } else { 8 });
    out.push(u8::from(negative));
    out.extend_from_slice(&days.to_le_bytes());
    out.extend_from_slice(&[hours, minutes, seconds]);
    if microseconds != 0 {
        out.extend_from_slice(&microseconds.to_le_bytes());
    }
}

/// A date-time is sent in the shortest form: 0, 4, 7 or 11 bytes after the length.
fn read_datetime(cursor: &mut Cursor<'_>) -> Result<DateTime, WireError> {
    let length = cursor.u8()?;
    let mut moment = DateTime::default();
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(cursor.wrong("a date's length is not 0, 4, 7 or 11"));
    }
    if length >= 4 {
        moment.date = Date {
            year: cursor.u16()?,
            month: cursor.u8()?,
            day: cursor.u8()?,
        };
    }
    if length >= 7 {
        [moment.hour, moment.minute, moment.second] = cursor.array()?;
    }
    if length == 11 {
        moment.microsecond = cursor.u32()?;
    }
    Ok(moment)
}

fn read_time(cursor: &mut Cursor<'_>) -> Result<Time, WireError> {
    let length = cursor.u8()?;
    let mut span = Time::default();
    if !matches!(length, 0 | 8 | 12) {
        return Err(cursor.wrong("a time's length is not 0, 8 or 12"));
    }
    if length >= 8 {
        span.negative = cursor.u8()? != 0;
        span.days = cursor.u32()?;
        [span.hours, span.minutes, span.seconds] = cursor.array()?;
    }
    if length == 12 {
        span.microseconds = cursor.u32()?;
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], column_type: ColumnType, unsigned: bool, expected: Value<'_>) {
        let mut cursor = Cursor::new("value", bytes);
        let kind = ColumnKind {
            column_type,
            unsigned,
        };
        assert_eq!(Value::read(&mut cursor, kind), Ok(expected));
        assert!(cursor.is_empty());
        for cut in 0..bytes.len() {
            assert!(
                Value::read(&mut Cursor::new("value", &bytes[..cut]), kind).is_err(),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn integers_have_their_width_and_sign() {
        check(b"\xfe", ColumnType::TINY, false, Value::Signed(-2));
        check(b"\xfe", ColumnType::TINY, true, Value::Unsigned(254));
        check(b"\xfe\xff", ColumnType::SHORT, false, Value::Signed(-2));
        check(b"\xea\x07", ColumnType::YEAR, true, Value::Unsigned(2026));
        check(
            b"\xfe\xff\xff\xff",
            ColumnType::INT24,
            false,
            Value::Signed(-2),
        );
        check(
            b"\xfe\xff\xff\xff",
            ColumnType::LONG,
            true,
            Value::Unsigned(4_294_967_294),
        );
        check(
            &[0xff; 8],
            ColumnType::LONG_LONG,
            true,
            Value::Unsigned(u64::MAX),
        );
    }

    #[test]
    fn dates_and_times_may_be_short() {
        let date = Date {
            year: 2026,
            month: 11,
            day: 20,
        };
        let noon = DateTime {
            date,
            hour: 12,
            ..DateTime::default()
        };
        check(
            b"\x00",
            ColumnType::TIMESTAMP,
            false,
            Value::DateTime(DateTime::default()),
        );
        check(
            b"\x04\xea\x07\x0b\x14",
            ColumnType::DATE,
            false,
            Value::Date(date),
        );
        check(
            b"\x07\xea\x07\x0b\x14\x0c\0\0",
            ColumnType::DATETIME,
            false,
            Value::DateTime(noon),
        );
        let late = DateTime {
            microsecond: 1,
            ..noon
        };
        check(
            b"\x0b\xea\x07\x0b\x14\x0c\0\0\x01\0\0\0",
            ColumnType::DATETIME,
            false,
            Value::DateTime(late),
        );
        let mut written = Vec::new();
        Value::DateTime(late).put(&mut written);
        assert_eq!(
            written, b"\x0b\xea\x07\x0b\x14\x0c\0\0\x01\0\0\0",
            "one microsecond needs the long form"
        );
        check(
            b"\x00",
            ColumnType::TIME,
            false,
            Value::Time(Time::default()),
        );
        let span = Time {
            negative: true,
            days: 1,
            seconds: 2,
            ..Time::default()
        };
        check(
            b"\x08\x01\x01\0\0\0\0\0\x02",
            ColumnType::TIME,
            false,
            Value::Time(span),
        );
        let odd = [ColumnType::DATE, ColumnType::TIME].map(|column_type| ColumnKind {
            column_type,
            unsigned: false,
        });
        for kind in odd {
            assert!(
                Value::read(&mut Cursor::new("value", &[5; 9]), kind).is_err(),
                "no such length"
            );
        }
    }

    #[test]
    fn unknown_types_are_strings() {
        check(b"\x02[]", ColumnType(245), false, Value::Bytes(b"[]"));
        check(
            b"\x041.50",
            ColumnType::DECIMAL,
            false,
            Value::Bytes(b"1.50"),
        );
        assert_eq!(Value::Bytes(b"1.50").as_i64(), None);
        assert_eq!(Value::Unsigned(u64::MAX).as_i64(), None);
    }
}
