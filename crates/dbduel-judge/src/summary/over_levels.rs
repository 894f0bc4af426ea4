//! Results over the load levels: types of the published JSON.
//!
//! Every number has its interval or the reason why it has none.

use serde::Serialize;

/// A value with the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bounds {
    /// Point estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How the throughput of one contender follows the clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContenderScaling {
    /// Name of the contender.
    pub contender: String,
    /// Rounds in which every level has a complete block.
    #[serde(rename = "sweeps")]
    pub rounds: u32,
    /// Whether the law describes the contender.
    pub outcome: Scaling,
}

/// Whether the Universal Scalability Law describes a contender (Gunther 2007).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Scaling {
    /// It does.
    Described {
        /// Transactions per second of one client.
        per_client_per_s: Bounds,
        /// σ; absent when the fit ended at zero.
        contention: Option<Bounds>,
        /// κ; absent when the fit ended at zero.
        crosstalk: Option<Bounds>,
        /// Clients with the highest throughput; absent when they lie out of reach.
        peak_clients: Option<Bounds>,
        /// p-value of the lack-of-fit test.
        lack_of_fit_p: f64,
    },
    /// It does not.
    NotDescribed {
        /// p-value of the lack-of-fit test.
        lack_of_fit_p: f64,
        /// Clients at which curve and law are furthest apart.
        worst_clients: u32,
    },
    /// There are too few rounds, or a slice without a commit.
    NotFitted {
        /// Why.
        why: String,
    },
}

/// Where the curves of a contender and the baseline cross.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContenderCrossings {
    /// Name of the contender.
    pub contender: String,
    /// The crossings, or why there are none.
    pub outcome: Crossings,
}

/// Crossings over the clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Crossings {
    /// These are demonstrated.
    Found {
        /// In the order of clients.
        points: Vec<CrossingPoint>,
    },
    /// No two levels certainly differ in opposite ways.
    NoneDemonstrated {
        /// Fewest clients.
        from_clients: u32,
        /// Most clients.
        to_clients: u32,
    },
    /// There are too few blocks.
    NotKnown {
        /// Why.
        why: String,
    },
}

/// One crossing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CrossingPoint {
    /// Number of clients.
    pub clients: Bounds,
    /// True when the contender is faster than the baseline with more clients than that.
    pub is_faster_above: bool,
}

/// A contender against the latency objective.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContenderObjective {
    /// Name of the contender.
    pub contender: String,
    /// Every load level.
    pub levels: Vec<LevelObjective>,
    /// Where the highest rate that meets the objective lies; absent for closed arrivals.
    pub highest_rate: Option<RateBracket>,
}

/// A contender at one level against the latency objective.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelObjective {
    /// Index into the plan's levels.
    pub level: usize,
    /// Label of the level.
    pub label: String,
    /// Whether the level meets it.
    pub state: ObjectiveState,
    /// Share of the due transactions that were late; absent when it has no interval.
    pub late: Option<Bounds>,
}

/// Whether an objective is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ObjectiveState {
    /// Certainly.
    Met,
    /// Certainly not.
    Missed,
    /// The interval allows both.
    Unclear,
}

/// The interval of the highest rate that meets the objective, no finer than the rates that were tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateBracket {
    /// Highest rate that certainly meets it, below all that miss it.
    pub met_up_to: Option<f64>,
    /// Lowest rate that certainly misses it.
    pub missed_from: Option<f64>,
}
