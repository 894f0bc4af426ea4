//! Values as SQL literals that mean the same in every SQL mode and character set of the session.

use std::fmt::{self, Display, Formatter, Write as _};

/// Bytes as a literal: quoted when they are printable ASCII without backslash and quote, in hexadecimal otherwise.
/// `NO_BACKSLASH_ESCAPES` decides whether a backslash in quotes has a meaning, and the character set of the session what
/// bytes beyond ASCII become.
pub struct BytesLiteral<'a>(pub &'a [u8]);

impl Display for BytesLiteral<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let is_plain = |&byte: &u8| (b' '..=b'~').contains(&byte) && !matches!(byte, b'\\' | b'\'');
        match std::str::from_utf8(self.0) {
            Ok(text) if self.0.iter().all(is_plain) => write!(out, "'{text}'"),
            _ => hexadecimal(out, self.0),
        }
    }
}

/// Text as a literal, in hexadecimal with its character set when a backslash is in it.
pub struct TextLiteral<'a>(pub &'a str);

impl Display for TextLiteral<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.0.contains(['\\', '\0']) {
            out.write_str("_utf8mb4 ")?;
            return hexadecimal(out, self.0.as_bytes());
        }
        // A doubled quote is one in every mode.
        out.write_char('\'')?;
        for (number, piece) in self.0.split('\'').enumerate() {
            out.write_str(if number == 0 { "" } else { "''" })?;
            out.write_str(piece)?;
        }
        out.write_char('\'')
    }
}

fn hexadecimal(out: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    out.write_str("x'")?;
    for byte in bytes {
        out.write_char(digit(byte >> 4))?;
        out.write_char(digit(byte & 0xF))?;
    }
    out.write_char('\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_quoted_only_when_every_mode_reads_them_alike() {
        let literal = |bytes: &[u8]| BytesLiteral(bytes).to_string();
        assert_eq!(literal(b"plain text"), "'plain text'");
        assert_eq!(literal(b"it's"), "x'69742773'");
        assert_eq!(literal(b"a\\b"), "x'615c62'");
        assert_eq!(literal(&[0xC8, 0]), "x'c800'");
        assert_eq!(literal("\u{e9}".as_bytes()), "x'c3a9'");
        assert_eq!(literal(b""), "''");
    }

    #[test]
    fn text_keeps_its_character_set() {
        let literal = |text: &str| TextLiteral(text).to_string();
        assert_eq!(literal("it's \u{e9}"), "'it''s \u{e9}'");
        assert_eq!(literal("a\\b"), "_utf8mb4 x'615c62'");
    }
}
