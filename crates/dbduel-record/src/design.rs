//! A designed contest: with contenders between two, so that the difference of these two can be divided among the
//! factors in which they differ.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// The factors in which two contenders differ, and the factors of each contender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Design {
    /// Index into `Plan::contenders`: the contender with every factor at its second level. The baseline has all at their first.
    pub target: usize,
    /// Differences between the two.
    pub factors: Vec<DesignFactor>,
    /// For each contender of the plan, which factors it has at their second level.
    pub runs: Vec<Vec<bool>>,
}

/// Changes from the baseline to the target that are made together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesignFactor {
    /// A short name: that of its change, or of the first and the number of the others.
    pub name: String,
    /// False for the factor with all differences that the experiment does not list.
    pub is_listed: bool,
    /// Its changes. With more than one, their effects are not separated.
    pub changes: Vec<DesignChange>,
    /// Why changes that could be separate factors are not: a server's error about their combinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grouped_because: Option<String>,
}

/// One thing that differs between two contenders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesignChange {
    /// Kind of the difference.
    pub kind: ChangeKind,
    /// Name of the setting or of the parameter; `server` for the server.
    pub name: String,
    /// Its value on the baseline; absent where the baseline does not set it.
    pub from: Option<String>,
    /// Its value on the target; absent where the target does not set it.
    pub to: Option<String>,
}

/// A kind of difference between two contenders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// The server: product, version or build.
    Server,
    /// A setting of the server.
    Setting,
    /// A parameter of the workload that sets how tables are stored.
    Table,
}

impl Plan {
    /// The contenders that are compared with the baseline: all others, or in a designed contest only the target.
    pub fn challengers(&self) -> impl Iterator<Item = usize> + use<> {
        let (baseline, contenders) = (self.baseline, self.contenders.len());
        let target = self.design.as_ref().map(|design| design.target);
        (0..contenders).filter(move |&contender| {
            contender != baseline && target.is_none_or(|target| contender == target)
        })
    }
}

/// Checks that a design names an existing contender and has levels for all contenders.
///
/// # Errors
/// Says what does not fit.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    let Some(design) = &plan.design else {
        return Ok(());
    };
    if design.target >= plan.contenders.len() || design.target == plan.baseline {
        return Err(format!(
            "the target of the design is contender {}, which does not exist or is the baseline",
            design.target
        ));
    }
    let factors = design.factors.len();
    let is_complete = design.runs.len() == plan.contenders.len()
        && design.runs.iter().all(|run| run.len() == factors);
    match is_complete {
        true => Ok(()),
        false => Err("the design lacks the level of a factor for a contender".to_owned()),
    }
}
