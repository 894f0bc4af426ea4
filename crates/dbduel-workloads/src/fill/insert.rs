//! Rows as multi-row INSERT statements, for MySQL and MariaDB.

use dbduel_driver::Dialect;

use super::rows::Rows;
use crate::Table;

/// Passes the rows to `send` in as few statements as fit into `bytes_max` each, with the number of rows of each; a row
/// that does not fit gets its own statement.
///
/// # Errors
/// The first error of `send`, which ends the rows.
pub(super) fn statements<E>(
    table: &Table,
    mut rows: Rows<'_>,
    bytes_max: usize,
    mut send: impl FnMut(&str, u64) -> Result<(), E>,
) -> Result<(), E> {
    let mut sql = format!("INSERT INTO {} VALUES ", table.filled(Dialect::MySql));
    let head = sql.len();
    let mut count = 0;
    let mut values = String::new();
    while rows.write(&mut values) {
        if count > 0 && sql.len() + 1 + values.len() > bytes_max {
            send(&sql, count)?;
            sql.truncate(head);
            count = 0;
        }
        if count > 0 {
            sql.push(',');
        }
        sql.push_str(&values);
        values.clear();
        count += 1;
    }
    if count > 0 { send(&sql, count) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::rows::tests::table;
    use super::*;

    fn sent(table: &Table, bytes_max: usize) -> Vec<(String, u64)> {
        let mut sent = Vec::new();
        let rows = Rows::new(table, &(0..1), 1);
        let Ok(()) = statements(
            table,
            rows,
            bytes_max,
            |sql, rows| -> Result<(), Infallible> {
                sent.push((sql.to_owned(), rows));
                Ok(())
            },
        );
        sent
    }

    /// The rows alone, independent of their packing.
    fn rows(statements: &[(String, u64)]) -> String {
        let head = "INSERT INTO `sbtest1` (`id`, `k`, `c`, `pad`) VALUES ";
        let parts: Vec<_> = statements
            .iter()
            .map(|(sql, _)| sql.strip_prefix(head).unwrap())
            .collect();
        parts.join(",")
    }

    #[test]
    fn statements_keep_the_limit_and_use_it() {
        let sent = sent(&table(10_000), 64 << 10);
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
        let one_by_one = sent(&table, 0);
        assert_eq!(one_by_one.len(), 500);
        assert_eq!(rows(&one_by_one), rows(&sent(&table, 512 << 10)));
    }
}
