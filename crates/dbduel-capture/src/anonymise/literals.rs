//! Literals of SQL and the values that they stand for.

use dbduel_sql::Syntax;

/// How the inside of a literal's quotes is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// A doubled quote alone.
    None,
    /// Backslashes of MySQL.
    Mysql,
    /// Backslashes of PostgreSQL's strings with the prefix E.
    Postgresql,
}

/// A literal of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Literal {
    /// A string with its prefix, as it is before the quote, and its value.
    Text {
        /// Such as `N` or `_utf8mb4`, mostly empty.
        prefix: Vec<u8>,
        /// `'` or `"`.
        quote: u8,
        /// What it stands for.
        value: Vec<u8>,
        /// True where a backslash escapes.
        has_escapes: bool,
    },
    /// `$tag$ … $tag$`: the mark and the text.
    Dollar {
        /// `$tag$`.
        mark: Vec<u8>,
        /// What is between the marks.
        value: Vec<u8>,
    },
    /// `x'…'`: the digits.
    Hex(Vec<u8>),
    /// `b'…'`: the digits.
    Bits(Vec<u8>),
}

impl Literal {
    /// Reads a token that is a string. `is_part` is true behind a string with the prefix E, whose further parts have escapes, too.
    ///
    /// # Errors
    /// Why it is not understood.
    pub(super) fn read(token: &[u8], syntax: Syntax, is_part: bool) -> Result<Self, &'static str> {
        const NOT_CLOSED: &str = "a quote that is not closed";
        if syntax.is_postgresql && token.starts_with(b"$") {
            let end = token[1..].iter().position(|byte| *byte == b'$');
            let mark = &token[..end.map_or(token.len(), |end| end + 2)];
            let value = token[mark.len()..].strip_suffix(mark).ok_or(NOT_CLOSED)?;
            return Ok(Literal::Dollar {
                mark: mark.to_vec(),
                value: value.to_vec(),
            });
        }
        let is_quote = |byte: &u8| matches!(byte, b'\'' | b'"');
        let open = token.iter().position(is_quote).ok_or(NOT_CLOSED)?;
        let (prefix, quoted) = token.split_at(open);
        let quote = quoted[0];
        let escapes = match prefix {
            [b'u' | b'U', b'&'] => return Err("a string with escapes of Unicode"),
            [b'x' | b'X' | b'b' | b'B'] => Escapes::None,
            [b'e' | b'E'] if syntax.is_postgresql => Escapes::Postgresql,
            _ if syntax.is_postgresql && is_part => Escapes::Postgresql,
            _ if syntax.backslash_escapes => Escapes::Mysql,
            _ => Escapes::None,
        };
        let value = unquoted(&quoted[1..], quote, escapes).ok_or(NOT_CLOSED)?;
        Ok(match prefix {
            [b'x' | b'X'] => Literal::Hex(value),
            [b'b' | b'B'] => Literal::Bits(value),
            _ => Literal::Text {
                prefix: prefix.to_vec(),
                quote,
                value,
                has_escapes: escapes != Escapes::None,
            },
        })
    }
}

/// The value between quotes; `None` where the closing one is missing or anything follows it.
fn unquoted(text: &[u8], quote: u8, escapes: Escapes) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(text.len());
    let mut at = 0;
    loop {
        let byte = *text.get(at)?;
        if byte == quote {
            match text.get(at + 1) {
                Some(next) if *next == quote => value.push(quote),
                Some(_) => return None,
                None => return Some(value),
            }
            at += 2;
        } else if byte == b'\\' && escapes != Escapes::None {
            at += 1 + match escapes {
                Escapes::Postgresql => postgresql_escape(text.get(at + 1..)?, &mut value)?,
                Escapes::Mysql | Escapes::None => mysql_escape(*text.get(at + 1)?, &mut value),
            };
        } else {
            value.push(byte);
            at += 1;
        }
    }
}

/// Appends what the byte behind a backslash stands for.
fn mysql_escape(byte: u8, value: &mut Vec<u8>) -> usize {
    match byte {
        b'0' => value.push(0),
        b'b' => value.push(8),
        b'n' => value.push(b'\n'),
        b'r' => value.push(b'\r'),
        b't' => value.push(b'\t'),
        b'Z' => value.push(0x1a),
        // For patterns they stay two characters.
        b'%' | b'_' => value.extend_from_slice(&[b'\\', byte]),
        other => value.push(other),
    }
    1
}

