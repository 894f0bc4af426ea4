//! One kind of statement, prepared for each of the tables.

use dbduel_driver::{ClientConnection, Protocol, Statement, StatementError};

use dbduel_client::random::Random;

/// One kind of statement, for each table.
#[derive(Debug, Default)]
pub(super) struct PerTable(Vec<Statement>);

impl PerTable {
    /// Prepares the statement for tables 1 to `tables`; `#` in it stands for the number of the table.
    ///
    /// # Errors
    /// The server's error, or a lost connection.
    pub(super) async fn prepare(
        conn: &mut ClientConnection,
        protocol: Protocol,
        tables: u64,
        sql: &str,
    ) -> Result<Self, StatementError> {
        let mut statements = Vec::new();
        for table in 1..=tables {
            let sql = sql.replace('#', &table.to_string());
            statements.push(conn.prepare(&sql, protocol).await?);
        }
        Ok(PerTable(statements))
    }

    /// The statement for a table chosen uniformly.
    #[inline]
    pub(super) fn choose(&mut self, random: &mut Random) -> &mut Statement {
        let index = random.below(self.0.len() as u64) as usize;
        &mut self.0[index]
    }

    /// The statement for the table with that index, from 0, modulo the number of tables.
    #[inline]
    pub(super) fn of(&mut self, index: usize) -> &mut Statement {
        let index = index % self.0.len().max(1);
        &mut self.0[index]
    }
}
