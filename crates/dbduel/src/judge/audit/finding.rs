//! What an audit says: findings with evidence, what to set, and a grade over all.

use dbduel_record::event::{Finding, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::Read;
use super::rules::REFUSED_OPTION_FILE;

/// What kind of statement a finding makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// They differ and one side gains by it, or nobody knows which.
    Advantage,
    /// Durability or semantics differ.
    NotComparable,
    /// They differ, and the contest is about that.
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
    /// It is the client's side that differs.
    ClientSide,
    /// Somebody's results do not say what is needed to judge them.
    Undisclosed,
}

/// One side of a finding's evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Name of the contender.
    pub contender: String,
    /// The canonical value, for people.
    pub value: String,
    /// What the server shows.
    pub from: Vec<Read>,
}

impl Side {
    /// What the server shows, each as `form` writes it; what is beyond `most` is only counted.
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

/// A setting to add to the experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemedySetting {
    /// Name of the contender.
    pub contender: String,
    /// Name of the setting.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A statement of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditFinding {
    /// Fact or rule that found it: `flush.threads`, `R3`.
    pub rule: String,
    /// Its class; empty for the contest as a whole.
    pub class: String,
    /// What kind of statement it is.
    pub kind: Kind,
    /// How much it weighs.
    pub severity: Severity,
    /// Contenders that it is about; empty means the whole contest.
    pub about: Vec<String>,
    /// Contender that gains by it, where that is known.
    pub favours: Option<String>,
    /// One sentence with the numbers in it.
    pub claim: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub remedy: String,
    /// What it rests on.
    pub evidence: Vec<Side>,
    /// Settings that would make it go away.
    pub remedy_settings: Vec<RemedySetting>,
    /// Why it was accepted, when it was.
    pub waived: Option<String>,
}

impl AuditFinding {
    /// True when nothing else that is said of its contender is certain: the server did not run with these settings.
    #[must_use]
    pub fn makes_others_moot(&self) -> bool {
        self.rule == REFUSED_OPTION_FILE && self.severity == Severity::Void
    }

    /// The finding as a record and a report keep it.
    #[must_use]
    pub fn to_finding(&self) -> Finding {
        let waived = self
            .waived
            .as_ref()
            .map(|reason| format!(" Waived: {}.", reason.trim_end_matches('.')))
            .unwrap_or_default();
        let class = if self.class.is_empty() {
            String::new()
        } else {
            format!("{}.", self.class)
        };
        Finding {
            rule: format!("audit.{class}{}", self.rule),
            severity: self.severity,
            about: self.about.clone(),
            claim: format!("{}{waived}", self.claim),
            remedy: self.remedy.clone(),
        }
    }
}

/// The audit in one word.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Nothing above a note.
    Fair,
    /// Something cannot be told.
    Doubtful,
    /// A side gains, or may gain, by something that is not the question.
    Unfair,
    /// The sides do not promise the same.
    NotComparable,
}

impl Grade {
    /// The grade of some findings.
    #[must_use]
    pub fn of(findings: &[AuditFinding]) -> Self {
        let grade = |finding: &AuditFinding| match (finding.severity, finding.kind) {
            (Severity::Note, _) => Grade::Fair,
            (Severity::Void, _) => Grade::NotComparable,
            (Severity::Doubt, Kind::Advantage | Kind::Misconfigured | Kind::ClientSide) => {
                Grade::Unfair
            }
            (Severity::Doubt, _) => Grade::Doubtful,
        };
        findings.iter().map(grade).max().unwrap_or(Grade::Fair)
    }

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Grade::Fair => "fair",
            Grade::Doubtful => "doubtful",
            Grade::Unfair => "unfair",
            Grade::NotComparable => "not comparable",
        }
    }
}
