//! A number that never stands without its interval or the reason why it has none.
//!
//! The field that holds a figure names its unit.

use dbduel_record::Verdict;
use dbduel_stats::Estimate;
use serde::Serialize;

/// A number with its uncertainty.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Figure {
    /// The interval holds the truth with the stated confidence.
    Estimated {
        /// Point estimate.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end; absent when the data cannot bound the value from above.
        high: Option<f64>,
        /// Confidence of the interval.
        confidence: f64,
        /// Number of units behind it: slices or blocks, as `how` says.
        n: usize,
        /// How it was obtained.
        how: How,
    },
    /// A value without an interval.
    Bare {
        /// Point value.
        value: f64,
        /// Number of units behind it.
        n: usize,
        /// How it was obtained.
        how: How,
        /// Why there is no interval.
        why: String,
    },
    /// Nothing was measured.
    NotMeasured {
        /// Why there is no value.
        why: String,
    },
}

impl Figure {
    /// A ratio, from the estimate of its logarithm at error probability `alpha`.
    #[must_use]
    pub fn of_log_ratio(log_ratio: Estimate, alpha: f64, how: How) -> Self {
        let ratio = log_ratio.map_increasing(f64::exp);
        Self::Estimated {
            value: ratio.value,
            low: ratio.low,
            high: Some(ratio.high).filter(|high| high.is_finite()),
            confidence: 1.0 - alpha,
            n: ratio.n,
            how,
        }
    }

    /// The point value, if there is one.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Estimated { value, .. } | Self::Bare { value, .. } => Some(*value),
            Self::NotMeasured { .. } => None,
        }
    }

    /// One over the figure, which is a ratio above zero.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let mut inverse = self.clone();
        match &mut inverse {
            Self::Estimated {
                value, low, high, ..
            } => {
                let end = *low;
                *value = 1.0 / *value;
                *low = high.map_or(0.0, |high| 1.0 / high);
                *high = Some(1.0 / end).filter(|high| high.is_finite());
            }
            Self::Bare { value, .. } => *value = 1.0 / *value,
            Self::NotMeasured { .. } => {}
        }
        inverse
    }

    /// The interval, if there is one; its upper end may be infinite.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        match self {
            Self::Estimated { low, high, .. } => Some((*low, high.unwrap_or(f64::INFINITY))),
            Self::Bare { .. } | Self::NotMeasured { .. } => None,
        }
    }
}

/// Whether a ratio in this interval is what the verdict says; true for verdicts that say nothing.
pub(crate) fn supports((low, high): (f64, f64), verdict: Verdict, horizon: f64) -> bool {
    match verdict {
        Verdict::Faster => low > 1.0,
        Verdict::Slower => high < 1.0,
        Verdict::Equivalent => 1.0 / (1.0 + horizon) <= low && high <= 1.0 + horizon,
        Verdict::Undecided | Verdict::Void => true,
    }
}

/// How a figure was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Committed transactions over measured time.
    Throughput,
    /// Completed New-Orders over measured minutes.
    NewOrders,
    /// Sum of the latencies over their number.
    LatencySum,
    /// Quantile of the merged histograms of all slices.
    MergedHistograms,
    /// The largest single latency.
    Largest,
    /// The largest of the readings.
    LargestReading,
    /// A reading over committed transactions.
    Readings,
    /// Ratio within blocks.
    PairedBlocks,
    /// Ratio of all work per time, compared block by block.
    BlockTotals,
    /// Ratio at which the test of the blocks is equally far from a rejection on either side, because earlier looks exclude the
    /// ratio of all blocks.
    Balance,
    /// As `Balance`, with every start of the servers as a unit.
    BalanceOfEpochs,
    /// Mean of the differences, or of the log ratios, of mirrored blocks.
    PairedMean,
    /// Difference or ratio of the totals per transaction, linearised over mirrored blocks.
    PairedTotals,
    /// Ratio of neighbouring stretches, of turns and of load without a switch.
    Continuity,
    /// Ratio within mirrored blocks, averaged over every start of the servers.
    Epochs,
    /// Sum of effects within blocks ÷ the whole difference.
    ShareOfWhole,
    /// Mean of the second half of a series ÷ that of the first.
    Halves,
    /// Geometric mean of the ratios of several workloads.
    GroupMean,
    /// Mean log ratio of several machines, or of several records of one, as a random effect.
    RandomEffect,
}

impl How {
    /// The method as a sentence fragment.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Throughput => {
                "committed transactions over measured time; interval over the slices, allowing for machine drift \
                 over about eight slices"
            }
            Self::NewOrders => {
                "completed New-Orders, including intended rollbacks, over measured minutes; interval over the \
                 slices, allowing for machine drift over about eight slices"
            }
            Self::LatencySum => {
                "sum of latencies over their number; interval over the slices, allowing for machine drift over about eight slices"
            }
            Self::MergedHistograms => {
                "quantile of the merged histograms; Woodruff's interval over the slices, allowing for machine drift \
                 over about eight slices"
            }
            Self::Largest => "largest single latency",
            Self::LargestReading => "largest of the readings within slices and at their ends",
            Self::Readings => {
                "reading over committed transactions; interval over the slices, allowing for machine drift over \
                 about eight slices"
            }
            Self::Continuity => {
                "mean log ratio of neighbouring stretches in turns and without a switch, or of two contenders in the latter; interval over \
                 the rounds"
            }
            Self::Epochs => {
                "mean log ratio of the starts of the servers; repeated intervals of a group-sequential t test"
            }
            Self::PairedBlocks => {
                "mean log ratio within mirrored blocks; interval by inverting the sequential test"
            }
            Self::BlockTotals => {
                "committed transactions over measured time of all blocks; interval by inverting the sequential test, and by \
                 Garwood's interval of the number of stalls where these are too few"
            }
            Self::Balance => {
                "ratio at which the sequential test of the blocks is equally far from a rejection on either side, because earlier looks \
                 exclude the ratio of all blocks; interval by inverting the test"
            }
            Self::BalanceOfEpochs => {
                "ratio equally far from an end of some look's interval on either side, because earlier looks exclude the mean log \
                 ratio of all starts; repeated intervals of a group-sequential t test"
            }
            Self::ShareOfWhole => {
                "sum of the effects over the whole difference of log throughput, or where earlier looks exclude that, the share at \
                 which the test is equally far from a rejection on either side; interval by inverting the sequential test of the sum \
                 less a share of the whole"
            }
            Self::GroupMean => {
                "geometric mean of the workloads' ratios, each with the same weight; interval over the blocks of \
                 each, for a number of blocks fixed in advance (Satterthwaite 1946)"
            }
            Self::RandomEffect => {
                "mean log ratio of several machines, or of several records of one, as a random effect; Hartung-Knapp-Sidik-Jonkman \
                 interval (IntHout, Ioannidis and Borm 2014), variance between them by Paule and Mandel (1982)"
            }
            Self::Halves => {
                "mean of the second half over that of the first; Student's interval from lugsail batch means"
            }
            Self::PairedTotals => {
                "difference or ratio of what all blocks took per transaction; interval over the blocks in their \
                 order (linearised, Cochran 1977), allowing for correlation between neighbours and widened for the \
                 number of statements"
            }
            Self::PairedMean => {
                "mean within mirrored blocks; interval over the blocks in their order, allowing for correlation \
                 between neighbours and widened for the number of statements"
            }
        }
    }
}
