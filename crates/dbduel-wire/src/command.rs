//! Requests of the client, appended to a reused buffer.
//!
//! Each function appends whole frames, so that several requests can be written with one system call; none allocates
//! unless the buffer must grow.

use crate::packet;
use crate::prepare::Statement;
use crate::value::{ColumnKind, Value};

/// Command bytes, the first of every request.
pub mod code {
    /// Ends the connection; there is no reply.
    pub const QUIT: u8 = 0x01;
    /// Changes the default database.
    pub const INIT_DB: u8 = 0x02;
    /// A text query.
    pub const QUERY: u8 = 0x03;
    /// Answered with OK.
    pub const PING: u8 = 0x0E;
    /// Prepares a statement.
    pub const STMT_PREPARE: u8 = 0x16;
    /// Executes a prepared statement.
    pub const STMT_EXECUTE: u8 = 0x17;
    /// Deallocates a prepared statement; there is no reply.
    pub const STMT_CLOSE: u8 = 0x19;
    /// Resets the session to its initial state; not supported by MySQL before 5.7.3 and MariaDB before 10.2.4.
    pub const RESET_CONNECTION: u8 = 0x1F;
    /// MariaDB: executes a prepared statement for many rows of parameters.
    pub const STMT_BULK_EXECUTE: u8 = 0xFA;
}

/// A request that cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The number of values differs from the number of placeholders.
    #[error("statement {statement} takes {expected} parameters but {got} were given")]
    ParameterCount {
        /// The statement's id.
        statement: u32,
        /// Its placeholders.
        expected: usize,
        /// The values given.
        got: usize,
    },
    /// In a bulk request all rows must have the types declared in its header.
    #[error(
        "row {row}, parameter {parameter}: its type is not the one declared for the bulk request"
    )]
    ParameterType {
        /// Row, counted from 0.
        row: usize,
        /// Parameter, counted from 0.
        parameter: usize,
    },
    /// A bulk request without rows is refused by the server.
    #[error("a bulk request for statement {statement} has no rows")]
    NoRows {
        /// The statement's id.
        statement: u32,
    },
}

/// Whether an execution sends the types of its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Types {
    /// Send them. Always correct.
    Send,
    /// Omit them, because the server has the right ones from an earlier execution of the same statement; shorter. If
    /// they are not right the server reads other values than intended, and may not notice: let [`SentTypes`] decide.
    AsBefore,
}

/// The parameter types of one statement that the server has received.
///
/// A NULL fits any type, but a parameter that has only been NULL so far has no type yet: its first value must
/// bring one.
///
/// ```
/// use dbduel_wire::{SentTypes, Types, Value};
///
/// let mut sent = SentTypes::default();
/// assert_eq!(sent.choose(&[Value::Signed(1), Value::Null]), Types::Send);
/// assert_eq!(sent.choose(&[Value::Null, Value::Null]), Types::AsBefore);
/// assert_eq!(sent.choose(&[Value::Signed(2), Value::Text("late")]), Types::Send);
/// assert_eq!(sent.choose(&[Value::Signed(3), Value::Null]), Types::AsBefore);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentTypes {
    kinds: Vec<ColumnKind>,
}

