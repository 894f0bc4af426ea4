//! SQLite, which runs in this process: a session is a connection to a file, and statements run in the calling thread.
//!
//! There is no protocol and no socket: a statement blocks its thread. Settings, the queue of writers and the meanings
//! of errors are in the files beside.

mod errors;
mod settings;
mod show;
mod writer_queue;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dbduel_wire::{Column, ColumnKind, CommandError, RowFormat};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement, ToSql};

use super::{Completion, LostError, Row, Sink, StatementError, Summary, Value};
use crate::cancel::Cancel;
pub use settings::{SettingError, Settings, check as check_setting};
pub use show::SHOW_SETTINGS;
use writer_queue::WriterQueue;

/// The version of the library in this program.
#[must_use]
pub fn version() -> &'static str {
    rusqlite::version()
}

/// An open file.
pub(super) struct Session {
    /// Dropped before the connection that they borrow from, which is boxed for a stable address.
    statements: Vec<Option<Prepared>>,
    connection: Box<Connection>,
    /// The writers of this file in this process.
    queue: Arc<WriterQueue>,
    /// True while this session has its turn to write.
    is_writing: bool,
    /// Longest wait in the queue; SQLite waits as long for other processes.
    busy_timeout: Duration,
    opened: Instant,
    /// When a statement is interrupted, in nanoseconds since the file was opened; [`NEVER`] without a limit.
    deadline: Arc<AtomicU64>,
    number: u32,
    /// The statement that is bound and runs next; `None` for a text.
    pending: Option<PreparedStatement>,
    /// Buffer for a row on its way to a sink.
    row: Vec<u8>,
    kinds: Vec<ColumnKind>,
}

// SAFETY: statements borrow from the connection, which SQLite lets one thread at a time use. Both are owned by the session and
// are reached through it alone, so they change threads together.
unsafe impl Send for Session {}

struct Prepared {
    statement: Statement<'static>,
    writes: bool,
}

/// A prepared statement of a session, by its index.
#[derive(Debug, Clone, Copy)]
pub(super) struct PreparedStatement {
    index: usize,
    pub(super) parameters: usize,
}

/// The deadline that never passes.
const NEVER: u64 = u64::MAX;

/// Instructions of SQLite's virtual machine between two checks of the deadline, some milliseconds.
const INSTRUCTIONS_PER_LOOK: i32 = 100_000;

/// Maximum number of prepared statements of a session.
const STATEMENTS_MAX: usize = 1 << 20;

