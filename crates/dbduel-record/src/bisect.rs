//! A bisection: which revision of a server changed its throughput, with a record for every contest on the way.
//!
//! ```text
//! DIR/experiment.toml   as given          DIR/bisect.json   revisions, and the steps begun so far
//! DIR/steps/NAME/       an ordinary record of each step, in the order in which they ran
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plan::FormatVersion;
use crate::record_set::{self, SetPlan};
use crate::store::RecordError;

/// The plan of a bisection and its steps so far, in its directory.
pub const BISECT: &str = "bisect.json";
/// The directory that holds the records of the steps.
pub const STEPS: &str = "steps";

/// Name of the contender with the first revision of the searched part.
pub const GOOD: &str = "good";
/// Name of the contender with its last revision.
pub const BAD: &str = "bad";
/// Name of the contender with a revision between them.
pub const CANDIDATE: &str = "candidate";
/// Name of the contender with the revision before a found change.
pub const BEFORE: &str = "before";
/// Name of the contender with the revision of a found change.
pub const AFTER: &str = "after";

/// The revisions of a bisection, and the steps that were begun. What a step found is in its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectPlan {
    /// The format of the record.
    pub format: FormatVersion,
    /// Version of dbduel that wrote the plan; another one does not begin further steps.
    pub dbduel: String,
    /// When the plan was made, RFC 3339, UTC.
    pub created: String,
    /// Absolute path of the experiment file; relative paths in it start at its directory.
    pub experiment: String,
    /// The question of the experiment.
    pub question: String,
    /// Root of every random stream; each step has a seed that follows from it.
    pub seed: u64,
    /// Probability that the found change is the right one, if there is exactly one.
    pub confidence: f64,
    /// Relative difference below which two revisions count as equal.
    pub horizon: f64,
    /// Time for warm-up and slices of a step at most, seconds.
    pub budget_s: f64,
    /// Number of changes to look for at most.
    pub changes_max: u32,
    /// The workload of the experiment's suite whose throughput is compared; absent without a suite.
    #[serde(default)]
    pub cell: Option<String>,
    /// Origin of the revisions.
    pub source: RevisionSource,
    /// The good one first, the bad one last.
    pub revisions: Vec<Revision>,
    /// In running order.
    pub steps: Vec<BisectStep>,
}

/// Origin of the revisions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RevisionSource {
    /// Servers named on the command line.
    Versions,
    /// Commits of a git repository, each built before its first step.
    Repository(Repository),
}

/// A repository and how its commits become servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repository {
    /// Absolute path of the repository; it is only read.
    pub path: String,
    /// Shell command that builds a checked out commit.
    pub build: String,
    /// Name of the server; `{build}` stands for the directory of the build's output.
    pub server: String,
    /// Time limit of a build, seconds.
    pub build_limit_s: f64,
    /// Size of all kept builds at most, bytes.
    pub cache_bytes_max: u64,
    /// True when revisions that may be asked next are built while a contest runs.
    #[serde(default)]
    pub builds_ahead: bool,
    /// Merges among the revisions; their other parents are not searched.
    pub merges: usize,
}

/// One revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revision {
    /// Name in reports: that of the server, or the short hash of the commit.
    pub name: String,
    /// The commit; absent for named servers.
    pub commit: Option<Commit>,
}

/// A commit of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Commit {
    /// Full hash.
    pub hash: String,
    /// Subject line.
    pub subject: String,
    /// Author date, RFC 3339.
    pub author_date: String,
}

/// A contest on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectStep {
    /// Name of its directory.
    pub name: String,
    /// Its question.
    pub role: StepRole,
    /// Indices of the revisions of its contenders, in the order of its plan.
    pub revisions: Vec<usize>,
    /// Time for warm-up and slices, seconds.
    pub budget_s: f64,
    /// Seed of its plan.
    pub seed: u64,
    /// Why it has no contest: a revision cannot be built or started.
    pub skipped: Option<Skipped>,
}

/// Why a step has no contest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// Index of the revision that cannot be tested.
    pub revision: usize,
    /// Why.
    pub why: String,
}

/// The question of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StepRole {
    /// Do the ends of a part differ? Contenders: good, bad.
    Ends,
    /// Which end is a revision like? Contenders: good, bad, candidate.
    Candidate,
    /// How large is a found change, and what explains it? Contenders: before, after.
    Change,
}

