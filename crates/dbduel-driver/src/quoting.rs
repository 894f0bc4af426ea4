//! Quoting of names and texts in statements, for each product: the only place that writes quotes around either.

use std::fmt::{self, Display, Formatter, Write as _};

use super::postgresql::literal;
use super::{Dialect, TextLiteral};

impl Dialect {
    /// A quoted identifier (table, column, database); reserved words, blanks, quotes and upper case are kept.
    #[must_use]
    pub fn identifier(self, name: &str) -> Identifier<'_> {
        let quote = match self {
            // In double quotes it would be a text, unless sql_mode has ANSI_QUOTES.
            Dialect::MySql => '`',
            Dialect::PostgreSql | Dialect::Sqlite => '"',
        };
        Identifier { name, quote }
    }

    /// Names with commas between them.
    #[must_use]
    pub fn identifiers<'n>(self, names: impl IntoIterator<Item = &'n str>) -> String {
        let names = names.into_iter();
        let quoted: Vec<String> = names
            .map(|name| self.identifier(name).to_string())
            .collect();
        quoted.join(", ")
    }

    /// A text as a literal.
    #[must_use]
    pub fn literal(self, text: &str) -> String {
        match self {
            Dialect::MySql => TextLiteral(text).to_string(),
            Dialect::PostgreSql | Dialect::Sqlite => literal::Text(text).to_string(),
        }
    }
}

/// A quoted identifier.
#[derive(Debug, Clone, Copy)]
pub struct Identifier<'n> {
    name: &'n str,
    quote: char,
}

impl Display for Identifier<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_char(self.quote)?;
        for (number, piece) in self.name.split(self.quote).enumerate() {
            if number > 0 {
                write!(out, "{0}{0}", self.quote)?;
            }
            out.write_str(piece)?;
        }
        out.write_char(self.quote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_in_a_name_is_doubled_and_everything_else_stays() {
        for (name, mysql, others) in [
            ("order", "`order`", "\"order\""),
            ("a b", "`a b`", "\"a b\""),
            ("Ünïcode", "`Ünïcode`", "\"Ünïcode\""),
            ("a\"b", "`a\"b`", "\"a\"\"b\""),
            ("a`b", "`a``b`", "\"a`b\""),
        ] {
            assert_eq!(Dialect::MySql.identifier(name).to_string(), mysql);
            for dialect in [Dialect::PostgreSql, Dialect::Sqlite] {
                assert_eq!(dialect.identifier(name).to_string(), others);
            }
        }
        assert_eq!(Dialect::MySql.identifiers(["id", "a b"]), "`id`, `a b`");
    }

    #[test]
    fn a_literal_is_read_alike_in_every_mode() {
        assert_eq!(Dialect::MySql.literal("it's"), "'it''s'");
        assert_eq!(Dialect::MySql.literal("a\\b"), "_utf8mb4 x'615c62'");
        for dialect in [Dialect::PostgreSql, Dialect::Sqlite] {
            assert_eq!(dialect.literal("it's a\\b"), "'it''s a\\b'");
        }
    }
}
