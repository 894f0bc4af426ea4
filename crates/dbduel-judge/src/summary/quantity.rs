//! Ratios beside the verdict's: latency, cost, and every two contenders. Types of the published JSON.

use dbduel_record::Verdict;
use serde::Serialize;

use super::figure::Figure;

/// A quantity beside throughput that is compared within blocks. The smaller, the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Median latency of a typical slice.
    LatencyP50,
    /// 95 % quantile of the latency of a typical slice.
    LatencyP95,
    /// 99 % quantile of the latency of a typical slice.
    LatencyP99,
    /// Processor time of the server per committed transaction.
    ServerCpuPerTransaction,
    /// Bytes that the server wrote to the device per committed transaction.
    BytesWrittenPerTransaction,
}

impl Quantity {
    /// Every quantity, in the order of reports.
    pub const ALL: [Self; 5] = [
        Self::LatencyP50,
        Self::LatencyP95,
        Self::LatencyP99,
        Self::ServerCpuPerTransaction,
        Self::BytesWrittenPerTransaction,
    ];

    /// Label of the quantity.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::LatencyP50 => "p50 latency",
            Self::LatencyP95 => "p95 latency",
            Self::LatencyP99 => "p99 latency",
            Self::ServerCpuPerTransaction => "server CPU per transaction",
            Self::BytesWrittenPerTransaction => "bytes written per transaction",
        }
    }

    /// Its name in the streams of random numbers; never changes.
    #[must_use]
    pub fn stream(self) -> &'static str {
        match self {
            Self::LatencyP50 => "latency-p50",
            Self::LatencyP95 => "latency-p95",
            Self::LatencyP99 => "latency-p99",
            Self::ServerCpuPerTransaction => "server-cpu",
            Self::BytesWrittenPerTransaction => "bytes-written",
        }
    }
}

/// Verdict on a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// More than the other's.
    Higher,
    /// Less.
    Lower,
    /// Within the horizon of the other's.
    Equivalent,
    /// The interval allows several answers.
    Undecided,
    /// It cannot be compared.
    NotCompared,
}

impl Change {
    /// The answer as people read it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
            Self::NotCompared => "not compared",
        }
    }
}

/// One quantity of one contender against another, such as the baseline, at one level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuantityComparison {
    /// The quantity that is compared.
    pub quantity: Quantity,
    /// Verdict on the quantity.
    pub change: Change,
    /// Contender ÷ the other, within blocks.
    pub ratio: Figure,
    /// Probability that anything said here is wrong.
    pub alpha: f64,
    /// Blocks after which the answer first stood.
    pub decided_at_block: Option<usize>,
    /// Standard deviation of one block's log ratio.
    pub block_sd: Option<f64>,
}

/// Two contenders at one level, of which neither need be the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairComparison {
    /// Name of the contender whose ratio it is.
    pub contender: String,
    /// Name of the contender that it is compared with.
    pub against: String,
    /// Verdict on throughput.
    pub verdict: Verdict,
    /// Throughput, contender ÷ the other, within blocks.
    pub ratio: Figure,
    /// Probability that anything said here is wrong: that of the verdict where the other is the baseline; over the other
    /// pairs it adds up to the level's.
    pub alpha: f64,
    /// Why the verdict is void, or why it is undecided when more blocks would not help.
    pub because: Option<String>,
    /// Latency and cost, contender ÷ the other; absent in summaries of judges that did not compare them.
    #[serde(default)]
    pub quantities: Vec<QuantityComparison>,
}
