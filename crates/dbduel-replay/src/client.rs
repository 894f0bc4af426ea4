//! One client's connection: runs the transactions of a capture that a mix or a trace chooses.

use std::ops::Range;
use std::sync::Arc;

use dbduel_capture::store::read::SentAs;
use dbduel_client::tally::{Class, StatementAnswer, StatementDone};
use dbduel_client::{ClientContext, StatementClock};
use dbduel_driver::{ClientConnection, Dialect, LostError, ServerError, StatementError};

use super::mix::{Ending, Mix, ReplayTransaction};
use super::states::{INITIAL, StateId};

/// Statements of a transaction for which a client has room without an allocation.
const STATEMENTS_ROOM: usize = 64;

/// What the clients of a server share, or why there is none.
pub(crate) struct SharedByClients<T>(pub(crate) Result<T, String>);

impl<T: Clone + Send + Sync + 'static> SharedByClients<T> {
    /// What a client shares with the others of its server.
    ///
    /// # Errors
    /// When the capture cannot be used.
    pub(crate) fn of(context: &ClientContext) -> Result<T, StatementError> {
        let why = match context.config.shared.downcast_ref::<Self>() {
            Some(SharedByClients(Ok(shared))) => return Ok(shared.clone()),
            Some(SharedByClients(Err(why))) => why,
            None => "it was not read; this is a bug in dbduel",
        };
        Err(LostError::Data {
            why: format!("the capture: {why}"),
        }
        .into())
    }
}

/// A client's connection with the settings of its session, and the transactions that it runs.
pub(crate) struct Replayer {
    mix: Arc<Mix>,
    chosen: Range<u32>,
    /// Settings of the connection; `None` where they are unknown.
    state: Option<StateId>,
    lock_timeout: String,
    clock: StatementClock,
    /// When the last answer came.
    answered_ns: u64,
    /// The statements of the current transaction.
    statements: Vec<StatementDone>,
}

impl Replayer {
    /// A client of a mix over its connection, which gets the lock timeout.
    pub(crate) async fn open(
        mix: Arc<Mix>,
        lock_timeout_s: f64,
        context: &ClientContext,
        conn: &mut ClientConnection,
    ) -> Result<Self, StatementError> {
        let replayer = Replayer {
            mix,
            chosen: 0..0,
            state: Some(INITIAL),
            lock_timeout: lock_timeout(conn.dialect(), lock_timeout_s),
            clock: context.statement_clock(),
            answered_ns: 0,
            statements: Vec::with_capacity(STATEMENTS_ROOM),
        };
        conn.query(replayer.lock_timeout.as_bytes()).await?;
        Ok(replayer)
    }

    /// Chooses the transactions that it runs next; returns their class.
    pub(crate) fn choose(&mut self, transactions: Range<u32>) -> Class {
        self.statements.clear();
        self.chosen = transactions;
        self.mix.class(&self.chosen)
    }

    /// Runs them.
    pub(crate) async fn run_chosen(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let mix = Arc::clone(&self.mix);
        self.answered_ns = self.clock.now_ns();
        for one in mix.transactions(&self.chosen) {
            self.run(&mix, one, conn).await?;
        }
        Ok(())
    }

    /// The statements of the transactions that were run last.
    pub(crate) fn statements(&self) -> &[StatementDone] {
        &self.statements
    }

    async fn run(
        &mut self,
        mix: &Mix,
        transaction: &ReplayTransaction,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        if self.state != Some(transaction.state) {
            self.change_state(mix, transaction.state, conn).await?;
        }
        if transaction.changes_state() {
            self.state = None;
        }
        for statement in mix.capture().ordered(transaction.first, transaction.count) {
            if !mix.is_silent(statement) {
                self.send(mix, statement, conn).await?;
            }
        }
        let end: &[u8] = match transaction.ending() {
            Ending::Own => return Ok(()),
            Ending::Commit => b"COMMIT",
            Ending::Rollback => b"ROLLBACK",
        };
        conn.query(end).await?;
        Ok(())
    }

    /// Gives the connection the settings that a captured session had.
    async fn change_state(
        &mut self,
        mix: &Mix,
        state: StateId,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let change = mix.states().change(self.state, state);
        self.state = None;
        if change.resets {
            conn.reset_session().await?;
            conn.query(self.lock_timeout.as_bytes()).await?;
            // What resets a session is none of its statements.
            self.answered_ns = self.clock.now_ns();
        }
        for setting in change.settings {
            if let Some(statement) = mix.states().statement(*setting) {
                self.send(mix, statement, conn).await?;
            }
        }
        self.state = Some(state);
        Ok(())
    }

    /// Sends a statement as it was captured, skips its rows, and notes its latency: the end of one is the beginning of the next.
    async fn send(
        &mut self,
        mix: &Mix,
        statement: usize,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let capture = mix.capture();
        let text = capture.text(statement).unwrap_or_default();
        let is_prepared = capture.sent_as(statement) == Some(SentAs::Prepared);
        let sent = match is_prepared && conn.dialect() == Dialect::PostgreSql {
            true => {
                let values: Vec<Option<&[u8]>> = capture.parameters(statement).collect();
                conn.query_with(text, &values).await
            }
            false => conn.query(text).await,
        };
        let begun_ns = std::mem::replace(&mut self.answered_ns, self.clock.now_ns());
        let class = capture.class_place(statement).unwrap_or(u32::MAX);
        let classes = mix.statement_classes();
        let answer = match &sent {
            Ok(summary) => StatementAnswer::Ok {
                returned: summary.rows,
                changed: classes.writes(class).then_some(summary.affected_rows),
            },
            Err(StatementError::Server(error)) => StatementAnswer::failed(error),
            // The transaction does not count either.
            Err(StatementError::Lost(_)) => return sent.map(drop),
        };
        self.statements.push(StatementDone {
            class: classes.place(class),
            latency_ns: self.answered_ns.saturating_sub(begun_ns),
            answer,
        });
        match sent {
            Ok(_) => Ok(()),
            Err(error) => Err(without_values(error, mix, statement)),
        }
    }
}

/// The error without the server's text, which may hold values of the statement: a record has none.
#[cold]
fn without_values(error: StatementError, mix: &Mix, statement: usize) -> StatementError {
    match error {
        StatementError::Server(error) => {
            let message = format!(
                "a captured statement of class {} (`dbduel capture show --class`); the server's text is left out, as it may hold values",
                mix.class_id(statement)
            );
            ServerError { message, ..error }.into()
        }
        lost @ StatementError::Lost(_) => lost,
    }
}

/// The statement that limits waits for locks: without it a replay hangs where the capture's order is not kept.
fn lock_timeout(dialect: Dialect, seconds: f64) -> String {
    match dialect {
        Dialect::PostgreSql => format!("SET lock_timeout = {}", (seconds * 1e3).ceil()),
        Dialect::MySql | Dialect::Sqlite => {
            let seconds = seconds.ceil();
            format!(
                "SET SESSION innodb_lock_wait_timeout = {seconds}, SESSION lock_wait_timeout = {seconds}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_timeout_is_in_the_units_of_the_server() {
        assert_eq!(
            lock_timeout(Dialect::PostgreSql, 0.25),
            "SET lock_timeout = 250"
        );
        assert_eq!(
            lock_timeout(Dialect::MySql, 1.5),
            "SET SESSION innodb_lock_wait_timeout = 2, SESSION lock_wait_timeout = 2"
        );
    }
}
