//! Resources and times that moved together with a difference: evidence for its reasons, ranked.
//!
//! Two views of the same slices, paired within blocks like the throughput itself. The *costs* say what one
//! transaction took of every resource. The *latency* says how the time of one transaction divides: in a
//! closed loop clients = throughput × latency (Little, 1961), so whatever makes a contender faster must
//! shorten one of these parts.
//!
//! It ranks; it does not conclude. That two things moved together does not show that one caused the
//! other, and nothing here says so. The intervals of one explanation hold together: each is widened for
//! the number of statements (Bonferroni). They are for a number of blocks fixed beforehand, so
//! they describe the blocks at hand and decide nothing. Of fewer blocks than could show a difference by the
//! order that was tossed for them, nothing is said but that they are too few.

mod amplification;
mod costs;
mod latency;
mod paired;
mod rank;
mod relevance;
pub(crate) mod resources;
mod rows_changed;
#[cfg(test)]
mod tests;

use dbduel_stats::compare::fewest_pairs;
use serde::Serialize;

use super::evidence::Evidence;
use crate::summary::Figure;

use paired::Paired;

pub use amplification::Amplification;
pub use rank::Leading;
pub use relevance::is_negligible;
pub use resources::{Group, Unit, resource_ids};

/// One contender's difference to the baseline at one load level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// Index into the plan's levels.
    pub level: usize,
    /// Name of the contender.
    pub contender: String,
    /// Cost of one transaction in each observed resource.
    pub costs: Vec<Cost>,
    /// Division of the time of one transaction.
    pub latency: Latency,
    /// Contender − baseline in the mean latency of committed transactions, microseconds.
    pub difference_us: Figure,
    /// The part and the cost that are named first.
    pub leading: Leading,
    /// Indices into `costs` that differ beyond doubt and may explain the difference: first those that can be most of
    /// the difference in time, then those that take no time themselves.
    pub moved: Vec<usize>,
    /// Indices into `costs` of main resources that are the same within the horizon.
    pub same: Vec<usize>,
    /// Indices into `costs` of main resources for which the data do not show whether they differ.
    pub unclear: Vec<usize>,
    /// Probability that any interval of this explanation misses its truth.
    pub alpha: f64,
    /// Blocks behind it.
    pub blocks: usize,
    /// The fewest blocks that can show a difference at `alpha`; with less nothing is compared.
    pub blocks_needed: usize,
}

impl Explanation {
    /// Contender − baseline in the time of a transaction, microseconds: that whose parts are known, otherwise the mean latency.
    #[must_use]
    pub fn whole_us(&self) -> &Figure {
        match &self.latency {
            Latency::Divided(division) => &division.difference_us,
            Latency::NotDivided { .. } => &self.difference_us,
        }
    }

    /// True when a resource differs beyond doubt and so far that it may explain a result, or is named first.
    #[must_use]
    pub fn has_telling_resource(&self) -> bool {
        let mut moved = self.moved.iter().map(|&index| &self.costs[index]);
        let is_telling = |cost: &Cost| !is_negligible(cost) && rank::is_telling(cost);
        self.leading.cost.is_some() || moved.any(is_telling)
    }

    /// The cost that is named first.
    #[must_use]
    pub fn leading_cost(&self) -> Option<&Cost> {
        self.leading.cost.map(|index| &self.costs[index])
    }

    /// The parts of a transaction's time that are named first, the largest before the other.
    pub fn leading_parts(&self) -> impl Iterator<Item = &Part> {
        let named = [self.leading.part, self.leading.lengthened];
        let division = match &self.latency {
            Latency::Divided(division) => Some(division),
            Latency::NotDivided { .. } => None,
        };
        let find = move |doing: Doing| {
            let mut parts = division?.parts.iter();
            parts.find(|part| part.doing == doing)
        };
        named.into_iter().flatten().filter_map(find)
    }

    /// True when there are blocks enough to compare anything.
    #[must_use]
    pub fn has_enough_blocks(&self) -> bool {
        self.blocks >= self.blocks_needed
    }
}

/// Cost of one transaction in one resource, or the value of a level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Stable name of the resource.
    pub resource: String,
    /// Its name for people.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Its group.
    pub group: Group,
    /// True for the few resources that sum up the others.
    pub is_main: bool,
    /// True for a level such as dirty pages, which is not divided by transactions.
    pub is_level: bool,
    /// Of the baseline, per transaction.
    pub baseline: Figure,
    /// Of the contender, per transaction.
    pub contender: Figure,
    /// Contender ÷ baseline within blocks.
    pub ratio: Figure,
    /// Result of the paired blocks.
    pub moved: Moved,
}

/// Result of the paired blocks for a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Moved {
    /// Less of it than the baseline.
    Less,
    /// More of it than the baseline.
    More,
    /// The same within the horizon.
    Same,
    /// A level that did not move on either side.
    Still,
    /// The data allow several answers.
    Unclear,
    /// Not measured on both sides.
    Unknown,
}

