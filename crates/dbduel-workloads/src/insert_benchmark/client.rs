//! One client: it inserts into, deletes from, queries or indexes one table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dbduel_client::random::Random;
use dbduel_client::tally::Class;
use dbduel_client::{Begin, Client, ClientContext, Readiness};
use dbduel_driver::introspection;
use dbduel_driver::{ClientConnection, Dialect, Statement, StatementError, Value};

use super::row::{CASH_REGISTERS, PRICES, PRODUCTS, Rows};
use super::schema::{INDEXES, VALUES, create_indexes, drop_indexes, table_name};
use super::settings::{Role, Settings, Step};
use crate::rows::{Fields, each, maybe};
use crate::sql::force_index;

/// Maximum number of statements by which inserts and deletes of a table may differ at full speed.
const APART_MAX: u64 = 8;
/// Pause of a client that is too far ahead before it compares again.
const AHEAD_PAUSE: Duration = Duration::from_micros(200);
/// Deletes after which the lowest key is read again.
const DELETES_PER_MIN: u64 = 1_000;
/// Point queries after which the highest key is read again.
const QUERIES_PER_MAX: u64 = 100;
/// Keys of a point query.
const POINTS: usize = 10;

/// Statements of a table's clients since they were connected.
#[derive(Debug, Default)]
pub(super) struct TableProgress {
    inserted: AtomicU64,
    deleted: AtomicU64,
}

/// The stream of statements of one client.
pub(super) struct InsertBenchmarkClient {
    settings: Settings,
    role: Role,
    /// Index of its class.
    class: usize,
    table: String,
    /// Index of the table among those of `progress`.
    place: usize,
    progress: Arc<Vec<TableProgress>>,
    random: Random,
    rows: Rows,
    /// Number of the next row to insert.
    next_row: u64,
    /// Lowest key that a row may have.
    min_key: u64,
    /// Highest key seen.
    max_key: u64,
    /// Statements since the client was connected, and since the slice began.
    sent: u64,
    sent_in_slice: u64,
    /// When the client first asked in the slice for permission to begin.
    began: Option<Instant>,
    lowest: Statement,
    highest: Statement,
    delete: Statement,
    /// Range queries, one for each index, or the point query.
    queries: Vec<Statement>,
    text: String,
}

/// The query for the first or last key, 0 for an empty table.
fn end_of_keys(function: &str, table: &str) -> String {
    format!("SELECT COALESCE({function}(transactionid), 0) FROM {table}")
}

/// The first field of a row, as a number.
fn first_number(fields: &mut Fields<'_>) -> Option<u64> {
    fields.integer()
}

/// The statement that deletes the rows with the lowest keys from a given key on.
fn delete_sql(dialect: Dialect, table: &str, rows: u64) -> String {
    let lowest = format!("transactionid >= ? ORDER BY transactionid LIMIT {rows}");
    match dialect {
        Dialect::MySql => format!("DELETE FROM {table} WHERE {lowest}"),
        Dialect::PostgreSql | Dialect::Sqlite => format!(
            "DELETE FROM {table} WHERE transactionid IN (SELECT transactionid FROM {table} WHERE {lowest})"
        ),
    }
}

/// The queries of a step.
fn query_sql(dialect: Dialect, step: Step, table: &str) -> Vec<String> {
    match step {
        Step::PointQueries => {
            let keys = ["?"; POINTS].join(", ");
            vec![format!(
                "SELECT transactionid, productid, data FROM {table} WHERE transactionid IN ({keys})"
            )]
        }
        Step::RangeQueries => {
            let comparisons = [">=", ">", ">="];
            let queries = INDEXES.iter().zip(comparisons).map(|(index, comparison)| {
                let columns = index.columns;
                let first = columns.split(", ").next().unwrap_or_default();
                let force = force_index(dialect, &index.name_in(table));
                format!(
                    "SELECT {columns} FROM {table}{force} WHERE {first} {comparison} ? ORDER BY {columns} LIMIT 10"
                )
            });
            queries.collect()
        }
        _ => Vec::new(),
    }
}

impl Client for InsertBenchmarkClient {
    type Options = Settings;

