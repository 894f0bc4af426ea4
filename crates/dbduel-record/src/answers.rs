//! Answers of the contenders to the same captured statements on equal data: `answers.json`.
//!
//! No value of a statement or of an answer is in it: answers are digests with a key that is thrown away, so that they can be compared
//! with each other and with nothing else.

use serde::{Deserialize, Serialize};

/// What the contenders answered before the first warm-up, outside of any measured time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// Statements of a class that were asked at most.
    pub examples_max: u32,
    /// Longest time of all statements of one contender, milliseconds.
    pub contender_ms_max: u64,
    /// Longest time of one statement, milliseconds.
    pub statement_ms_max: u64,
    /// Statements of the replay.
    pub statements: u64,
    /// Transactions of the replay.
    pub transactions: u64,
    /// Classes of statements, those with most statements first.
    pub classes: Vec<AskedClass>,
    /// Classes of which no statement was asked, as they are beyond the number of classes.
    pub classes_beyond: u32,
    /// Settings of sessions that a contender refused.
    pub refused: Vec<RefusedSetting>,
    /// Why nothing was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// A class of statements, and some of its statements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedClass {
    /// Its identity, as `dbduel capture show --class` takes it.
    pub id: String,
    /// Its text, with `?` for values.
    pub text: String,
    /// Statements of the replay.
    pub statements: u64,
    /// What the answer depends on beside the data, as tokens show; absent where nothing shows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<String>,
    /// True where the rows have an order.
    pub is_ordered: bool,
    /// True where a limit cuts them.
    pub is_limited: bool,
    /// The statements.
    pub examples: Vec<AskedStatement>,
}

/// A statement of the capture, and the answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedStatement {
    /// File and line of the captured log.
    pub position: String,
    /// Length of its text, bytes.
    pub bytes: u64,
    /// The different answers.
    pub answers: Vec<Answer>,
    /// Place of each contender's answer, in the plan's order.
    pub first: Vec<usize>,
    /// The same of a second session, as a control; `None` where it was not asked again.
    pub second: Vec<Option<usize>>,
}

impl AskedStatement {
    /// The answer of a contender, the plan's order.
    #[must_use]
    pub fn of(&self, contender: usize) -> Option<&Answer> {
        self.answers.get(*self.first.get(contender)?)
    }

    /// Its answer to the same statement in a second session.
    #[must_use]
    pub fn again(&self, contender: usize) -> Option<&Answer> {
        self.answers.get((*self.second.get(contender)?)?)
    }
}

/// An answer without its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The statement succeeded.
    Done(Box<Rows>),
    /// The server refused it.
    Refused(Refusal),
    /// It was not asked, or there was no answer, and why.
    Missing(String),
}

/// What a statement that succeeded gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rows {
    /// Class of each column's type.
    pub columns: Vec<TypeClass>,
    /// Rows returned.
    pub rows: u64,
    /// Rows changed.
    pub affected: u64,
    /// Warnings.
    pub warnings: u64,
    /// Digest of the rows in any order; of lengths and bytes of values, not of types.
    pub set: String,
    /// The same without columns of floats.
    pub set_without_floats: String,
    /// Digest of the rows in their order.
    pub sequence: String,
    /// Digest of what `ORDER BY` names, in order; absent without one, and where it could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<String>,
}

/// An error of a server, without its text, which may hold values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Refusal {
    /// Number and SQLSTATE; SQLSTATE alone of PostgreSQL.
    pub name: String,
}

/// What the types of columns are to a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TypeClass {
    /// Whole numbers of any size.
    Integer,
    /// Decimals.
    Decimal,
    /// Binary floating point.
    Float,
    /// Dates and times.
    Time,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// JSON.
    Json,
    /// Bits.
    Bits,
    /// Others; in PostgreSQL all but numbers of binary form.
    Other,
}

impl TypeClass {
    /// Its name in a sentence.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Decimal => "decimal",
            Self::Float => "float",
            Self::Time => "time",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Json => "JSON",
            Self::Bits => "bits",
            Self::Other => "another type",
        }
    }
}

/// A setting of sessions that a contender refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedSetting {
    /// Place of the contender in the plan.
    pub contender: usize,
    /// Identity of the class of the statement.
    pub id: String,
    /// Text of the class, with `?` for values.
    pub text: String,
    /// File and line of the first such statement.
    pub position: String,
    /// The error.
    pub refusal: Refusal,
    /// Different statements of the class that it refused.
    pub settings: u64,
    /// Transactions of the replay whose sessions have such a setting: all of them fail.
    pub transactions: u64,
}
