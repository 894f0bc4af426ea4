//! Placeholders of statements: `?` outside of quotes and comments. PostgreSQL's own are `$1` and so on.

use std::fmt::Write as _;

use dbduel_sql::Lexer;

use crate::Dialect;

/// The text around the placeholders; one piece more than there are placeholders.
pub(crate) fn pieces(sql: &str, dialect: Dialect) -> impl Iterator<Item = &str> {
    let tokens = Lexer::new(sql.as_bytes(), dialect.syntax());
    let marks = tokens.filter(move |token| token.of(sql.as_bytes()) == b"?");
    let ends = marks.map(|mark| mark.start).chain([sql.len()]);
    let mut start = 0;
    ends.map(move |end| {
        let piece = &sql[start..end];
        start = end + 1;
        piece
    })
}

/// The statement as PostgreSQL prepares it.
pub(crate) fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 16);
    for (number, piece) in pieces(sql, Dialect::PostgreSql).enumerate() {
        if number > 0 {
            // Writing to memory does not fail.
            let _ = write!(out, "${number}");
        }
        out.push_str(piece);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_outside_of_quotes_and_comments_are_placeholders() {
        for (sql, expected) in [
            ("SELECT c FROM t WHERE id=?", "SELECT c FROM t WHERE id=$1"),
            ("VALUES (?, '?', ?)", "VALUES ($1, '?', $2)"),
            (
                "SELECT 'it''s ?', \"a?\", ? -- why?",
                "SELECT 'it''s ?', \"a?\", $1 -- why?",
            ),
            ("?", "$1"),
            ("BEGIN", "BEGIN"),
            ("", ""),
        ] {
            assert_eq!(numbered(sql), expected);
        }
        let sql = r"SELECT 'it\'s ?', `a?`, ?";
        assert_eq!(
            pieces(sql, Dialect::MySql).collect::<Vec<_>>(),
            [r"SELECT 'it\'s ?', `a?`, ", ""]
        );
    }
}
