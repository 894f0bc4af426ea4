//! Conclusions of the judge from a record: the types of the published JSON.
//!
//! Names are snake case with their unit; a number never stands without its interval or the reason why it has none.

mod answers;
mod attribution;
mod champions;
mod continuity;
mod figure;
mod over_levels;
mod quantity;
mod statements;
mod steady;
mod suite;

use dbduel_audit::Audit;
use dbduel_audit::disclosure::Item;
use dbduel_record::Verdict;
use dbduel_record::event::{EndReason, LoadTime};
use dbduel_record::facts::{Build, Host, SelfTest, Size};
use dbduel_record::plan::{
    DecisionRule, LoadHosts, LoadLevel, LoadProcess, Objective, Parameters, RateSearch, Schedule,
    Setting, TurnChoice, Workload,
};
use serde::Serialize;

use super::classes::ClassCell;
pub use super::duel::profile::{Profile, Steadiness};
use super::explain::{Amplification, Explanation};
pub use super::seconds::stack_differences::{DifferenceFrame, FlameDifference};
pub use super::seconds::stacks::{Flame, Frame};
pub use super::seconds::timeline::{ApartPurpose, Pause, Ran, Series, Stretch, Timeline, WarmUp};
pub use super::seconds::tracks::{Track, TrackQuantity};
pub use super::seconds::watched::Watched;
use super::workloads::captured::StatementLevel;
use super::workloads::order_entry::OrderEntry;
pub use answers::{
    AnswerDifference, AnswersSummary, ClassAnswers, ContenderAnswer, DifferenceKind,
    RefusedSettings,
};
pub use attribution::{Attribution, FactorEffect, Interaction, InteractionTerm};
pub use champions::{ChampionChoice, VariantThroughput};
pub use continuity::{Continuity, ContinuityStage, Contradiction, InTurns};
pub(crate) use figure::supports;
pub use figure::{Figure, How};
pub use over_levels::{
    Bounds, ContenderCrossings, ContenderObjective, ContenderScaling, CrossingPoint, Crossings,
    LevelObjective, ObjectiveState, RateBracket, Scaling,
};
pub use quantity::{Change, PairComparison, Quantity, QuantityComparison};
pub use statements::{PlanForm, StatementPlan, StatementPlans};
pub use steady::{CellCourse, SteadyState, Transient};
pub use suite::{GroupComparison, Spread, SuiteGroup, SuiteSummary, VerdictCounts};

/// Version of [`Summary`] as JSON. Raised when a field changes its meaning or goes away; added
/// fields do not raise it.
pub const SCHEMA_VERSION: u32 = 5;

