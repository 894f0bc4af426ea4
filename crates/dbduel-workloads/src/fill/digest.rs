//! Proof that contenders hold the same data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use dbduel_driver::introspection;
use dbduel_driver::{Connection, Dialect, QueryError, ResultSet, Row, Sink};
use dbduel_record::plan::Parameters;

use super::crc32::crc32;
use super::worker_pool::WorkerPool;
use super::{FillError, FillWatch, Place, error_unless_cancelled};
use crate::{Table, Workload};

/// Digest of the tables' content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// BLAKE3 over the counts and sums of all tables, hexadecimal.
    pub hex: String,
    /// Rows of all tables.
    pub rows: u64,
}

/// Reads all rows of the workload's tables on the server and sums them up.
///
/// Per table: the number of rows, the sum of the CRC-32 of each row's columns joined by commas, and the
/// same of the text reversed. The sums do not depend on the order of the rows, and the functions exist
/// with the same meaning in every version of MySQL and MariaDB (MD5 and SHA do not: newer MySQL has
/// moved them into a component). Of PostgreSQL and SQLite the rows are read, and the sums computed here.
///
/// # Errors
/// [`FillError`].
pub fn digest(
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
    watch: &FillWatch,
) -> Result<Digest, FillError> {
    sums(workload, parameters, place, watch).map_err(|error| error_unless_cancelled(error, watch))
}

fn sums(
    workload: &dyn Workload,
    parameters: &Parameters,
    place: &Place<'_>,
    watch: &FillWatch,
) -> Result<Digest, FillError> {
    let pool = WorkerPool::new(place, watch);
    let tables: Vec<Subject> = match workload.own_data() {
        Some(_) => found(&mut pool.connect()?)?,
        None => workload
            .tables(place.dialect, parameters)
            .iter()
            .map(Subject::of)
            .collect(),
    };
    let sums = Mutex::new(vec![None; tables.len()]);
    let jobs: Vec<(usize, &Subject)> = tables.iter().enumerate().collect();
    pool.work_through(&jobs, |connection, &(index, table)| {
        let sum = Sum::read(connection, table)?;
        sums.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)[index] = Some(sum);
        Ok(())
    })?;
    let mut hasher = blake3::Hasher::new();
    let mut rows = 0;
    let sums = sums
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for (table, sum) in tables.iter().zip(sums.into_iter().flatten()) {
        hasher.update(
            format!(
                "{} {} {} {}\n",
                table.name, sum.rows, sum.forwards, sum.backwards
            )
            .as_bytes(),
        );
        rows += sum.rows;
    }
    Ok(Digest {
        hex: hasher.finalize().to_hex().to_string(),
        rows,
    })
}

/// The schema of PostgreSQL whose tables are named without it.
const PUBLIC: &str = "public";

/// A table and its compared columns.
struct Subject {
    /// Its name, after its schema unless that is the usual one.
    name: String,
    table: String,
    /// Its schema; that of the connection where it is absent.
    schema: Option<String>,
    columns: Vec<String>,
    /// See [`Table::scaled`].
    scaled: Vec<(&'static str, u32)>,
}

impl Subject {
    fn of(table: &Table) -> Self {
        let columns = table.digest_columns.split(',').map(str::trim);
        Subject {
            name: table.name.clone(),
            table: table.name.clone(),
            schema: None,
            columns: columns.map(str::to_owned).collect(),
            scaled: table.scaled.clone(),
        }
    }

    /// The quoted name of the table.
    fn qualified(&self, dialect: Dialect) -> String {
        introspection::qualified(dialect, self.schema.as_deref(), &self.table)
    }

    /// The quoted columns, each changed by `change`, separated by commas.
    fn list(&self, dialect: Dialect, change: impl Fn(&str, String) -> String) -> String {
        let columns = self.columns.iter();
        let written: Vec<String> = columns
            .map(|column| change(column, dialect.identifier(column).to_string()))
            .collect();
        written.join(", ")
    }

    /// A column of SQLite, which stores decimals as whole numbers, as text in the form of the other products.
    fn as_text(&self, column: &str, quoted: String) -> String {
        let Some((_, places)) = self.scaled.iter().find(|(scaled, _)| *scaled == column) else {
            return quoted;
        };
        let unit = 10_u64.pow(*places);
        format!(
            "printf('%s%d.%0{places}d', iif({quoted} < 0, '-', ''), abs({quoted}) / {unit}, abs({quoted}) % {unit})"
        )
    }