impl SentTypes {
    /// Whether an execution with these values must send types; if so, remembers them. Allocates the first time only.
    #[inline]
    pub fn choose(&mut self, values: &[Value<'_>]) -> Types {
        let fits = |(value, kind): (&Value<'_>, &ColumnKind)| {
            *value == Value::Null || value.kind() == *kind
        };
        if self.kinds.len() == values.len() && values.iter().zip(&self.kinds).all(fits) {
            return Types::AsBefore;
        }
        self.kinds.clear();
        self.kinds.extend(values.iter().map(Value::kind));
        Types::Send
    }

    /// To be called when an execution failed: the server may not have taken the types.
    pub fn forget(&mut self) {
        self.kinds.clear();
    }
}

fn plain(out: &mut Vec<u8>, command: u8, argument: &[u8]) {
    packet::append(out, 0, |out| {
        out.push(command);
        out.extend_from_slice(argument);
    });
}

/// Appends a text query.
#[inline]
pub fn query(out: &mut Vec<u8>, sql: &[u8]) {
    plain(out, code::QUERY, sql);
}

/// Appends a request to prepare a statement; read the answer with [`crate::PrepareParser`].
pub fn prepare(out: &mut Vec<u8>, sql: &[u8]) {
    plain(out, code::STMT_PREPARE, sql);
}

/// Appends an execution of a prepared statement.
///
/// # Errors
/// [`CommandError::ParameterCount`] when the number of values is wrong; nothing is appended then.
#[inline]
pub fn execute(
    out: &mut Vec<u8>,
    statement: &Statement,
    parameters: &[Value<'_>],
    types: Types,
) -> Result<(), CommandError> {
    if parameters.len() != usize::from(statement.parameters) {
        return Err(CommandError::ParameterCount {
            statement: statement.id,
            expected: usize::from(statement.parameters),
            got: parameters.len(),
        });
    }
    packet::append(out, 0, |out| {
        let [a, b, c, d] = statement.id.to_le_bytes();
        // No cursor; the count of iterations is always 1.
        out.extend_from_slice(&[code::STMT_EXECUTE, a, b, c, d, 0, 1, 0, 0, 0]);
        if !parameters.is_empty() {
            put_parameters(out, parameters, types);
        }
    });
    Ok(())
}

#[inline]
fn put_parameters(out: &mut Vec<u8>, parameters: &[Value<'_>], types: Types) {
    for eight in parameters.chunks(8) {
        let bits = eight.iter().enumerate().fold(0u8, |bits, (index, value)| {
            bits | u8::from(matches!(value, Value::Null)) << index
        });
        out.push(bits);
    }
    match types {
        Types::AsBefore => out.push(0),
        Types::Send => {
            out.push(1);
            for value in parameters {
                out.extend_from_slice(&type_bytes(value.kind()));
            }
        }
    }
    for value in parameters {
        value.put(out);
    }
}

pub(crate) fn type_bytes(kind: ColumnKind) -> [u8; 2] {
    [kind.column_type.0, if kind.unsigned { 0x80 } else { 0 }]
}

/// Appends a request to deallocate a prepared statement. There is no reply.
pub fn close(out: &mut Vec<u8>, statement: &Statement) {
    plain(out, code::STMT_CLOSE, &statement.id.to_le_bytes());
}

/// Appends a request to reset the session to its state after the login; the default database stays. The server answers OK, or an
/// error where it does not know the request ([`code::RESET_CONNECTION`]).
pub fn reset_connection(out: &mut Vec<u8>) {
    plain(out, code::RESET_CONNECTION, &[]);
}

/// Appends a request to quit the connection. There is no reply.
pub fn quit(out: &mut Vec<u8>) {
    plain(out, code::QUIT, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATEMENT: Statement = Statement {
        id: 0x0102,
        parameters: 2,
        columns: 0,
        warnings: 0,
    };

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn plain_requests_are_a_byte_and_an_argument() {
        assert_eq!(
            written(|out| query(out, b"SELECT 1")),
            b"\x09\0\0\0\x03SELECT 1"
        );
        assert_eq!(written(|out| prepare(out, b"DO ?")), b"\x05\0\0\0\x16DO ?");
        assert_eq!(
            written(|out| close(out, &STATEMENT)),
            b"\x05\0\0\0\x19\x02\x01\0\0"
        );
        assert_eq!(written(quit), b"\x01\0\0\0\x01");
    }

    #[test]
    fn an_execution_holds_nulls_types_and_values() {
        let values = [Value::Null, Value::Unsigned(7)];
        let first = written(|out| execute(out, &STATEMENT, &values, Types::Send).unwrap());
        let head = b"\x17\x02\x01\0\0\0\x01\0\0\0";
        let tail = b"\x01\x01\x06\0\x08\x80\x07\0\0\0\0\0\0\0";
        assert_eq!(first, [b"\x18\0\0\0", &head[..], tail].concat());
        let second = written(|out| execute(out, &STATEMENT, &values, Types::AsBefore).unwrap());
        assert_eq!(
            second,
            [b"\x14\0\0\0", &head[..], b"\x01\0\x07\0\0\0\0\0\0\0"].concat()
        );
    }

    #[test]
    fn a_wrong_number_of_values_leaves_nothing_behind() {
        let mut out = b"before".to_vec();
        let error = execute(&mut out, &STATEMENT, &[Value::Null], Types::Send).unwrap_err();
        assert_eq!(
            error,
            CommandError::ParameterCount {
                statement: 0x0102,
                expected: 2,
                got: 1
            }
        );
        assert_eq!(out, b"before");
    }

    #[test]
    fn types_of_a_failed_execution_are_sent_again() {
        let mut sent = SentTypes::default();
        assert_eq!(sent.choose(&[Value::Signed(1)]), Types::Send);
        sent.forget();
        assert_eq!(sent.choose(&[Value::Signed(1)]), Types::Send);
        assert_eq!(sent.choose(&[Value::Signed(1)]), Types::AsBefore);
        assert_eq!(
            sent.choose(&[Value::Unsigned(1)]),
            Types::Send,
            "the sign is part of the type"
        );
    }
}
