//! Reads the fields of rows, and writes decimals, without allocation.

use dbduel_driver::{
    ClientConnection, Completion, Dialect, Group, LostError, Row, Sink, Statement, StatementError,
    Summary, Value, Values,
};

/// The fields of a row, from left to right.
pub(super) struct Fields<'a> {
    values: Values<'a>,
    dialect: Dialect,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<Value<'a>> {
        self.values.next()?.ok()
    }

    /// A whole number; `None` when it is NULL or of another type.
    #[inline]
    pub(super) fn integer(&mut self) -> Option<u64> {
        self.next()?.as_i64()?.try_into().ok()
    }

    /// A decimal in units of its last place, for a number of places. SQLite stores it in these units.
    #[inline]
    pub(super) fn decimal(&mut self, places: usize) -> Option<i64> {
        match self.next()? {
            value if self.dialect == Dialect::Sqlite => value.as_i64(),
            Value::Bytes(text) => parse_decimal(text, places),
            other => other
                .as_i64()?
                .checked_mul(10_i64.checked_pow(places as u32)?),
        }
    }

    /// Text. The null server, which measures the lab itself, sends numbers instead; they read as empty.
    #[inline]
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        match self.next()? {
            Value::Bytes(text) => Some(text),
            Value::Text(text) => Some(text.as_bytes()),
            Value::Signed(_) => Some(b""),
            _ => None,
        }
    }
}

fn parse_decimal(text: &[u8], places: usize) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    let (whole, fraction) = match digits.iter().position(|&byte| byte == b'.') {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &[][..]),
    };
    // Places that are missing are zeros; places beyond must not be lost.
    if fraction.len() > places {
        return None;
    }
    let zeros = std::iter::repeat_n(&b'0', places - fraction.len());
    let mut number = 0_i64;
    for digit in whole.iter().chain(fraction).chain(zeros) {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number
            .checked_mul(10)?
            .checked_add(i64::from(digit - b'0'))?;
    }
    Some(if negative { -number } else { number })
}

/// An amount of money as text, so that the server reads it as an exact number; for SQLite, which has no decimals, as a
/// whole number of cents.
pub(super) struct Money {
    dialect: Dialect,
    cents: i64,
    text: [u8; 24],
    start: usize,
}

impl Money {
    /// An amount of hundredths.
    pub(super) fn new(dialect: Dialect, cents: i64) -> Self {
        let mut money = Money {
            dialect,
            cents,
            text: [b'0'; 24],
            start: 24,
        };
        let mut left = cents.unsigned_abs();
        // Three digits at least: the two places and one before the point.
        let mut digits = 0;
        while left > 0 || digits < 3 {
            if digits == 2 {
                money.push(b'.');
            }
            money.push(b'0' + (left % 10) as u8);
            left /= 10;
            digits += 1;
        }
        if cents < 0 {
            money.push(b'-');
        }
        money
    }

    fn push(&mut self, byte: u8) {
        self.start -= 1;
        self.text[self.start] = byte;
    }

    /// The amount with a point and two places.
    pub(super) fn text(&self) -> &[u8] {
        &self.text[self.start..]
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self.dialect {
            Dialect::Sqlite => Value::Signed(self.cents),
            Dialect::MySql | Dialect::PostgreSql => text(self.text()),
        }
    }
}

/// ASCII as text of the connection's character set.
#[inline]
pub(super) fn text(bytes: &[u8]) -> Value<'_> {
    std::str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Text)
}

/// Passes rows to a closure, with the index of their statement in its group, and remembers if one of them was invalid.
struct Reader<F> {
    read: F,
    dialect: Dialect,
    statement: usize,
    broken: bool,
}

impl<F: FnMut(usize, &mut Fields<'_>) -> Option<()>> Reader<F> {
    fn new(dialect: Dialect, read: F) -> Self {
        Reader {
            read,
            dialect,
            statement: 0,
            broken: false,
        }
    }

    /// The summary of the statements, unless a row was invalid.
    fn checked(&self, summary: Summary) -> Result<Summary, StatementError> {
        match self.broken {
            true => Err(unusable(
                "a row has NULL or text where a number is expected",
            )),
            false => Ok(summary),
        }
    }
}