    /// The error of a statement on this table.
    fn failed(&self) -> impl Fn(QueryError) -> FillError {
        |source| FillError::Statement {
            table: self.name.clone(),
            source,
        }
    }
}

/// Tables and their checks. MariaDB keeps JSON as text with the check that it is JSON, and a dump brings both to MySQL.
fn checks(is_mariadb: bool) -> &'static str {
    match is_mariadb {
        true => {
            "SELECT table_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = DATABASE()"
        }
        false => {
            "SELECT t.table_name, c.check_clause FROM information_schema.check_constraints c \
             JOIN information_schema.table_constraints t USING (constraint_schema, constraint_name) \
             WHERE constraint_schema = DATABASE() AND t.constraint_type = 'CHECK'"
        }
    }
}

/// The column of a check ``json_valid(`column`)``.
fn checked_column(clause: &str) -> Option<String> {
    let inner = clause
        .trim_start_matches('(')
        .strip_prefix("json_valid(`")?;
    let column = inner.trim_end_matches(')').strip_suffix('`')?;
    Some(column.replace("``", "`"))
}

/// Pairs of table and column that hold JSON as text; none where the server has no checks.
fn json_as_text(connection: &mut Connection) -> Result<BTreeSet<(String, String)>, FillError> {
    if connection.dialect() != Dialect::MySql {
        return Ok(BTreeSet::new());
    }
    let is_mariadb = connection.server_version().contains("MariaDB");
    let answer = match connection.query(checks(is_mariadb)) {
        Err(QueryError::Refused { .. }) => return Ok(BTreeSet::new()),
        answer => answer.map_err(FillError::Together)?,
    };
    let rows = 0..answer.rows.len();
    let pairs = rows.filter_map(|row| {
        let column = checked_column(&answer.text(row, 1)?)?;
        Some((answer.text(row, 0)?, column))
    });
    Ok(pairs.collect())
}

/// Every table of the database, of all schemas, with all its columns except columns of times, which may depend on when it was filled, and of JSON,
/// whose text differs between MySQL and MariaDB. Ordered by the bytes of the names, which is the same on every server.
fn found(connection: &mut Connection) -> Result<Vec<Subject>, FillError> {
    let sql = introspection::columns_without_times(connection.dialect());
    let answer = connection.query(sql).map_err(FillError::Together)?;
    let json = json_as_text(connection)?;
    let mut subjects: BTreeMap<(Option<String>, String), Vec<String>> = BTreeMap::new();
    for row in 0..answer.rows.len() {
        if let (Some(table), Some(column)) = (answer.text(row, 0), answer.text(row, 1)) {
            let pair = (table, column);
            if !json.contains(&pair) {
                let schema = answer.columns.get(2).and_then(|_| answer.text(row, 2));
                subjects.entry((schema, pair.0)).or_default().push(pair.1);
            }
        }
    }
    let subjects = subjects.into_iter();
    let subjects = subjects.map(|((schema, table), columns)| Subject {
        name: match &schema {
            Some(schema) if schema != PUBLIC => format!("{schema}.{table}"),
            _ => table.clone(),
        },
        table,
        schema,
        columns,
        scaled: Vec::new(),
    });
    Ok(subjects.collect())
}

/// Sums over rows as they arrive.
#[derive(Default)]
struct RowSums {
    rows: u64,
    forwards: u128,
    backwards: u128,
    /// The non-NULL values of a row joined by commas, as by `CONCAT_WS`.
    joined: Vec<u8>,
    /// Indices of the columns of bytes, which arrive as `\x` and hexadecimal digits.
    of_bytes: Vec<usize>,
}

/// Appends the bytes of hexadecimal digits after `\\x`.
fn append_bytes(hexadecimal: &[u8], bytes: &mut Vec<u8>) {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    let (pairs, _) = hexadecimal.get(2..).unwrap_or_default().as_chunks::<2>();
    bytes.extend(
        pairs
            .iter()
            .map(|&[high, low]| digit(high) << 4 | digit(low)),
    );
}

impl Sink for RowSums {
    fn row(&mut self, row: &Row<'_>) {
        self.joined.clear();
        let values = row.values().map(|value| value.ok()?.as_bytes());
        let mut is_first = true;
        for (place, value) in values.enumerate() {
            let Some(value) = value else { continue };
            if !is_first {
                self.joined.push(b',');
            }
            is_first = false;
            match self.of_bytes.contains(&place) {
                true => append_bytes(value, &mut self.joined),
                false => self.joined.extend_from_slice(value),
            }
        }
        self.rows += 1;
        self.forwards += u128::from(crc32(self.joined.iter()));
        self.backwards += u128::from(crc32(self.joined.iter().rev()));
    }
}

