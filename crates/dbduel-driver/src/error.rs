//! Errors of connections and statements, and the meaning of the server's errors.

use std::{fmt, io};

use dbduel_record::rows::{SQLITE_ERRORS, error_name};

use super::result::RESULT_LIMIT;
use super::tls::TlsError;
use crate::address::Address;

/// Beginning of the text of [`LostError::Script`], by which failures of scripts are known across processes.
pub const SCRIPT_FAILED: &str = "the script failed";

/// Maximum number of bytes of a statement that errors repeat.
const EXCERPT: usize = 120;

/// An error of which only the text is used.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Meaning of a server's error, independent of its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Conflict with another client: a deadlock, a lock timeout, a row that changed since the snapshot. The
    /// transaction may be tried again.
    Conflict,
    /// The key exists.
    DuplicateKey,
    /// The table exists.
    TableExists,
    /// The index or the foreign key exists.
    IndexExists,
    /// The server requires a primary key in every table.
    NoPrimaryKey,
    /// The server refuses to load files from the client.
    NoFileLoading,
    /// The server cannot prepare this kind of statement.
    NotPreparable,
    /// The server's limit of prepared statements is reached.
    TooManyPrepared,
    /// The account or its password is wrong.
    AccessDenied,
    /// The server requires TLS.
    TlsRequired,
    /// The account ignores passwords.
    PasswordUnused,
    /// Any other.
    Other,
}

/// An error that the server answered with.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerError {
    /// Its meaning.
    pub class: ErrorClass,
    /// The server's number; for PostgreSQL its SQLSTATE read as a number of base 36, for SQLite its extended result
    /// code plus [`SQLITE_ERRORS`].
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

    /// Name of the error: number and SQLSTATE, SQLSTATE alone for PostgreSQL, or SQLite's name.
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

/// Why a connection is unusable.
#[derive(Debug, thiserror::Error)]
pub enum LostError {
    /// An error of the operating system.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// Bytes from the server that cannot be decoded.
    #[error("the server violated the protocol: {0}")]
    Protocol(Cause),
    /// The server refused the login.
    #[error("login refused: {0}")]
    Refused(ServerError),
    /// The login failed on the client's side.
    #[error(transparent)]
    Login(Cause),
    /// The server refuses the session variables that our statements rely on.
    #[error(
        "cannot set the session variables that statements rely on: {0}; is there a proxy that rejects SET, or another kind of server?"
    )]
    Session(ServerError),
    /// The server refuses the workload's statements.
    #[error("the workload's statements cannot be prepared: {0}; are the tables loaded?")]
    Prepare(ServerError),
    /// The server's limit of prepared statements is reached.
    #[error(
        "the workload's statements cannot be prepared: {error}; each client prepares up to {per_client}; raise the server's limit (max_prepared_stmt_count), or send statements as text"
    )]
    TooManyPrepared {
        /// The server's error.
        error: ServerError,
        /// Statements that a client prepares, including those that some servers cannot prepare and get as text.
        per_client: u64,
    },
    /// TLS failed with the server that answers.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The values do not fit the statement, which was not sent.
    #[error(transparent)]
    Values(Cause),
    /// An error in the script that decides what the client does.
    #[error("{}: {why}", SCRIPT_FAILED)]
    Script {
        /// Position and error.
        why: String,
    },
    /// The tables' content is not what the workload needs.
    #[error("the data cannot be used: {why}")]
    Data {
        /// What is wrong, and what to do about it.
        why: String,
    },
}

impl LostError {
    /// True when reconnecting may help: the server went away, possibly during a handshake.
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

/// Why a statement returned no result.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// The server answered with an error; the connection remains usable.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The connection is unusable.
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
        /// The address.
        address: Address,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file of a database cannot be opened, or rejects a setting.
    #[error("cannot open `{address}`")]
    File {
        /// The file.
        address: Address,
        /// The reason.
        source: io::Error,
    },
    /// TLS failed with the server that answers.
    #[error("cannot connect to `{address}` with TLS")]
    Tls {
        /// The address.
        address: Address,
        /// The reason.
        source: TlsError,
    },
    /// The server answered but refused the login.
    #[error("cannot log in to `{address}` as `{user}`")]
    Login {
        /// The address.
        address: Address,
        /// The user.
        user: String,
        /// The reason.
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

    /// The server's error, if a server refused; its answer shows that it is up.
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
    /// The server refused it; the connection remains usable.
    #[error("`{sql}` failed with error {}: {}", .error.name(), .error.message)]
    Refused {
        /// The server's answer.
        error: ServerError,
        /// The beginning of the statement.
        sql: String,
    },
    /// The connection broke or the deadline passed; the connection is unusable.
    #[error("`{sql}` got no complete answer; the server's log may say why")]
    Broken {
        /// The beginning of the statement.
        sql: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The reply is invalid; the connection is unusable.
    #[error("`{sql}` got a reply that violates the protocol")]
    Protocol {
        /// The beginning of the statement.
        sql: String,
        /// What is invalid.
        source: Cause,
    },
    /// The result has more than `RESULT_LIMIT` bytes of values.
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
        /// The mismatch.
        source: Cause,
    },
    /// The content to load cannot be read.
    #[error("`{sql}`: the content to load cannot be read")]
    Content {
        /// The beginning of the statement.
        sql: String,
        /// The reader's error.
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

    /// Meaning of the server's error, if the server refused.
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
