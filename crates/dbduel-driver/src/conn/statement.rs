//! A statement that is executed repeatedly, prepared by the server or sent as text.

use std::io::Write as _;

use dbduel_wire::{CommandError, SentTypes, Value};

use crate::Dialect;
use crate::mysql::{BytesLiteral, TextLiteral};
use crate::placeholders::pieces;
use crate::postgresql::{Prepared, literal};
use crate::sqlite;

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Prepared once by the server, then executed with binary values.
    Prepared,
    /// Sent as text each time.
    Text,
    /// Statements whose values are known together in one request ([`Group`](super::Group)): with MySQL as text, with PostgreSQL
    /// prepared.
    Grouped,
}

/// A statement of one connection.
#[derive(Debug)]
pub struct Statement {
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Prepared by MySQL or MariaDB.
    MySql {
        statement: dbduel_wire::Statement,
        sent: SentTypes,
    },
    /// Prepared by PostgreSQL.
    PostgreSql { statement: Prepared },
    /// Prepared by SQLite, which keeps it with the connection.
    Sqlite {
        statement: sqlite::PreparedStatement,
    },
    /// The text around the placeholders; one piece more than there are placeholders.
    Text {
        pieces: Vec<Vec<u8>>,
        dialect: Dialect,
    },
}

impl Statement {
    /// A statement that is sent as text with its values in place of `?`.
    pub fn text(sql: &str, dialect: Dialect) -> Self {
        let pieces = pieces(sql, dialect);
        let pieces = pieces.map(|piece| piece.as_bytes().to_vec()).collect();
        Statement {
            kind: Kind::Text { pieces, dialect },
        }
    }

    /// How many values an execution needs.
    #[must_use]
    pub fn parameters(&self) -> usize {
        match &self.kind {
            Kind::MySql { statement, .. } => usize::from(statement.parameters),
            Kind::PostgreSql { statement } => statement.parameters(),
            Kind::Sqlite { statement } => statement.parameters,
            Kind::Text { pieces, .. } => pieces.len() - 1,
        }
    }

    /// True when its values are written into its text.
    #[inline]
    pub fn is_written_out(&self) -> bool {
        matches!(self.kind, Kind::Text { .. })
    }

    /// Called when an execution failed: the server may not know the types of the values.
    #[cold]
    pub(super) fn failed(&mut self) {
        if let Kind::MySql { sent, .. } = &mut self.kind {
            sent.forget();
        }
    }
}

/// Appends a statement with its values in place.
pub(super) fn put_text(
    text: &mut Vec<u8>,
    pieces: &[Vec<u8>],
    dialect: Dialect,
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
            put_literal(text, dialect, value);
        }
    }
    Ok(())
}

/// Appends a value as an SQL literal.
fn put_literal(text: &mut Vec<u8>, dialect: Dialect, value: &Value<'_>) {
    // Writing to memory does not fail.
    let _ = match *value {
        Value::Null => text.write_all(b"NULL"),
        Value::Signed(number) => write!(text, "{number}"),
        Value::Unsigned(number) => write!(text, "{number}"),
        Value::Float(number) => write!(text, "{number}"),
        Value::Double(number) => write!(text, "{number}"),
        Value::Bytes(bytes) => match dialect {
            // SQLite tells text from bytes, which its columns of text are compared with; see `sqlite::Bound`.
            Dialect::Sqlite if let Ok(string) = std::str::from_utf8(bytes) => {
                write!(text, "{}", literal::Text(string))
            }
            Dialect::MySql | Dialect::Sqlite => write!(text, "{}", BytesLiteral(bytes)),
            Dialect::PostgreSql => write!(text, "{}", literal::Bytes(bytes)),
        },
        Value::Text(string) => match dialect {
            Dialect::MySql => write!(text, "{}", TextLiteral(string)),
            Dialect::PostgreSql | Dialect::Sqlite => write!(text, "{}", literal::Text(string)),
        },
        Value::Date(date) => write!(text, "'{date}'"),
        Value::DateTime(moment) => write!(text, "'{moment}'"),
        Value::Time(span) => write!(text, "'{span}'"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(dialect: Dialect, sql: &str, values: &[Value<'_>]) -> Result<String, CommandError> {
        let mut text = Vec::new();
        let Kind::Text { pieces, .. } = Statement::text(sql, dialect).kind else {
            panic!("prepared");
        };
        put_text(&mut text, &pieces, dialect, values)?;
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
        let sql = "SELECT ?, ?, ?, ?, ? + 1";
        assert_eq!(
            written(Dialect::MySql, sql, &values).unwrap(),
            "SELECT -7, x'61205c2000', 'it''s', NULL, 0.5 + 1"
        );
        assert_eq!(
            written(Dialect::PostgreSql, sql, &values).unwrap(),
            "SELECT -7, '\\x61205c2000', 'it''s', NULL, 0.5 + 1"
        );
        assert_eq!(
            written(Dialect::Sqlite, "SELECT ?", &[Value::Text("a\\b")]).unwrap(),
            "SELECT 'a\\b'"
        );
        assert_eq!(written(Dialect::MySql, "COMMIT", &[]).unwrap(), "COMMIT");
    }

    #[test]
    fn a_wrong_number_of_values_is_refused() {
        assert!(written(Dialect::MySql, "SELECT ?", &[]).is_err());
        assert!(written(Dialect::MySql, "SELECT 1", &[Value::Null]).is_err());
    }
}