impl StepRole {
    /// Names of the contenders.
    #[must_use]
    pub fn contenders(self) -> &'static [&'static str] {
        match self {
            Self::Ends => &[GOOD, BAD],
            Self::Candidate => &[GOOD, BAD, CANDIDATE],
            Self::Change => &[BEFORE, AFTER],
        }
    }

    /// Name of the contender that the others are compared with: of three the candidate, so that its two comparisons are
    /// those of the plan.
    #[must_use]
    pub fn baseline(self) -> &'static str {
        match self {
            Self::Ends => GOOD,
            Self::Candidate => CANDIDATE,
            Self::Change => BEFORE,
        }
    }
}

impl BisectPlan {
    /// The plan in `dir`.
    ///
    /// # Errors
    /// When it cannot be read or parsed, or refers to revisions or directories that do not exist.
    pub fn read(dir: &Path) -> Result<Self, RecordError> {
        record_set::read_plan(dir)
    }

    /// Index of the last revision.
    #[must_use]
    pub fn last(&self) -> usize {
        self.revisions.len().saturating_sub(1)
    }
}

impl SetPlan for BisectPlan {
    const FILE: &'static str = BISECT;

    /// Checks what every user of a plan relies on: two revisions, probabilities, and for every step its own directory
    /// and as many existing revisions, in order, as its role has contenders.
    fn check(&self) -> Result<(), String> {
        if self.revisions.len() < 2 {
            return Err("it has fewer than two revisions".to_owned());
        }
        let is_share = |share: f64| share > 0.0 && share < 1.0;
        if !is_share(self.confidence) || !is_share(self.horizon) {
            return Err("its confidence and its horizon must be between 0 and 1".to_owned());
        }
        record_set::check_names("step", self.steps.iter().map(|step| &step.name))?;
        for step in &self.steps {
            let name = &step.name;
            let is_in_order = match (step.role, step.revisions.as_slice()) {
                (StepRole::Ends | StepRole::Change, &[first, last]) => first < last,
                (StepRole::Candidate, &[good, bad, candidate]) => {
                    good < candidate && candidate < bad
                }
                (StepRole::Ends | StepRole::Candidate | StepRole::Change, _) => false,
            };
            let mut all = step.revisions.iter();
            if !is_in_order || all.any(|&revision| revision >= self.revisions.len()) {
                return Err(format!(
                    "the revisions of step {name:?} do not fit its role"
                ));
            }
        }
        Ok(())
    }
}

/// The directory of a step's record.
#[must_use]
pub fn step_dir(bisection: &Path, step: &BisectStep) -> PathBuf {
    bisection.join(STEPS).join(&step.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> BisectPlan {
        let revision = |name: &str| Revision {
            name: name.to_owned(),
            commit: None,
        };
        BisectPlan {
            format: FormatVersion::CURRENT,
            dbduel: "0.0.0".to_owned(),
            created: "2026-01-01T00:00:00Z".to_owned(),
            experiment: "/lab/x.toml".to_owned(),
            question: "?".to_owned(),
            seed: 1,
            confidence: 0.95,
            horizon: 0.02,
            budget_s: 60.0,
            changes_max: 3,
            cell: None,
            source: RevisionSource::Versions,
            revisions: ["a", "b", "c"].map(revision).to_vec(),
            steps: vec![BisectStep {
                name: "01".to_owned(),
                role: StepRole::Candidate,
                revisions: vec![0, 2, 1],
                budget_s: 60.0,
                seed: 2,
                skipped: None,
            }],
        }
    }

    fn read(plan: &BisectPlan) -> Result<BisectPlan, RecordError> {
        let dir = tempfile::tempdir().unwrap();
        let text = serde_json::to_string_pretty(plan).unwrap();
        std::fs::write(dir.path().join(BISECT), text).unwrap();
        BisectPlan::read(dir.path())
    }

    #[test]
    fn a_plan_that_was_written_is_read_again() {
        assert_eq!(read(&plan()).unwrap(), plan());
    }

    #[test]
    fn a_plan_whose_steps_do_not_fit_is_refused() {
        let mut broken = Vec::new();
        for revisions in [vec![0, 2, 2], vec![0, 3, 1], vec![0, 2], vec![2, 0, 1]] {
            let mut other = plan();
            other.steps[0].revisions = revisions;
            broken.push(other);
        }
        for name in ["..", "", "a/b", ".x"] {
            let mut elsewhere = plan();
            elsewhere.steps[0].name = name.to_owned();
            broken.push(elsewhere);
        }
        let mut twice = plan();
        twice.steps.push(twice.steps[0].clone());
        let mut single = plan();
        single.steps.clear();
        single.revisions.truncate(1);
        let certain = BisectPlan {
            confidence: 1.0,
            ..plan()
        };
        broken.extend([twice, single, certain]);
        for plan in broken {
            let refused = read(&plan);
            assert!(
                matches!(refused, Err(RecordError::Malformed { .. })),
                "{plan:?}: {refused:?}"
            );
        }
    }
}
