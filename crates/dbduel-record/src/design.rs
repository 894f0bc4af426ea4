//! A designed contest: contenders between two, so that the difference of these can be divided among the factors in which
//! they differ.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// Which factors two contenders differ in, and which contender has which of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Design {
    /// Index into `Plan::contenders`: the contender with every factor at its second level. The baseline has all at their first.
    pub target: usize,
    /// What the two differ in.
    pub factors: Vec<DesignFactor>,
    /// Of each contender of the plan, which factors it has at their second level.
    pub runs: Vec<Vec<bool>>,
}

/// What is changed as one from the baseline to the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesignFactor {
    /// A short name: that of its change, or of the first and the number of the others.
    pub name: String,
    /// False for the factor that holds all differences that the experiment does not list.
    pub is_listed: bool,
    /// What changes with it. More than one: their effects are not told apart.
    pub changes: Vec<DesignChange>,
    /// Why changes that could be factors of their own are not: what a server said of their combinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grouped_because: Option<String>,
}

/// One thing that differs between two contenders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesignChange {
    /// What it is.
    pub kind: ChangeKind,
    /// Name of the setting or of the parameter; `server` for the server.
    pub name: String,
    /// Its value on the baseline; absent where that does not set it.
    pub from: Option<String>,
    /// Its value on the target; absent where that does not set it.
    pub to: Option<String>,
}

/// What can differ between two contenders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Which server it is: product, version or build.
    Server,
    /// A setting of the server.
    Setting,
    /// A parameter of the workload that says how tables are stored.
    Table,
}

impl Plan {
    /// The contenders that are compared with the baseline: all others, or of a designed contest the target only.
    pub fn challengers(&self) -> impl Iterator<Item = usize> + use<> {
        let (baseline, contenders) = (self.baseline, self.contenders.len());
        let target = self.design.as_ref().map(|design| design.target);
        (0..contenders).filter(move |&contender| {
            contender != baseline && target.is_none_or(|target| contender == target)
        })
    }
}

/// A design names a contender that exists, has levels for all contenders, and none of them twice.
///
/// # Errors
/// Says what does not fit.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    let Some(design) = &plan.design else {
        return Ok(());
    };
    if design.target >= plan.contenders.len() || design.target == plan.baseline {
        return Err(format!(
            "the design divides the difference of contender {} from the baseline, and there is no such contender",
            design.target
        ));
    }
    let factors = design.factors.len();
    let is_complete = design.runs.len() == plan.contenders.len()
        && design.runs.iter().all(|run| run.len() == factors);
    match is_complete {
        true => Ok(()),
        false => {
            Err("the design does not have a level of every factor for every contender".to_owned())
        }
    }
}
