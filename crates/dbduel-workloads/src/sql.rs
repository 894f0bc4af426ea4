//! SQL that differs between products: types of columns, tables, keywords, catalogues.
//!
//! A workload writes SQL common to all products itself, and gets the rest here.

use std::borrow::Cow;

use dbduel_driver::introspection;
use dbduel_driver::{Connection, Dialect, QueryError};

/// MySQL's types of columns, and PostgreSQL's that hold the same values. PostgreSQL has no unsigned integers: the small ones become
/// the next larger type. INT UNSIGNED and BIGINT UNSIGNED are used for numbers that stay in the signed half, so their columns are as wide
/// on both sides.
const TYPES: &[(&str, &str)] = &[
    (
        "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT",
        "BIGSERIAL NOT NULL",
    ),
    ("BIGINT UNSIGNED", "BIGINT"),
    ("SMALLINT UNSIGNED", "INTEGER"),
    ("TINYINT UNSIGNED", "SMALLINT"),
    ("TINYINT", "SMALLINT"),
    ("INT UNSIGNED", "INTEGER"),
    ("DATETIME", "TIMESTAMP(0)"),
];

/// SQLite's types. It has no decimals, so amounts and rates are whole numbers of their last place. A text column
/// compares texts byte by byte.
const SQLITE_TYPES: &[(&str, &str)] = &[
    (
        "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT",
        "INTEGER NOT NULL",
    ),
    ("BIGINT UNSIGNED", "INTEGER"),
    ("SMALLINT UNSIGNED", "INTEGER"),
    ("TINYINT UNSIGNED", "INTEGER"),
    ("INT UNSIGNED", "INTEGER"),
    ("BIGINT", "INTEGER"),
    ("TINYINT", "INTEGER"),
    ("DECIMAL(4,4)", "INTEGER"),
    ("DECIMAL(12,2)", "INTEGER"),
    ("DECIMAL(8,2)", "INTEGER"),
    ("DECIMAL(6,2)", "INTEGER"),
    ("DECIMAL(5,2)", "INTEGER"),
    ("DATETIME", "TEXT"),
];

/// Definitions of columns, written with MySQL's types, converted to this dialect.
pub(super) fn columns(dialect: Dialect, definitions: &str) -> String {
    let types = match dialect {
        Dialect::MySql => &[],
        Dialect::PostgreSql => TYPES,
        Dialect::Sqlite => SQLITE_TYPES,
    };
    types
        .iter()
        .fold(definitions.to_owned(), |text, (from, to)| {
            text.replace(from, to)
        })
}

/// A statement written for MySQL, converted to this dialect. SQLite locks the file when a transaction begins, so it
/// has no locking reads, and its amounts are whole numbers already.
pub(super) fn statement(dialect: Dialect, sql: &str) -> Cow<'_, str> {
    if dialect != Dialect::Sqlite {
        return sql.into();
    }
    let sql = sql.replace(" FOR UPDATE", "");
    let sql = sql.replace("NOW()", "CURRENT_TIMESTAMP");
    sql.replace("CAST(? AS DECIMAL(12,2))", "?").into()
}

/// The columns that are decimals in MySQL and whole numbers of their last place in this dialect, with the number of
/// places.
pub(super) fn scaled(dialect: Dialect, definitions: &'static str) -> Vec<(&'static str, u32)> {
    if dialect != Dialect::Sqlite {
        return Vec::new();
    }
    let decimals = definitions.split(", ").filter_map(|definition| {
        let (column, decimal) = definition.split_once(" DECIMAL(")?;
        let (_, places) = decimal.split_once(')')?.0.split_once(',')?;
        Some((column.trim(), places.parse().ok()?))
    });
    decimals.collect()
}

/// Partitioning of a table.
pub(super) struct Partitions {
    /// MySQL's method, HASH or KEY. PostgreSQL has hash partitioning, from 11 on.
    pub mysql_method: &'static str,
    /// The partitioning column.
    pub column: &'static str,
    /// Number of partitions.
    pub count: u64,
}

