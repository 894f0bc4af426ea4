//! Why there is no connection, or no result.

use std::io;

use dbduel_wire::{CommandError, LoginError, ServerError, WireError};

use super::result::RESULT_LIMIT;
use crate::address::Address;
use crate::conn::tls::TlsError;
use crate::conn::{LostError, StatementError};

/// How much of a statement is repeated in errors, in bytes.
pub(super) const EXCERPT: usize = 120;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody answers at the address, or the connection broke.
    #[error("cannot connect to `{address}` (is the server running and listening there?)")]
    Unreachable {
        /// Where.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// There is no TLS with the server that answers.
    #[error("cannot connect to `{address}` with TLS")]
    Tls {
        /// Where.
        address: Address,
        /// What is in its way.
        source: TlsError,
    },
    /// The server answered but did not let us in.
    #[error("cannot log in to `{address}` as `{user}`")]
    Login {
        /// Where.
        address: Address,
        /// As whom.
        user: String,
        /// Why not.
        source: LoginError,
    },
}

impl ConnectError {
    pub(super) fn new(lost: LostError, address: &Address, user: &str) -> Self {
        let address = address.clone();
        match lost {
            LostError::Tls(source) => ConnectError::Tls { address, source },
            LostError::Login(source) => ConnectError::Login {
                address,
                user: user.to_owned(),
                source,
            },
            LostError::Io(source) => ConnectError::Unreachable { address, source },
            other => ConnectError::Unreachable {
                address,
                source: io::Error::other(other),
            },
        }
    }

    /// The server's error, if there is a server and it refused; its answer shows that it is up.
    #[must_use]
    pub fn refused(&self) -> Option<&ServerError> {
        match self {
            ConnectError::Login {
                source: LoginError::Refused(error),
                ..
            } => Some(error),
            _ => None,
        }
    }
}

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The server refused it; the connection can be used further.
    #[error("`{sql}` failed with error {code} ({sqlstate}): {message}")]
    Refused {
        /// The server's error number.
        code: u16,
        /// SQLSTATE, five characters.
        sqlstate: String,
        /// The server's words.
        message: String,
        /// The beginning of the statement.
        sql: String,
    },
    /// The connection broke or the deadline passed; the connection cannot be used further.
    #[error("`{sql}` got no complete answer; the server's log may say why")]
    Broken {
        /// The beginning of the statement.
        sql: String,
        /// What the system said.
        source: io::Error,
    },
    /// The answer is no valid answer; the connection cannot be used further.
    #[error("`{sql}` got an answer that breaks the protocol")]
    Protocol {
        /// The beginning of the statement.
        sql: String,
        /// What is wrong with it.
        source: WireError,
    },
    /// The result has more than 256 MiB of values.
    #[error("`{sql}` returned more than {RESULT_LIMIT} bytes; ask for less")]
    TooMuch {
        /// The beginning of the statement.
        sql: String,
    },
    /// A row of values does not fit the statement.
    #[error("`{sql}`: the values do not fit the statement")]
    Values {
        /// The beginning of the statement.
        sql: String,
        /// What is wrong with them.
        source: CommandError,
    },
    /// The content to load cannot be read.
    #[error("`{sql}`: the content to load cannot be read")]
    Content {
        /// The beginning of the statement.
        sql: String,
        /// What the reader said.
        source: io::Error,
    },
}

impl QueryError {
    /// The server's error number, if the server refused.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            QueryError::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    pub(super) fn new(error: StatementError, sql: &str) -> Self {
        let sql = excerpt(sql);
        match error {
            StatementError::Server(error) => QueryError::Refused {
                code: error.code,
                sqlstate: error.sqlstate().to_owned(),
                message: error.message,
                sql,
            },
            StatementError::Lost(LostError::Wire(source)) => QueryError::Protocol { sql, source },
            StatementError::Lost(LostError::Command(source)) => QueryError::Values { sql, source },
            StatementError::Lost(LostError::Io(source)) => QueryError::Broken { sql, source },
            StatementError::Lost(other) => QueryError::Broken {
                sql,
                source: io::Error::other(other),
            },
        }
    }
}

/// The beginning of a statement, in one line.
pub(super) fn excerpt(sql: &str) -> String {
    let end = (0..=EXCERPT.min(sql.len()))
        .rev()
        .find(|&end| sql.is_char_boundary(end))
        .unwrap_or(0);
    let mut text = sql[..end].split_whitespace().collect::<Vec<_>>().join(" ");
    if end < sql.len() {
        text.push('…');
    }
    text
}
