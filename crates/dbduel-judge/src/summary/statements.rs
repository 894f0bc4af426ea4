//! How contenders run the statements of a workload. Types of the published JSON.

use serde::Serialize;

/// A class of statements, and each contender's plan of one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementPlans {
    /// The text with `?` in the place of values and `N` in that of the table's number.
    pub class: String,
    /// Identity of a captured class, as `statement_classes` has it; absent for other workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A statement of the class; absent where it is too long to be kept, and of captured statements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// One entry per contender that was asked.
    pub plans: Vec<StatementPlan>,
}

/// One contender's plan of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementPlan {
    /// Name of the contender.
    pub contender: String,
    /// Notation of the plan; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<PlanForm>,
    /// Its steps in their order, without estimates.
    pub steps: Vec<String>,
    /// Equal plans of a class have equal numbers, from 1; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Why there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// How a product writes plans. Only plans of one form are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PlanForm {
    /// MySQL and MariaDB: table, access, key and additional work.
    MySql,
    /// PostgreSQL: nodes, dots for their depth.
    PostgreSql,
    /// SQLite: lines of EXPLAIN QUERY PLAN.
    Sqlite,
}

impl StatementPlans {
    /// The plan of a contender.
    #[must_use]
    pub fn of(&self, contender: &str) -> Option<&StatementPlan> {
        self.plans.iter().find(|plan| plan.contender == contender)
    }

    /// The plans of two contenders, where they differ and can be compared.
    #[must_use]
    pub fn changed(&self, contender: &str, against: &str) -> Option<[&StatementPlan; 2]> {
        let (own, other) = (self.of(contender)?, self.of(against)?);
        let differ = own.form.is_some() && own.form == other.form && own.number != other.number;
        differ.then_some([own, other])
    }
}
