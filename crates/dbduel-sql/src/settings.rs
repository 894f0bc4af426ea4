//! Settings of a session that change how a server reads the statements after them.
//!
//! Statements are judged by a product's default quotes and escapes. A replay that set others would have the server read strings where
//! names or calls were judged, so what sets them, or may set them, is refused.

use crate::functions::unquoted;
use crate::lexer::{Lexer, Syntax, Token, TokenKind};

/// Modes of MySQL and MariaDB in which backslashes or double quotes mean something else, and those that imply one.
const MODES: [&str; 8] = [
    "NO_BACKSLASH_ESCAPES",
    "ANSI_QUOTES",
    "ANSI",
    "ORACLE",
    "MSSQL",
    "DB2",
    "MAXDB",
    "POSTGRESQL",
];
/// Character sets of clients in which no byte of a longer character is a quote or a backslash.
const CHARACTER_SETS: [&str; 10] = [
    "UTF8",
    "UTF8MB3",
    "UTF8MB4",
    "LATIN1",
    "ASCII",
    "BINARY",
    "DEFAULT",
    "UTF-8",
    "UNICODE",
    "SQL_ASCII",
];

/// Why a replay may not run this `SET`.
pub(crate) fn refused_setting(text: &[u8], syntax: Syntax) -> Option<&'static str> {
    let tokens = Tokens {
        text,
        all: Lexer::new(text, syntax).collect(),
    };
    (0..tokens.all.len()).find_map(|at| tokens.refused(at, syntax))
}

struct Tokens<'a> {
    text: &'a [u8],
    all: Vec<Token>,
}

