//! Rows as the content of a file that the server asks for with LOAD DATA LOCAL INFILE, generated while it is sent.

use std::io::{self, Read};

use dbduel_driver::Dialect;

use super::bulk::decode;
use super::progress::BatchProgress;
use super::rows::Rows;
use crate::Table;

/// The statement that reads rows written by [`Content`]: the parenthesised lists of an INSERT are parsed as lines. As
/// with hexadecimal literals, no character set is applied to the bytes of a string. Quote and backslash are
/// hexadecimal, because `NO_BACKSLASH_ESCAPES` changes how a string literal with them is read.
pub(super) fn statement(table: &Table) -> String {
    format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET binary \
         FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY x'27' ESCAPED BY x'5c' \
         LINES STARTING BY '(' TERMINATED BY ')' ({})",
        Dialect::MySql.identifier(&table.name),
        Dialect::MySql.identifiers(table.column_names())
    )
}

/// The rows as a virtual file. Counts rows as the server reads them.
pub(super) struct Content<'a> {
    rows: Rows<'a>,
    progress: &'a BatchProgress<'a>,
    /// Appends a row in SQL as a line.
    append_line: fn(&str, &mut Vec<u8>),
    /// Buffer for a row as SQL text.
    sql: String,
    lines: Vec<u8>,
    /// Bytes of `lines` that have been read.
    read: usize,
    /// Rows in `lines`.
    pending: u64,
}

impl<'a> Content<'a> {
    /// Content whose rows `append_line` converts from SQL to the server's format.
    pub(super) fn new(
        rows: Rows<'a>,
        progress: &'a BatchProgress<'a>,
        append_line: fn(&str, &mut Vec<u8>),
    ) -> Self {
        Content {
            rows,
            progress,
            append_line,
            sql: String::new(),
            lines: Vec::new(),
            read: 0,
            pending: 0,
        }
    }
}

impl Read for Content<'_> {
    /// Fails when the work is cancelled.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.lines.len() {
            if self.progress.is_cancelled() {
                return Err(io::Error::other("cancelled"));
            }
            self.progress.add(self.pending);
            (self.read, self.pending) = (0, 0);
            self.lines.clear();
            while self.lines.len() < buffer.len() && self.rows.write(&mut self.sql) {
                (self.append_line)(&self.sql, &mut self.lines);
                self.sql.clear();
                self.pending += 1;
            }
        }
        let rest = &self.lines[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}

/// Appends a row in the format of the file: as in SQL, but with the bytes themselves in place of hexadecimal literals,
/// which LOAD DATA does not support.
pub(super) fn append_line(sql: &str, lines: &mut Vec<u8>) {
    let mut is_hexadecimal = false;
    // No string contains a quote, so every second piece is the inside of one.
    for (number, piece) in sql.split('\'').enumerate() {
        if number > 0 {
            lines.push(b'\'');
        }
        let is_inside = number % 2 == 1;
        if is_inside && is_hexadecimal {
            append_bytes(piece.as_bytes(), lines);
        } else if is_inside {
            lines.extend_from_slice(piece.as_bytes());
        } else {
            let before = piece.strip_suffix('x');
            is_hexadecimal = before.is_some();
            lines.extend_from_slice(before.unwrap_or(piece).as_bytes());
        }
    }
}

/// Appends the bytes of pairs of hexadecimal digits, with a backslash before bytes that are special in a string.
fn append_bytes(digits: &[u8], lines: &mut Vec<u8>) {
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    decode(digits, &mut bytes);
    for byte in bytes {
        match byte {
            0 => lines.extend_from_slice(b"\\0"),
            byte @ (b'\'' | b'\\') => lines.extend_from_slice(&[b'\\', byte]),
            byte => lines.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::FillWatch;
    use super::super::rows::tests::table;
    use super::*;
    use crate::{WORKLOADS, parameters};
    use dbduel_record::plan::Parameters;

    #[test]
    fn the_content_is_the_rows_of_the_inserts() {
        let table = table(2_000);
        let watch = FillWatch::default();
        let mut content = String::new();
        let progress = BatchProgress::new(&watch);
        Content::new(Rows::new(&table, &(0..1), 1), &progress, append_line)
            .read_to_string(&mut content)
            .unwrap();
        let mut rows = Rows::new(&table, &(0..1), 1);
        let mut expected = String::new();
        while rows.write(&mut expected) {}
        assert!(content == expected, "the content differs");
        assert_eq!(watch.rows_done.load(Ordering::Relaxed), 2_000);
    }

    #[test]
    fn hexadecimal_literals_become_the_bytes_themselves() {
        let line = |sql: &str| {
            let mut line = Vec::new();
            append_line(sql, &mut line);
            line
        };
        assert_eq!(line("(1,'ax',NULL,'')"), b"(1,'ax',NULL,'')");
        assert_eq!(line("(x'',-1.5,x'4a')"), b"('',-1.5,'J')");
        assert_eq!(line("('x',x'c8FF')"), b"('x','\xC8\xFF')");
        // A quote, a backslash and a zero.
        assert_eq!(
            line("(x'27295c2c0028','1'),(x'0a')"),
            b"('\\')\\\\,\\0(','1'),('\n')"
        );
    }

    /// Whether LOAD DATA reads such a value like INSERT.
    fn is_loadable(value: &str) -> bool {
        let inside = |text: &'static str| value.strip_prefix(text)?.strip_suffix('\'');
        let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'\\';
        if let Some(hexadecimal) = inside("x'") {
            return hexadecimal.len().is_multiple_of(2)
                && hexadecimal.bytes().all(|b| b.is_ascii_hexdigit());
        }
        match inside("'") {
            Some(string) => string.bytes().all(is_plain),
            None => value == "NULL" || value.parse::<f64>().is_ok(),
        }
    }

    /// The values of rows, which must consist of values, commas and parentheses only.
    fn values(sql: &str) -> Vec<String> {
        let mut values = vec![String::new()];
        for (number, piece) in sql.split('\'').enumerate() {
            if number % 2 == 1 {
                values.last_mut().unwrap().push_str(&format!("'{piece}'"));
                continue;
            }
            for letter in piece.chars() {
                match letter {
                    '(' | ')' | ',' => values.push(String::new()),
                    letter => values.last_mut().unwrap().push(letter),
                }
            }
        }
        values.retain(|value| !value.is_empty());
        values
    }

    #[test]
    fn every_workload_writes_what_a_file_can_hold() {
        for workload in WORKLOADS {
            let parameters = parameters::resolve(*workload, &Parameters::new()).unwrap();
            for table in workload.tables(Dialect::MySql, &parameters) {
                let mut rows = Rows::new(&table, &(0..1), 1);
                let mut sql = String::new();
                for _ in 0..1_000 {
                    rows.write(&mut sql);
                }
                let columns = table.columns.split(", ").count();
                let values = values(&sql);
                assert!(values.len().is_multiple_of(columns), "{}", table.name);
                for value in values {
                    assert!(is_loadable(&value), "{}: {value}", table.name);
                }
            }
        }
    }

    #[test]
    fn a_cancelled_content_cannot_be_read() {
        let table = table(2_000);
        let watch = FillWatch::default();
        watch.cancel.cancel();
        let progress = BatchProgress::new(&watch);
        let rows = Rows::new(&table, &(0..1), 1);
        let mut content = Content::new(rows, &progress, append_line);
        assert!(content.read(&mut [0; 100]).is_err());
    }
}
