//! What a script asks of servers: connections, queries, prepared statements, and what is counted of them.

use crate::driver::{ServerError, Summary};
use mlua::{IntoLuaMulti, Value};

use super::super::answer::{Answer, Failed, Words};
use super::super::connections::{Failure, Lent};
use super::super::error::ScriptError;
use super::super::execution::Execution;
use super::super::natives::{Unused, at, handle};
use super::super::rows::Rows;
use super::super::settings::Message;
use super::Session;
use crate::address::Address;
use crate::run::Counts;

const RECONNECTED: Counts = Counts {
    reconnects: 1,
    ..Counts::NONE
};
const FAILED: Counts = Counts {
    errors: 1,
    ..Counts::NONE
};

impl Session {
    #[inline]
    pub(super) async fn execute(
        &mut self,
        execution: Execution,
        lent: &mut Lent<'_>,
    ) -> Result<Answer, ScriptError> {
        let outcome = self.connections.execute(lent, execution).await;
        match outcome {
            Ok((summary, _)) if summary.result_sets == 0 => {
                self.count(&summary);
                Ok(Answer::Flag(true))
            }
            Ok((summary, connection)) => {
                self.count(&summary);
                // The rows were not kept, as in sysbench; the next statement's result is another one all the same.
                let mut all = self.state.shared.rows.borrow_mut();
                let generation = at(&mut all, connection).skip();
                Ok(Answer::Skipped {
                    rows: summary.rows,
                    generation,
                })
            }
            Err(failure) => Ok(self.failed(failure, "mysql_stmt_execute")),
        }
    }

    pub(super) async fn query(
        &mut self,
        words: &mut Words,
        lent: &mut Lent<'_>,
    ) -> Result<Answer, ScriptError> {
        let connection = words.id();
        let Some(sql) = words.raw_text() else {
            return Ok(self.failed(
                Failure::Misuse("a query must be a text"),
                "mysql_real_query",
            ));
        };
        // Rows are written while others could look, so they are taken out meanwhile.
        let mut rows = std::mem::take(at(&mut self.state.shared.rows.borrow_mut(), connection));
        rows.begin(self.context.settings.limits.memory_bytes);
        let outcome = {
            let sql = sql.as_bytes();
            self.connections
                .query(lent, connection, &sql, &mut rows)
                .await
        };
        let (shape, overflowed) = (rows.shape(), rows.overflowed());
        *at(&mut self.state.shared.rows.borrow_mut(), connection) = rows;
        match outcome {
            Ok(_) if overflowed => Ok(self.failed(
                Failure::Misuse("the result is larger than a script may keep"),
                "mysql_store_result",
            )),
            Ok(summary) => {
                self.count(&summary);
                Ok(shape.map_or(Answer::Flag(true), Answer::Rows))
            }
            Err(failure) => Ok(self.failed(failure, "mysql_drv_query")),
        }
    }

    pub(super) async fn prepare(
        &mut self,
        words: &mut Words,
        lent: &mut Lent<'_>,
    ) -> Result<Answer, ScriptError> {
        let connection = words.id();
        let Some(sql) = words.text() else {
            return Ok(self.failed(
                Failure::Misuse("a statement must be a text"),
                "mysql_stmt_prepare",
            ));
        };
        match self.connections.prepare(lent, connection, &sql).await {
            Ok((statement, parameters)) => {
                let lua = self.state.lua();
                let handle = handle(lua, &self.state.shared, Unused::Statement(statement))?;
                Ok(Answer::Words(
                    (true, statement, parameters, handle).into_lua_multi(lua)?,
                ))
            }
            Err(failure) => Ok(self.failed(failure, "mysql_stmt_prepare")),
        }
    }

    pub(super) async fn connect(&mut self, lent: &mut Lent<'_>) -> Result<Answer, ScriptError> {
        match self.connections.connect(lent).await {
            Ok(connection) => {
                let lua = self.state.lua();
                let handle = handle(lua, &self.state.shared, Unused::Connection(connection))?;
                Ok(Answer::Words((connection, handle).into_lua_multi(lua)?))
            }
            Err((address, error)) => {
                self.unreachable(&address, &error)?;
                *self.state.shared.last_error.borrow_mut() = Some((error, "mysql_real_connect"));
                Ok(Answer::Flag(false))
            }
        }
    }

    /// Says so, because what comes of it is up to the script; but not when nobody waits for the client any more.
    fn unreachable(&self, address: &Address, error: &ServerError) -> Result<(), ScriptError> {
        if self.connections.is_over() {
            let why = error.message.clone();
            return Err(ScriptError::Over { why });
        }
        let place = match address {
            Address::Unix { path } => format!("socket '{}'", path.display()),
            Address::Tcp { host, port } => format!("host '{host}', port {port}"),
        };
        let sink = &self.state.shared.sink;
        sink.show(Message::Fatal(&format!(
            "unable to connect to MySQL server on {place}, aborting..."
        )));
        sink.show(Message::Fatal(&format!(
            "error {}: {}",
            error.code, error.message
        )));
        Ok(())
    }

    pub(super) fn disconnect(&mut self, words: &mut Words) -> Result<Answer, ScriptError> {
        let was_open = self.connections.disconnect(words.id());
        match was_open {
            true => Ok(Answer::Flag(true)),
            false => self.words((false, "attempt to close an already closed connection")),
        }
    }

    pub(super) async fn reconnect(
        &mut self,
        words: &mut Words,
        lent: &mut Lent<'_>,
    ) -> Result<Answer, ScriptError> {
        let connection = words.id();
        if !self.connections.is_open(connection) {
            return self.words((Value::Nil, "attempt to use an already closed connection"));
        }
        self.state.shared.count(RECONNECTED);
        match self.connections.reconnect(lent, connection).await {
            Ok(()) => Ok(Answer::Flag(true)),
            Err((address, error)) => {
                self.unreachable(&address, &error)?;
                Ok(Answer::Flag(false))
            }
        }
    }

    /// A lock wait timeout leaves the transaction open, and what it did before would be committed by the next one.
    pub(super) async fn roll_back(&mut self, connection: usize, lent: &mut Lent<'_>) {
        if self.connections.is_lent(connection) || !self.connections.is_open(connection) {
            return;
        }
        let mut rows = Rows::default();
        // One that fails leaves a connection that says so at its next statement.
        let _ = self
            .connections
            .query(lent, connection, b"ROLLBACK", &mut rows)
            .await;
    }

    #[inline]
    fn count(&self, summary: &Summary) {
        let mut counts = Counts::NONE;
        if summary.result_sets > 0 {
            counts.reads = 1;
        } else if summary.affected_rows > 0 {
            counts.writes = 1;
        } else {
            counts.others = 1;
        }
        self.state.shared.count(counts);
    }

    #[cold]
    fn failed(&self, failure: Failure, function: &'static str) -> Answer {
        let (error, reconnected) = match failure {
            Failure::Misuse(why) => {
                *self.state.shared.last_error.borrow_mut() = None;
                return Answer::Failed(Failed::Misuse(why));
            }
            Failure::Error { error, reconnected } => (error, reconnected),
        };
        let is_ignorable = reconnected || self.context.settings.ignored_errors.contains(error.code);
        self.state
            .shared
            .count(if reconnected { RECONNECTED } else { FAILED });
        let failed = Failed::Error {
            code: error.code,
            sqlstate: error.sqlstate().to_owned(),
            message: error.message.clone(),
            is_ignorable,
        };
        *self.state.shared.last_error.borrow_mut() = Some((error, function));
        Answer::Failed(failed)
    }
}