impl Tokens<'_> {
    /// Why the setting whose name is at `at` is refused.
    fn refused(&self, at: usize, syntax: Syntax) -> Option<&'static str> {
        let name = self.setting(at)?;
        let value = self.value_after(at);
        let has_safe_characters = |at| match self.is_character_set(at) {
            true => None,
            false => Some("character set that is not known to keep quotes apart"),
        };
        match (name.as_str(), value) {
            // Servers compare these names without accents.
            (name, Some(_)) if syntax.is_mysql && !name.is_ascii() => {
                Some("setting whose name is not in ASCII")
            }
            ("SQL_MODE", Some(value)) if syntax.is_mysql && !self.is_mode(value) => {
                Some("sql_mode that changes quotes or is computed")
            }
            ("CHARACTER_SET_CLIENT" | "CLIENT_ENCODING", Some(value)) => has_safe_characters(value),
            ("NAMES" | "CHARSET", None) if self.begins_setting(at) => has_safe_characters(at + 1),
            ("CHARACTER" | "CHAR", None) if self.begins_setting(at) && self.is(at + 1, "SET") => {
                has_safe_characters(at + 2)
            }
            ("STANDARD_CONFORMING_STRINGS", Some(value)) if syntax.is_postgresql => {
                let is_on = self
                    .literal(value)
                    .is_some_and(|value| matches!(value.as_str(), "ON" | "TRUE" | "DEFAULT"));
                (!is_on).then_some("standard_conforming_strings other than on")
            }
            _ => None,
        }
    }

    fn bytes(&self, at: usize) -> &[u8] {
        self.all.get(at).map_or(b"", |token| token.of(self.text))
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.bytes(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// The last part of a setting's name in capital letters; `None` for a user variable and what is no name.
    fn setting(&self, at: usize) -> Option<String> {
        let bytes = self.bytes(at);
        let name = match self.all.get(at)?.kind {
            TokenKind::Name => unquoted(bytes),
            TokenKind::Word if bytes.starts_with(b"@") && !bytes.starts_with(b"@@") => return None,
            TokenKind::Word => bytes,
            _ => return None,
        };
        let is_mark = |byte: &u8| matches!(byte, b'@' | b'.' | b'`' | b'"' | b'\'');
        let mut parts = name.split(is_mark).filter(|part| !part.is_empty());
        let last = parts.next_back().unwrap_or_default();
        Some(String::from_utf8_lossy(last).to_ascii_uppercase())
    }

    /// The place of the value that is assigned to the name at `at`.
    fn value_after(&self, at: usize) -> Option<usize> {
        match (self.bytes(at + 1), self.bytes(at + 2)) {
            (b"=", _) => Some(at + 2),
            (b":", b"=") => Some(at + 3),
            _ if self.is(at + 1, "TO") => Some(at + 2),
            _ => None,
        }
    }

    /// True where no expression is: after `SET` and its scope, or a comma.
    fn begins_setting(&self, at: usize) -> bool {
        let before = at.checked_sub(1);
        before.is_some_and(|before| {
            let words = ["SET", "SESSION", "LOCAL", ","];
            words.iter().any(|word| self.is(before, word))
        })
    }

    fn is_end(&self, at: usize) -> bool {
        matches!(self.bytes(at), b"" | b"," | b";")
    }

    /// A word, or the text of a string without a prefix; in capital letters, `None` unless it is plain ASCII.
    fn literal(&self, at: usize) -> Option<String> {
        let bytes = self.bytes(at);
        let literal = match self.all.get(at)?.kind {
            TokenKind::Word => bytes,
            TokenKind::Name => unquoted(bytes),
            TokenKind::String => match bytes {
                [open @ (b'\'' | b'"'), inner @ .., close] if open == close => inner,
                _ => return None,
            },
            _ => return None,
        };
        let is_plain =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b',' | b' ');
        let text = std::str::from_utf8(literal).ok()?;
        literal
            .iter()
            .all(is_plain)
            .then(|| text.to_ascii_uppercase())
    }

    /// True for one of the character sets that are let through, before a collation or the end.
    fn is_character_set(&self, at: usize) -> bool {
        let literal = self.literal(at);
        // PostgreSQL's `SET NAMES` without a value is the default.
        self.is_end(at)
            || (literal.is_some_and(|name| CHARACTER_SETS.contains(&name.as_str()))
                && (self.is_end(at + 1) || self.is(at + 1, "COLLATE")))
    }

    /// True for a value of `sql_mode` that is in the text and has none of [`MODES`]: a literal, `DEFAULT`, the present value, or
    /// `CONCAT` of the present value and literals.
    fn is_mode(&self, at: usize) -> bool {
        let end = match self.is(at, "CONCAT") {
            true => self.concat_end(at),
            false => (self.is_present_mode(at) || self.modes(at).is_some()).then_some(at + 1),
        };
        end.is_some_and(|end| self.is_end(end))
    }

    fn is_present_mode(&self, at: usize) -> bool {
        self.bytes(at).starts_with(b"@@") && self.setting(at).as_deref() == Some("SQL_MODE")
    }

    /// Modes of a literal; `None` where one of them is in [`MODES`], or is a number.
    fn modes(&self, at: usize) -> Option<String> {
        let literal = self.literal(at)?;
        let is_harmless = |mode: &str| {
            let mode = mode.trim();
            !MODES.contains(&mode) && !mode.starts_with(|first: char| first.is_ascii_digit())
        };
        literal.split(',').all(is_harmless).then_some(literal)
    }

    /// The place after a `CONCAT` whose literals begin with a comma, so that no two of them make one mode.
    fn concat_end(&self, from: usize) -> Option<usize> {
        let mut depth = 0_u32;
        for at in from..self.all.len() {
            match self.bytes(at) {
                b"(" => depth += 1,
                b")" => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                b"," if depth > 0 => {}
                _ if self.is(at, "CONCAT") => {}
                _ if depth == 0 => return None,
                _ if self.is_present_mode(at) => {}
                _ => {
                    self.modes(at).filter(|modes| modes.starts_with(','))?;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_quotes_or_escapes_is_refused() {
        for sql in [
            "SET sql_mode = 'ANSI_QUOTES'",
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,no_backslash_escapes'",
            "SET @@session.sql_mode := \"ansi\"",
            "SET @@`sql_mode` = 'ANSI'",
            "SET @@session.`sql_mode` = oracle",
            "SET @a = 1, sql_mode = 4",
            "SET sql_mode = '4'",
            "SET sql_mode = 0x414e5349",
            "SET sql_mode = x'414e5349'",
            r"SET sql_mode = '\A\N\S\I'",
            "SET sql_mode = 'AN' 'SI'",
            "SET sql_mode = CONCAT('AN', 'SI')",
            "SET sql_mode = CONCAT(@@sql_mode, ',AN', 'SI')",
            "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')",
            "SET sql_mode = CONCAT(@@sql_mode, @a)",
            "SET sql_mode = @old",
            "SET sql_mode = @sql_mode",
            "SET sql_mode = (SELECT 4)",
            "SET sql_mode = @@sql_mode + 4",
            "SET sql_mod\u{e9} = 4",
            "SET NAMES gbk",
            "SET NAMES 'sjis' COLLATE 'sjis_bin'",
            "SET a = 1, NAMES big5",
            "SET CHARACTER SET cp932",
            "SET CHARSET gb18030",
            "SET CHAR SET gbk",
            "SET character_set_client = gbk",
            "SET @@session.character_set_client = @a",
            "SET character_set_client = 28",
        ] {
            let refused = refused_setting(sql.as_bytes(), Syntax::MYSQL);
            assert!(refused.is_some(), "{sql}");
        }
        for sql in [
            "SET standard_conforming_strings = off",
            "SET LOCAL \"standard_conforming_strings\" TO 'off'",
            "SET standard_conforming_strings = 'of' 'f'",
            "SET LOCAL NAMES 'GBK'",
            "SET client_encoding TO sjis",
        ] {
            let refused = refused_setting(sql.as_bytes(), Syntax::POSTGRESQL);
            assert!(refused.is_some(), "{sql}");
        }
    }

    #[test]
    fn what_applications_set_is_let_through() {
        for sql in [
            "SET NAMES utf8mb4",
            "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'",
            "SET NAMES DEFAULT",
            "SET CHARACTER SET utf8",
            "SET character_set_client = 'utf8mb3', character_set_results = NULL",
            "SET SESSION sql_mode='NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
            "SET sql_mode = ''",
            "SET sql_mode = TRADITIONAL, autocommit = 1",
            "SET @@SESSION.sql_mode = @@GLOBAL.sql_mode",
            "SET @old = @@sql_mode, sql_mode = DEFAULT;",
            "SET @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), ',NO_AUTO_VALUE_ON_ZERO'), @@SESSION.sql_auto_is_null = 0",
            "SET @a = 'ANSI', @names = 'gbk'",
            "SET @a = CAST('x' AS CHAR CHARACTER SET gbk)",
        ] {
            assert_eq!(
                refused_setting(sql.as_bytes(), Syntax::MYSQL),
                None,
                "{sql}"
            );
        }
        for sql in [
            "SET standard_conforming_strings = on",
            "SET client_encoding = 'UTF8'",
            "SET client_encoding TO 'utf-8'",
            "SET NAMES",
            "SET search_path = a, b",
        ] {
            assert_eq!(
                refused_setting(sql.as_bytes(), Syntax::POSTGRESQL),
                None,
                "{sql}"
            );
        }
    }
}