/// Sums of one table. They are decimals that may exceed 64 bits, so they stay text.
#[derive(Debug, Clone)]
struct Sum {
    rows: u64,
    forwards: String,
    backwards: String,
}

impl From<RowSums> for Sum {
    fn from(sums: RowSums) -> Self {
        Sum {
            rows: sums.rows,
            forwards: sums.forwards.to_string(),
            backwards: sums.backwards.to_string(),
        }
    }
}

impl Sum {
    fn read(connection: &mut Connection, table: &Subject) -> Result<Self, FillError> {
        match connection.dialect() {
            Dialect::MySql => Self::compute_on_server(connection, table),
            Dialect::PostgreSql => Self::compute_here(connection, table),
            Dialect::Sqlite => Self::compute_of_sqlite(connection, table),
        }
    }

    /// Reads every row; SQLite has no CRC-32.
    fn compute_of_sqlite(connection: &mut Connection, table: &Subject) -> Result<Self, FillError> {
        let dialect = Dialect::Sqlite;
        let columns = table.list(dialect, |column, quoted| table.as_text(column, quoted));
        let sql = format!("SELECT {columns} FROM {}", table.qualified(dialect));
        let mut sums = RowSums::default();
        connection
            .query_into(&sql, &mut sums)
            .map_err(table.failed())?;
        Ok(sums.into())
    }

    /// Reads every row as text; PostgreSQL has CRC-32 only since version 18. A CHAR loses its padding in the
    /// conversion to text, as in MySQL.
    fn compute_here(connection: &mut Connection, table: &Subject) -> Result<Self, FillError> {
        let dialect = Dialect::PostgreSql;
        let of_bytes = introspection::columns_of_bytes(table.schema.as_deref(), &table.table);
        let of_bytes = connection.query(&of_bytes).map_err(table.failed())?;
        let of_bytes: BTreeSet<String> = (0..of_bytes.rows.len())
            .filter_map(|row| of_bytes.text(row, 0))
            .collect();
        let columns = table.list(dialect, |_, quoted| quoted + "::text");
        let sql = format!("SELECT {columns} FROM {}", table.qualified(dialect));
        let mut sums = RowSums {
            of_bytes: (0..table.columns.len())
                .filter(|&place| of_bytes.contains(&table.columns[place]))
                .collect(),
            ..RowSums::default()
        };
        connection
            .query_into(&sql, &mut sums)
            .map_err(table.failed())?;
        Ok(sums.into())
    }

    fn compute_on_server(connection: &mut Connection, table: &Subject) -> Result<Self, FillError> {
        let dialect = Dialect::MySql;
        let text = format!(
            "CONCAT_WS(',', {})",
            table.list(dialect, |_, quoted| quoted)
        );
        let sql = format!(
            "SELECT COUNT(*), COALESCE(SUM(CRC32({text})), 0), COALESCE(SUM(CRC32(REVERSE({text}))), 0) FROM {}",
            table.qualified(dialect)
        );
        let answer = connection.query(&sql).map_err(table.failed())?;
        Self::from_answer(&answer).ok_or_else(|| FillError::Answer {
            table: table.name.clone(),
        })
    }

    fn from_answer(answer: &ResultSet) -> Option<Self> {
        Some(Sum {
            rows: answer.text(0, 0)?.parse().ok()?,
            forwards: answer.text(0, 1)?,
            backwards: answer.text(0, 2)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_of_json_name_their_column() {
        for (clause, column) in [
            ("json_valid(`a`)", Some("a")),
            ("(json_valid(`a``b`))", Some("a`b")),
            ("`a` > 1", None),
            ("json_valid(`a`) and 1", None),
        ] {
            assert_eq!(checked_column(clause).as_deref(), column, "{clause}");
        }
    }

    #[test]
    fn bytes_are_read_from_hexadecimal() {
        for (written, expected) in [
            (&b"\\x00fF61"[..], &b"\0\xffa"[..]),
            (b"\\x", b""),
            (b"", b""),
        ] {
            let mut bytes = Vec::new();
            append_bytes(written, &mut bytes);
            assert_eq!(bytes, expected);
        }
    }
}
