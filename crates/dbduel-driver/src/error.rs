//! Why there is no connection or no result, and what the server's errors mean.

use std::{fmt, io};

use dbduel_record::rows::{SQLITE_ERRORS, error_name};

use super::result::RESULT_LIMIT;
use super::tls::TlsError;
use crate::address::Address;

/// How much of a statement is repeated in errors, in bytes.
const EXCERPT: usize = 120;

/// An error of which only the text matters.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What an error of the server means, whatever its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Another client was in the way: a deadlock, a lock timeout, a row that changed since the snapshot. The transaction may be
    /// tried again.
    Conflict,
    /// The key is taken.
    DuplicateKey,
    /// The table is there already.
    TableExists,
    /// The index or the foreign key is there already.
    IndexExists,
    /// The server does not read rows from a file of the client.
    NoFileLoading,
    /// The server cannot prepare this kind of statement.
    NotPreparable,
    /// The server keeps as many prepared statements as it may.
    TooManyPrepared,
    /// The account or its password is wrong.
    AccessDenied,
    /// The account looks at no password.
    PasswordUnused,
    /// Any other.
    Other,
}

/// An error that the server answered with.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerError {
    /// What it means.
    pub class: ErrorClass,
    /// The server's own number; with PostgreSQL its SQLSTATE read as a number of base 36, with SQLite its extended result code
    /// and [`SQLITE_ERRORS`].
    pub code: u32,
    /// SQLSTATE, five characters.
    pub sqlstate: [u8; 5],
    /// The server's text.
    pub message: String,
}

impl ServerError {
    /// SQLSTATE as text.
    #[must_use]
    pub fn sqlstate(&self) -> &str {
        std::str::from_utf8(&self.sqlstate).unwrap_or("HY000")
    }

    /// What the error is known by: number and SQLSTATE, SQLSTATE alone where the server has no numbers, or SQLite's name.
    #[must_use]
    pub fn name(&self) -> String {
        let (code, sqlstate) = (error_name(self.code), self.sqlstate());
        match code == sqlstate || self.code >= SQLITE_ERRORS {
            true => code,
            false => format!("{code} ({sqlstate})"),
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "server error {}: {}", self.name(), self.message)
    }
}

impl fmt::Debug for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl std::error::Error for ServerError {}

/// Why a connection is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum LostError {
    /// The system says so.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// The server's bytes make no sense.
    #[error("the server broke the protocol: {0}")]
    Protocol(Cause),
    /// The server refused the login.
    #[error("login refused: {0}")]
    Refused(ServerError),
    /// The login did not come to an end.
    #[error(transparent)]
    Login(Cause),
    /// The server refuses what our statements rely on.
    #[error(
        "the session cannot be set to what statements rely on: {0}; is there a proxy that allows no SET, or a server of another kind?"
    )]
    Session(ServerError),
    /// The server refuses the workload's statements.
    #[error("the workload's statements cannot be prepared: {0}; was the data filled in?")]
    Prepare(ServerError),
    /// There is no TLS with the server that answers.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A statement was given values that do not fit it, and was not sent.
    #[error(transparent)]
    Values(Cause),
    /// The script that decides what the client does is at fault.
    #[error("the script failed: {why}")]
    Script {
        /// Where and what.
        why: String,
    },
    /// The tables hold something else than the workload needs.
    #[error("the data cannot be used: {why}")]
    Data {
        /// What is wrong, and what to do about it.
        why: String,
    },
}

impl LostError {
    /// True when another connection may be made: the server went away, which it may do in the midst of a handshake.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            LostError::Io(_)
                | LostError::Protocol(_)
                | LostError::Refused(_)
                | LostError::Login(_)
                | LostError::Tls(TlsError::Closed { .. })
        )
    }
}

/// Why a statement brought no result.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// The server answered with an error; the connection can be used further.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The connection cannot be used further.
    #[error(transparent)]
    Lost(#[from] LostError),
}

impl From<io::Error> for StatementError {
    fn from(error: io::Error) -> Self {
        StatementError::Lost(error.into())
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No server answers at the address, or the connection broke.
    #[error("cannot connect to `{address}` (is the server running and listening there?)")]
    Unreachable {
        /// Where.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// The file of a database cannot be opened, or does not take a setting.
    #[error("cannot open `{address}`")]
    File {
        /// Which file.
        address: Address,
        /// Why not.
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
        source: LostError,
    },
}

impl ConnectError {
    pub(super) fn new(lost: LostError, address: &Address, user: &str) -> Self {
        let address = address.clone();
        match lost {
            LostError::Tls(source) => ConnectError::Tls { address, source },
            LostError::Io(source) if matches!(address, Address::File { .. }) => {
                ConnectError::File { address, source }
            }
            LostError::Io(source) => ConnectError::Unreachable { address, source },
            source => ConnectError::Login {
                address,
                user: user.to_owned(),
                source,
            },
        }
    }

    /// The server's error, if there is a server and it refused; its answer shows that it is up.
    #[must_use]
    pub fn refused(&self) -> Option<&ServerError> {
        match self {
            ConnectError::Login {
                source: LostError::Refused(error),
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
    #[error("`{sql}` failed with error {}: {}", .error.name(), .error.message)]
    Refused {
        /// The server's answer.
        error: ServerError,
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
        source: Cause,
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
        source: Cause,
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
    pub fn code(&self) -> Option<u32> {
        match self {
            QueryError::Refused { error, .. } => Some(error.code),
            _ => None,
        }
    }

    /// What the server's error means, if the server refused.
    #[must_use]
    pub fn class(&self) -> Option<ErrorClass> {
        match self {
            QueryError::Refused { error, .. } => Some(error.class),
            _ => None,
        }
    }

    pub(super) fn new(error: StatementError, sql: &str) -> Self {
        let sql = excerpt(sql);
        match error {
            StatementError::Server(error) => QueryError::Refused { error, sql },
            StatementError::Lost(LostError::Protocol(source)) => {
                QueryError::Protocol { sql, source }
            }
            StatementError::Lost(LostError::Values(source)) => QueryError::Values { sql, source },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_on_one_line() {
        assert_eq!(excerpt("SELECT\n  1"), "SELECT 1");
        let long = excerpt(&"ä".repeat(500));
        assert!(
            long.ends_with('…') && long.len() <= EXCERPT + '…'.len_utf8(),
            "{long}"
        );
    }
}