/// Appends what stands behind a backslash of PostgreSQL; returns its bytes, `None` where it is no escape.
fn postgresql_escape(text: &[u8], value: &mut Vec<u8>) -> Option<usize> {
    let coded = |from: usize, most: usize, radix: u32| -> Option<(u32, usize)> {
        let digits = text.get(from..).unwrap_or_default();
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let count = digits.iter().take(most).take_while(is_digit).count();
        let digits = std::str::from_utf8(&digits[..count]).ok()?;
        Some((u32::from_str_radix(digits, radix).ok()?, count))
    };
    let wide = |most: usize| -> Option<(char, usize)> {
        let (code, count) = coded(1, most, 16)?;
        Some((char::from_u32(code).filter(|_| count == most)?, count + 1))
    };
    let mut encoded = [0; 4];
    match text.first()? {
        b'b' => value.push(8),
        b'f' => value.push(0x0c),
        b'n' => value.push(b'\n'),
        b'r' => value.push(b'\r'),
        b't' => value.push(b'\t'),
        b'0'..=b'7' => {
            let (code, count) = coded(0, 3, 8)?;
            value.push((code & 0xff) as u8);
            return Some(count);
        }
        b'x' if text.get(1).is_some_and(u8::is_ascii_hexdigit) => {
            let (code, count) = coded(1, 2, 16)?;
            value.push(code as u8);
            return Some(count + 1);
        }
        first @ (b'u' | b'U') => {
            let (character, count) = wide(if *first == b'u' { 4 } else { 8 })?;
            value.extend_from_slice(character.encode_utf8(&mut encoded).as_bytes());
            return Some(count);
        }
        other => value.push(*other),
    }
    Some(1)
}

/// Appends a string literal of a value.
pub(super) fn write_text(value: &[u8], quote: u8, has_escapes: bool, out: &mut Vec<u8>) {
    out.push(quote);
    for (place, byte) in value.iter().enumerate() {
        // With digits behind it, `\0` is another byte for PostgreSQL.
        let is_before_digit = || value.get(place + 1).is_some_and(u8::is_ascii_digit);
        match byte {
            byte if *byte == quote => out.extend_from_slice(&[quote, quote]),
            b'\\' if has_escapes => out.extend_from_slice(b"\\\\"),
            0 if has_escapes && !is_before_digit() => out.extend_from_slice(b"\\0"),
            b'\n' if has_escapes => out.extend_from_slice(b"\\n"),
            b'\r' if has_escapes => out.extend_from_slice(b"\\r"),
            byte => out.push(*byte),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(token: &str, syntax: Syntax) -> Vec<u8> {
        match Literal::read(token.as_bytes(), syntax, false).unwrap() {
            Literal::Text { value, .. } | Literal::Dollar { value, .. } => value,
            Literal::Hex(digits) | Literal::Bits(digits) => digits,
        }
    }

    #[test]
    fn literals_are_read_as_servers_read_them() {
        for (token, expected) in [
            (r"'it\'s'", &b"it's"[..]),
            ("'it''s'", b"it's"),
            (r#""a""b\"c""#, b"a\"b\"c"),
            (r"'\0\b\n\r\t\Z\\\%\_\q'", b"\0\x08\n\r\t\x1a\\\\%\\_q"),
            ("_utf8mb4'a'", b"a"),
            ("N'a'", b"a"),
            ("x'6A'", b"6A"),
            ("b'01'", b"01"),
        ] {
            assert_eq!(value(token, Syntax::MYSQL), expected, "{token}");
        }
        for (token, expected) in [
            (r"'a\n'", &b"a\\n"[..]),
            (r"E'a\n\x41\101\u00e9\'\\'", "a\nAA\u{e9}'\\".as_bytes()),
            ("$t$it's$t$", b"it's"),
            ("$$$$", b""),
        ] {
            assert_eq!(value(token, Syntax::POSTGRESQL), expected, "{token}");
        }
        for token in ["'a", r"'a\'", "$t$a", "U&'a'", r"E'\uZZZZ'", "'", "$"] {
            let syntax = match token {
                r"'a\'" => Syntax::MYSQL,
                _ => Syntax::POSTGRESQL,
            };
            let read = Literal::read(token.as_bytes(), syntax, false);
            assert!(read.is_err(), "{token}: {read:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for (syntax, prefix) in [(Syntax::MYSQL, ""), (Syntax::POSTGRESQL, ""), (Syntax::POSTGRESQL, "E")] {
                let has_escapes = syntax.is_mysql || prefix == "E";
                for quote in [b'\'', b'"'] {
                    if quote == b'"' && syntax.is_postgresql {
                        continue;
                    }
                    let mut token = prefix.as_bytes().to_vec();
                    write_text(&bytes, quote, has_escapes, &mut token);
                    let read = Literal::read(&token, syntax, false);
                    let Ok(Literal::Text { value, .. }) = read else {
                        return Err(TestCaseError::fail("not read"));
                    };
                    prop_assert_eq!(value, bytes.clone());
                }
            }
        }
    }
}