impl Session {
    /// Opens an existing file with these settings and reads them back; `cancel` interrupts its statements. An empty
    /// file is a database without tables.
    pub(super) fn open(
        path: &Path,
        settings: &Settings,
        cancel: Cancel,
    ) -> Result<Self, LostError> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let not_opened = |error| errors::not_opened(path, &error);
        let mut connection = Connection::open_with_flags(path, flags).map_err(not_opened)?;
        let opened = Instant::now();
        let deadline = Arc::new(AtomicU64::new(NEVER));
        let seen = Arc::clone(&deadline);
        let is_over = move || {
            let at = seen.load(Ordering::Relaxed);
            cancel.is_set() || (at != NEVER && opened.elapsed() >= Duration::from_nanos(at))
        };
        connection
            .progress_handler(INSTRUCTIONS_PER_LOOK, Some(is_over))
            .map_err(not_opened)?;
        let busy_timeout = settings::apply(&connection, settings)?;
        Ok(Session {
            statements: Vec::new(),
            connection: Box::new(connection),
            queue: WriterQueue::of(path),
            is_writing: false,
            busy_timeout,
            opened,
            deadline,
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            pending: None,
            row: Vec::new(),
            kinds: Vec::new(),
        })
    }

    /// Sets the time at which statements are interrupted.
    pub(super) fn set_deadline(&self, deadline: Instant) {
        let at = deadline.saturating_duration_since(self.opened).as_nanos();
        let at = u64::try_from(at).unwrap_or(NEVER);
        self.deadline.store(at, Ordering::Relaxed);
    }

    /// Appends the text of the statement that is run next.
    pub(super) fn put_text(&mut self, out: &mut Vec<u8>, sql: &[u8]) {
        out.extend_from_slice(sql);
        self.pending = None;
    }

    /// Runs the statement that is bound, or else this text.
    #[inline]
    pub(super) fn run_pending<S: Sink>(
        &mut self,
        text: &[u8],
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        match self.pending.take() {
            Some(statement) => self.run(statement, sink),
            None => self.run_text(text, sink),
        }
    }

    /// Runs a statement for each of the rows.
    pub(super) fn run_for_all<'a, R: AsRef<[Value<'a>]>>(
        &mut self,
        statement: PreparedStatement,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Summary, StatementError> {
        let mut whole = Summary::default();
        for row in rows {
            self.bind(statement, row.as_ref())
                .map_err(LostError::from)?;
            self.pending = None;
            whole.affected_rows += self.run(statement, &mut super::Skip)?.affected_rows;
        }
        Ok(whole)
    }

    /// A number unique among the sessions of this process.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn prepare(&mut self, sql: &str) -> Result<PreparedStatement, StatementError> {
        let place = self.statements.iter().position(Option::is_none);
        let index = place.unwrap_or(self.statements.len());
        if index >= STATEMENTS_MAX {
            return Err(errors::too_many_statements().into());
        }
        let statement = self.connection.prepare(sql).map_err(errors::meaning)?;
        // SAFETY: the connection is in a box that the session keeps until after its statements are gone, and nothing hands
        // the statement out of the session.
        let statement =
            unsafe { std::mem::transmute::<Statement<'_>, Statement<'static>>(statement) };
        let prepared = Prepared {
            writes: !statement.readonly(),
            statement,
        };
        let parameters = prepared.statement.parameter_count();
        match self.statements.get_mut(index) {
            Some(free) => *free = Some(prepared),
            None => self.statements.push(Some(prepared)),
        }
        Ok(PreparedStatement { index, parameters })
    }

    pub(super) fn close(&mut self, statement: PreparedStatement) {
        if let Some(place) = self.statements.get_mut(statement.index) {
            *place = None;
        }
    }

    /// Binds the values of a statement, which runs next.
    pub(super) fn bind(
        &mut self,
        statement: PreparedStatement,
        values: &[Value<'_>],
    ) -> Result<(), CommandError> {
        if values.len() != statement.parameters {
            return Err(CommandError::ParameterCount {
                statement: 0,
                expected: statement.parameters,
                got: values.len(),
            });
        }
        let foreign = CommandError::ParameterCount {
            statement: 0,
            expected: 0,
            got: values.len(),
        };
        let Some(Some(prepared)) = self.statements.get_mut(statement.index) else {
            return Err(foreign);
        };
        for (value, place) in values.iter().zip(1..) {
            let bound = prepared.statement.raw_bind_parameter(place, Bound(value));
            if bound.is_err() {
                return Err(foreign);
            }
        }
        self.pending = Some(statement);
        Ok(())
    }

    /// Runs a statement with its bound values.
    fn run<S: Sink>(
        &mut self,
        statement: PreparedStatement,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        let place = self.statements.get_mut(statement.index);
        let Some(mut prepared) = place.and_then(Option::take) else {
            return Err(errors::unknown_statement().into());
        };
        let outcome = self.run_prepared(&mut prepared, sink);
        self.statements[statement.index] = Some(prepared);
        outcome
    }

    /// Runs the text of one statement.
    fn run_text<S: Sink>(&mut self, sql: &[u8], sink: &mut S) -> Result<Summary, StatementError> {
        // After an error SQLite may have rolled back by itself, and a statement without a transaction has none to roll back.
        if self.connection.is_autocommit() && sql.eq_ignore_ascii_case(b"ROLLBACK") {
            return Ok(Summary::default());
        }
        if sql == SHOW_SETTINGS.as_bytes() {
            return show::rows(&self.connection, sink).map_err(errors::meaning);
        }
        let sql = std::str::from_utf8(sql).map_err(|_| errors::no_text())?;
        let statement = self.prepare(sql)?;
        let outcome = self.run(statement, sink);
        self.close(statement);
        outcome
    }

    fn run_prepared<S: Sink>(
        &mut self,
        prepared: &mut Prepared,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        if prepared.writes {
            self.enter_queue()?;
        }
        let outcome = self.step(prepared, sink);
        if self.is_writing && self.connection.is_autocommit() {
            self.leave_queue();
        }
        outcome
    }

    /// Waits for this session's turn to write, unless it has it. A session that has read in its transaction does not
    /// wait: the writer before it may be waiting for that transaction to end.
    fn enter_queue(&mut self) -> Result<(), StatementError> {
        if self.is_writing {
            return Ok(());
        }
        let timeout = match self.connection.is_autocommit() {
            true => self.busy_timeout,
            false => Duration::ZERO,
        };
        if !self.queue.enter(timeout) {
            return Err(errors::not_let_through(timeout).into());
        }
        self.is_writing = true;
        Ok(())
    }

    fn leave_queue(&mut self) {
        self.is_writing = false;
        self.queue.leave();
    }

    fn step<S: Sink>(
        &mut self,
        prepared: &mut Prepared,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        let changes = self.connection.total_changes();
        let mut summary = Summary::default();
        let columns = prepared.statement.column_count();
        if columns > 0 {
            summary.result_sets = 1;
            sink.result_set(columns);
            if sink.wants_columns() {
                for name in prepared.statement.column_names() {
                    sink.column(&column(name));
                }
            }
        }
        let wants_rows = columns > 0 && sink.wants_rows();
        let mut rows = prepared.statement.raw_query();
        loop {
            match rows.next() {
                Ok(None) => break,
                Ok(Some(row)) => {
                    summary.rows += 1;
                    if wants_rows {
                        encode(row, columns, &mut self.row, &mut self.kinds)
                            .map_err(errors::meaning)?;
                        sink.row(&Row::new(&self.row, RowFormat::PostgresText, &self.kinds));
                    }
                }
                Err(error) => return Err(errors::meaning(error)),
            }
        }
        summary.affected_rows = self.connection.total_changes() - changes;
        drop(rows);
        sink.completed(&Completion {
            affected_rows: summary.affected_rows,
            ..Completion::default()
        });
        Ok(summary)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Session")
            .field("path", &self.connection.path())
            .field("is_writing", &self.is_writing)
            .finish_non_exhaustive()
    }
}

