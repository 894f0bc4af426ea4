//! One client's transactions, in the order of sysbench's scripts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dbduel_client::distributions::Distribution;
use dbduel_client::random::{Random, unique};
use dbduel_client::share::HostShare;
use dbduel_client::tally::Class;
use dbduel_client::{Begin, Client, ClientContext};
use dbduel_driver::{
    ClientConnection, Dialect, ErrorClass, Protocol, ServerError, Statement, StatementError, Value,
};

use super::per_table::PerTable;
use super::{Options, Script};
use crate::sbtest::{C_LENGTH, PAD_LENGTH, fill_groups};

/// Maximum number of numbers tried for one row. With [`beyond`] they reach from the first number to the last.
const ATTEMPTS_MAX: u32 = 64;

/// Where to continue in the sequence of numbers when one of them is taken. An earlier run has then drawn the same
/// sequence from its beginning, so all clients skip ahead together, by half of the numbers passed.
fn beyond(place: u32) -> u32 {
    place.saturating_add(place / 2).saturating_add(1)
}

/// The statement that inserts a row. Where the server assigns ids, MySQL expects an id of 0, PostgreSQL and SQLite
/// none.
fn insert_sql(dialect: Dialect, options: &Options) -> &'static str {
    let is_numbered_by_server = options.script == Script::Insert && options.sbtest.auto_inc;
    match dialect {
        Dialect::PostgreSql | Dialect::Sqlite if is_numbered_by_server => {
            "INSERT INTO sbtest# (k, c, pad) VALUES (?, ?, ?)"
        }
        Dialect::MySql | Dialect::PostgreSql | Dialect::Sqlite => {
            "INSERT INTO sbtest# (id, k, c, pad) VALUES (?, ?, ?, ?)"
        }
    }
}

/// A deleted row's key is taken when another client has inserted the row again meanwhile, which the DELETE did not
/// see: PostgreSQL skips a row that was deleted while it waited. sysbench restarts such a transaction.
#[cold]
fn taken_by_another(error: StatementError) -> StatementError {
    match error {
        StatementError::Server(error) if error.class == ErrorClass::DuplicateKey => {
            let class = ErrorClass::Conflict;
            StatementError::Server(ServerError { class, ..error })
        }
        other => other,
    }
}

/// The stream of transactions of one client.
pub(crate) struct OltpClient {
    options: Options,
    ids: Distribution,
    random: Random,
    sequence: Arc<AtomicU32>,
    host: HostShare,
    begin: Option<Statement>,
    commit: Option<Statement>,
    point: PerTable,
    /// Simple, sum, order and distinct, each with its repetitions per transaction.
    ranges: Vec<(u64, PerTable)>,
    index_update: PerTable,
    non_index_update: PerTable,
    delete: PerTable,
    insert: PerTable,
}

impl Client for OltpClient {
    type Options = Options;

    async fn open(
        conn: &mut ClientConnection,
        options: &Options,
        context: &ClientContext,
    ) -> Result<Self, StatementError> {
        let counts = options.counts;
        let ranges = [
            (
                counts.simple_ranges,
                "SELECT c FROM sbtest# WHERE id BETWEEN ? AND ?",
            ),
            (
                counts.sum_ranges,
                "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN ? AND ?",
            ),
            (
                counts.order_ranges,
                "SELECT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c",
            ),
            (
                counts.distinct_ranges,
                "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c",
            ),
        ];
        let mut prepared_ranges = Vec::new();
        for (count, sql) in ranges {
            prepared_ranges.push((
                count,
                Self::prepare_each(conn, options, count > 0, sql).await?,
            ));
        }
        let points = counts.point_selects > 0;
        let deletes = counts.delete_inserts > 0 || options.script == Script::Delete;
        let inserts = counts.delete_inserts > 0 || options.script == Script::Insert;
        let writes = options.script != Script::ReadOnly;
        let (index, non_index) = (counts.index_updates > 0, counts.non_index_updates > 0);
        Ok(OltpClient {
            begin: Self::prepare_frame(conn, options, conn.dialect().begin(writes)).await?,
            commit: Self::prepare_frame(conn, options, "COMMIT").await?,
            point: Self::prepare_each(conn, options, points, "SELECT c FROM sbtest# WHERE id=?")
                .await?,
            ranges: prepared_ranges,
            index_update: Self::prepare_each(
                conn,
                options,
                index,
                "UPDATE sbtest# SET k=k+1 WHERE id=?",
            )
            .await?,
            non_index_update: Self::prepare_each(
                conn,
                options,
                non_index,
                "UPDATE sbtest# SET c=? WHERE id=?",
            )
            .await?,
            delete: Self::prepare_each(conn, options, deletes, "DELETE FROM sbtest# WHERE id=?")
                .await?,
            insert: Self::prepare_each(conn, options, inserts, insert_sql(conn.dialect(), options))
                .await?,
            ids: options.ids(),
            random: Random::new(0),
            sequence: Arc::clone(&context.config.sequence),
            host: context.config.host,
            options: options.clone(),
        })
    }

