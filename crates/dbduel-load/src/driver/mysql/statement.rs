//! A statement that is executed again and again, prepared by the server or written out as text.

use std::io::Write as _;

use dbduel_wire::{CommandError, RowFormat, SentTypes, Value, command};

use super::LostError;
use super::literal::{BytesLiteral, TextLiteral};

/// How statements travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Prepared once by the server, then executed with binary values.
    Prepared,
    /// Written out as text each time.
    Text,
    /// As text, and statements whose values are known together in one request ([`Group`]).
    Grouped,
}

/// Statements that go to the server in one request and whose results come back in one reply. The server
/// stops at the first that fails.
#[derive(Debug, Default)]
pub struct Group {
    text: Vec<u8>,
    statements: u64,
}

impl Group {
    /// Forgets all statements.
    pub fn clear(&mut self) {
        self.text.clear();
        self.statements = 0;
    }

    /// Adds a statement with its values.
    ///
    /// # Errors
    /// When the statement was prepared by the server, or takes another number of values.
    pub fn add(&mut self, statement: &Statement, values: &[Value<'_>]) -> Result<(), LostError> {
        let Kind::Text { pieces } = &statement.kind else {
            return Err(CommandError::ParameterCount {
                statement: 0,
                expected: 0,
                got: values.len(),
            }
            .into());
        };
        if self.statements > 0 {
            self.text.push(b';');
        }
        self.statements += 1;
        Ok(put_text(&mut self.text, pieces, values)?)
    }

    /// The request, and how many statements are in it.
    pub(super) fn request(&self) -> (&[u8], u64) {
        (&self.text, self.statements)
    }
}

/// A statement of one connection.
#[derive(Debug)]
pub struct Statement {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Prepared {
        statement: dbduel_wire::Statement,
        sent: SentTypes,
    },
    /// The text around the placeholders; one piece more than there are placeholders.
    Text { pieces: Vec<Vec<u8>> },
}

impl Statement {
    pub(super) fn prepared(statement: dbduel_wire::Statement) -> Self {
        Statement {
            kind: Kind::Prepared {
                statement,
                sent: SentTypes::default(),
            },
        }
    }

    /// Every question mark is taken for a placeholder, so the text must have none in a literal.
    pub(crate) fn text(sql: &str) -> Self {
        Statement {
            kind: Kind::Text {
                pieces: sql
                    .split('?')
                    .map(|piece| piece.as_bytes().to_vec())
                    .collect(),
            },
        }
    }

    /// How many values an execution needs.
    #[must_use]
    pub fn parameters(&self) -> usize {
        match &self.kind {
            Kind::Prepared { statement, .. } => usize::from(statement.parameters),
            Kind::Text { pieces } => pieces.len() - 1,
        }
    }

    /// The statement as the server has prepared it; none when it gets the text.
    pub(super) fn on_server(&self) -> Option<&dbduel_wire::Statement> {
        match &self.kind {
            Kind::Prepared { statement, .. } => Some(statement),
            Kind::Text { .. } => None,
        }
    }

