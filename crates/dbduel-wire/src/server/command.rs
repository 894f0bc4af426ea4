//! A client's requests, decoded.

use crate::bytes::Cursor;
use crate::command::code;
use crate::error::WireError;
use crate::value::{ColumnKind, ColumnType, Value};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// The client quits.
    Quit,
    /// Change the default database.
    InitDb(&'a [u8]),
    /// A text query.
    Query(&'a [u8]),
    /// A ping.
    Ping,
    /// Prepare this statement.
    Prepare(&'a [u8]),
    /// Execute a prepared statement.
    Execute {
        /// Its id.
        statement: u32,
        /// Its parameters, still encoded.
        body: ExecuteBody<'a>,
    },
    /// Execute a prepared statement for many rows.
    BulkExecute {
        /// Its id.
        statement: u32,
        /// Flags, types and rows, still encoded.
        body: &'a [u8],
    },
    /// Deallocate a prepared statement; has no reply.
    Close {
        /// Its id.
        statement: u32,
    },
    /// Reset the session.
    ResetConnection,
    /// An unsupported request.
    Other(u8),
}

impl<'a> Command<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when it is empty or ends early.
    pub fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("request", payload);
        Ok(match cursor.u8()? {
            code::QUIT => Command::Quit,
            code::INIT_DB => Command::InitDb(cursor.rest()),
            code::QUERY => Command::Query(cursor.rest()),
            code::PING => Command::Ping,
            code::STMT_PREPARE => Command::Prepare(cursor.rest()),
            code::STMT_EXECUTE => {
                let statement = cursor.u32()?;
                let _cursor_type = cursor.u8()?;
                let _iterations = cursor.u32()?;
                Command::Execute {
                    statement,
                    body: ExecuteBody(cursor.rest()),
                }
            }
            code::STMT_BULK_EXECUTE => Command::BulkExecute {
                statement: cursor.u32()?,
                body: cursor.rest(),
            },
            code::STMT_CLOSE => Command::Close {
                statement: cursor.u32()?,
            },
            code::RESET_CONNECTION => Command::ResetConnection,
            other => Command::Other(other),
        })
    }
}

/// The parameters of an execution, encoded. Decoding needs the statement's number of placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecuteBody<'a>(pub &'a [u8]);

impl<'a> ExecuteBody<'a> {
    /// Decodes `count` parameters. `kinds` holds the types between executions of a statement: it is filled when the
    /// execution includes types and used when it does not.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when the body ends early, or includes no types and none are known.
    pub fn parameters(
        &self,
        count: u16,
        kinds: &mut Vec<ColumnKind>,
    ) -> Result<Vec<Value<'a>>, WireError> {
        let count = usize::from(count);
        let mut cursor = Cursor::new("execution", self.0);
        if count == 0 {
            return Ok(Vec::new());
        }
        let nulls = cursor.bytes(count.div_ceil(8))?;
        if cursor.u8()? == 1 {
            kinds.clear();
            for _ in 0..count {
                let [code, flags] = cursor.array()?;
                kinds.push(ColumnKind {
                    column_type: ColumnType(code),
                    unsigned: flags & 0x80 != 0,
                });
            }
        }
        if kinds.len() != count {
            return Err(cursor.wrong("brings no types for its parameters"));
        }
        let mut values = Vec::with_capacity(count);
        for (index, &kind) in kinds.iter().enumerate() {
            let null = nulls[index / 8] >> (index % 8) & 1 == 1;
            values.push(if null {
                Value::Null
            } else {
                Value::read(&mut cursor, kind)?
            });
        }
        Ok(values)
    }
}
