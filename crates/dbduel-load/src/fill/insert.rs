//! The rows of a chunk as multi-row INSERT statements. Knows no connection.

use dbduel_record::seed::named_seed;

use crate::random::Random;
use crate::workloads::Table;

/// Rows that are drawn from one random stream. Part of the definition of every dataset: another number
/// would make another content.
pub(super) const CHUNK_ROWS: u64 = 10_000;

/// Hands out chunk `chunk` of a table, counted from 0, in as few statements as fit into `bytes_max`
/// each; a row that does not fit gets a statement of its own. With each goes the number of its rows.
///
/// # Errors
/// The first error of `send`, which ends the chunk.
pub(super) fn chunk<E>(
    table: &Table,
    chunk: u64,
    seed: u64,
    bytes_max: usize,
    mut send: impl FnMut(&str, u64) -> Result<(), E>,
) -> Result<(), E> {
    let mut random = Random::new(named_seed(seed, &format!("fill/{}/{chunk}", table.name)));
    let first = chunk * CHUNK_ROWS + 1;
    let last = (first + CHUNK_ROWS - 1).min(table.rows);
    let mut sql = format!("INSERT INTO {} ({}) VALUES ", table.name, table.columns);
    let head = sql.len();
    let mut rows = 0;
    let mut values = String::new();
    let mut write = table.content.writer(first);
    for _ in first..=last {
        values.clear();
        write(&mut random, &mut values);
        if rows > 0 && sql.len() + 1 + values.len() > bytes_max {
            send(&sql, rows)?;
            sql.truncate(head);
            rows = 0;
        }
        if rows > 0 {
            sql.push(',');
        }
        sql.push_str(&values);
        rows += 1;
    }
    if rows > 0 { send(&sql, rows) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::workloads::{find, parameters};
    use dbduel_record::plan::Parameters;

    fn table(rows: u64) -> Table {
        let workload = find("oltp-read-write").unwrap();
        let given = Parameters::from([("table_size".to_owned(), rows.into())]);
        let resolved = parameters::resolve(workload, &given).unwrap();
        workload.tables(&resolved).remove(0)
    }

    fn statements(table: &Table, number: u64, seed: u64, bytes_max: usize) -> Vec<(String, u64)> {
        let mut sent = Vec::new();
        let Ok(()) = chunk(
            table,
            number,
            seed,
            bytes_max,
            |sql, rows| -> Result<(), Infallible> {
                sent.push((sql.to_owned(), rows));
                Ok(())
            },
        );
        sent
    }

    /// The rows alone, however they were packed.
    fn rows(statements: &[(String, u64)]) -> String {
        let head = "INSERT INTO sbtest1 (id, k, c, pad) VALUES ";
        let parts: Vec<_> = statements
            .iter()
            .map(|(sql, _)| sql.strip_prefix(head).unwrap())
            .collect();
        parts.join(",")
    }

    #[test]
    fn statements_keep_the_limit_and_use_it() {
        let sent = statements(&table(10_000), 0, 1, 64 << 10);
        assert!(sent.iter().all(|(sql, _)| sql.len() <= 64 << 10));
        // All but the last have no room for another row of about 200 bytes.
        assert!(
            sent[..sent.len() - 1]
                .iter()
                .all(|(sql, _)| sql.len() > (64 << 10) - 250)
        );
        assert_eq!(sent.iter().map(|(_, rows)| rows).sum::<u64>(), 10_000);
    }

    #[test]
    fn the_rows_do_not_depend_on_the_size_of_statements() {
        let table = table(500);
        let one_by_one = statements(&table, 0, 1, 0);
        assert_eq!(one_by_one.len(), 500);
        assert_eq!(
            rows(&one_by_one),
            rows(&statements(&table, 0, 1, 512 << 10))
        );
    }

    #[test]
    fn chunks_follow_one_another_and_the_last_is_cut_off() {
        let table = table(25_000);
        for (number, first, count) in [
            (0, "(1,", 10_000),
            (1, "(10001,", 10_000),
            (2, "(20001,", 5_000),
        ] {
            let sent = statements(&table, number, 1, 512 << 10);
            assert!(rows(&sent).starts_with(first), "chunk {number}");
            assert_eq!(
                sent.iter().map(|(_, rows)| rows).sum::<u64>(),
                count,
                "chunk {number}"
            );
        }
        assert!(statements(&table, 3, 1, 512 << 10).is_empty());
    }

    #[test]
    fn the_seed_and_the_chunk_name_the_content() {
        let table = table(30_000);
        assert_eq!(
            statements(&table, 1, 1, 9_999),
            statements(&table, 1, 1, 9_999)
        );
        assert_ne!(
            rows(&statements(&table, 1, 1, 9_999)),
            rows(&statements(&table, 1, 2, 9_999))
        );
    }
}
