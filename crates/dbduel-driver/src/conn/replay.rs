//! What the replay of captured statements needs: statements of which only text is known, and sessions that begin anew.

use super::Conn;
use super::session::Session;
use crate::socket::Waiter;
use crate::{Dialect, LostError, SessionStart, Sink, Skip, StatementError, Summary};

/// Sets the character set and the collation with which the handshake begins a session of MySQL.
const HANDSHAKE_NAMES: &[u8] = b"SET NAMES utf8mb4 COLLATE utf8mb4_general_ci";

impl<W: Waiter> Conn<W> {
    /// Prepares and runs a statement with these values as text, in one round trip, and skips its rows; `None` is NULL. For PostgreSQL
    /// only: the text has `$1` and so on, and the server finds the types of the values.
    ///
    /// # Errors
    /// The server's error, or a lost connection; on another server [`LostError::Values`].
    pub async fn query_with(
        &mut self,
        sql: &[u8],
        values: &[Option<&[u8]>],
    ) -> Result<Summary, StatementError> {
        self.query_with_into(sql, values, &mut Skip).await
    }

    /// As [`Conn::query_with`], with the rows handed to `sink`.
    ///
    /// # Errors
    /// As [`Conn::query_with`]; the sink may then have seen some rows.
    pub async fn query_with_into<S: Sink>(
        &mut self,
        sql: &[u8],
        values: &[Option<&[u8]>],
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        self.out.clear();
        let Session::PostgreSql(session) = &mut self.session else {
            return Err(LostError::from(super::foreign_statement(&[])).into());
        };
        session
            .put_text_execution(&mut self.out, sql, values)
            .map_err(LostError::from)?;
        self.round_trip(sink, ()).await
    }

    /// Restores the state in which the session began for the load: settings, user variables, temporary tables, locks, and an open
    /// transaction is rolled back. Its statements are none of the load's, and are not counted. A server that cannot reset a session
    /// (MySQL before 5.7.3, MariaDB before 10.2.4) gets the settings of [`Conn::start_session`] alone.
    ///
    /// # Errors
    /// A lost connection, or a server that refuses the settings.
    pub async fn reset_session(&mut self) -> Result<(), LostError> {
        let before = (self.statements, self.effects);
        self.query_uncounted(b"ROLLBACK").await?;
        match self.dialect() {
            Dialect::MySql => {
                self.out.clear();
                if let Session::MySql(session) = &mut self.session {
                    dbduel_wire::command::reset_connection(&mut self.out);
                    session.begin_text_reply();
                }
                uncounted(self.round_trip(&mut Skip, ()).await)?;
                // MySQL takes the server's defaults in place of the handshake's.
                self.query_uncounted(HANDSHAKE_NAMES).await?;
            }
            Dialect::PostgreSql => self.query_uncounted(b"DISCARD ALL").await?,
            Dialect::Sqlite => {}
        }
        self.start_session(SessionStart::Captured).await?;
        (self.statements, self.effects) = before;
        Ok(())
    }

    /// Runs a statement whose refusal changes nothing.
    async fn query_uncounted(&mut self, sql: &[u8]) -> Result<(), LostError> {
        uncounted(self.query(sql).await)
    }
}

fn uncounted(outcome: Result<Summary, StatementError>) -> Result<(), LostError> {
    match outcome {
        Ok(_) | Err(StatementError::Server(_)) => Ok(()),
        Err(StatementError::Lost(lost)) => Err(lost),
    }
}
