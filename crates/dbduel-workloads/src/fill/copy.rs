//! Rows in the text format of PostgreSQL's COPY.

use dbduel_driver::Dialect;

use crate::Table;

/// The statement that reads rows written by [`append_line`].
pub(super) fn statement(table: &Table) -> String {
    format!("COPY {} FROM STDIN", table.filled(Dialect::PostgreSql))
}

/// Appends a row, or several separated by commas, as lines of tab-separated values. Bytes in hexadecimal become BYTEA.
pub(super) fn append_line(sql: &str, lines: &mut Vec<u8>) {
    let mut is_between_rows = true;
    // No string contains a quote, so every second piece is the inside of one; nor a backslash or what ends a value.
    for (number, piece) in sql.split('\'').enumerate() {
        if number % 2 == 1 {
            lines.extend_from_slice(piece.as_bytes());
            continue;
        }
        for byte in piece.bytes() {
            match byte {
                b'(' => is_between_rows = false,
                b')' => {
                    is_between_rows = true;
                    lines.push(b'\n');
                }
                b',' if is_between_rows => {}
                b',' => lines.push(b'\t'),
                b'x' => lines.extend_from_slice(b"\\\\x"),
                // The beginning of NULL, of which this is the sign.
                b'N' => lines.extend_from_slice(b"\\N"),
                b'U' | b'L' => {}
                byte => lines.push(byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_by_tabs_and_rows_by_ends_of_lines() {
        let line = |sql: &str| {
            let mut line = Vec::new();
            append_line(sql, &mut line);
            String::from_utf8(line).unwrap()
        };
        assert_eq!(line("(1,'a (b), NULL',NULL,'')"), "1\ta (b), NULL\t\\N\t\n");
        assert_eq!(
            line("(x'00c8',-1.5),(x'',2)"),
            "\\\\x00c8\t-1.5\n\\\\x\t2\n"
        );
    }
}
