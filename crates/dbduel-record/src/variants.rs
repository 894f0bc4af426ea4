//! Best against best: several variants of a contender, of which the best is chosen at each load level before it is judged.

use serde::{Deserialize, Serialize};

use crate::plan::{Block, Plan};

/// Which contenders of a plan are variants of one, and how long they compete before the best of each meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Variants {
    /// Rounds of each level in which all variants run, and from which the best of each group is chosen. In later rounds only
    /// the chosen ones run, and only these rounds are judged.
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
    /// Settings that differ between its variants; none where it has one only.
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
    /// How many slices of a block run: all that it lists, or those of the chosen variants.
    #[must_use]
    pub fn running_slices(&self, block: &Block) -> usize {
        match &self.variants {
            Some(variants) if !variants.is_choosing(block) => variants.groups.len(),
            _ => block.order.len(),
        }
    }
}

/// Each contender of the plan is a variant in one group, no group is empty, and blocks have each contender once.
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
        return Err("the groups of variants are not a division of the contenders".to_owned());
    }
    if plan.schedule.mirrored || plan.design.is_some() || plan.suite.is_some() {
        return Err("variants have neither mirrored blocks nor a design nor a suite".to_owned());
    }
    Ok(())
}