    fn begin(&mut self, begin: Begin) {
        self.random = Random::new(begin.seed);
    }

    async fn transaction(
        &mut self,
        _class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        match self.options.script {
            Script::PointSelect => self.point_selects(conn).await,
            Script::ReadOnly => {
                self.begin_transaction(conn).await?;
                self.reads(conn).await?;
                self.commit_transaction(conn).await
            }
            Script::ReadWrite => {
                self.begin_transaction(conn).await?;
                self.reads(conn).await?;
                self.writes(conn).await?;
                self.commit_transaction(conn).await
            }
            Script::WriteOnly => {
                self.begin_transaction(conn).await?;
                self.writes(conn).await?;
                self.commit_transaction(conn).await
            }
            Script::UpdateIndex => self.index_updates(conn).await,
            Script::UpdateNonIndex => self.non_index_updates(conn).await,
            Script::Insert => self.insert_new(conn).await,
            Script::Delete => {
                let id = self.ids.draw(&mut self.random);
                self.delete(conn, id).await
            }
        }
    }
}

impl OltpClient {
    /// Prepares one kind of statement; nothing when transactions do not use it, because servers limit the number of
    /// prepared statements.
    async fn prepare_each(
        conn: &mut ClientConnection,
        options: &Options,
        is_used: bool,
        sql: &str,
    ) -> Result<PerTable, StatementError> {
        // The insert of oltp-insert is a text query in sysbench, whatever the mode.
        let protocol = match options.script {
            Script::Insert => Protocol::Text,
            _ => options.sbtest.protocol,
        };
        let tables = if is_used { options.tables } else { 0 };
        PerTable::prepare(conn, protocol, tables, sql).await
    }

    async fn prepare_frame(
        conn: &mut ClientConnection,
        options: &Options,
        sql: &str,
    ) -> Result<Option<Statement>, StatementError> {
        if !options.transactional {
            return Ok(None);
        }
        Ok(Some(conn.prepare(sql, options.sbtest.protocol).await?))
    }

    async fn begin_transaction(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        if let Some(begin) = &mut self.begin {
            conn.execute(begin, &[]).await?;
        }
        Ok(())
    }

    async fn commit_transaction(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        if let Some(commit) = &mut self.commit {
            conn.execute(commit, &[]).await?;
        }
        Ok(())
    }

    async fn reads(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        let counts = self.options.counts;
        if counts.point_selects > 0 {
            self.point_selects(conn).await?;
        }
        self.ranges(conn).await
    }

    async fn writes(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        self.index_updates(conn).await?;
        self.non_index_updates(conn).await?;
        self.delete_inserts(conn).await
    }

    async fn point_selects(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        let statement = self.point.choose(&mut self.random);
        for _ in 0..self.options.counts.point_selects {
            let id = self.ids.draw(&mut self.random);
            conn.execute(statement, &[Value::Signed(id)]).await?;
        }
        Ok(())
    }