/// The statement that creates a table; for PostgreSQL several in one text when it has partitions, which are tables
/// there.
pub(super) fn create_table(
    dialect: Dialect,
    name: &str,
    definitions: &str,
    options: &str,
    partitions: Option<&Partitions>,
) -> String {
    let quoted = dialect.identifier(name);
    let table = format!("CREATE TABLE {quoted} ({definitions})");
    let Some(partitions) = partitions.filter(|partitions| partitions.count > 1) else {
        return format!("{table} {options}");
    };
    let Partitions {
        mysql_method,
        column,
        count,
    } = partitions;
    match dialect {
        // SQLite has no partitions, and workloads refuse them for it.
        Dialect::MySql | Dialect::Sqlite => {
            format!("{table} {options} PARTITION BY {mysql_method} ({column}) PARTITIONS {count}")
        }
        Dialect::PostgreSql => {
            let parts = (0..*count).map(|number| {
                let part = format!("{name}_{number}");
                format!(
                    "; CREATE TABLE {} PARTITION OF {quoted} \
                     FOR VALUES WITH (MODULUS {count}, REMAINDER {number}) {options}",
                    dialect.identifier(&part)
                )
            });
            let parts: String = parts.collect();
            format!("{table} PARTITION BY HASH ({column}){parts}")
        }
    }
}

/// For PostgreSQL, the statement that moves a sequence past the existing rows, whose ids it did not assign.
pub(super) fn continue_numbers(table: &str, column: &str) -> String {
    let dialect = Dialect::PostgreSql;
    let quoted = [table, column].map(|name| dialect.identifier(name).to_string());
    let [table, highest] = &quoted;
    // The function reads the first name as a statement would, and the second as it is.
    let [of, column] = [table, column].map(|name| dialect.literal(name));
    format!(
        "SELECT setval(pg_get_serial_sequence({of}, {column}), COALESCE(MAX({highest}), 0) + 1, false) FROM {table}"
    )
}

/// The statement that sets the isolation of a session's transactions.
pub(super) fn set_isolation(dialect: Dialect, level: &str) -> String {
    match dialect {
        Dialect::MySql => format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
        Dialect::PostgreSql => {
            format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")
        }
        // It has serialisable transactions only, unless connections share a cache and this is on.
        Dialect::Sqlite => "PRAGMA read_uncommitted = OFF".to_owned(),
    }
}

/// Clause between an INSERT and the assignments for a row whose `key` exists. In these, PostgreSQL needs the columns
/// of that row qualified with the name of their table.
pub(super) fn on_taken_key(dialect: Dialect, key: &str) -> String {
    match dialect {
        Dialect::MySql => "ON DUPLICATE KEY UPDATE".to_owned(),
        Dialect::PostgreSql | Dialect::Sqlite => format!("ON CONFLICT ({key}) DO UPDATE SET"),
    }
}

/// An expression with one parameter that returns the column with that number, counted from 1.
pub(super) fn nth_column(dialect: Dialect, columns: &[&str]) -> String {
    match dialect {
        Dialect::MySql => format!("ELT(?, {})", columns.join(", ")),
        Dialect::PostgreSql | Dialect::Sqlite => {
            let numbered = (1..).zip(columns);
            let cases = numbered.map(|(number, column)| format!(" WHEN {number} THEN {column}"));
            format!("CASE CAST(? AS INTEGER){} END", cases.collect::<String>())
        }
    }
}

/// Hint to use an index of the table before it; empty for PostgreSQL, which has none.
pub(super) fn force_index(dialect: Dialect, name: &str) -> String {
    match dialect {
        Dialect::MySql => format!(" FORCE INDEX ({name})"),
        Dialect::PostgreSql => String::new(),
        Dialect::Sqlite => format!(" INDEXED BY {name}"),
    }
}