    async fn open(
        conn: &mut ClientConnection,
        settings: &Settings,
        context: &ClientContext,
    ) -> Result<Self, StatementError> {
        let roles = settings.step.roles();
        let number = context.client as usize;
        let class = number % roles.len();
        let progress = Arc::clone(&context.config.shared).downcast::<Vec<TableProgress>>();
        let progress = progress.unwrap_or_else(|_| Arc::new(vec![TableProgress::default()]));
        let place = number / roles.len() % progress.len().max(1);
        let table = table_name(place as u64 + 1);
        let dialect = conn.dialect();
        let text = |sql: &str| Statement::text(sql, dialect);
        let mut queries = Vec::new();
        if roles[class] == Role::Query {
            for sql in query_sql(dialect, settings.step, &table) {
                queries.push(conn.prepare(&sql, settings.protocol(dialect)).await?);
            }
        }
        let mut client = InsertBenchmarkClient {
            role: roles[class],
            class,
            place,
            progress,
            random: Random::new(0),
            rows: Rows::new(settings.seed, place as u64 + 1),
            next_row: 1,
            min_key: 0,
            max_key: 0,
            sent: 0,
            sent_in_slice: 0,
            began: None,
            lowest: text(&end_of_keys("MIN", &table)),
            highest: text(&end_of_keys("MAX", &table)),
            delete: text(&delete_sql(dialect, &table, settings.rows_per_statement)),
            queries,
            text: String::new(),
            table,
            settings: *settings,
        };
        client.next_row = client.read_max(conn).await? + 1;
        Ok(client)
    }

    fn begin(&mut self, begin: Begin) {
        self.random = Random::new(begin.seed);
        self.sent_in_slice = 0;
        self.began = None;
    }

    fn readiness(&mut self) -> Readiness {
        if self.role == Role::Query {
            return Readiness::READY;
        }
        let limit = self.settings.statements_per_slice;
        if limit.is_some_and(|limit| self.sent_in_slice >= limit) {
            return Readiness::Finished;
        }
        if self.is_ahead() {
            return Readiness::AskAgain(AHEAD_PAUSE);
        }
        let Some(burst) = self.settings.burst() else {
            return Readiness::READY;
        };
        let now = Instant::now();
        let began = *self.began.get_or_insert(now);
        let due = began + Duration::from_secs(self.sent_in_slice / burst.max(1));
        Readiness::After(due.saturating_duration_since(now))
    }

    fn draw(&mut self) -> Class {
        Class(self.class)
    }

    async fn transaction(
        &mut self,
        _class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        match self.role {
            Role::Insert => self.insert(conn).await?,
            Role::Delete => self.delete(conn).await?,
            Role::Index => self.create_indexes(conn).await?,
            Role::Query if self.settings.step == Step::PointQueries => {
                self.query_points(conn).await?;
            }
            Role::Query => self.query_range(conn).await?,
        }
        self.sent += 1;
        self.sent_in_slice += 1;
        Ok(())
    }
}

impl InsertBenchmarkClient {
    /// Whether inserts are too far ahead of deletes, or the reverse. Never true for a table without the other client.
    fn is_ahead(&self) -> bool {
        let TableProgress { inserted, deleted } = &self.progress[self.place];
        let (inserted, deleted) = (
            inserted.load(Ordering::Relaxed),
            deleted.load(Ordering::Relaxed),
        );
        match (self.role, self.settings.step) {
            (_, Step::Load | Step::Index) => false,
            (Role::Insert, _) => inserted >= deleted + APART_MAX,
            (Role::Delete, _) => deleted >= inserted + APART_MAX,
            _ => false,
        }
    }

    async fn read_max(&mut self, conn: &mut ClientConnection) -> Result<u64, StatementError> {
        let found = maybe(conn, &mut self.highest, &[], first_number).await?;
        Ok(found.unwrap_or_default())
    }

