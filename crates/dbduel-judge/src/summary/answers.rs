//! Answers of the contenders to the same statements on equal data. Types of the published JSON.

use serde::Serialize;

/// How the contenders answered captured statements before the first load.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswersSummary {
    /// Classes of statements, those with most statements first.
    pub classes: Vec<ClassAnswers>,
    /// Classes of which no statement was asked, as they are beyond a limit of the comparison.
    pub classes_beyond: u32,
    /// Settings of captured sessions that a contender refused.
    pub refused: Vec<RefusedSettings>,
    /// Why nothing was compared; absent where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// The answers to statements of one class.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassAnswers {
    /// Identity of the class, as `dbduel capture show --class` takes it.
    pub id: String,
    /// Its text, with `?` for values.
    pub text: String,
    /// Its share of the statements of the replay.
    pub share: f64,
    /// What the answer depends on beside the data, as tokens of the statement show; absent where nothing shows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<String>,
    /// One entry per contender other than the baseline.
    pub contenders: Vec<ContenderAnswer>,
}

/// Answers of a contender against those of the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContenderAnswer {
    /// Name of the contender.
    pub contender: String,
    /// Statements that were compared.
    pub compared: u32,
    /// The difference that weighs most; absent where all answers are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<AnswerDifference>,
    /// Why statements were not compared, of the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
}

/// A difference between two answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerDifference {
    /// What differs.
    pub kind: DifferenceKind,
    /// Why equal data may give this difference; absent where nothing shows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excuse: Option<String>,
    /// Both sides in a phrase, without values.
    pub detail: String,
    /// Statements that differ so.
    pub statements: u32,
    /// File and line of the shortest of them in the captured log.
    pub position: String,
}

/// What differs between two answers, heaviest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// One side refuses the statement, or both do with different errors.
    Error,
    /// Number of columns.
    Columns,
    /// Number of rows.
    Rows,
    /// Values of rows.
    Values,
    /// Order of what `ORDER BY` names.
    Order,
    /// Number of rows changed.
    Affected,
    /// Which of the rows that `ORDER BY` ties a limit leaves.
    LimitTies,
    /// Values of columns of floats only.
    Floats,
    /// Order of rows that `ORDER BY` ties.
    Ties,
    /// Order of rows whose `ORDER BY` names what could not be read.
    UnknownOrder,
    /// Classes of the columns' types.
    Types,
    /// Number of warnings.
    Warnings,
}

impl DifferenceKind {
    /// Name in a sentence and a table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Columns => "columns",
            Self::Rows => "rows",
            Self::Values => "values",
            Self::Order => "order",
            Self::Affected => "rows changed",
            Self::LimitTies => "ties under LIMIT",
            Self::Floats => "floats",
            Self::Ties => "order of ties",
            Self::UnknownOrder => "order, perhaps of ties",
            Self::Types => "types",
            Self::Warnings => "warnings",
        }
    }

    /// True where the answers are of different use or the servers did different work.
    #[must_use]
    pub fn weighs(self) -> bool {
        self <= Self::Affected
    }
}

impl AnswerDifference {
    /// True where nothing explains the difference, and it is one of work.
    #[must_use]
    pub fn weighs(&self) -> bool {
        self.excuse.is_none() && self.kind.weighs()
    }
}

/// Settings of sessions that a contender refused: every transaction that needs one fails.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefusedSettings {
    /// Name of the contender.
    pub contender: String,
    /// Identity of the class of the statement.
    pub id: String,
    /// Text of the class, with `?` for values.
    pub text: String,
    /// File and line of the first such statement in the captured log.
    pub position: String,
    /// Number and SQLSTATE of the error.
    pub error: String,
    /// Different statements of the class that it refused.
    pub settings: u64,
    /// Transactions of the replay that need one of them.
    pub transactions: u64,
    /// Their share of all transactions of the replay.
    pub share: f64,
}