/// Join of two tables in the written order, as SQLite's CROSS JOIN does; PostgreSQL chooses the order itself.
pub(super) fn join_in_order(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MySql => "STRAIGHT_JOIN",
        Dialect::PostgreSql => "JOIN",
        Dialect::Sqlite => "CROSS JOIN",
    }
}

/// Names of the indexes of a table in the connection's default database.
pub(super) fn indexes(connection: &mut Connection, table: &str) -> Result<Vec<String>, QueryError> {
    let answer = connection.query(&introspection::index_names(connection.dialect(), table))?;
    let rows = 0..answer.rows.len();
    Ok(rows.filter_map(|row| answer.text(row, 0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_counterpart() {
        let definitions = "a TINYINT UNSIGNED, b SMALLINT UNSIGNED NOT NULL, c INT UNSIGNED, d DATETIME, \
                           e BIGINT UNSIGNED, f BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, g TINYINT";
        assert_eq!(columns(Dialect::MySql, definitions), definitions);
        assert_eq!(
            columns(Dialect::PostgreSql, definitions),
            "a SMALLINT, b INTEGER NOT NULL, c INTEGER, d TIMESTAMP(0), e BIGINT, f BIGSERIAL NOT NULL, g SMALLINT"
        );
    }

    #[test]
    fn sqlite_has_whole_numbers_for_decimals_and_no_locking_reads() {
        let definitions =
            "a SMALLINT UNSIGNED NOT NULL, b DECIMAL(4,4) NOT NULL, c DECIMAL(12,2), d DATETIME";
        assert_eq!(
            columns(Dialect::Sqlite, definitions),
            "a INTEGER NOT NULL, b INTEGER NOT NULL, c INTEGER, d TEXT"
        );
        assert_eq!(scaled(Dialect::Sqlite, definitions), [("b", 4), ("c", 2)]);
        assert!(scaled(Dialect::PostgreSql, definitions).is_empty());
        let sql = "SELECT a FROM t WHERE b = CAST(? AS DECIMAL(12,2)) FOR UPDATE";
        assert_eq!(statement(Dialect::MySql, sql), sql);
        assert_eq!(
            statement(Dialect::Sqlite, sql),
            "SELECT a FROM t WHERE b = ?"
        );
    }

    #[test]
    fn partitions_are_a_clause_or_tables() {
        let created = |dialect, count| {
            let partitions = Partitions {
                mysql_method: "KEY",
                column: "id",
                count,
            };
            create_table(dialect, "t", "id INTEGER", "OPTIONS (o)", Some(&partitions))
        };
        for dialect in [Dialect::MySql, Dialect::PostgreSql] {
            assert_eq!(
                created(dialect, 1),
                format!(
                    "CREATE TABLE {} (id INTEGER) OPTIONS (o)",
                    dialect.identifier("t")
                )
            );
        }
        assert_eq!(
            created(Dialect::MySql, 2),
            "CREATE TABLE `t` (id INTEGER) OPTIONS (o) PARTITION BY KEY (id) PARTITIONS 2"
        );
        assert_eq!(
            created(Dialect::PostgreSql, 2),
            "CREATE TABLE \"t\" (id INTEGER) PARTITION BY HASH (id)\
             ; CREATE TABLE \"t_0\" PARTITION OF \"t\" FOR VALUES WITH (MODULUS 2, REMAINDER 0) OPTIONS (o)\
             ; CREATE TABLE \"t_1\" PARTITION OF \"t\" FOR VALUES WITH (MODULUS 2, REMAINDER 1) OPTIONS (o)"
        );
    }

    #[test]
    fn the_column_of_a_number_is_one_expression() {
        let columns = ["a", "b"];
        assert_eq!(nth_column(Dialect::MySql, &columns), "ELT(?, a, b)");
        assert_eq!(
            nth_column(Dialect::PostgreSql, &columns),
            "CASE CAST(? AS INTEGER) WHEN 1 THEN a WHEN 2 THEN b END"
        );
    }
}