impl Drop for Session {
    /// Rolls back the transaction, then lets the next writer through.
    fn drop(&mut self) {
        self.statements.clear();
        if self.is_writing {
            let _ = self.connection.execute_batch("ROLLBACK");
            self.leave_queue();
        }
    }
}

fn column(name: &str) -> Column<'_> {
    Column {
        table: b"",
        name: name.as_bytes(),
        collation: 0,
        length: 0,
        kind: Value::Bytes(b"").kind(),
        flags: 0,
        decimals: 0,
    }
}

/// Writes a row in PostgreSQL's text format: lengths and bytes of values.
fn encode(
    row: &rusqlite::Row<'_>,
    columns: usize,
    out: &mut Vec<u8>,
    kinds: &mut Vec<ColumnKind>,
) -> rusqlite::Result<()> {
    out.clear();
    kinds.resize(columns, Value::Bytes(b"").kind());
    out.extend_from_slice(&(columns as u16).to_be_bytes());
    for index in 0..columns {
        match row.get_ref(index)? {
            ValueRef::Null => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            ValueRef::Integer(number) => put(out, format_args!("{number}")),
            ValueRef::Real(number) => put(out, format_args!("{number}")),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, value: fmt::Arguments<'_>) {
    use std::io::Write as _;
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    // Writing to memory does not fail.
    let _ = out.write_fmt(value);
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// A value as SQLite takes it. Bytes that are valid text become text, as on servers, whose columns have types; SQLite
/// would compare a text and a blob of the same bytes as different.
struct Bound<'a>(&'a Value<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = |text: String| Ok(ToSqlOutput::from(text));
        Ok(ToSqlOutput::Borrowed(match *self.0 {
            Value::Null => ValueRef::Null,
            Value::Signed(number) => ValueRef::Integer(number),
            Value::Unsigned(number) => match i64::try_from(number) {
                Ok(number) => ValueRef::Integer(number),
                Err(_) => return text(number.to_string()),
            },
            Value::Float(number) => ValueRef::Real(number.into()),
            Value::Double(number) => ValueRef::Real(number),
            Value::Bytes(bytes) if std::str::from_utf8(bytes).is_ok() => ValueRef::Text(bytes),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
            Value::Text(string) => ValueRef::Text(string.as_bytes()),
            Value::Date(date) => return text(date.to_string()),
            Value::DateTime(moment) => return text(moment.to_string()),
            Value::Time(span) => return text(span.to_string()),
        }))
    }
}

#[cfg(test)]
mod tests;