/// A record in numbers: everything that its report shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The judge: the version of dbduel, and after a plus sign a digest of the sources that judge and report.
    pub judged_by: String,
    /// Version of dbduel that made the plan.
    pub planned_by: String,
    /// When the plan was made, RFC 3339, UTC.
    pub created: String,
    /// Question of the experiment, in its author's words.
    pub question: String,
    /// Root of every random stream of the run.
    pub seed: u64,
    /// Name of the baseline.
    pub baseline: String,
    /// Scope of the verdicts.
    pub scope: Scope,
    /// How a duel is decided.
    pub rule: DecisionRule,
    /// How time was divided.
    pub schedule: Schedule,
    /// How the load process was run.
    pub load: LoadProcess,
    /// The machines that the load came from; absent when it came from the servers' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<LoadHosts>,
    /// The workload of the clients.
    pub workload: Workload,
    /// Figures that only the order-entry workload has; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_entry: Option<OrderEntry>,
    /// Transaction classes, one entry per load level and contender; empty for a workload of one class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassCell>,
    /// Classes of single captured statements, one entry per load level; empty for other workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statement_classes: Vec<StatementLevel>,
    /// Answers of the contenders to captured statements; absent where none were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswersSummary>,
    /// The contenders in the order of the experiment; lists per contender keep this order.
    pub contenders: Vec<ContenderFacts>,
    /// The machine.
    pub host: Host,
    /// The lab's resolution on it, when that was known before the run.
    #[serde(default)]
    pub self_test: Option<SelfTest>,
    /// Course and end of the run.
    pub run: Run,
    /// One duel per load level; in a suite, per workload.
    pub duels: Vec<Duel>,
    /// Which variant of a contender each duel is about; empty where each contender is set in one way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub champions: Vec<ChampionChoice>,
    /// Results of a suite as a whole; absent when there is one workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<SuiteSummary>,
    /// Throughput over clients, one entry per contender; empty below four closed load levels.
    #[serde(default)]
    pub scaling: Vec<ContenderScaling>,
    /// Where the curves of contender and baseline cross; empty below two closed load levels.
    #[serde(default)]
    pub crossings: Vec<ContenderCrossings>,
    /// The latency objective.
    #[serde(default)]
    pub objective: Option<Objective>,
    /// How the highest rate that meets it was searched for; absent when the rates were fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearch>,
    /// Which load levels meet it, per contender; empty when there is none.
    #[serde(default)]
    pub objectives: Vec<ContenderObjective>,
    /// Every two identical contenders (one server program set alike), by name: a difference between them is chance or
    /// a lab error.
    #[serde(default)]
    pub identical: Vec<[String; 2]>,
    /// Effective settings that are not the same on all contenders.
    pub settings: Vec<SettingDifference>,
    /// Throughput over time and who ran when, thinned to a bounded size.
    pub timeline: Timeline,
    /// Resources and times that moved with each difference, ranked; evidence, not causes.
    #[serde(default)]
    pub explanations: Vec<Explanation>,
    /// Write and space amplification, one entry per contender.
    #[serde(default)]
    pub storage: Vec<Amplification>,
    /// Sampled stacks of each server's processor time; empty when they were not asked for.
    #[serde(default)]
    pub flames: Vec<Flame>,
    /// The stacks of each contender against those of the baseline, per load level; empty when they were not asked for.
    #[serde(default)]
    pub flame_differences: Vec<FlameDifference>,
    /// Distributions of latency and throughput, for charts.
    #[serde(default)]
    pub profiles: Vec<Profile>,
    /// Cost of the observation; absent when nothing was observed.
    #[serde(default)]
    pub watched: Option<Watched>,
    /// Questions that this run cannot answer.
    pub not_measured: Vec<String>,
    /// The audit: whether the contest was fair; absent in summaries of judges that did not audit.
    #[serde(default)]
    pub audit: Option<Audit>,
    /// Disclosure checklist: facts that a reader needs, and whether the record has them.
    #[serde(default)]
    pub disclosure: Vec<Item>,
    /// Digest of the record's manifest, which distinguishes published reports; absent when no run on the record has
    /// ended.
    #[serde(default)]
    pub record_digest: Option<String>,
}

/// Scope of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The server processes that ran, from their start to their end. Another start may differ.
    TheseInstances,
    /// The servers, whichever start of them: several were measured.
    TheseServers,
}

/// One contender as it was asked for and as it was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContenderFacts {
    /// Unique name.
    pub name: String,
    /// Where the server comes from, as the experiment says it.
    pub server: String,
    /// Name of the agent on whose machine the server ran; absent for the machine of the contest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Settings asked for.
    pub settings: Vec<Setting>,
    /// The server as found; absent when the record has no `build.json`.
    pub build: Option<Build>,
    /// Size on disk before and after, when recorded.
    pub size: Option<Size>,
    /// Workload parameters that were set for it alone.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub tables: Parameters,
    /// Load time of its tables, when recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadTime>,
    /// Seconds of measured load in complete blocks, all levels together.
    pub active_s: f64,
}

/// Course and end of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// First entry of the journal, milliseconds since 1970-01-01 UTC.
    pub started_ms: Option<u64>,
    /// Last entry of the journal.
    pub ended_ms: Option<u64>,
    /// Why the last start ended; absent when the journal does not say.
    pub ended: Option<EndReason>,
    /// Number of starts of all servers.
    pub epochs: u32,
    /// Slices whose rows are in the record.
    pub slices_finished: u32,
    /// Slices that the journal says brought no result.
    pub slices_lost: u32,
    /// Blocks with all their slices, from one epoch.
    pub blocks_complete: u32,
    /// Blocks that were begun and do not count.
    pub blocks_incomplete: u32,
}

/// The contest at one load level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Duel {
    /// Index into the plan's levels.
    pub level: usize,
    /// Label of the level.
    pub label: String,
    /// Clients and arrival.
    pub load: LoadLevel,
    /// Length of the turns and the data of its choice; absent where the experiment sets the length of slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnChoice>,
    /// Effects of frequent switches on each contender; absent where that was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuity: Option<Continuity>,
    /// Blocks that count.
    pub blocks_complete: u32,
    /// Blocks that were begun and do not count.
    pub blocks_incomplete: u32,
    /// One entry per contender, the baseline too.
    pub contenders: Vec<Measures>,
    /// One entry per contender other than the baseline; of a designed contest the one whose difference is divided.
    pub comparisons: Vec<Comparison>,
    /// Every two contenders, when there are more than two; in a suite each against the baseline and the one before it; none of a
    /// designed contest.
    #[serde(default)]
    pub pairs: Vec<PairComparison>,
    /// Contribution of each factor; absent unless the contest is designed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// How contenders run each class of the workload's statements; empty where plans were not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementPlans>,
}

