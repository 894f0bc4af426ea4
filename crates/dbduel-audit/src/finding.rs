//! A finding: a claim with its evidence, weight and remedy. Rules make them, and so does the comparison of facts.

use dbduel_record::event::{Notice, Severity};
use serde::{Deserialize, Serialize};

use crate::Read;
use crate::codes::check_subject;
use crate::rules::REFUSED_OPTION_FILE;
use crate::table::table;

/// The kind of statement that a finding makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// They differ and one side gains by it, or it is unknown which.
    Advantage,
    /// Durability or semantics differ.
    NotComparable,
    /// They differ, and the contest is about this difference.
    Declared,
    /// They differ by design, and no setting changes it.
    Architecture,
    /// They differ; worth knowing, no more.
    Difference,
    /// A value could not be read on a side.
    Unreadable,
    /// Variables differ that the tables do not know.
    Unknown,
    /// One side alone is set up badly.
    Misconfigured,
    /// All sides are set up badly: no bias, but the result says less.
    Relevance,
    /// The clients differ, not the servers.
    ClientSide,
    /// Published results lack information that is needed to judge them.
    Undisclosed,
}

/// One side of a finding's evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// Name of the contender.
    pub contender: String,
    /// The canonical value, for messages.
    pub value: String,
    /// The values that the server shows.
    pub from: Vec<Read>,
}

impl Side {
    /// Readings, each as `form` writes it; those beyond `most` are only counted.
    pub fn reads(&self, most: usize, form: impl Fn(&Read) -> String) -> Vec<String> {
        at_most(most, self.from.iter().map(form))
    }
}

/// The first `most` of some texts; the others are only counted.
pub fn at_most(most: usize, texts: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = texts.len().saturating_sub(most);
    let mut listed: Vec<String> = texts.take(most).collect();
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    listed
}

/// Names as claims have them: `a`, `b`.
pub fn quoted(names: &[impl AsRef<str>]) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    names.join(", ")
}

/// A setting to add to the experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemedySetting {
    /// Name of the contender.
    pub contender: String,
    /// Name of the setting.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A claim of the judge, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "AuditFinding"))]
pub struct Finding {
    /// Fact or rule that found it: `flush.threads`, `R3`, `load.lag`.
    pub rule: String,
    /// Class of the audit; empty for a finding about the run.
    pub class: String,
    /// The kind of statement.
    pub kind: FindingKind,
    /// How much it weighs.
    pub severity: Severity,
    /// Contenders that it is about; empty means the whole contest.
    pub about: Vec<String>,
    /// Contender that gains by it, where known.
    pub favours: Option<String>,
    /// One sentence with the numbers in it.
    pub claim: String,
    /// Why it matters.
    pub why: String,
    /// Suggested action.
    pub remedy: String,
    /// The evidence for it.
    pub evidence: Vec<Side>,
    /// Settings that would make it go away.
    pub remedy_settings: Vec<RemedySetting>,
    /// The reason of the waiver that accepts it.
    pub waived: Option<String>,
    /// Index into the plan's levels; absent when it is about all of them.
    #[serde(skip)]
    pub level: Option<usize>,
}

impl Finding {
    /// A finding without name, class and reason; the row of its rule adds these.
    #[must_use]
    pub fn new(severity: Severity, about: &[&str], claim: String, remedy: &str) -> Self {
        Notice::new("", severity, about, claim, remedy).into()
    }

    /// The same, of this kind.
    #[must_use]
    pub fn of(self, kind: FindingKind) -> Self {
        Self { kind, ..self }
    }

    /// The same, confined to a load level.
    #[must_use]
    pub fn at(self, level: usize) -> Self {
        let level = Some(level);
        Self { level, ..self }
    }

    /// The same, with its evidence.
    #[must_use]
    pub fn resting_on(self, evidence: impl Into<Vec<Side>>) -> Self {
        let evidence = evidence.into();
        Self { evidence, ..self }
    }

    /// Its order among others: heaviest first; within a weight, one that makes the others moot comes first.
    #[must_use]
    pub fn rank(&self) -> impl Ord + use<> {
        (std::cmp::Reverse(self.severity), !self.makes_others_moot())
    }

    /// True when it makes all other findings about its contender uncertain: the server did not run with these
    /// settings.
    #[must_use]
    pub fn makes_others_moot(&self) -> bool {
        self.rule == REFUSED_OPTION_FILE && self.severity == Severity::Void
    }

    /// Names by which an experiment declares this difference as its subject: the variables that differ between its
    /// sides, or the fact where no variable shows it. Empty for findings that no declaration concerns.
    #[must_use]
    pub fn subject_names(&self) -> Vec<&str> {
        if table().fact(&self.rule).is_none() {
            return Vec::new();
        }
        let [one, two] = self.evidence.as_slice() else {
            return vec![&self.rule];
        };
        let differing = |side: &'_ Side, other: &Side| -> Vec<String> {
            let read = side.from.iter().filter(|read| !other.from.contains(read));
            read.map(|read| read.name.clone()).collect()
        };
        let differing = [differing(one, two), differing(two, one)].concat();
        let read = [one, two].into_iter().flat_map(|side| &side.from);
        let mut names: Vec<&str> = Vec::new();
        for name in read.map(|read| read.name.as_str()) {
            if differing.iter().any(|other| other == name) && !names.contains(&name) {
                names.push(name);
            }
        }
        // Session settings, counters and probes are no variables that a contest can be about.
        if names.is_empty() || names.iter().any(|name| check_subject(name).is_err()) {
            return vec![&self.rule];
        }
        names
    }

    /// Name of an audit finding in journals and lists of findings.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{AUDIT}{}.{}", self.class, self.rule)
    }

    /// A finding of the audit as journals and lists of findings have it.
    #[must_use]
    pub fn listed(&self) -> Self {
        let mut listed = self.clone();
        listed.rule = self.full_name();
        if let Some(reason) = &self.waived {
            let reason = reason.trim_end_matches('.');
            listed.claim.push_str(&format!(" Waived: {reason}."));
        }
        listed
    }

    /// True for a listed finding of the audit.
    #[must_use]
    pub fn is_of_audit(&self) -> bool {
        self.rule.starts_with(AUDIT)
    }
}

/// Prefix of the full names of audit findings.
const AUDIT: &str = "audit.";

impl From<Notice> for Finding {
    fn from(recorded: Notice) -> Self {
        Self {
            rule: recorded.rule,
            class: String::new(),
            kind: FindingKind::Relevance,
            severity: recorded.severity,
            about: recorded.about,
            favours: None,
            claim: recorded.claim,
            why: String::new(),
            remedy: recorded.remedy,
            evidence: Vec::new(),
            remedy_settings: Vec::new(),
            waived: None,
            level: None,
        }
    }
}

impl From<Finding> for Notice {
    fn from(finding: Finding) -> Self {
        Self {
            rule: finding.rule,
            severity: finding.severity,
            about: finding.about,
            claim: finding.claim,
            remedy: finding.remedy,
        }
    }
}
