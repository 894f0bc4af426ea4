//! The OLTP workloads of sysbench: statements, values and their order are those of version 1.0.20.
//!
//! For every kind of statement in a transaction one table is chosen, uniformly, and used for all its
//! repetitions; ids come from the distribution `rand_type` over 1..=`table_size`. The end of a range is
//! not clamped to the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dbduel_record::plan::Parameters;
use dbduel_wire::Value;

use super::parameters::{ParameterError, ParameterSpec, Resolved};
use super::sbtest::{self, C_LENGTH, PAD_LENGTH, Sbtest, fill_groups};
use super::unique::unique;
use super::{Table, Workload};
use crate::conn::{Conn, LostError, Protocol, Statement, StatementError};
use crate::distributions::Distribution;
use crate::executor::Task;
use crate::random::Random;
use crate::tally::Class;
use crate::worker::{Begin, Client, Seat};

/// One of the OLTP workloads.
#[derive(Debug)]
pub(super) struct Oltp {
    script: Script,
    name: &'static str,
    about: &'static str,
}

/// What a transaction consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    PointSelect,
    ReadOnly,
    ReadWrite,
    WriteOnly,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
}

impl Oltp {
    pub(super) const POINT_SELECT: Self = Oltp {
        script: Script::PointSelect,
        name: "oltp-point-select",
        about: "One query by primary key, without a transaction around it.",
    };
    pub(super) const READ_ONLY: Self = Oltp {
        script: Script::ReadOnly,
        name: "oltp-read-only",
        about: "Ten point queries and four range queries in a transaction.",
    };
    pub(super) const READ_WRITE: Self = Oltp {
        script: Script::ReadWrite,
        name: "oltp-read-write",
        about: "The queries of oltp-read-only and the changes of oltp-write-only in a transaction.",
    };
    pub(super) const WRITE_ONLY: Self = Oltp {
        script: Script::WriteOnly,
        name: "oltp-write-only",
        about: "Two updates, and a row deleted and inserted again, in a transaction.",
    };
    pub(super) const UPDATE_INDEX: Self = Oltp {
        script: Script::UpdateIndex,
        name: "oltp-update-index",
        about: "One update of an indexed column, committed by itself.",
    };
    pub(super) const UPDATE_NON_INDEX: Self = Oltp {
        script: Script::UpdateNonIndex,
        name: "oltp-update-non-index",
        about: "One update of a column without index, committed by itself.",
    };
    pub(super) const INSERT: Self = Oltp {
        script: Script::Insert,
        name: "oltp-insert",
        about: "One insert, always sent as text, committed by itself; the tables grow.",
    };
    pub(super) const DELETE: Self = Oltp {
        script: Script::Delete,
        name: "oltp-delete",
        about: "One delete by primary key, committed by itself; the tables run empty.",
    };
}

impl Workload for Oltp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        [sbtest::OLTP, sbtest::COMMON].concat()
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ParameterError> {
        sbtest::check(parameters)
    }

    fn tables(&self, parameters: &Parameters) -> Vec<Table> {
        let sbtest = Sbtest::new(parameters);
        // Numbers that the clients of oltp-insert make up could already be in a filled table.
        let empty = self.script == Script::Insert && !sbtest.auto_inc;
        let rows = if empty {
            0
        } else {
            sbtest.table_size.unsigned_abs()
        };
        let tables = Resolved(parameters).count("tables");
        (1..=tables)
            .map(|number| sbtest.table(parameters, number, rows))
            .collect()
    }

    fn client(&self, parameters: &Parameters, seat: Seat) -> Task<LostError> {
        seat.boxed::<OltpClient>(Options::new(self.script, parameters))
    }
}

/// How many statements of each kind a transaction has.
#[derive(Debug, Clone, Copy)]
struct Counts {
    point_selects: u64,
    simple_ranges: u64,
    sum_ranges: u64,
    order_ranges: u64,
    distinct_ranges: u64,
    index_updates: u64,
    non_index_updates: u64,
    delete_inserts: u64,
}

/// All about the workload that its clients have in common.
pub(super) struct Options {
    script: Script,
    sbtest: Sbtest,
    tables: u64,
    range_size: i64,
    transactional: bool,
    counts: Counts,
}

impl Options {
    fn new(script: Script, parameters: &Parameters) -> Self {
        let resolved = Resolved(parameters);
        let reads = matches!(script, Script::ReadOnly | Script::ReadWrite);
        let writes = matches!(script, Script::WriteOnly | Script::ReadWrite);
        let ranges = reads && resolved.switch("range_selects");
        let count_if = |used: bool, name: &str| if used { resolved.count(name) } else { 0 };
        let point_selects = match script {
            Script::PointSelect => 1,
            _ => count_if(reads, "point_selects"),
        };
        let counts = Counts {
            point_selects,
            simple_ranges: count_if(ranges, "simple_ranges"),
            sum_ranges: count_if(ranges, "sum_ranges"),
            order_ranges: count_if(ranges, "order_ranges"),
            distinct_ranges: count_if(ranges, "distinct_ranges"),
            index_updates: count_if(writes || script == Script::UpdateIndex, "index_updates"),
            non_index_updates: count_if(
                writes || script == Script::UpdateNonIndex,
                "non_index_updates",
            ),
            delete_inserts: count_if(writes, "delete_inserts"),
        };
        Options {
            script,
            sbtest: Sbtest::new(parameters),
            tables: resolved.count("tables"),
            range_size: resolved.integer("range_size"),
            transactional: (reads || writes) && !resolved.switch("skip_trx"),
            counts,
        }
    }
}

