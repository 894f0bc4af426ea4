//! The rows of consecutive chunks of a table, as text.

use std::ops::Range;

use dbduel_client::random::Random;
use dbduel_record::seed::named_seed;

use crate::{RowWriter, Table};

/// Rows that are drawn from one random stream. Part of the definition of every dataset: another number would give
/// different content.
pub(super) const CHUNK_ROWS: u64 = 10_000;

/// Chunks of a table; the last one may be shorter than the others.
pub(super) fn chunks(table: &Table) -> u64 {
    table.rows.div_ceil(CHUNK_ROWS)
}

/// Rows of these chunks of a table.
pub(super) fn count(table: &Table, chunks: &Range<u64>) -> u64 {
    let until = |chunk: u64| (chunk * CHUNK_ROWS).min(table.rows);
    until(chunks.end) - until(chunks.start)
}

/// Writes row after row.
pub(super) struct Rows<'a> {
    table: &'a Table,
    seed: u64,
    random: Random,
    /// Writes the rows of the current chunk.
    writer: RowWriter<'a>,
    /// Number of the row to be written next, from 1.
    next: u64,
    last: u64,
}

impl<'a> Rows<'a> {
    /// The rows of these chunks, which are counted from 0.
    pub(super) fn new(table: &'a Table, chunks: &Range<u64>, seed: u64) -> Self {
        let next = chunks.start * CHUNK_ROWS + 1;
        Rows {
            table,
            seed,
            random: Random::new(0),
            writer: table.content.writer(next),
            next,
            last: (chunks.end * CHUNK_ROWS).min(table.rows),
        }
    }

    /// Appends the next row as parenthesised SQL lists, nearly always one; false when there is none.
    pub(super) fn write(&mut self, text: &mut String) -> bool {
        if self.next > self.last {
            return false;
        }
        let before = self.next - 1;
        if before.is_multiple_of(CHUNK_ROWS) {
            let chunk = before / CHUNK_ROWS;
            let name = format!("fill/{}/{chunk}", self.table.name);
            self.random = Random::new(named_seed(self.seed, &name));
            self.writer = self.table.content.writer(self.next);
        }
        (self.writer)(&mut self.random, text);
        self.next += 1;
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{find, parameters};
    use dbduel_driver::Dialect;
    use dbduel_record::plan::Parameters;

    /// The sysbench table with this many rows.
    pub(in crate::fill) fn table(rows: u64) -> Table {
        let workload = find("oltp-read-write").unwrap();
        let given = Parameters::from([("table_size".to_owned(), rows.into())]);
        let resolved = parameters::resolve(workload, &given).unwrap();
        workload.tables(Dialect::MySql, &resolved).remove(0)
    }

    fn written(table: &Table, chunks: Range<u64>, seed: u64) -> Vec<String> {
        let mut rows = Rows::new(table, &chunks, seed);
        let mut all = Vec::new();
        loop {
            let mut text = String::new();
            if !rows.write(&mut text) {
                assert_eq!(all.len() as u64, count(table, &chunks));
                return all;
            }
            all.push(text);
        }
    }

    #[test]
    fn chunks_follow_one_another_and_the_last_is_cut_off() {
        let table = table(25_000);
        assert_eq!(chunks(&table), 3);
        for (number, first, count) in [
            (0, "(1,", 10_000),
            (1, "(10001,", 10_000),
            (2, "(20001,", 5_000),
        ] {
            let rows = written(&table, number..number + 1, 1);
            assert!(rows[0].starts_with(first), "chunk {number}");
            assert_eq!(rows.len(), count, "chunk {number}");
        }
        assert!(written(&table, 3..4, 1).is_empty());
    }

    #[test]
    fn chunks_together_are_the_same_as_one_by_one() {
        let table = table(25_000);
        let one_by_one = (0..3).flat_map(|chunk| written(&table, chunk..chunk + 1, 1));
        assert_eq!(written(&table, 0..3, 1), one_by_one.collect::<Vec<_>>());
    }

    #[test]
    fn the_seed_and_the_chunk_name_the_content() {
        let table = table(30_000);
        assert_eq!(written(&table, 1..2, 1), written(&table, 1..2, 1));
        assert_ne!(written(&table, 1..2, 1), written(&table, 1..2, 2));
    }
}
