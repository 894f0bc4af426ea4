//! One client: draws transactions of the capture and runs their statements as they were captured.

use std::ops::Range;
use std::sync::Arc;

use dbduel_capture::store::read::SentAs;
use dbduel_client::random::Random;
use dbduel_client::tally::{Class, StatementAnswer, StatementDone};
use dbduel_client::{Begin, Client, ClientContext, StatementClock};
use dbduel_driver::{
    ClientConnection, Dialect, LostError, ServerError, SessionStart, StatementError,
};

use super::mix::{Ending, Mix, ReplayTransaction};
use super::states::{INITIAL, StateId};

/// Statements of a transaction for which a client has room without an allocation.
const STATEMENTS_ROOM: usize = 64;

/// Why a client has nothing to run although its capture can be used.
pub(crate) const NOT_READ: &str = "it was not read; this is a bug in dbduel";

/// The mix, or why there is none: state that the clients of a server share.
pub(crate) struct SharedMix(pub(crate) Result<Arc<Mix>, String>);

/// The stream of transactions of one client.
pub(crate) struct CapturedClient {
    mix: Arc<Mix>,
    random: Random,
    drawn: Range<u32>,
    /// Settings of the connection; `None` where they are unknown.
    state: Option<StateId>,
    lock_timeout: String,
    clock: StatementClock,
    /// When the last answer came.
    answered_ns: u64,
    /// The statements of the current transaction.
    statements: Vec<StatementDone>,
}

impl Client for CapturedClient {
    /// The lock timeout, seconds.
    type Options = f64;

    const SESSION_START: SessionStart = SessionStart::Captured;

    async fn open(
        conn: &mut ClientConnection,
        lock_timeout_s: &f64,
        context: &ClientContext,
    ) -> Result<Self, StatementError> {
        let shared = context.config.shared.downcast_ref::<SharedMix>();
        let mix = match shared.map(|shared| &shared.0) {
            Some(Ok(mix)) => Arc::clone(mix),
            Some(Err(why)) => return Err(unusable(why)),
            None => return Err(unusable(NOT_READ)),
        };
        Self::of(mix, *lock_timeout_s, context, conn).await
    }

    fn begin(&mut self, begin: Begin) {
        self.random = Random::new(begin.seed);
    }

    fn draw(&mut self) -> Class {
        let drawn = self.mix.draw(&mut self.random);
        self.choose(drawn)
    }

    async fn transaction(
        &mut self,
        _class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let mix = Arc::clone(&self.mix);
        self.answered_ns = self.clock.now_ns();
        for one in mix.transactions(&self.drawn) {
            self.run(&mix, one, conn).await?;
        }
        Ok(())
    }

    fn statements(&self) -> &[StatementDone] {
        &self.statements
    }
}

impl CapturedClient {
    /// A client of a mix over its connection, which gets the lock timeout.
    pub(crate) async fn of(
        mix: Arc<Mix>,
        lock_timeout_s: f64,
        context: &ClientContext,
        conn: &mut ClientConnection,
    ) -> Result<Self, StatementError> {
        let client = CapturedClient {
            mix,
            random: Random::new(0),
            drawn: 0..0,
            state: Some(INITIAL),
            lock_timeout: lock_timeout(conn.dialect(), lock_timeout_s),
            clock: context.statement_clock(),
            answered_ns: 0,
            statements: Vec::with_capacity(STATEMENTS_ROOM),
        };
        conn.query(client.lock_timeout.as_bytes()).await?;
        Ok(client)
    }

    /// Chooses the transactions that it runs next; returns their class.
    pub(crate) fn choose(&mut self, transactions: Range<u32>) -> Class {
        self.statements.clear();
        self.drawn = transactions;
        self.mix.class(&self.drawn)
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

pub(crate) fn unusable(why: &str) -> StatementError {
    LostError::Data {
        why: format!("the capture: {why}"),
    }
    .into()
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