    async fn ranges(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        for (count, statements) in &mut self.ranges {
            if *count == 0 {
                continue;
            }
            let statement = statements.choose(&mut self.random);
            for _ in 0..*count {
                let id = self.ids.draw(&mut self.random);
                let last = id + self.options.range_size - 1;
                conn.execute(statement, &[Value::Signed(id), Value::Signed(last)])
                    .await?;
            }
        }
        Ok(())
    }

    async fn index_updates(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        if self.options.counts.index_updates == 0 {
            return Ok(());
        }
        let statement = self.index_update.choose(&mut self.random);
        for _ in 0..self.options.counts.index_updates {
            let id = self.ids.draw(&mut self.random);
            conn.execute(statement, &[Value::Signed(id)]).await?;
        }
        Ok(())
    }

    async fn non_index_updates(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        if self.options.counts.non_index_updates == 0 {
            return Ok(());
        }
        let statement = self.non_index_update.choose(&mut self.random);
        for _ in 0..self.options.counts.non_index_updates {
            let mut c = [0; C_LENGTH];
            let c = fill_groups(&mut self.random, &mut c);
            let id = self.ids.draw(&mut self.random);
            conn.execute(statement, &[Value::Text(c), Value::Signed(id)])
                .await?;
        }
        Ok(())
    }

    /// Deletes a row and inserts one with the same id, in the same table.
    async fn delete_inserts(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        if self.options.counts.delete_inserts == 0 {
            return Ok(());
        }
        let table = self.random.below(self.options.tables) as usize;
        for _ in 0..self.options.counts.delete_inserts {
            let id = self.ids.draw(&mut self.random);
            let k = self.ids.draw(&mut self.random);
            conn.execute(self.delete.of(table), &[Value::Signed(id)])
                .await?;
            self.insert(conn, table, id, k)
                .await
                .map_err(taken_by_another)?;
        }
        Ok(())
    }

    async fn delete(&mut self, conn: &mut ClientConnection, id: i64) -> Result<(), StatementError> {
        let statement = self.delete.choose(&mut self.random);
        conn.execute(statement, &[Value::Signed(id)]).await?;
        Ok(())
    }

    async fn insert_new(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        let table = self.random.below(self.options.tables) as usize;
        let k = self.ids.draw(&mut self.random);
        if self.options.sbtest.auto_inc {
            // 0 makes MySQL number the row.
            return self.insert(conn, table, 0, k).await;
        }
        let mut attempts = 0;
        loop {
            let place = self.sequence.fetch_add(1, Ordering::Relaxed);
            // All of the signed range, each number once.
            let id = i64::from(unique(self.host.distinct(place))) + i64::from(i32::MIN);
            match self.insert(conn, table, id, k).await {
                Err(StatementError::Server(error))
                    if error.class == ErrorClass::DuplicateKey && attempts < ATTEMPTS_MAX =>
                {
                    attempts += 1;
                    self.sequence.fetch_max(beyond(place), Ordering::Relaxed);
                }
                outcome => return outcome,
            }
        }
    }

    async fn insert(
        &mut self,
        conn: &mut ClientConnection,
        table: usize,
        id: i64,
        k: i64,
    ) -> Result<(), StatementError> {
        let (mut c, mut pad) = ([0; C_LENGTH], [0; PAD_LENGTH]);
        let c = fill_groups(&mut self.random, &mut c);
        let pad = fill_groups(&mut self.random, &mut pad);
        let values = [
            Value::Signed(id),
            Value::Signed(k),
            Value::Text(c),
            Value::Text(pad),
        ];
        let statement = self.insert.of(table);
        // The id goes first, and is left out where the statement has none.
        let first = values.len().saturating_sub(statement.parameters());
        conn.execute(statement, &values[first..]).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaps_reach_the_last_number_in_the_attempts_of_one_row() {
        let mut place = 0;
        for _ in 0..ATTEMPTS_MAX {
            assert!(beyond(place) > place || place == u32::MAX);
            place = beyond(place);
        }
        assert_eq!(place, u32::MAX);
    }
}
