//! Tokens of a dump, with executed comments opened: `/*!50003 CREATE*/` is the token `CREATE`, marked with its version.
//!
//! Dumps have most of their statements in such comments, with quotes and semicolons inside.

use dbduel_sql::{Lexer, Syntax, Token, TokenKind};
use memchr::memmem;

/// The beginning of an executed comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Where the comment begins.
    pub start: usize,
    /// True for `/*M!`, which only MariaDB executes.
    pub is_mariadb: bool,
    /// Least version of a server that executes it, such as 80023 for 8.0.23; 0 where it has none.
    pub number: u32,
}

/// A token and the executed comment that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The token. [`TokenKind::Executed`] remains only for the line that turns on the sandbox of MariaDB's client, and for a
    /// comment in a comment.
    pub token: Token,
    /// The comment around it.
    pub mark: Option<Mark>,
}

/// Digits of a version in a mark.
const DIGITS: std::ops::RangeInclusive<usize> = 5..=6;

/// The tokens of a text from a position on.
pub struct Tokens<'a> {
    text: &'a [u8],
    syntax: Syntax,
    base: usize,
    lexer: Lexer<'a>,
    inside: Option<Mark>,
    /// Comments that ended elsewhere than at their first `*/`.
    ambiguous: Vec<Mark>,
}

impl<'a> Tokens<'a> {
    /// All tokens of a text.
    pub fn new(text: &'a [u8], syntax: Syntax) -> Self {
        Self::resume(text, syntax, 0, None)
    }

    /// The tokens from `base` on, which is in the comment `inside`.
    pub fn resume(text: &'a [u8], syntax: Syntax, base: usize, inside: Option<Mark>) -> Self {
        Self {
            text,
            syntax,
            base,
            lexer: Lexer::new(&text[base..], syntax),
            inside,
            ambiguous: Vec::new(),
        }
    }

    /// Executed comments that ended so far, and have a `*/` in a string or a comment: a server that skips them takes that for their end.
    pub fn ambiguous(&self) -> &[Mark] {
        &self.ambiguous
    }

    /// Leaves the comment around the present position, which ends at `end`.
    fn leave(&mut self, end: usize) {
        if let Some(mark) = self.inside.take() {
            // After `/*!`, whose star begins no end.
            let begin = (mark.start + 3).min(end);
            if memmem::find(&self.text[begin..end], b"*/").is_some() {
                self.ambiguous.push(mark);
            }
        }
    }

    fn go_to(&mut self, base: usize) {
        self.base = base.min(self.text.len());
        self.lexer = Lexer::new(&self.text[self.base..], self.syntax);
    }
}

impl Iterator for Tokens<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let Some(found) = self.lexer.next() else {
                self.leave(self.text.len());
                return None;
            };
            let token = Token {
                kind: found.kind,
                start: self.base + found.start,
                end: self.base + found.end,
            };
            let rest = &self.text[token.start..];
            if self.inside.is_some() && token.kind == TokenKind::Sign && rest.starts_with(b"*/") {
                self.leave(token.start);
                self.go_to(token.start + 2);
                continue;
            }
            if token.kind == TokenKind::Executed && self.inside.is_none() {
                let (mark, length) = read_mark(rest, token.start);
                if !rest[length..].starts_with(b"\\-") {
                    self.inside = Some(mark);
                    self.go_to(token.start + length);
                    continue;
                }
            }
            return Some(Found {
                token,
                mark: self.inside,
            });
        }
    }
}

/// The mark at the beginning of `comment`, and its length.
fn read_mark(comment: &[u8], start: usize) -> (Mark, usize) {
    let is_mariadb = comment.starts_with(b"/*M");
    let length = if is_mariadb { 4 } else { 3 };
    let rest = comment.get(length..).unwrap_or_default();
    let digits = rest.iter().take(*DIGITS.end());
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
    let mut mark = Mark {
        start,
        is_mariadb,
        number: 0,
    };
    if !DIGITS.contains(&digits) {
        return (mark, length.min(comment.len()));
    }
    for byte in &rest[..digits] {
        mark.number = mark.number * 10 + u32::from(byte - b'0');
    }
    (mark, length + digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_whose_end_depends_on_the_reader_are_known() {
        for (sql, is_ambiguous) in [
            ("/*!99999 a */ b", false),
            ("/*!99999 '*/' */ b", true),
            ("/*!99999 -- */ b\n */", true),
            ("/*!99999 'a */ b", true),
            ("/*!*/ /*M!99999 a */ '*/'", false),
        ] {
            let mut tokens = Tokens::new(sql.as_bytes(), Syntax::MYSQL);
            assert!(tokens.by_ref().count() > 0 || is_ambiguous, "{sql}");
            assert_eq!(!tokens.ambiguous().is_empty(), is_ambiguous, "{sql}");
        }
    }

    #[test]
    fn executed_comments_are_opened() {
        let sql = "/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*M!100100 TRIGGER t SET x = '*/' */; /*!999999\\- x */ y";
        let found: Vec<(&str, u32)> = Tokens::new(sql.as_bytes(), Syntax::MYSQL)
            .map(|found| {
                let text = &sql[found.token.start..found.token.end];
                (text, found.mark.map_or(0, |mark| mark.number))
            })
            .collect();
        let expected = [
            ("CREATE", 50_003),
            ("DEFINER", 50_017),
            ("=", 50_017),
            ("`a`", 50_017),
            ("@", 50_017),
            ("`b`", 50_017),
            ("TRIGGER", 100_100),
            ("t", 100_100),
            ("SET", 100_100),
            ("x", 100_100),
            ("=", 100_100),
            ("'*/'", 100_100),
            (";", 0),
            ("/*!999999\\- x */", 0),
            ("y", 0),
        ];
        assert_eq!(found, expected);
    }
}
