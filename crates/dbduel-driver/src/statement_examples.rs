//! One statement of each class that clients send, to be explained by servers.
//!
//! A class is a statement's text without values and table number. Only statements with a choice of plans are kept: no
//! INSERT of given rows, no BEGIN.

use std::sync::{Mutex, PoisonError};

use dbduel_record::statements::StatementExample;

use crate::Dialect;

/// Maximum number of classes that are kept; a script may send an unlimited number of texts.
const CLASSES_MAX: usize = 64;
/// Longest text that is kept, bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Examples shared by clients.
#[derive(Debug, Default)]
pub struct StatementExamples {
    kept: Mutex<Vec<StatementExample>>,
}

impl StatementExamples {
    /// Keeps the first statement of each class in a request.
    pub(crate) fn note(&self, dialect: Dialect, request: &[u8]) {
        let request = String::from_utf8_lossy(request);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for statement in statements(dialect, &request) {
            let Some((class, number)) = class_of(dialect, statement) else {
                continue;
            };
            let is_known = kept.iter().any(|example| example.class == class);
            if !is_known && kept.len() < CLASSES_MAX {
                let is_short = statement.len() <= TEXT_BYTES_MAX;
                kept.push(StatementExample {
                    class,
                    number,
                    text: is_short.then(|| statement.to_owned()),
                });
            }
        }
    }

