//! One row per event, batched into large INSERT statements; each client has its own table.
//!
//! Most events only append to a buffer, so events count rows, and a few events take very long. For that reason it is
//! not a [workload](dbduel_workloads::Workload) of contests.

use std::fmt::Write as _;

use dbduel_client::tally::Class;
use dbduel_client::{Begin, Client, ClientContext, ClientTask, Clients};
use dbduel_driver::{ClientConnection, Dialect, StatementError};
use dbduel_record::plan::Parameters;

use dbduel_workloads::parameters::ParameterSpec;
use dbduel_workloads::{Table, Workload};

/// Largest statement, bytes.
const STATEMENT_BYTES: usize = 512 << 10;

/// The workload.
#[derive(Debug)]
pub struct BulkInsert;

impl Workload for BulkInsert {
    fn name(&self) -> &'static str {
        "bulk-insert"
    }

    fn about(&self) -> &'static str {
        "Rows for a table per client, in large INSERT statements."
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn speaks(&self, dialect: Dialect) -> bool {
        matches!(dialect, Dialect::MySql | Dialect::PostgreSql)
    }

    /// None: there is one per client, and [`create_table`] makes it.
    fn tables(&self, _dialect: Dialect, _parameters: &Parameters) -> Vec<Table> {
        Vec::new()
    }
}

impl Clients for BulkInsert {
    fn client(&self, _parameters: &Parameters, context: ClientContext) -> ClientTask {
        context.boxed::<BulkInsertClient>(())
    }
}

/// The statement that creates table `number`, counted from 1.
#[must_use]
pub fn create_table(number: u32) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS sbtest{number} (id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id))"
    )
}

struct BulkInsertClient {
    sql: String,
    head: usize,
    rows: u64,
}

impl BulkInsertClient {
    async fn send(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        if self.sql.len() > self.head {
            conn.query(self.sql.as_bytes()).await?;
            self.sql.truncate(self.head);
        }
        Ok(())
    }
}

impl Client for BulkInsertClient {
    type Options = ();

    async fn open(
        _conn: &mut ClientConnection,
        (): &(),
        _context: &ClientContext,
    ) -> Result<Self, StatementError> {
        Ok(BulkInsertClient {
            sql: String::with_capacity(STATEMENT_BYTES),
            head: 0,
            rows: 0,
        })
    }

    fn begin(&mut self, begin: Begin) {
        self.sql = format!("INSERT INTO sbtest{} VALUES ", begin.client + 1);
        self.head = self.sql.len();
    }

    fn draw(&mut self) -> Class {
        Class(0)
    }

    async fn transaction(
        &mut self,
        _class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let row = self.rows + 1;
        let separator = if self.sql.len() > self.head { "," } else { "" };
        let values = format!("{separator}({row},{row})");
        if self.sql.len() + values.len() > STATEMENT_BYTES {
            self.send(conn).await?;
        }
        self.rows = row;
        let values = if self.sql.len() > self.head {
            &values
        } else {
            values.trim_start_matches(',')
        };
        // Writing to memory does not fail.
        let _ = self.sql.write_str(values);
        Ok(())
    }

    async fn finish(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        self.send(conn).await
    }
}
