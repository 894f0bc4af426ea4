//! The answer of a comparison.

use serde::{Deserialize, Serialize};

/// Answer about throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// More committed transactions per second than the baseline.
    Faster,
    /// Fewer committed transactions per second than the baseline.
    Slower,
    /// Within the horizon of the baseline.
    Equivalent,
    /// The interval allows several answers.
    Undecided,
    /// No verdict may be based on this duel.
    Void,
}

impl Verdict {
    /// The verdict seen from the other contender.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Faster => Self::Slower,
            Self::Slower => Self::Faster,
            Self::Equivalent | Self::Undecided | Self::Void => self,
        }
    }

    /// The verdict as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
            Self::Void => "void",
        }
    }
}
