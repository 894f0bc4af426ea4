//! A bisection: the types of its JSON.
//!
//! A number never stands without its interval or the reason why it has none.

use dbduel_record::bisect::{Revision, RevisionSource, StepRole};
use serde::Serialize;

use crate::summary::Figure;

/// A bisection in numbers: everything that its report shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectSummary {
    /// Version of the summary as JSON.
    pub schema_version: u32,
    /// The judge: the version of dbduel, and after a plus sign a digest of the sources that judge and report.
    pub judged_by: String,
    /// Version of dbduel that made the plan.
    pub planned_by: String,
    /// When the plan was made, RFC 3339, UTC.
    pub created: String,
    /// Question of the experiment.
    pub question: String,
    /// The workload of the suite whose throughput is compared; absent without a suite.
    pub cell: Option<String>,
    /// Probability that a found change is the right one, if there is exactly one.
    pub confidence: f64,
    /// Relative difference below which two revisions count as equal.
    pub horizon: f64,
    /// True when no further step is needed.
    pub is_over: bool,
    /// Origin of the revisions.
    pub source: RevisionSource,
    /// The good one first, the bad one last.
    pub revisions: Vec<Revision>,
    /// In running order.
    pub steps: Vec<SummarisedStep>,
    /// The whole series first, then what lies before and after found changes.
    pub parts: Vec<SearchedPart>,
}

/// A contest on the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummarisedStep {
    /// Name of its directory.
    pub name: String,
    /// Its question.
    pub role: StepRole,
    /// Indices of the revisions of its contenders.
    pub revisions: Vec<usize>,
    /// What it found; absent until it is over.
    pub answer: Option<StepAnswer>,
    /// Why it was skipped or is void.
    pub because: Option<String>,
    /// Throughput of the tested revision ÷ that of the good one; of a change, after ÷ before.
    pub ratio: Figure,
    /// Throughput of the candidate ÷ that of the bad revision; absent in a contest of two.
    pub ratio_to_bad: Option<Figure>,
    /// The bad revision against the good one in this contest; absent without blocks of both.
    pub ends: Option<EndsInContest>,
    /// Blocks that count.
    pub blocks: u32,
    /// Load, seconds: warm-ups, guards and slices.
    pub load_s: f64,
    /// From its first entry in the journal to the last, seconds.
    pub seconds: f64,
}

/// Throughput of the bad revision ÷ that of the good one in one contest, with new starts of both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndsInContest {
    /// Natural logarithm of it, mean of the blocks; with epochs, of the means of these.
    pub log_ratio: f64,
    /// Standard error of that mean by the scatter of the blocks, with epochs by that of these.
    pub standard_error: f64,
}

impl EndsInContest {
    /// From the logarithms of the ratios of two or more blocks or epochs.
    pub(super) fn of(log_ratios: impl Iterator<Item = f64>) -> Option<Self> {
        let all: Vec<f64> = log_ratios.filter(|one| one.is_finite()).collect();
        let count = all.len() as f64;
        let log_ratio = all.iter().sum::<f64>() / count;
        let squares = all.iter().map(|one| (one - log_ratio).powi(2)).sum::<f64>();
        (all.len() > 1).then(|| Self {
            log_ratio,
            standard_error: (squares / (count - 1.0) / count).sqrt(),
        })
    }
}

/// What a step found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StepAnswer {
    /// Two revisions differ by more than the horizon.
    Differ,
    /// They differ by less than the horizon.
    Same,
    /// The budget ended before two revisions were decided.
    Undecided,
    /// No verdict may be based on the contest of two revisions.
    Void,
    /// The candidate differs from the bad revision and is nearer to the good one.
    LikeGood,
    /// The candidate differs from the good revision and is nearer to the bad one.
    LikeBad,
    /// The candidate differs from both and is nearer to the good one: there is a second change, and the larger one comes
    /// after it.
    NeitherNearerGood,
    /// The candidate differs from both and is nearer to the bad one.
    NeitherNearerBad,
    /// The contest of the candidate ended without an answer.
    Unsure,
    /// The candidate cannot be tested.
    Skipped,
}

/// A part of the series that was searched, or was to be.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchedPart {
    /// Its first revision.
    pub good: usize,
    /// Its last revision.
    pub bad: usize,
    /// Whether its ends differ; absent until that is known.
    pub ends: Option<StepAnswer>,
    /// Indices of its steps.
    pub steps: Vec<usize>,
    /// The found change, or the most probable place so far; absent before the first answer and where there is no search.
    pub place: Option<SearchedPlace>,
    /// Of each pair of neighbours in the part, the probability that the change lies between them; empty where the ends are not
    /// known to differ.
    pub probabilities: Vec<f64>,
    /// What restarts of the servers do to the ratio of its ends; absent before that is known.
    pub restarts: Option<PartRestarts>,
    /// Revisions in it that could not be built or started.
    pub skipped: Vec<usize>,
    /// Revisions in it whose contests stayed without an answer, and which are no longer asked.
    pub unanswered: Vec<usize>,
}

/// What restarts of the servers do to the ratio of a part's ends, from contests that each started them again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartRestarts {
    /// Throughput of the last revision ÷ that of the first one, mean of the contests.
    pub ratio: f64,
    /// Standard deviation of the logarithm of that ratio between contests, beyond the error within each.
    pub deviation: f64,
    /// Contests that the deviation is from: those of the part, or of the whole series where the part has too few.
    pub contests: usize,
    /// Probability that restarts make an answer wrong; the probabilities of places include it.
    pub error: f64,
    /// True where it is too large for a search, which has therefore ended without a place.
    pub is_too_large: bool,
}

/// The place of a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchedPlace {
    /// The last revision that is like the good one.
    pub after: usize,
    /// The first revision that is like the bad one.
    pub up_to: usize,
    /// Probability that the change is there, if there is exactly one in the part.
    pub probability: f64,
    /// True when the probability is as large as the bisection promises.
    pub is_found: bool,
    /// Throughput after ÷ before the change, from a contest of the two revisions.
    pub ratio: Figure,
    /// Index of the step with that contest.
    pub measured_by: Option<usize>,
}