impl<F: FnMut(usize, &mut Fields<'_>) -> Option<()>> Sink for Reader<F> {
    #[inline]
    fn wants_columns(&self) -> bool {
        false
    }

    #[inline]
    fn row(&mut self, row: &Row<'_>) {
        let mut fields = Fields {
            values: row.values(),
            dialect: self.dialect,
        };
        self.broken |= (self.read)(self.statement, &mut fields).is_none();
    }

    #[inline]
    fn completed(&mut self, _completion: &Completion) {
        self.statement += 1;
    }
}

/// Runs a query and passes every row to `read`, which returns `None` for an invalid row. Returns the number of rows.
pub(super) async fn each(
    conn: &mut ClientConnection,
    statement: &mut Statement,
    values: &[Value<'_>],
    mut read: impl FnMut(&mut Fields<'_>) -> Option<()>,
) -> Result<u64, StatementError> {
    let mut reader = Reader::new(conn.dialect(), |_, fields: &mut Fields<'_>| read(fields));
    let summary = conn.execute_into(statement, values, &mut reader).await?;
    Ok(reader.checked(summary)?.rows)
}

/// Runs a group and passes every row to `read`, with the index of its statement in the group; `None` for an invalid
/// row.
pub(super) async fn each_of(
    conn: &mut ClientConnection,
    group: &Group,
    read: impl FnMut(usize, &mut Fields<'_>) -> Option<()>,
) -> Result<(), StatementError> {
    let mut reader = Reader::new(conn.dialect(), read);
    let summary = conn.execute_group(group, &mut reader).await?;
    reader.checked(summary).map(drop)
}

/// Adds a statement to a group.
pub(super) fn add(
    group: &mut Group,
    statement: &Statement,
    values: &[Value<'_>],
) -> Result<(), StatementError> {
    Ok(group.add(statement, values)?)
}

/// A row of `table` that must exist.
pub(super) fn present<T>(row: Option<T>, table: &str) -> Result<T, StatementError> {
    row.ok_or_else(|| unusable(&format!("a row of table `{table}` is missing")))
}

/// Runs a query that returns one row or none.
pub(super) async fn maybe<T>(
    conn: &mut ClientConnection,
    statement: &mut Statement,
    values: &[Value<'_>],
    mut read: impl FnMut(&mut Fields<'_>) -> Option<T>,
) -> Result<Option<T>, StatementError> {
    let mut found = None;
    each(conn, statement, values, |fields| {
        found = read(fields);
        found.as_ref().map(|_| ())
    })
    .await?;
    Ok(found)
}

/// Runs a query that returns one row; the error names `table`.
pub(super) async fn one<T>(
    conn: &mut ClientConnection,
    statement: &mut Statement,
    values: &[Value<'_>],
    table: &str,
    read: impl FnMut(&mut Fields<'_>) -> Option<T>,
) -> Result<T, StatementError> {
    present(maybe(conn, statement, values, read).await?, table)
}

/// An error for data that are not what they must be; nothing can be measured with them.
pub(super) fn unusable(why: &str) -> StatementError {
    StatementError::Lost(LostError::Data {
        why: why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        for (text, places, value) in [
            ("0.1234", 4, Some(1_234)),
            ("-10.00", 2, Some(-1_000)),
            ("300000.5", 2, Some(30_000_050)),
            ("7", 2, Some(700)),
            ("1.234", 2, None),
            ("1e5", 2, None),
            ("", 2, None),
            ("99999999999999999999", 2, None),
        ] {
            assert_eq!(parse_decimal(text.as_bytes(), places), value, "{text}");
        }
    }

    #[test]
    fn money_is_written_with_two_places() {
        for (cents, text) in [
            (0, "0.00"),
            (5, "0.05"),
            (-5, "-0.05"),
            (100, "1.00"),
            (-123_456, "-1234.56"),
            (i64::MIN, "-92233720368547758.08"),
        ] {
            assert_eq!(Money::new(Dialect::MySql, cents).value(), Value::Text(text));
            assert_eq!(
                Money::new(Dialect::Sqlite, cents).value(),
                Value::Signed(cents)
            );
        }
    }
}
