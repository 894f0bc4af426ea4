//! Plans of workloads' statements on servers: `contenders/NAME/statements.json`.
//!
//! One statement of each class is kept, drawn by the workload itself, with the unchanged rows of the server's
//! `EXPLAIN`, which the judge interprets. Of captured statements neither the text nor a literal of the plan is kept.

use serde::{Deserialize, Serialize};

/// Statements that one contender was asked to explain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ContenderStatements {
    /// One entry per level.
    pub levels: Vec<LevelStatements>,
}

impl ContenderStatements {
    /// Statements of a level, if they were asked for.
    #[must_use]
    pub fn at(&self, level: usize) -> Option<&LevelStatements> {
        self.levels.iter().find(|own| own.level == level)
    }
}

/// The statements of one level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelStatements {
    /// Index into `Plan::levels`.
    pub level: usize,
    /// One entry per class, in the order in which they were first sent.
    pub statements: Vec<ExplainedStatement>,
    /// Why there are none, when the workload could not be sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// A class of statements, and one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementExample {
    /// The text with `?` in place of values and `N` in place of the table's number.
    pub class: String,
    /// Identity of a captured class, by which `dbduel capture show --class` finds it; absent for other workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The number of the table in the text; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// The text with its values; absent where it is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A statement and the server's answer about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainedStatement {
    /// The statement.
    #[serde(flatten)]
    pub example: StatementExample,
    /// Columns of the answer.
    pub columns: Vec<String>,
    /// Its rows, `None` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}