    async fn insert(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        let rows = self.settings.rows_per_statement;
        self.text.clear();
        self.text.push_str("INSERT INTO ");
        self.text.push_str(&self.table);
        self.text.push_str(" (");
        self.text.push_str(VALUES);
        self.text.push_str(") VALUES ");
        for row in self.next_row..self.next_row + rows {
            self.text
                .push_str(if row == self.next_row { "(" } else { ",(" });
            self.rows.write_values(row, &mut self.text);
            self.text.push(')');
        }
        conn.query(self.text.as_bytes()).await?;
        self.next_row += rows;
        let inserted = &self.progress[self.place].inserted;
        inserted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn delete(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        if self.sent.is_multiple_of(DELETES_PER_MIN) {
            let found = maybe(conn, &mut self.lowest, &[], first_number).await?;
            self.min_key = found.unwrap_or_default();
        }
        let first = [Value::Signed(self.min_key as i64)];
        conn.execute(&mut self.delete, &first).await?;
        self.min_key += self.settings.rows_per_statement;
        let deleted = &self.progress[self.place].deleted;
        deleted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn query_range(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        let firsts = [PRODUCTS, CASH_REGISTERS, PRICES];
        let chosen = self.random.below(firsts.len() as u64) as usize;
        let first = self.random.below(firsts[chosen]);
        let query = &mut self.queries[chosen];
        conn.execute(query, &[Value::Signed(first as i64)]).await?;
        Ok(())
    }

    async fn query_points(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        if self.sent.is_multiple_of(QUERIES_PER_MAX) {
            self.max_key = self.read_max(conn).await?;
        }
        // Deletes keep the number of rows.
        let rows = self.settings.rows.clamp(1, self.max_key.max(1));
        let first = self.max_key - rows.min(self.max_key) + 1;
        let random = &mut self.random;
        let keys: [Value<'_>; POINTS] =
            std::array::from_fn(|_| Value::Signed((first + random.below(rows)) as i64));
        conn.execute(&mut self.queries[0], &keys).await?;
        Ok(())
    }

    /// Inserts the rows of one statement, then creates the secondary indexes. Those of an earlier slice are dropped before.
    async fn create_indexes(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        let dialect = conn.dialect();
        let mut names = Statement::text(&introspection::index_names(dialect, &self.table), dialect);
        let own = INDEXES.map(|index| index.name_in(&self.table));
        let mut is_indexed = false;
        each(conn, &mut names, &[], |fields| {
            let name = String::from_utf8_lossy(fields.text()?).into_owned();
            is_indexed |= own.contains(&name);
            Some(())
        })
        .await?;
        if is_indexed {
            for sql in drop_indexes(dialect, &self.table) {
                conn.query(sql.as_bytes()).await?;
            }
        }
        self.insert(conn).await?;
        for sql in create_indexes(dialect, &self.table) {
            conn.query(sql.as_bytes()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_queries_read_the_columns_of_an_index_in_its_order() {
        let mysql = query_sql(Dialect::MySql, Step::RangeQueries, "pi1");
        assert_eq!(
            mysql,
            [
                "SELECT productid, customerid, price FROM pi1 FORCE INDEX (pi1_marketsegment) \
                 WHERE productid >= ? ORDER BY productid, customerid, price LIMIT 10",
                "SELECT cashregisterid, customerid, price FROM pi1 FORCE INDEX (pi1_registersegment) \
                 WHERE cashregisterid > ? ORDER BY cashregisterid, customerid, price LIMIT 10",
                "SELECT price, dateandtime, customerid FROM pi1 FORCE INDEX (pi1_pdc) \
                 WHERE price >= ? ORDER BY price, dateandtime, customerid LIMIT 10",
            ]
        );
        let postgresql = query_sql(Dialect::PostgreSql, Step::RangeQueries, "pi1");
        assert_eq!(
            postgresql[2],
            "SELECT price, dateandtime, customerid FROM pi1 WHERE price >= ? \
             ORDER BY price, dateandtime, customerid LIMIT 10"
        );
    }

    #[test]
    fn point_queries_and_deletes_have_these_statements() {
        assert_eq!(
            query_sql(Dialect::MySql, Step::PointQueries, "pi2"),
            [
                "SELECT transactionid, productid, data FROM pi2 WHERE transactionid IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            ]
        );
        assert_eq!(
            delete_sql(Dialect::MySql, "pi2", 50),
            "DELETE FROM pi2 WHERE transactionid >= ? ORDER BY transactionid LIMIT 50"
        );
        assert_eq!(
            delete_sql(Dialect::PostgreSql, "pi2", 5),
            "DELETE FROM pi2 WHERE transactionid IN \
             (SELECT transactionid FROM pi2 WHERE transactionid >= ? ORDER BY transactionid LIMIT 5)"
        );
    }
}
