//! Best against best: variants of contenders, of which the best is chosen at each load level before it is judged.

use serde::{Deserialize, Serialize};

use crate::plan::{Block, Plan};

/// The contenders of a plan that are variants of one, and for how long they compete before only the chosen ones run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Variants {
    /// Rounds of each level in which all variants run, and from which the best of each group is chosen. In later
    /// rounds only the chosen variants run, and only these rounds are judged.
    pub choosing_rounds: u32,
    /// The contenders as the experiment names them, in its order.
    pub groups: Vec<VariantGroup>,
}

/// A contender of the experiment, with its variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VariantGroup {
    /// Its name.
    pub name: String,
    /// Settings that differ between its variants; empty with a single variant.
    pub settings: Vec<String>,
    /// Indices into `Plan::contenders`.
    pub members: Vec<usize>,
}

impl Variants {
    /// The group that a contender of the plan is a variant in.
    #[must_use]
    pub fn group_of(&self, contender: usize) -> Option<usize> {
        let mut groups = self.groups.iter();
        groups.position(|group| group.members.contains(&contender))
    }

    /// Whether all variants run in a block, so that the best is chosen from it.
    #[must_use]
    pub fn is_choosing(&self, block: &Block) -> bool {
        block.round < self.choosing_rounds
    }
}

impl Plan {
    /// Number of slices of a block that run: all that it lists, or those of the chosen variants.
    #[must_use]
    pub fn running_slices(&self, block: &Block) -> usize {
        match &self.variants {
            Some(variants) if !variants.is_choosing(block) => variants.groups.len(),
            _ => block.order.len(),
        }
    }
}

/// Checks that each contender of the plan is a variant in exactly one group, no group is empty, and blocks hold each
/// contender once.
///
/// # Errors
/// Says what does not fit.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    let Some(variants) = &plan.variants else {
        return Ok(());
    };
    let mut members: Vec<usize> = variants
        .groups
        .iter()
        .flat_map(|group| group.members.iter().copied())
        .collect();
    members.sort_unstable();
    let is_partition = members.into_iter().eq(0..plan.contenders.len());
    let has_empty = variants.groups.iter().any(|group| group.members.is_empty());
    if !is_partition || has_empty || variants.choosing_rounds == 0 {
        return Err(
            "variants must have choosing rounds, and groups that hold each contender exactly once"
                .to_owned(),
        );
    }
    if plan.schedule.mirrored || plan.design.is_some() || plan.suite.is_some() {
        return Err(
            "variants cannot be combined with mirrored blocks, a design or a suite".to_owned(),
        );
    }
    Ok(())
}
