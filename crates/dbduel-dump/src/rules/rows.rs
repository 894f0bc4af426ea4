//! Statements that bring rows: INSERT and REPLACE of values, COPY from the dump.
//!
//! They are most of a dump, so they are looked at token by token and not kept.

use dbduel_sql::TokenKind;

use super::table::SERVER_FILE;
use super::{Refused, Verdict};
use crate::Target;
use crate::tokens::Tokens;

/// Words among the values of rows, and of what may follow them.
const VALUE_WORDS: [&str; 11] = [
    "NULL",
    "TRUE",
    "FALSE",
    "DEFAULT",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "ON",
    "CONFLICT",
    "DO",
    "NOTHING",
];
/// Functions among the values of rows.
const VALUE_FUNCTIONS: [&str; 6] = [
    "ST_GEOMFROMTEXT",
    "ST_GEOMFROMWKB",
    "GEOMFROMTEXT",
    "GEOMFROMWKB",
    "UNHEX",
    "CHAR",
];
/// Words that make an INSERT take its rows from elsewhere.
const QUERY_WORDS: [&str; 6] = ["SELECT", "SET", "TABLE", "WITH", "EXEC", "EXECUTE"];

/// What is done with a statement that brings rows; `None` for another one.
pub fn judge(text: &[u8], target: &Target) -> Option<Result<Verdict, Refused>> {
    let mut tokens = Tokens::new(text, target.syntax());
    let first = tokens.next()?;
    let verb = first.token.of(text);
    let is = |word: &str| verb.eq_ignore_ascii_case(word.as_bytes());
    if first.token.kind != TokenKind::Word || first.mark.is_some() {
        return None;
    }
    if target.syntax().is_postgresql && is("COPY") {
        return Some(copy(text, tokens));
    }
    if is("INSERT") || (is("REPLACE") && target.syntax().is_mysql) {
        return Some(insert(text, tokens));
    }
    None
}

fn is_one_of(word: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|one| word.eq_ignore_ascii_case(one.as_bytes()))
}

/// An INSERT of values alone. A function or a query could read what is no data of the dump.
fn insert(text: &[u8], tokens: Tokens<'_>) -> Result<Verdict, Refused> {
    let refused = |what: &str| Err(Refused::unlisted(what));
    let mut is_in_values = false;
    let mut last_word: Option<&[u8]> = None;
    for found in tokens {
        let token = found.token;
        let bytes = token.of(text);
        if found.mark.is_some() {
            return refused("INSERT with an executed comment");
        }
        let word = last_word.take();
        match token.kind {
            TokenKind::Word if is_in_values => {
                // _binary names the character set of the string after it.
                let is_known = bytes.starts_with(b"_")
                    || is_one_of(bytes, &VALUE_WORDS)
                    || is_one_of(bytes, &VALUE_FUNCTIONS);
                if !is_known {
                    return refused("INSERT of another expression than a value");
                }
                last_word = Some(bytes);
            }
            TokenKind::Word if is_one_of(bytes, &["VALUES"]) => is_in_values = true,
            TokenKind::Word if is_one_of(bytes, &QUERY_WORDS) => {
                return refused("INSERT of a query");
            }
            TokenKind::Word | TokenKind::String | TokenKind::Number => {}
            TokenKind::Name if !is_in_values => {}
            TokenKind::Name => return refused("INSERT of another expression than a value"),
            TokenKind::Sign if bytes == b"(" => {
                if word.is_some_and(|word| !is_one_of(word, &VALUE_FUNCTIONS)) {
                    return refused("INSERT that calls a function");
                }
            }
            TokenKind::Sign if matches!(bytes, b")" | b"," | b"." | b"-" | b"+") => {}
            TokenKind::Sign => return refused("INSERT of another expression than a value"),
            TokenKind::Terminator => return refused("a request of several statements"),
            TokenKind::Parameter | TokenKind::Hint | TokenKind::Executed => {
                return refused("INSERT with a parameter or a hint");
            }
        }
    }
    match is_in_values {
        true => Ok(Verdict {
            brings_rows: true,
            ..Verdict::default()
        }),
        false => refused("INSERT without values"),
    }
}

/// A `COPY table (columns) FROM stdin`.
fn copy(text: &[u8], tokens: Tokens<'_>) -> Result<Verdict, Refused> {
    let mut is_after_from = false;
    let mut has_stdin = false;
    let mut depth = 0_u32;
    for (number, found) in tokens.enumerate() {
        let token = found.token;
        let bytes = token.of(text);
        if has_stdin {
            return Err(Refused::unlisted("COPY with options"));
        }
        match token.kind {
            TokenKind::Word if depth == 0 && is_after_from => {
                has_stdin = bytes.eq_ignore_ascii_case(b"STDIN");
                if !has_stdin {
                    return Err(Refused::by(&SERVER_FILE));
                }
            }
            TokenKind::Word if depth == 0 && bytes.eq_ignore_ascii_case(b"FROM") => {
                is_after_from = true;
            }
            _ if is_after_from => return Err(Refused::by(&SERVER_FILE)),
            TokenKind::Sign if bytes == b"(" && number == 0 => {
                return Err(Refused::unlisted("COPY of a query"));
            }
            TokenKind::Sign if bytes == b"(" => depth += 1,
            TokenKind::Sign if bytes == b")" => depth = depth.saturating_sub(1),
            TokenKind::Word if depth == 0 && bytes.eq_ignore_ascii_case(b"TO") => {
                return Err(Refused::unlisted("COPY TO"));
            }
            TokenKind::Word | TokenKind::Name => {}
            TokenKind::Sign if matches!(bytes, b"," | b".") => {}
            _ => return Err(Refused::unlisted("COPY of something else than a table")),
        }
    }
    match has_stdin {
        true => Ok(Verdict::default()),
        false => Err(Refused::unlisted("COPY without its rows")),
    }
}