impl Duel {
    /// Blocks that the error probability is spent over.
    #[must_use]
    pub fn blocks_max(&self, rule: &DecisionRule) -> u32 {
        let turns = self.turns.as_ref();
        turns.map_or(rule.blocks_max, |turns| turns.blocks_max)
    }
}

impl Duel {
    /// The verdict on a contender against another one and its ratio, whichever of the two the duel lists as compared.
    #[must_use]
    pub fn between(&self, contender: &str, against: &str) -> Option<(Verdict, Figure)> {
        let baseline = self.comparisons.iter().map(|one| &one.contender);
        let baseline = self
            .contenders
            .iter()
            .find(|one| !baseline.clone().any(|name| *name == one.contender));
        let baseline = baseline.map(|one| one.contender.as_str());
        let listed = |contender: &str, against: &str| {
            let mut verdicts = self.comparisons.iter();
            let mut pairs = self.pairs.iter();
            match baseline == Some(against) {
                true => verdicts
                    .find(|one| one.contender == contender)
                    .map(|one| (one.verdict, one.ratio.clone())),
                false => pairs
                    .find(|one| one.contender == contender && one.against == against)
                    .map(|one| (one.verdict, one.ratio.clone())),
            }
        };
        listed(contender, against).or_else(|| {
            let (verdict, ratio) = listed(against, contender)?;
            Some((verdict.reversed(), ratio.inverse()))
        })
    }
}

/// Figures of one contender at one level, over complete blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measures {
    /// Name of the contender.
    pub contender: String,
    /// Slices that count.
    pub slices: u32,
    /// Their measured time, seconds.
    pub active_s: f64,
    /// Transactions by outcome.
    pub outcomes: Outcomes,
    /// Committed transactions per second.
    pub throughput_per_s: Figure,
    /// Mean latency, microseconds.
    pub latency_us_mean: Figure,
    /// Median latency.
    pub latency_us_p50: Figure,
    /// 95 % quantile.
    pub latency_us_p95: Figure,
    /// 99 % quantile.
    pub latency_us_p99: Figure,
    /// 99.9 % quantile.
    pub latency_us_p999: Figure,
    /// Largest latency.
    pub latency_us_max: Figure,
    /// Processor time of the load process per committed transaction, microseconds.
    pub client_cpu_us_per_transaction: Figure,
    /// Processor time of the server per committed transaction, microseconds.
    pub server_cpu_us_per_transaction: Figure,
    /// Largest resident memory of the server that was read in its slices, bytes.
    pub server_memory_bytes_max: Figure,
    /// The same of the load process, which is one for all contenders unless the database runs in it.
    pub client_memory_bytes_max: Figure,
    /// Share of the clients' time in transactions that outlasted the planned lengths of turns, after these; absent in records that
    /// left such transactions out.
    #[serde(default)]
    pub drained_share: Option<f64>,
    /// Stretches in which next to nothing was committed.
    pub stalls: Option<Stalls>,
    /// Whether throughput was steady over the course of the slices; absent without slices, and in summaries of judges
    /// that did not check.
    #[serde(default)]
    pub course: Option<CellCourse>,
}

/// Transactions by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcomes {
    /// Fell due.
    pub due: u64,
    /// Committed.
    pub ok: u64,
    /// Given up.
    pub failed: u64,
    /// Never sent.
    pub skipped: u64,
    /// Still running when their slice ended.
    pub unfinished: u64,
    /// Additional attempts.
    pub retries: u64,
}

impl Summary {
    /// Comparisons of throughput at each load level, among which its error probability is divided.
    #[must_use]
    pub fn comparisons(&self) -> usize {
        let duels = self.duels.first();
        duels.map_or(1, |duel| duel.comparisons.len()).max(1)
    }

    /// True when a contender is the baseline under another name.
    #[must_use]
    pub fn is_identical_to_baseline(&self, contender: &str) -> bool {
        self.identical.iter().any(|[one, other]| {
            (*one == self.baseline && other == contender)
                || (*other == self.baseline && one == contender)
        })
    }
}

impl Outcomes {
    /// Share of the finished transactions that were given up; 0 when none finished.
    #[must_use]
    pub fn failed_share(&self) -> f64 {
        let finished = self.ok + self.failed;
        if finished == 0 {
            0.0
        } else {
            self.failed as f64 / finished as f64
        }
    }
}

/// Stretches in which less than half of the slice's median was committed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stalls {
    /// Number of stalls.
    pub count: u64,
    /// Work lost in them, in seconds at the median rate.
    pub lost_s: f64,
    /// Ticks that were searched.
    pub active_ticks: u64,
    /// Stalls rarer than one in this time may have been missed (95 %), seconds.
    pub unseen_if_rarer_than_s: f64,
}