    /// Takes the kept statements, in the order in which they were first sent.
    pub fn take(&self) -> Vec<StatementExample> {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The statements of a request, separated by semicolons outside of quotes.
fn statements(dialect: Dialect, request: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(byte) = request.as_bytes().get(at) {
        match byte {
            b'\'' | b'"' | b'`' => at += quoted(dialect, &request[at..]),
            b';' => {
                parts.push(request[start..at].trim());
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    parts.push(request[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// A piece of a statement's text.
enum Token<'a> {
    Word(&'a str),
    Value,
    Sign(char),
}

/// The class, and the number of the table; `None` for statements without a plan.
fn class_of(dialect: Dialect, sql: &str) -> Option<(String, Option<String>)> {
    let tokens = tokens(dialect, sql);
    let words: Vec<String> = tokens
        .iter()
        .filter_map(|(_, token)| match token {
            Token::Word(word) => Some(word.to_ascii_uppercase()),
            _ => None,
        })
        .collect();
    let has = |keyword: &str| words.iter().any(|word| word == keyword);
    let is_planned = match words.first()?.as_str() {
        "UPDATE" | "DELETE" | "WITH" => true,
        // Without a table there is nothing to choose.
        "SELECT" => has("FROM"),
        "INSERT" | "REPLACE" => has("SELECT"),
        _ => false,
    };
    // What a new connection asks PostgreSQL about its session is no part of a workload.
    let is_of_session =
        (words.windows(2)).any(|pair| pair[0] == "FROM" && pair[1].starts_with("PG_"));
    if !is_planned || is_of_session {
        return None;
    }
    let mut number = None;
    let mut class = String::new();
    let mut names_table = false;
    for (is_apart, token) in &tokens {
        if *is_apart {
            class.push(' ');
        }
        match token {
            Token::Word(word) => {
                let stem = word.trim_end_matches(|last: char| last.is_ascii_digit());
                let digits = &word[stem.len()..];
                let is_numbered = names_table && !digits.is_empty() && !stem.is_empty();
                if is_numbered && number.as_deref().is_none_or(|known| known == digits) {
                    number = Some(digits.to_owned());
                    class.push_str(&format!("{stem}N"));
                } else {
                    class.push_str(word);
                }
                let keyword = word.to_ascii_uppercase();
                names_table = matches!(keyword.as_str(), "FROM" | "UPDATE" | "JOIN" | "INTO");
            }
            // A list of values counts as one, however long it is.
            Token::Value => {
                let before = class.trim_end();
                if let Some(list) = before.strip_suffix(", …,") {
                    class = format!("{list}, …");
                } else if let Some(list) = before.strip_suffix("?,") {
                    class = format!("{list}?, …");
                } else {
                    class.push('?');
                }
            }
            Token::Sign(sign) => class.push(*sign),
        }
    }
    Some((class, number))
}

/// The tokens, each with whether a space is before it. Quotes around names are left out.
fn tokens(dialect: Dialect, sql: &str) -> Vec<(bool, Token<'_>)> {
    let mut tokens = Vec::new();
    let mut rest = sql.trim_start();
    let mut is_apart = false;
    while let Some(first) = rest.chars().next() {
        let is_part = |one: char| one.is_alphanumeric() || one == '_' || one == '$';
        let word = rest.find(|one: char| !is_part(one)).unwrap_or(rest.len());
        let (token, length) = match first {
            '\'' => (Token::Value, quoted(dialect, rest)),
            '"' | '`' => {
                let end = quoted(dialect, rest);
                (Token::Word(rest[1..end].trim_end_matches(first)), end)
            }
            '0'..='9' => {
                let is_part = |one: char| one.is_alphanumeric() || one == '.';
                let end = rest.find(|one: char| !is_part(one));
                (Token::Value, end.unwrap_or(rest.len()))
            }
            // x'61' and E'\n' are values too.
            _ if word > 0 && rest[word..].starts_with('\'') => {
                (Token::Value, word + quoted(dialect, &rest[word..]))
            }
            _ if word > 0 => (Token::Word(&rest[..word]), word),
            sign => (Token::Sign(sign), sign.len_utf8()),
        };
        tokens.push((is_apart, token));
        rest = &rest[length..];
        is_apart = rest.starts_with(char::is_whitespace);
        rest = rest.trim_start();
    }
    tokens
}

/// Bytes up to and including the closing quote; a doubled quote does not close, nor does in MySQL one after a backslash. (PostgreSQL's
/// `E'\''` is read as ending early: its class is another one then.)
fn quoted(dialect: Dialect, text: &str) -> usize {
    let bytes = text.as_bytes();
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if dialect == Dialect::MySql && quote != b'`' => at += 1,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 1,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_class_has_neither_values_nor_the_number_of_its_table() {
        for (sql, class, number) in [
            (
                "SELECT c FROM sbtest12 WHERE id=7",
                "SELECT c FROM sbtestN WHERE id=?",
                Some("12"),
            ),
            (
                "SELECT id, k FROM sbtest3 WHERE k IN (1,22, 333, 4)",
                "SELECT id, k FROM sbtestN WHERE k IN (?, …)",
                Some("3"),
            ),
            (
                "UPDATE `sbtest3` SET c='it''s, 5' WHERE id=x'61' AND id2 <> 1.5e3",
                "UPDATE sbtestN SET c=? WHERE id=? AND id2 <> ?",
                Some("3"),
            ),
            (
                "select max(a.v) from t a join u b on a.id = b.id where a.n between 3 and 9",
                "select max(a.v) from t a join u b on a.id = b.id where a.n between ? and ?",
                None,
            ),
            (
                "INSERT INTO t1 SELECT * FROM u1",
                "INSERT INTO tN SELECT * FROM uN",
                Some("1"),
            ),
        ] {
            let number = number.map(str::to_owned);
            assert_eq!(
                class_of(Dialect::MySql, sql),
                Some((class.to_owned(), number)),
                "{sql}"
            );
        }
        for sql in [
            "BEGIN",
            "COMMIT",
            "INSERT INTO t VALUES (1)",
            "SET NAMES utf8",
            "SELECT 1, 2",
            "SELECT name, setting FROM pg_settings",
            "7",
            "",
        ] {
            assert_eq!(class_of(Dialect::MySql, sql), None, "{sql}");
        }
    }

    #[test]
    fn one_statement_of_each_class_is_kept_and_no_more_than_there_is_room_for() {
        let examples = StatementExamples::default();
        examples.note(
            Dialect::MySql,
            b"BEGIN;SELECT 1, ';' FROM t1;SELECT 2, '' FROM t2 ;COMMIT",
        );
        examples.note(Dialect::MySql, b"DELETE FROM t1 WHERE id = 5");
        let kept = examples.take();
        let texts: Vec<Option<&str>> = kept.iter().map(|one| one.text.as_deref()).collect();
        let expected = ["SELECT 1, ';' FROM t1", "DELETE FROM t1 WHERE id = 5"];
        assert_eq!(texts, expected.map(Some));
        examples.note(
            Dialect::MySql,
            br"SELECT 'it\'s; x' FROM t1;SELECT 'it''s; y' FROM u",
        );
        let texts = examples.take().into_iter().map(|one| one.text.unwrap());
        let expected = [r"SELECT 'it\'s; x' FROM t1", "SELECT 'it''s; y' FROM u"];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        // A backslash is a letter like others in standard SQL.
        examples.note(
            Dialect::PostgreSql,
            br"DELETE FROM t WHERE c = 'C:\';DELETE FROM u",
        );
        let texts = examples.take().into_iter().map(|one| one.text.unwrap());
        let expected = [r"DELETE FROM t WHERE c = 'C:\'", "DELETE FROM u"];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        assert!(examples.take().is_empty());
        for number in 0..100 {
            examples.note(
                Dialect::MySql,
                format!("SELECT c{number} FROM t").as_bytes(),
            );
        }
        let long = format!("SELECT '{}' FROM t", "x".repeat(TEXT_BYTES_MAX));
        assert_eq!(examples.take().len(), CLASSES_MAX);
        examples.note(Dialect::MySql, long.as_bytes());
        assert_eq!(examples.take()[0].text, None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(sql in "(SELECT )?[a-z0-9'\"`;\\\\, ?é(]{0,60}") {
            let examples = StatementExamples::default();
            examples.note(Dialect::MySql, sql.as_bytes());
            examples.take();
        }
    }
}