/// One kind of statement, for each table. Empty when transactions do not use it, so that no more
/// statements are prepared than necessary: servers limit their number.
#[derive(Debug, Default)]
struct PerTable(Vec<Statement>);

impl PerTable {
    async fn prepare(
        conn: &mut Conn,
        options: &Options,
        used: bool,
        sql: impl Fn(u64) -> String,
    ) -> Result<Self, StatementError> {
        let mut statements = Vec::new();
        for table in 1..=options.tables {
            if used {
                statements.push(conn.prepare(&sql(table), options.sbtest.protocol).await?);
            }
        }
        Ok(PerTable(statements))
    }

    /// The statement for a table chosen uniformly.
    #[inline]
    fn choose(&mut self, random: &mut Random) -> &mut Statement {
        let index = random.below(self.0.len() as u64) as usize;
        &mut self.0[index]
    }
}

/// The stream of transactions of one client.
pub(super) struct OltpClient {
    options: Options,
    ids: Distribution,
    random: Random,
    sequence: Arc<AtomicU32>,
    begin: Option<Statement>,
    commit: Option<Statement>,
    point: PerTable,
    simple_range: PerTable,
    sum_range: PerTable,
    order_range: PerTable,
    distinct_range: PerTable,
    index_update: PerTable,
    non_index_update: PerTable,
    delete: PerTable,
    insert: PerTable,
}

impl Client for OltpClient {
    type Options = Options;

    async fn open(
        conn: &mut Conn,
        options: Options,
        sequence: Arc<AtomicU32>,
    ) -> Result<Self, StatementError> {
        let counts = options.counts;
        let deletes = counts.delete_inserts > 0;
        let (mut begin, mut commit) = (None, None);
        if options.transactional {
            begin = Some(conn.prepare("BEGIN", options.sbtest.protocol).await?);
            commit = Some(conn.prepare("COMMIT", options.sbtest.protocol).await?);
        }
        let range = |what: &'static str, order: &'static str| {
            move |table| format!("SELECT {what} FROM sbtest{table} WHERE id BETWEEN ? AND ?{order}")
        };
        Ok(OltpClient {
            point: PerTable::prepare(conn, &options, counts.point_selects > 0, |table| {
                format!("SELECT c FROM sbtest{table} WHERE id=?")
            })
            .await?,
            simple_range: PerTable::prepare(
                conn,
                &options,
                counts.simple_ranges > 0,
                range("c", ""),
            )
            .await?,
            sum_range: PerTable::prepare(
                conn,
                &options,
                counts.sum_ranges > 0,
                range("SUM(k)", ""),
            )
            .await?,
            order_range: PerTable::prepare(
                conn,
                &options,
                counts.order_ranges > 0,
                range("c", " ORDER BY c"),
            )
            .await?,
            distinct_range: PerTable::prepare(
                conn,
                &options,
                counts.distinct_ranges > 0,
                range("DISTINCT c", " ORDER BY c"),
            )
            .await?,
            index_update: PerTable::prepare(conn, &options, counts.index_updates > 0, |table| {
                format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?")
            })
            .await?,
            non_index_update: PerTable::prepare(
                conn,
                &options,
                counts.non_index_updates > 0,
                |table| format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            )
            .await?,
            delete: PerTable::prepare(
                conn,
                &options,
                deletes || options.script == Script::Delete,
                |table| format!("DELETE FROM sbtest{table} WHERE id=?"),
            )
            .await?,
            insert: Self::prepare_insert(conn, &options, deletes).await?,
            ids: options.sbtest.ids(),
            random: Random::new(0),
            options,
            sequence,
            begin,
            commit,
        })
    }

    fn begin(&mut self, begin: Begin) {
        self.random = Random::new(begin.seed);
    }

    fn draw(&mut self) -> Class {
        Class(0)
    }

    async fn transaction(&mut self, _class: Class, conn: &mut Conn) -> Result<(), StatementError> {
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
    async fn prepare_insert(
        conn: &mut Conn,
        options: &Options,
        deletes: bool,
    ) -> Result<PerTable, StatementError> {
        let sql = |table| format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)");
        if options.script != Script::Insert {
            return PerTable::prepare(conn, options, deletes, sql).await;
        }
        // This one is a text query in sysbench, whatever the mode.
        let mut statements = Vec::new();
        for table in 1..=options.tables {
            statements.push(conn.prepare(&sql(table), Protocol::Text).await?);
        }
        Ok(PerTable(statements))
    }

