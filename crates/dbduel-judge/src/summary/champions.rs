//! The chosen variant of a contender at a load level. Types of the published JSON.

use dbduel_record::Verdict;
use serde::Serialize;

use super::figure::Figure;

/// The choice among the variants of one contender at one level. The level's verdict is about the chosen one, in later blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChampionChoice {
    /// Index into the levels.
    pub level: usize,
    /// The contender.
    pub contender: String,
    /// Blocks that the choice is made from; they are no part of the verdict.
    pub blocks: u32,
    /// Every variant, in the order of the experiment.
    pub variants: Vec<VariantThroughput>,
}

/// One variant in the blocks of choosing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VariantThroughput {
    /// Its settings: `innodb_spin_wait_delay = 96`.
    pub settings: String,
    /// Whether it was chosen: its mean log throughput is the highest.
    pub is_chosen: bool,
    /// Its throughput as a ratio to that of the chosen one; absent for that one.
    pub ratio: Option<Figure>,
    /// Verdict on that ratio, with the error probability shared by every two variants of all contenders of the level.
    pub verdict: Option<Verdict>,
}

impl ChampionChoice {
    /// The chosen variant; `None` before the first block.
    #[must_use]
    pub fn chosen(&self) -> Option<&VariantThroughput> {
        self.variants.iter().find(|variant| variant.is_chosen)
    }

    /// The variants that were not shown to be slower than the chosen one.
    pub fn open(&self) -> impl Iterator<Item = &VariantThroughput> {
        let others = self.variants.iter().filter(|variant| !variant.is_chosen);
        others.filter(|variant| variant.verdict != Some(Verdict::Slower))
    }
}