/// How the time of one transaction divides, seen from the threads that serve connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Latency {
    /// It could be divided.
    Divided(Division),
    /// It could not.
    NotDivided {
        /// The reason.
        why: String,
    },
}

/// The division of a transaction's time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Division {
    /// Clients of the level.
    pub clients: u32,
    /// Clients × time ÷ transactions of the baseline, microseconds.
    pub baseline_us: Figure,
    /// The same of the contender.
    pub contender_us: Figure,
    /// Contender − baseline within blocks.
    pub difference_us: Figure,
    /// Departure of the recorded mean latency from clients × time ÷ transactions, baseline and contender, as a share.
    /// Zero in an exact closed loop.
    pub identity_gap: [f64; 2],
    /// The parts; they add up to the whole.
    pub parts: Vec<Part>,
}

/// One part of a transaction's time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// Activity of the connection's thread.
    pub doing: Doing,
    /// Of the baseline, microseconds per transaction.
    pub baseline_us: Figure,
    /// Of the contender.
    pub contender_us: Figure,
    /// Contender − baseline within blocks.
    pub difference_us: Figure,
}

/// Activity of a connection's thread during a transaction, from the client's request to its next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Runs on a processor.
    Running,
    /// Is ready and waits for a processor.
    Runnable,
    /// Waits for data to be read.
    DiskRead,
    /// Waits for data to be written or synced by itself.
    DiskWrite,
    /// Waits for the log: its own write or sync, or a group commit.
    Commit,
    /// Waits for a row that another transaction has locked.
    RowLock,
    /// Waits for another thread of the server: latch, queue, page that another thread reads or writes.
    OtherThread,
    /// Waits for the client, which runs.
    Client,
    /// Waits for the client, which waits for a processor.
    ClientRunnable,
    /// Waits for a client that neither runs nor waits for a processor: the reply or the next question is under way, a
    /// wake-up is due, or the load thread is busy with its other clients.
    Network,
    /// Anything else.
    Other,
}

impl Doing {
    /// Every part, in the order of a report.
    pub const ALL: [Doing; 11] = [
        Doing::Running,
        Doing::Runnable,
        Doing::DiskRead,
        Doing::DiskWrite,
        Doing::Commit,
        Doing::RowLock,
        Doing::OtherThread,
        Doing::Client,
        Doing::ClientRunnable,
        Doing::Network,
        Doing::Other,
    ];

    /// The part as people read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Doing::Running => "running in the database",
            Doing::Runnable => "waiting for a processor",
            Doing::DiskRead => "reading data",
            Doing::DiskWrite => "writing data",
            Doing::Commit => "waiting for the log",
            Doing::RowLock => "waiting for row locks",
            Doing::OtherThread => "waiting inside the database",
            Doing::Client => "running in the client",
            Doing::ClientRunnable => "client waiting for a processor",
            Doing::Network => "between server and client",
            Doing::Other => "other",
        }
    }
}

/// An explanation for every contender other than the baseline at every level.
#[must_use]
pub fn explain(evidence: &Evidence<'_>) -> Vec<Explanation> {
    let plan = evidence.plan();
    let mut explanations = Vec::new();
    for level in 0..plan.levels.len() {
        for contender in plan.challengers() {
            if !evidence.levels[level].complete.is_empty() {
                explanations.push(of(evidence, level, contender));
            }
        }
    }
    explanations
}

/// Storage amplification of each contender, over all levels.
#[must_use]
pub fn amplification(evidence: &Evidence<'_>) -> Vec<Amplification> {
    (0..evidence.plan().contenders.len())
        .map(|contender| amplification::of(evidence, contender))
        .collect()
}

fn of(evidence: &Evidence<'_>, level: usize, contender: usize) -> Explanation {
    let plan = evidence.plan();
    let alpha = 1.0 - plan.decision.confidence;
    // Half of the error for the costs, half for the parts of the latency.
    let blocks_needed = fewest_pairs(alpha);
    let share_of = |statements: usize| Paired {
        alpha: alpha / 2.0 / statements as f64,
        blocks_needed,
    };
    let per_cost = share_of(resources::all().count());
    let per_part = share_of(Doing::ALL.len() + 1);
    let costs: Vec<Cost> = resources::all()
        .filter_map(|resource| costs::cost(evidence, level, contender, resource, per_cost))
        .collect();
    let latency = match latency::divide(evidence, level, contender, per_part) {
        Ok(division) => Latency::Divided(division),
        Err(why) => Latency::NotDivided { why },
    };
    let difference_us = latency::difference(evidence, level, contender, per_part);
    let rank::Ranked {
        leading,
        moved,
        same,
        unclear,
    } = rank::rank(&costs, &latency, &difference_us);
    Explanation {
        level,
        contender: plan.contenders[contender].name.clone(),
        costs,
        latency,
        difference_us,
        leading,
        moved,
        same,
        unclear,
        alpha,
        blocks: evidence.watched(level).len(),
        blocks_needed,
    }
}
