//! One statement of each class that clients send, to be explained by servers.
//!
//! A class is a statement's text without values and table number. Only statements with a choice of plans are kept: no
//! INSERT of given rows, no BEGIN.

use std::sync::{Mutex, PoisonError};

use dbduel_record::statements::StatementExample;
use dbduel_sql::{Lexer, Syntax, Token, TokenKind, statements};

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
        let syntax = dialect.syntax();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for range in statements(request, syntax) {
            let statement = &request[range];
            let Some((class, number)) = class_of(statement, syntax) else {
                continue;
            };
            let is_known = kept.iter().any(|example| example.class == class);
            if !is_known && kept.len() < CLASSES_MAX {
                let is_short = statement.len() <= TEXT_BYTES_MAX;
                kept.push(StatementExample {
                    class,
                    id: None,
                    number,
                    text: is_short.then(|| String::from_utf8_lossy(statement).into_owned()),
                });
            }
        }
    }

    /// Takes the kept statements, in the order in which they were first sent.
    pub fn take(&self) -> Vec<StatementExample> {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The class, and the number of the table; `None` for statements without a plan.
fn class_of(sql: &[u8], syntax: Syntax) -> Option<(String, Option<String>)> {
    let tokens: Vec<Token> = Lexer::new(sql, syntax).collect();
    if !has_plan(sql, &tokens) {
        return None;
    }
    let mut number = None;
    let mut class = String::new();
    let mut names_table = false;
    let mut end = 0;
    for token in tokens {
        if token.start > end {
            class.push(' ');
        }
        end = token.end;
        match token.kind {
            TokenKind::Word | TokenKind::Name => {
                let word = String::from_utf8_lossy(name_of(token, sql));
                let stem = word.trim_end_matches(|last: char| last.is_ascii_digit());
                let digits = &word[stem.len()..];
                let is_numbered = names_table && !digits.is_empty() && !stem.is_empty();
                if is_numbered && number.as_deref().is_none_or(|known| known == digits) {
                    number = Some(digits.to_owned());
                    class.push_str(&format!("{stem}N"));
                } else {
                    class.push_str(&word);
                }
                names_table = is_any(token, sql, &["FROM", "UPDATE", "JOIN", "INTO"]);
            }
            // A list of values counts as one, however long it is.
            TokenKind::String | TokenKind::Number | TokenKind::Parameter => {
                let before = class.trim_end();
                if let Some(list) = before.strip_suffix(", …,") {
                    class = format!("{list}, …");
                } else if let Some(list) = before.strip_suffix("?,") {
                    class = format!("{list}?, …");
                } else {
                    class.push('?');
                }
            }
            TokenKind::Hint | TokenKind::Executed | TokenKind::Sign | TokenKind::Terminator => {
                class.push_str(&String::from_utf8_lossy(token.of(sql)));
            }
        }
    }
    Some((class, number))
}

/// True for a statement with a choice of plans.
fn has_plan(sql: &[u8], tokens: &[Token]) -> bool {
    let has = |keyword: &str| tokens.iter().any(|token| is_any(*token, sql, &[keyword]));
    let is_word = |token: &&Token| token.kind == TokenKind::Word;
    let Some(verb) = tokens.iter().find(is_word).copied() else {
        return false;
    };
    let is_planned = is_any(verb, sql, &["UPDATE", "DELETE", "WITH"])
        // Without a table there is nothing to choose.
        || (is_any(verb, sql, &["SELECT"]) && has("FROM"))
        || (is_any(verb, sql, &["INSERT", "REPLACE"]) && has("SELECT"));
    // What a new connection asks PostgreSQL about its session is no part of a workload.
    let is_of_session = tokens.windows(2).any(|pair| {
        let name = pair[1].of(sql);
        let prefix = name.get(..3).unwrap_or_default();
        is_any(pair[0], sql, &["FROM"]) && prefix.eq_ignore_ascii_case(b"pg_")
    });
    is_planned && !is_of_session
}

/// True for one of these keywords.
fn is_any(token: Token, sql: &[u8], keywords: &[&str]) -> bool {
    let is = |keyword: &&str| token.of(sql).eq_ignore_ascii_case(keyword.as_bytes());
    token.kind == TokenKind::Word && keywords.iter().any(is)
}

/// A word, or a name without its quotes.
fn name_of(token: Token, sql: &[u8]) -> &[u8] {
    let text = token.of(sql);
    match (token.kind, text) {
        (TokenKind::Name, [quote, inner @ ..]) => inner.strip_suffix(&[*quote]).unwrap_or(inner),
        _ => text,
    }
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
                "SELECT /*+ MRR(t) */ v -- why;\n FROM t WHERE c = \"a\" AND n = -1",
                "SELECT /*+ MRR(t) */ v FROM t WHERE c = ? AND n = -?",
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
                class_of(sql.as_bytes(), Syntax::MYSQL),
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
            assert_eq!(class_of(sql.as_bytes(), Syntax::MYSQL), None, "{sql}");
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
