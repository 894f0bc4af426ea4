//! Contribution of each factor of a designed contest to the difference of two contenders. Types of the published
//! JSON.

use dbduel_record::Verdict;
use dbduel_record::design::DesignFactor;
use serde::Serialize;

use super::figure::Figure;
use super::quantity::{Change, Quantity, QuantityComparison};

/// The difference of two contenders at one level, divided among the factors in which they differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attribution {
    /// Name of the contender whose difference from the baseline is divided.
    pub target: String,
    /// Number of contenders, these two included.
    pub contenders: usize,
    /// True when every combination of the factors is a contender; otherwise interactions of two share contrasts.
    pub has_all_combinations: bool,
    /// Factors in which the two differ; lists per factor keep this order.
    pub factors: Vec<DesignFactor>,
    /// One entry per factor.
    pub effects: Vec<FactorEffect>,
    /// Interactions of two factors.
    pub interactions: Vec<Interaction>,
    /// The sum of the effects of all listed factors, as a share of the whole difference of log throughput.
    pub listed_share: Figure,
    /// Ratio that interactions of three and more factors contribute; absent where there are no three factors.
    pub gap: Option<Figure>,
    /// Why there is no result.
    pub because: Option<String>,
}

/// Contribution of one factor: the mean over all combinations of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorEffect {
    /// Name of the factor.
    pub factor: String,
    /// Verdict on its second level against its first.
    pub verdict: Verdict,
    /// Throughput, second level ÷ first.
    pub ratio: Figure,
    /// True when the whole interval lies within the horizon.
    pub is_within_horizon: bool,
    /// Logarithm of the ratio as a share of that of the whole difference; absent while that is not decided.
    pub share: Option<f64>,
    /// Probability that anything said of its throughput is wrong.
    pub alpha: f64,
    /// Blocks after which the verdict first stood.
    pub decided_at_block: Option<usize>,
    /// Latency and cost, second level ÷ first.
    #[serde(default)]
    pub quantities: Vec<QuantityComparison>,
}

impl FactorEffect {
    /// Quantities that are divided beside throughput.
    pub const QUANTITIES: [Quantity; 3] = [
        Quantity::LatencyP95,
        Quantity::ServerCpuPerTransaction,
        Quantity::BytesWrittenPerTransaction,
    ];
}

/// Joint contribution of two factors beyond what each does by itself, or the sum of several such.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interaction {
    /// More than one: the design cannot tell them from each other, and the ratio is that of all together.
    pub terms: Vec<InteractionTerm>,
    /// False where parts of the interactions of other pairs are in it too.
    pub is_clear: bool,
    /// Verdict on the interaction.
    pub change: Change,
    /// Throughput: ratio of the second factor with the first one changed ÷ the same without it.
    pub ratio: Figure,
    /// Probability that anything said here is wrong.
    pub alpha: f64,
}

/// Two factors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InteractionTerm {
    /// Their names.
    pub factors: [String; 2],
    /// True when it counts with the inverse of its ratio.
    pub is_inverse: bool,
}
