//! Values as SQL literals, for sessions with `standard_conforming_strings`, the default since 9.1.

use std::fmt::{self, Display, Formatter, Write as _};

/// Bytes as a literal of type BYTEA, in hexadecimal.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Display for Bytes<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("'\\x")?;
        for byte in self.0 {
            write!(out, "{byte:02x}")?;
        }
        out.write_char('\'')
    }
}

/// Text as a literal, in a form that SQLite reads too. A NUL has no literal: it ends the statement, so the server
/// refuses it.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_char('\'')?;
        for (number, piece) in self.0.split('\'').enumerate() {
            out.write_str(if number == 0 { "" } else { "''" })?;
            out.write_str(piece)?;
        }
        out.write_char('\'')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled_and_backslashes_stay() {
        assert_eq!(Text("it's \\ é").to_string(), "'it''s \\ é'");
        assert_eq!(Bytes(&[0, 0xc8, b'\'']).to_string(), "'\\x00c827'");
    }
}