    async fn begin_transaction(&mut self, conn: &mut Conn) -> Result<(), StatementError> {
        if let Some(begin) = &mut self.begin {
            conn.execute(begin, &[]).await?;
        }
        Ok(())
    }

    async fn commit_transaction(&mut self, conn: &mut Conn) -> Result<(), StatementError> {
        if let Some(commit) = &mut self.commit {
            conn.execute(commit, &[]).await?;
        }
        Ok(())
    }

    async fn reads(&mut self, conn: &mut Conn) -> Result<(), StatementError> {
        let counts = self.options.counts;
        if counts.point_selects > 0 {
            self.point_selects(conn).await?;
        }
        self.ranges(
            conn,
            |client| &mut client.simple_range,
            counts.simple_ranges,
        )
        .await?;
        self.ranges(conn, |client| &mut client.sum_range, counts.sum_ranges)
            .await?;
        self.ranges(conn, |client| &mut client.order_range, counts.order_ranges)
            .await?;
        self.ranges(
            conn,
            |client| &mut client.distinct_range,
            counts.distinct_ranges,
        )
        .await
    }

    async fn writes(&mut self, conn: &mut Conn) -> Result<(), StatementError> {
        self.index_updates(conn).await?;
        self.non_index_updates(conn).await?;
        self.delete_inserts(conn).await
    }

    async fn point_selects(&mut self, conn: &mut Conn) -> Result<(), StatementError> {
        let statement = self.point.choose(&mut self.random);
        for _ in 0..self.options.counts.point_selects {
            let id = self.ids.draw(&mut self.random);
            conn.execute(statement, &[Value::Signed(id)]).await?;
        }
        Ok(())
    }

    async fn ranges(
        &mut self,
        conn: &mut Conn,
        kind: impl Fn(&mut Self) -> &mut PerTable,
        count: u64,
    ) -> Result<(), StatementError> {
        if count == 0 {
            return Ok(());
        }
        let table = self.random.below(self.options.tables) as usize;
        for _ in 0..count {
            let id = self.ids.draw(&mut self.random);
            let last = id + self.options.range_size - 1;
            let statement = &mut kind(self).0[table];
            conn.execute(statement, &[Value::Signed(id), Value::Signed(last)])
                .await?;
        }
        Ok(())
    }

    async fn index_updates(&mut self, conn: &mut Conn) -> Result<(), StatementError> {
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

    async fn non_index_updates(&mut self, conn: &mut Conn) -> Result<(), StatementError> {
        if self.options.counts.non_index_updates == 0 {
            return Ok(());
        }
        let statement = self.non_index_update.choose(&mut self.random);
        for _ in 0..self.options.counts.non_index_updates {
            let mut c = [0; C_LENGTH];
            fill_groups(&mut self.random, &mut c);
            let id = self.ids.draw(&mut self.random);
            conn.execute(statement, &[text(&c), Value::Signed(id)])
                .await?;
        }
        Ok(())
    }

    /// Deletes a row and inserts one with the same id, in the same table.
    async fn delete_inserts(&mut self, conn: &mut Conn) -> Result<(), StatementError> {
        if self.options.counts.delete_inserts == 0 {
            return Ok(());
        }
        let table = self.random.below(self.options.tables) as usize;
        for _ in 0..self.options.counts.delete_inserts {
            let id = self.ids.draw(&mut self.random);
            let k = self.ids.draw(&mut self.random);
            conn.execute(&mut self.delete.0[table], &[Value::Signed(id)])
                .await?;
            self.insert(conn, table, id, k).await?;
        }
        Ok(())
    }

    async fn delete(&mut self, conn: &mut Conn, id: i64) -> Result<(), StatementError> {
        let statement = self.delete.choose(&mut self.random);
        conn.execute(statement, &[Value::Signed(id)]).await?;
        Ok(())
    }

    async fn insert_new(&mut self, conn: &mut Conn) -> Result<(), StatementError> {
        let table = self.random.below(self.options.tables) as usize;
        let k = self.ids.draw(&mut self.random);
        // 0 makes the server number the row; otherwise all of the signed range, each number once.
        let id = if self.options.sbtest.auto_inc {
            0
        } else {
            i64::from(unique(self.sequence.fetch_add(1, Ordering::Relaxed))) + i64::from(i32::MIN)
        };
        self.insert(conn, table, id, k).await
    }

    async fn insert(
        &mut self,
        conn: &mut Conn,
        table: usize,
        id: i64,
        k: i64,
    ) -> Result<(), StatementError> {
        let (mut c, mut pad) = ([0; C_LENGTH], [0; PAD_LENGTH]);
        fill_groups(&mut self.random, &mut c);
        fill_groups(&mut self.random, &mut pad);
        let values = [Value::Signed(id), Value::Signed(k), text(&c), text(&pad)];
        conn.execute(&mut self.insert.0[table], &values).await?;
        Ok(())
    }
}

/// Groups of digits as a VAR_STRING.
#[inline]
fn text(groups: &[u8]) -> Value<'_> {
    std::str::from_utf8(groups).map_or(Value::Bytes(groups), Value::Text)
}
