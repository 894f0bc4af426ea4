//! Placeholders: `?` in the workloads' statements, `$1` and so on in PostgreSQL's.

use std::fmt::Write as _;

/// The statement with `$` numbers for the question marks outside quotes.
pub(super) fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 16);
    let (mut quote, mut count) = (None, 0);
    for letter in sql.chars() {
        match (quote, letter) {
            (None, '?') => {
                count += 1;
                // Writing to memory does not fail.
                let _ = write!(out, "${count}");
                continue;
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(opened), _) if opened == letter => quote = None,
            _ => {}
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_outside_of_quotes_are_placeholders() {
        for (sql, expected) in [
            ("SELECT c FROM t WHERE id=?", "SELECT c FROM t WHERE id=$1"),
            ("VALUES (?, '?', ?)", "VALUES ($1, '?', $2)"),
            (
                "SELECT 'it''s ?', \"a?\", ?",
                "SELECT 'it''s ?', \"a?\", $1",
            ),
            ("BEGIN", "BEGIN"),
        ] {
            assert_eq!(numbered(sql), expected);
        }
    }
}
