//! Requests of a script to servers: connections, queries, prepared statements, and their counts.

use dbduel_client::run::Counts;
use dbduel_driver::address::Address;
use dbduel_driver::{Dialect, ServerError, Summary};
use mlua::{IntoLuaMulti, Value};

use super::super::answer::{Answer, Failed, Words};
use super::super::client_library::{LibraryCall, errno, unreachable_lines};
use super::super::connections::{Failure, Lent};
use super::super::error::ScriptError;
use super::super::execution::Execution;
use super::super::natives::{Unused, at, handle};
use super::super::options::OptionValue;
use super::super::rows::Rows;
use super::super::settings::Message;
use super::Session;

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
            Err(Failure::Misuse(why)) => Ok(self.misused(why)),
            Err(Failure::Error { error, reconnected }) => {
                let connection = self.connections.connection_of(execution);
                let failed = self.failed(error, reconnected, LibraryCall::Execute);
                self.end_transaction(&failed, connection, lent).await;
                Ok(failed)
            }
        }
    }

    pub(super) async fn query(
        &mut self,
        words: &mut Words,
        lent: &mut Lent<'_>,
    ) -> Result<Answer, ScriptError> {
        let connection = words.id();
        let Some(sql) = words.raw_text() else {
            return Ok(self.misused("a query must be a text"));
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
            Ok(_) if overflowed => Ok(self.misused("the result exceeds the script's memory limit")),
            Ok(summary) => {
                self.count(&summary);
                Ok(shape.map_or(Answer::Flag(true), Answer::Rows))
            }
            Err(Failure::Misuse(why)) => Ok(self.misused(why)),
            Err(Failure::Error { error, reconnected }) => {
                let failed = self.failed(error, reconnected, LibraryCall::Query);
                self.end_transaction(&failed, connection, lent).await;
                Ok(failed)
            }
        }
    }

    pub(super) async fn prepare(
        &mut self,
        words: &mut Words,
        lent: &mut Lent<'_>,
    ) -> Result<Answer, ScriptError> {
        let connection = words.id();
        let Some(sql) = words.text() else {
            return Ok(self.misused("a statement must be a text"));
        };
        match self.connections.prepare(lent, connection, &sql).await {
            Ok((statement, parameters)) => {
                let lua = self.state.lua();
                let handle = handle(lua, &self.state.shared, Unused::Statement(statement))?;
                Ok(Answer::Words(
                    (true, statement, parameters, handle).into_lua_multi(lua)?,
                ))
            }
            Err(Failure::Misuse(why)) => Ok(self.misused(why)),
            Err(Failure::Error { error, reconnected }) => {
                let clients = match self.context.opt.get("threads") {
                    Some(OptionValue::Number(clients)) => *clients as u64,
                    _ => 1,
                };
                // The others have come as far, or will.
                let needed = clients * (self.connections.prepared() as u64 + 1);
                Ok(self.failed(error, reconnected, LibraryCall::Prepare { needed }))
            }
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
                *self.state.shared.last_error.borrow_mut() = Some((error, LibraryCall::Connect));
                Ok(Answer::Flag(false))
            }
        }
    }

    /// Shows the error, because the script decides how to continue; but not when the client is no longer waited for.
    fn unreachable(&self, address: &Address, error: &ServerError) -> Result<(), ScriptError> {
        if self.connections.is_over() {
            let why = error.message.clone();
            return Err(ScriptError::Over { why });
        }
        let tls = self.context.settings.servers.tls.mode();
        for line in unreachable_lines(self.dialect(), tls, address, error) {
            self.state.shared.sink.show(Message::Fatal(&line));
        }
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
        if self.connections.is_closed(connection) {
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

    /// After an ignored error PostgreSQL's transaction accepts no statement until it is rolled back, and a script may
    /// have more statements before its event is retried.
    async fn end_transaction(&mut self, failed: &Answer, connection: usize, lent: &mut Lent<'_>) {
        let is_ignored = matches!(
            failed,
            Answer::Failed(Failed::Error {
                is_ignorable: true,
                ..
            })
        );
        if is_ignored && self.dialect() == Dialect::PostgreSql {
            self.roll_back(connection, lent).await;
        }
    }

    fn dialect(&self) -> Dialect {
        self.context.settings.servers.dialect
    }

    /// A lock wait timeout leaves the transaction open, and its earlier changes would be committed by the next one.
    pub(super) async fn roll_back(&mut self, connection: usize, lent: &mut Lent<'_>) {
        let connections = &self.connections;
        if connections.is_lent(connection)
            || connections.is_lost(connection)
            || connections.is_closed(connection)
        {
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
    fn misused(&self, why: &'static str) -> Answer {
        *self.state.shared.last_error.borrow_mut() = None;
        Answer::Failed(Failed::Misuse(why))
    }

    #[cold]
    fn failed(&self, error: ServerError, reconnected: bool, call: LibraryCall) -> Answer {
        let is_ignorable = reconnected || self.context.settings.ignored_errors.contains(error.code);
        self.state
            .shared
            .count(if reconnected { RECONNECTED } else { FAILED });
        let failed = Failed::Error {
            code: errno(self.dialect(), &error),
            sqlstate: error.sqlstate().to_owned(),
            message: error.message.clone(),
            is_ignorable,
        };
        *self.state.shared.last_error.borrow_mut() = Some((error, call));
        Answer::Failed(failed)
    }
}
