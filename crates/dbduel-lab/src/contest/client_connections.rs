//! Stale client connections of a load host that was cut off; the server does not notice their end by itself.

use std::time::Duration;

use anyhow::Result;
use dbduel_driver::{Connection, Dialect};
use dbduel_server::USER;

use super::Contest;

impl Contest<'_, '_> {
    /// Ends the connections of remote clients to an awake contender, with their transactions. Does nothing without load
    /// hosts.
    ///
    /// # Errors
    /// When the server refuses the connection or the command.
    pub(super) fn end_remote_clients(&mut self, contender: usize) -> Result<()> {
        let plan = self.plan();
        if plan.hosts.is_none() {
            return Ok(());
        }
        let statement = Duration::from_secs_f64(plan.limits.statement_s);
        let dialect = self.arena.resident(contender).dialect;
        let mut connection = self.arena.connect(contender, statement)?;
        end_all(dialect, &mut connection)
    }
}

/// Ends all connections but the one that asks. The lab's own connections come through the server's socket, or from here
/// where the server is on another machine; others are made again.
fn end_all(dialect: Dialect, connection: &mut Connection) -> Result<()> {
    if dialect == Dialect::PostgreSql {
        connection.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_addr IS NOT NULL AND pid <> pg_backend_pid()",
        )?;
        return Ok(());
    }
    let remote = connection.query(&format!(
        "SELECT id FROM information_schema.processlist WHERE user = '{USER}' AND host <> 'localhost' AND id <> CONNECTION_ID()"
    ))?;
    for row in 0..remote.rows.len() {
        let id = remote.text(row, 0).unwrap_or_default();
        // It may have ended meanwhile.
        let _ = connection.execute(&format!("KILL {id}"));
    }
    Ok(())
}
