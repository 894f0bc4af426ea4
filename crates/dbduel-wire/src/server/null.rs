//! A server that does nothing and answers at once: the remaining cost in a measurement against it is the lab's own.

use super::{Command, ReplyWriter, Session, Terms, Turn};
use crate::capability::Status;
use crate::error::{ServerError, WireError};
use crate::prepare::Statement;
use crate::reply::Completion;
use crate::value::{ColumnKind, ColumnType, Value};

/// Shape of a statement's result. It needs knowledge of SQL, so the owner of the driver provides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Placeholders.
    pub parameters: u16,
    /// Columns of the result, all BIGINT, at most [`Shape::COLUMN_LIMIT`]; 0 for a statement that is answered with OK
    /// and one row affected.
    pub columns: u16,
    /// Rows of the result; every value is 1.
    pub rows: u32,
    /// True for a query that does not count as an act of a script, like the login.
    pub is_outside_script: bool,
}

impl Shape {
    /// Maximum number of columns of a result; further ones are left out.
    pub const COLUMN_LIMIT: u16 = 64;

    fn columns(&self) -> u16 {
        self.columns.min(Self::COLUMN_LIMIT)
    }
}

/// Maximum number of prepared statements of a session; the same limit as real servers' `max_prepared_stmt_count`.
const STATEMENT_LIMIT: usize = 16_382;

const NUMBER: ColumnKind = ColumnKind {
    column_type: ColumnType::LONG_LONG,
    unsigned: false,
};

/// One session with the null server.
#[derive(Debug)]
pub struct NullServer {
    session: Session,
    prepared: Vec<Shape>,
}

impl NullServer {
    /// A new session; appends the greeting to `out`.
    #[must_use]
    pub fn begin(connection_id: u32, out: &mut Vec<u8>) -> Self {
        NullServer {
            session: Session::begin(connection_id, "8.0.0-dbduel-null", out),
            prepared: Vec::new(),
        }
    }

    /// Takes bytes that arrived and appends all answers to `out`. Returns false when the client has quit.
    ///
    /// `shape` is called for a statement when it is prepared or sent as text; executing a prepared statement needs no
    /// callback and allocates nothing.
    ///
    /// # Errors
    /// [`WireError`] when the client violates the protocol; the connection must be closed.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        shape: &mut dyn FnMut(&[u8]) -> Shape,
        out: &mut Vec<u8>,
    ) -> Result<bool, WireError> {
        let mut position = 0;
        loop {
            match self.session.next(bytes, &mut position, out)? {
                Turn::NeedMore => return Ok(true),
                Turn::LoggedIn => {}
                Turn::Request(Command::Quit, _) => return Ok(false),
                Turn::Request(command, terms) => {
                    answer(&command, terms, &mut self.prepared, shape, out);
                }
            }
        }
    }
}

pub(super) fn answer(
    command: &Command<'_>,
    terms: Terms,
    prepared: &mut Vec<Shape>,
    shape: &mut dyn FnMut(&[u8]) -> Shape,
    out: &mut Vec<u8>,
) {
    let mut reply = ReplyWriter::new(out, terms);
    match command {
        Command::Quit | Command::Close { .. } => {}
        Command::Ping | Command::InitDb(_) => done(&mut reply, 0),
        Command::ResetConnection => {
            prepared.clear();
            done(&mut reply, 0);
        }
        Command::Query(sql) => rows(&mut reply, shape(sql), false),
        Command::Prepare(_) if prepared.len() >= STATEMENT_LIMIT => {
            refuse(
                &mut reply,
                1461,
                *b"42000",
                "too many prepared statements in this session",
            );
        }
        Command::Prepare(sql) => {
            let shape = shape(sql);
            prepared.push(shape);
            let (parameters, columns) = (shape.parameters, shape.columns());
            reply.prepared(
                &Statement {
                    id: u32::try_from(prepared.len()).unwrap_or(u32::MAX),
                    parameters,
                    columns,
                    warnings: 0,
                },
                NUMBER,
            );
        }
        Command::Execute { statement, .. } | Command::BulkExecute { statement, .. } => {
            match prepared.get((*statement as usize).wrapping_sub(1)) {
                Some(&shape) => rows(&mut reply, shape, true),
                None => refuse(&mut reply, 1243, *b"HY000", "unknown prepared statement"),
            }
        }
        Command::Other(_) => refuse(&mut reply, 1047, *b"08S01", "unknown command"),
    }
}

fn done(reply: &mut ReplyWriter<'_>, affected_rows: u64) {
    reply.ok(&Completion {
        affected_rows,
        status: Status::AUTOCOMMIT,
        ..Completion::default()
    });
}

fn refuse(reply: &mut ReplyWriter<'_>, code: u16, sqlstate: [u8; 5], message: &str) {
    reply.error(&ServerError {
        code,
        sqlstate,
        message: message.to_owned(),
    });
}

fn rows(reply: &mut ReplyWriter<'_>, shape: Shape, binary: bool) {
    const ONES: [Value<'static>; Shape::COLUMN_LIMIT as usize] =
        [Value::Signed(1); Shape::COLUMN_LIMIT as usize];
    let columns = shape.columns();
    if columns == 0 {
        return done(reply, 1);
    }
    reply.columns((0..columns).map(|_| ("number", NUMBER)));
    for _ in 0..shape.rows {
        if binary {
            reply.binary_row(&ONES[..usize::from(columns)]);
        } else {
            reply.text_row((0..columns).map(|_| Some(&b"1"[..])));
        }
    }
    reply.end(Status::AUTOCOMMIT, 0);
}