    /// Appends the request to `out`; `text` is scratch space.
    #[inline]
    pub(super) fn put(
        &mut self,
        out: &mut Vec<u8>,
        text: &mut Vec<u8>,
        values: &[Value<'_>],
    ) -> Result<RowFormat, CommandError> {
        match &mut self.kind {
            Kind::Prepared { statement, sent } => {
                command::execute(out, statement, values, sent.choose(values))?;
                Ok(RowFormat::Binary)
            }
            Kind::Text { pieces } => {
                text.clear();
                put_text(text, pieces, values)?;
                command::query(out, text);
                Ok(RowFormat::Text)
            }
        }
    }

    /// An execution failed, so whether the server knows the types of the values is not known.
    #[cold]
    pub(super) fn failed(&mut self) {
        if let Kind::Prepared { sent, .. } = &mut self.kind {
            sent.forget();
        }
    }
}

/// Appends a statement with its values in place.
fn put_text(
    text: &mut Vec<u8>,
    pieces: &[Vec<u8>],
    values: &[Value<'_>],
) -> Result<(), CommandError> {
    let expected = pieces.len() - 1;
    if values.len() != expected {
        return Err(CommandError::ParameterCount {
            statement: 0,
            expected,
            got: values.len(),
        });
    }
    for (index, piece) in pieces.iter().enumerate() {
        text.extend_from_slice(piece);
        if let Some(value) = values.get(index) {
            put_literal(text, value);
        }
    }
    Ok(())
}

/// Appends a value as an SQL literal.
fn put_literal(text: &mut Vec<u8>, value: &Value<'_>) {
    // Writing to memory does not fail.
    let _ = match *value {
        Value::Null => text.write_all(b"NULL"),
        Value::Signed(number) => write!(text, "{number}"),
        Value::Unsigned(number) => write!(text, "{number}"),
        Value::Float(number) => write!(text, "{number}"),
        Value::Double(number) => write!(text, "{number}"),
        Value::Bytes(bytes) => write!(text, "{}", BytesLiteral(bytes)),
        Value::Text(string) => write!(text, "{}", TextLiteral(string)),
        Value::Date(date) => write!(text, "'{:04}-{:02}-{:02}'", date.year, date.month, date.day),
        Value::DateTime(moment) => write!(
            text,
            "'{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}'",
            moment.date.year,
            moment.date.month,
            moment.date.day,
            moment.hour,
            moment.minute,
            moment.second,
            moment.microsecond
        ),
        Value::Time(span) => {
            let sign = if span.negative { "-" } else { "" };
            let hours = span.days * 24 + u32::from(span.hours);
            write!(
                text,
                "'{sign}{hours:02}:{:02}:{:02}.{:06}'",
                span.minutes, span.seconds, span.microseconds
            )
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(sql: &str, values: &[Value<'_>]) -> Result<String, CommandError> {
        let (mut out, mut text) = (Vec::new(), Vec::new());
        Statement::text(sql).put(&mut out, &mut text, values)?;
        // A frame's header and the command byte stand before the text.
        assert_eq!(&out[5..], text);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    #[test]
    fn text_statements_get_their_values_in_place() {
        let values = [
            Value::Signed(-7),
            Value::Bytes(b"a \\ \0"),
            Value::Text("it's"),
            Value::Null,
            Value::Double(0.5),
        ];
        assert_eq!(
            written("SELECT ?, ?, ?, ?, ? + 1", &values).unwrap(),
            "SELECT -7, x'61205c2000', 'it''s', NULL, 0.5 + 1"
        );
        assert_eq!(written("COMMIT", &[]).unwrap(), "COMMIT");
    }

    #[test]
    fn a_group_is_one_request_with_all_its_statements() {
        let mut group = Group::default();
        let values = [Value::Unsigned(7), Value::Text("a;b")];
        group.add(&Statement::text("BEGIN"), &[]).unwrap();
        group.add(&Statement::text("SELECT ?, ?"), &values).unwrap();
        assert_eq!(group.request(), (&b"BEGIN;SELECT 7, 'a;b'"[..], 2));
        assert!(group.add(&Statement::text("SELECT ?"), &values).is_err());
        group.clear();
        assert_eq!(group.request(), (&b""[..], 0));
    }

    #[test]
    fn a_wrong_number_of_values_is_refused() {
        assert!(written("SELECT ?", &[]).is_err());
        assert!(written("SELECT 1", &[Value::Null]).is_err());
    }

    /// Whether an execution with these values tells the server their types.
    fn tells_types(statement: &mut Statement, values: &[Value<'_>]) -> bool {
        let (mut out, mut text) = (Vec::new(), Vec::new());
        statement.put(&mut out, &mut text, values).unwrap();
        // A frame's header, the command with its fixed arguments and the bits of the NULLs stand before.
        out[4 + 10 + values.len().div_ceil(8)] == 1
    }

    fn of_two() -> Statement {
        Statement::prepared(dbduel_wire::Statement {
            id: 1,
            parameters: 2,
            columns: 0,
            warnings: 0,
        })
    }

    #[test]
    fn a_value_after_a_null_brings_its_type() {
        let mut statement = of_two();
        let with_null = [Value::Signed(1), Value::Null];
        let with_text = [Value::Signed(1), Value::Text("carrier")];
        assert!(tells_types(&mut statement, &with_null));
        assert!(!tells_types(&mut statement, &with_null));
        assert!(tells_types(&mut statement, &with_text));
        assert!(!tells_types(&mut statement, &with_null));
        assert!(!tells_types(&mut statement, &with_text));
    }

    #[test]
    fn types_are_told_again_after_a_failure() {
        let mut statement = of_two();
        let values = [Value::Signed(1), Value::Signed(2)];
        assert!(tells_types(&mut statement, &values));
        statement.failed();
        assert!(tells_types(&mut statement, &values));
        assert!(!tells_types(&mut statement, &values));
    }
}