/// Which part of the error probability paid for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PaidBy {
    /// The randomisation test within the planned number of blocks.
    Budget,
    /// The reserve for blocks after the planned number.
    Reserve,
}

/// Stalls of a contender that were too few for a verdict to rest on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FewStalls {
    /// Name of the contender whose stalls cost more.
    pub contender: String,
    /// Number of stalls, each as long as the longest one, that cost the same.
    pub stalls: f64,
    /// Share of its measured time that clients waited in them after the planned ends of turns.
    pub share: f64,
}

/// One contender against the baseline at one level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Name of the contender.
    pub contender: String,
    /// Verdict on throughput.
    pub verdict: Verdict,
    /// Why the verdict is void, or why it is undecided when more blocks would not help.
    pub because: Option<String>,
    /// True where the blocks gave a verdict that something else in the record does not support; `because` says what.
    pub is_withheld: bool,
    /// Throughput, contender ÷ baseline: all committed transactions per time, compared block by block.
    pub ratio: Figure,
    /// True when the whole interval lies within the horizon. With `faster`: faster, by less than it.
    pub is_within_horizon: bool,
    /// Probability that anything said in this comparison is wrong.
    pub alpha: f64,
    /// Blocks after which the verdict first stood.
    pub decided_at_block: Option<usize>,
    /// Which part of the error probability paid for it.
    pub paid_by: Option<PaidBy>,
    /// Standard deviation of one block's log ratio.
    pub block_sd: Option<f64>,
    /// Relative difference that the planned number of blocks would find four times out of five; `None` where so few could
    /// decide nothing.
    pub detectable_difference: Option<f64>,
    /// Ratio by the Hodges–Lehmann estimator, which a few extreme blocks cannot move.
    pub ratio_hodges_lehmann: Option<f64>,
    /// Geometric mean of the ratios of the blocks.
    pub ratio_mean_of_blocks: Option<f64>,
    /// Stalls that were too few to estimate their cost in the long run, for which the interval of `ratio` was
    /// widened; absent where there were enough, or none.
    #[serde(default)]
    pub few_stalls: Option<FewStalls>,
    /// Answer of long turns, where the continuity check contradicts the verdict; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<Contradiction>,
    /// Standard deviation of the log ratio between starts of the same servers, when several were measured.
    #[serde(default)]
    pub restart_sd: Option<f64>,
    /// Conditions that would overturn the verdict or are needed for one, as sentences.
    pub overturned_by: Vec<String>,
    /// Latency and cost, contender ÷ baseline.
    #[serde(default)]
    pub quantities: Vec<QuantityComparison>,
    /// Throughput ratio of every counted block, in the order of the plan.
    pub blocks: Vec<BlockRatio>,
}

impl Comparison {
    /// Takes back a verdict that the blocks gave and that something else in the record does not support.
    pub(crate) fn withhold(&mut self, why: String) {
        self.is_withheld = true;
        self.verdict = Verdict::Undecided;
        self.because = Some(why);
        (self.decided_at_block, self.paid_by) = (None, None);
    }

    /// Throughput of all blocks together, contender and baseline, transactions per second: `ratio` is the first divided by
    /// the second, or the end of its interval next to that.
    #[must_use]
    pub fn totals_per_s(&self) -> [f64; 2] {
        let sum = |of: fn(&BlockRatio) -> f64| self.blocks.iter().map(of).sum::<f64>();
        [
            sum(|block| block.transactions as f64) / sum(|block| block.seconds),
            sum(|block| block.baseline_transactions as f64) / sum(|block| block.baseline_seconds),
        ]
    }

    /// The log ratio of every counted block.
    #[must_use]
    pub fn log_ratios(&self) -> Vec<f64> {
        self.blocks.iter().map(|block| block.ratio.ln()).collect()
    }
}

/// The ratio of one block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockRatio {
    /// `Block::id` of the plan.
    pub block: u32,
    /// Throughput, contender ÷ baseline.
    pub ratio: f64,
    /// Transactions that the contender committed.
    pub transactions: u64,
    /// Time in which it committed them, seconds.
    pub seconds: f64,
    /// Transactions that the baseline committed.
    pub baseline_transactions: u64,
    /// Time in which it committed them, seconds.
    pub baseline_seconds: f64,
}

/// An effective setting that is not the same everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingDifference {
    /// Name of the server variable.
    pub name: String,
    /// True when the experiment set it for some contender.
    pub is_asked_for: bool,
    /// Value per contender; absent when the server has no such variable.
    pub values: Vec<Option<String>>,
}
