//! Rows as the content of a file that the server asks for with LOAD DATA LOCAL INFILE, made while it is
//! sent. Knows no connection.

use std::io::{self, Read};
use std::sync::atomic::Ordering;

use super::FillWatch;
use super::rows::Rows;
use crate::workloads::Table;

/// The statement that reads rows as [`Content`] writes them: the parenthesised lists of an INSERT are
/// taken for lines, so that a row is the same bytes whichever way it travels.
pub(super) fn statement(table: &Table) -> String {
    format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET binary \
         FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\\'' ESCAPED BY '\\\\' \
         LINES STARTING BY '(' TERMINATED BY ')' ({})",
        table.name, table.columns
    )
}

/// The rows as a file that exists nowhere. Counts rows as the server takes them.
pub(super) struct Content<'a> {
    rows: Rows<'a>,
    watch: &'a FillWatch,
    text: String,
    /// Bytes of `text` that have been read.
    read: usize,
    /// Rows in `text`.
    pending: u64,
}

impl<'a> Content<'a> {
    pub(super) fn new(rows: Rows<'a>, watch: &'a FillWatch) -> Self {
        Content {
            rows,
            watch,
            text: String::new(),
            read: 0,
            pending: 0,
        }
    }
}

impl Read for Content<'_> {
    /// Fails when the work is cancelled.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.text.len() {
            if self.watch.cancelled.load(Ordering::Relaxed) {
                return Err(io::Error::other("cancelled"));
            }
            self.watch
                .rows_done
                .fetch_add(self.pending, Ordering::Relaxed);
            (self.read, self.pending) = (0, 0);
            self.text.clear();
            while self.text.len() < buffer.len() && self.rows.write(&mut self.text) {
                self.pending += 1;
            }
        }
        let rest = &self.text.as_bytes()[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::table;
    use super::*;

    #[test]
    fn the_content_is_the_rows_of_the_inserts() {
        let table = table(2_000);
        let watch = FillWatch::default();
        let mut content = String::new();
        Content::new(Rows::new(&table, &(0..1), 1), &watch)
            .read_to_string(&mut content)
            .unwrap();
        let mut rows = Rows::new(&table, &(0..1), 1);
        let mut expected = String::new();
        while rows.write(&mut expected) {}
        assert!(content == expected, "the content differs");
        assert_eq!(watch.rows_done.load(Ordering::Relaxed), 2_000);
    }

    #[test]
    fn a_cancelled_content_cannot_be_read() {
        let table = table(2_000);
        let watch = FillWatch::default();
        watch.cancelled.store(true, Ordering::Relaxed);
        let mut content = Content::new(Rows::new(&table, &(0..1), 1), &watch);
        assert!(content.read(&mut [0; 100]).is_err());
    }
}
