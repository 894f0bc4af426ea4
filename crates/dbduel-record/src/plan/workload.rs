//! Workloads of clients: one, or those of a suite.

use serde::{Deserialize, Serialize};

use super::{Contender, Parameters};

/// A workload with all its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workload {
    /// Name in the table of workloads.
    pub name: String,
    /// All parameters of the workload.
    pub parameters: Parameters,
}

impl Workload {
    /// The workload with a contender's own parameters.
    pub(super) fn with_tables_of(&self, contender: &Contender) -> Workload {
        let mut workload = self.clone();
        for (name, value) in &contender.tables {
            if let Some(own) = workload.parameters.get_mut(name) {
                own.clone_from(value);
            }
        }
        workload
    }
}

/// How the workloads of a suite are conducted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Suite {
    /// Why blocks are mirrored, or hold every contender once.
    pub block_form: BlockForm,
    /// Time without load that each server gets before the reads that follow writes, seconds.
    pub settle_s: f64,
}

/// Why blocks are mirrored, or hold every contender once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BlockForm {
    /// The experiment says so.
    AsWritten,
    /// Mirrored: linear drift cancels within a block, and the budget holds enough of them for a verdict in each workload.
    Affordable,
    /// Each once: the budget holds too few mirrored blocks for a verdict in each workload.
    TooFewMirrored,
}

/// One workload of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuiteWorkload {
    /// Unique name within the suite.
    pub name: String,
    /// Workloads of one group are summarised together.
    pub group: String,
    /// Its phase.
    pub phase: SuitePhase,
    /// Middle of the measured part of its slices, seconds; absent for the schedule's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_s: Option<f64>,
    /// The workload of its clients.
    pub workload: Workload,
}

/// Part of a suite, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SuitePhase {
    /// Reads of tables that were not changed since they were filled.
    Fresh,
    /// Changes that leave the number of rows as it is.
    Write,
    /// Reads after the changes, once the servers have settled.
    Read,
    /// Changes of the number of rows.
    Last,
}
