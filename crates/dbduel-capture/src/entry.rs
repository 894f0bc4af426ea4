//! What a log says, in terms that all formats share.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Instant in nanoseconds since 1970-01-01 UTC.
pub type UnixNs = i64;

/// A session of a log: the same number never means two sessions within an import.
///
/// Servers count connections from 1 again after a restart, and process ids recur, so a reader gives each session that
/// it sees begin a number of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionNumber(pub u32);

/// An entry of a log, borrowed from its text.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry<'a> {
    /// A session begins, or its first entry is seen in a log that began later.
    SessionBegun {
        /// The session.
        session: SessionNumber,
        /// When; `None` where the log has no time.
        at: Option<UnixNs>,
        /// User, as the log has it.
        user: Cow<'a, [u8]>,
        /// Default database, empty where none was chosen, `None` where the log does not say.
        schema: Option<Cow<'a, [u8]>>,
        /// False where the session was open before the log began: its settings and schema are unknown.
        is_whole: bool,
    },
    /// A session ends.
    SessionEnded {
        /// The session.
        session: SessionNumber,
        /// When.
        at: Option<UnixNs>,
    },
    /// A statement that a client sent, or a request of the protocol that changes the session.
    Statement(Statement<'a>),
}

/// A statement of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement<'a> {
    /// The session that sent it.
    pub session: SessionNumber,
    /// When it began.
    pub start: Option<UnixNs>,
    /// How exact `start` is, nanoseconds: 1_000 where the log has microseconds, 1_000_000_000 where it has seconds.
    pub start_step_ns: u32,
    /// How long it took, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Its text as the client sent it, in the client's character set. In a prepared statement the text with its marks.
    pub text: Cow<'a, [u8]>,
    /// How it was sent.
    pub protocol: Protocol<'a>,
    /// Default database at that statement where the log gives it per entry (MariaDB's slow log); otherwise the session's.
    pub schema: Option<Cow<'a, [u8]>>,
    /// How it ended; `None` where the log does not say.
    pub outcome: Option<Outcome>,
    /// Rows that it returned.
    pub rows_sent: Option<u64>,
    /// Rows that it changed.
    pub rows_affected: Option<u64>,
    /// Line of the log at which it begins, from 1.
    pub line: u64,
}

/// How a statement was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Protocol<'a> {
    /// As text.
    Text,
    /// As an execution of a prepared statement with these values; `None` is NULL.
    Prepared(Vec<Option<Cow<'a, [u8]>>>),
    /// As an execution of a prepared statement whose values the log has written into the text (MySQL's general log).
    PreparedInline,
    /// A request that is no statement and that changes the session: `Init DB`, `Change user`, `Reset connection`. The text is its
    /// argument.
    Request(Request),
}

/// A request of the protocol that changes a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Another default database; the text is its name.
    InitDb,
    /// Another user in the same connection.
    ChangeUser,
    /// The session's state is reset.
    Reset,
}

/// How a statement ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Without an error.
    Ok,
    /// With this error: MySQL's number.
    Number(u16),
    /// With this error: SQLSTATE.
    State([u8; 5]),
}

/// What a log cannot say, whatever was run. The manifest of a capture lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    /// How long statements took.
    Durations,
    /// Which statements failed.
    Errors,
    /// How many rows were returned or changed.
    Rows,
    /// Times below a second.
    FractionsOfSeconds,
    /// Statements with syntax errors (MySQL logs after parsing).
    SyntaxErrors,
    /// Text of statements prepared by SQL (`PREPARE … FROM ...` in MySQL).
    PreparedText,
    /// Types of the values of prepared statements.
    ParameterTypes,
    /// Which session a default database belongs to (MySQL's slow log).
    Schemas,
    /// When sessions end.
    SessionEnds,
    /// Part of the statements: the log is a sample.
    Sampled,
    /// Statements whose values were cut.
    CutValues,
}

impl Lack {
    /// What is missing, and what follows from that.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Lack::Durations => {
                "durations of statements: shares are by count, think times are unknown"
            }
            Lack::Errors => "errors: a statement that failed looks like one that did not",
            Lack::Rows => "rows returned and changed",
            Lack::FractionsOfSeconds => {
                "times below a second: statements of one second keep the order of the log"
            }
            Lack::SyntaxErrors => "statements with syntax errors",
            Lack::PreparedText => "texts of statements prepared by SQL",
            Lack::ParameterTypes => "types of the values of prepared statements",
            Lack::Schemas => "the default database of each session",
            Lack::SessionEnds => "ends of sessions",
            Lack::Sampled => {
                "part of the statements: the log is a sample, so transactions are torn"
            }
            Lack::CutValues => "values that the server cut",
        }
    }
}

/// Takes what a reader finds, in the order of the log.
pub trait Sink {
    /// The next entry.
    ///
    /// # Errors
    /// When it cannot be kept, as on a full disk; the reader stops.
    fn entry(&mut self, entry: Entry<'_>) -> std::io::Result<()>;

    /// A part of the log that was not understood: the first line, how many lines, and why. Never fatal.
    fn unreadable(&mut self, line: u64, lines: u64, why: &str);

    /// Something that this log cannot say.
    fn lacks(&mut self, lack: Lack);
}
