//! Was it fair? Evidence about servers in, canonical facts and findings out.
//!
//! Each product's settings, counters and build facts are translated to facts that mean the same on
//! every server ([`table`], written in `data`), compared in classes ([`classes`]), and checked by
//! the [rules about servers](RULES). It has no clock, and opens no files and no connections.

mod case;
pub mod classes;
pub mod codes;
mod compare;
mod defaults;
pub mod disclosure;
pub mod durability_summary;
pub mod evidence;
mod expression;
pub mod finding;
mod fix;
mod forms;
mod options;
pub mod postgresql;
mod predict;
mod reading;
mod remedy;
mod rules;
mod schema;
mod server;
mod session;
mod sqlite;
mod subject;
pub mod table;
mod takes;
#[cfg(test)]
mod tests;
mod value;
mod value_table;

use std::collections::BTreeSet;

use dbduel_record::event::Severity;
use dbduel_record::facts::Proof;
use serde::{Deserialize, Serialize};

use crate::finding::FindingKind;

pub use case::{Case, Contest, Stage, Waiver};
pub use compare::{Comparison, Outcome, declaration};
pub use dbduel_text::Version;
pub use defaults::{Defaults, Machine, expected, version_variable};
pub use evidence::{
    FileSetting, FileSettingFate, MissingInclude, RefusedOption, ServerEvidence, Texts,
};
pub use finding::Finding;
pub use fix::{Fix, fix};
pub use forms::version_among;
pub use options::{OptionFate, option_fate, recorded_names, split_key_cache};
#[cfg(test)]
pub use predict::predict;
pub use predict::{Taken, has_option, set_option, variable_of};
pub use reading::Read;
pub use rules::servers::taken::{NotTaken, not_taken};
pub use rules::servers::work::TELLING_RATIO;
pub use rules::{REFUSED_OPTION_FILE, RULES, Rule};
pub use server::Product;
pub use session::SetByClients;
pub use value::{option_value, variable_name};

/// Which server a contender is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// Name of the contender.
    pub name: String,
    /// Its product.
    pub product: Product,
    /// Its version as the server writes it.
    pub version: String,
    /// Source of the evidence.
    pub source: String,
    /// Durability of a committed transaction, as a sentence.
    pub promise: String,
    /// The settings of its option file and the effect of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_settings: Vec<FileSetting>,
    /// Result of the power cuts before the contest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// The audit in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Notes only.
    Fair,
    /// Doubts that favour no side, such as missing evidence.
    Doubtful,
    /// A side gains, or may gain, by something other than the subject of the contest.
    Unfair,
    /// The sides do not make the same promises.
    NotComparable,
}

impl Grade {
    /// The grade of some findings.
    #[must_use]
    pub fn of(findings: &[Finding]) -> Self {
        let grade = |finding: &Finding| match (finding.severity, finding.kind) {
            (Severity::Note, _) => Grade::Fair,
            (Severity::Void, _) => Grade::NotComparable,
            (
                Severity::Doubt,
                FindingKind::Advantage | FindingKind::Misconfigured | FindingKind::ClientSide,
            ) => Grade::Unfair,
            (Severity::Doubt, _) => Grade::Doubtful,
        };
        findings.iter().map(grade).max().unwrap_or(Grade::Fair)
    }

    /// As reports print it.
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

/// Result of an audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Audit {
    /// The contenders, the baseline among them.
    pub contenders: Vec<Identity>,
    /// Name of the baseline.
    pub baseline: String,
    /// The kind of comparison that the contest claims to be.
    pub contest: Contest,
    /// Declared subject: classes, facts, rules or variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
    /// Grade of the whole audit.
    pub grade: Grade,
    /// Heaviest first.
    pub findings: Vec<Finding>,
    /// Comparison of every fact of every contender with the baseline's.
    pub comparisons: Vec<Comparison>,
    /// Waivers that no finding needed.
    pub unused_waivers: Vec<Waiver>,
}

impl Audit {
    /// True unless the contenders are not comparable; with `strict`, only if the grade is fair. A waived finding
    /// counts as a note, or as a doubt where durability differs.
    #[must_use]
    pub fn passes(&self, strict: bool) -> bool {
        if strict {
            self.grade == Grade::Fair
        } else {
            self.grade != Grade::NotComparable
        }
    }

    /// How many findings there are of each severity from `least` on, heaviest first: `2 doubts`.
    #[must_use]
    pub fn counted(&self, least: Severity) -> Vec<String> {
        let words = [
            (Severity::Void, "void"),
            (Severity::Doubt, "doubt"),
            (Severity::Note, "note"),
        ];
        let count = |severity| {
            let findings = self.findings.iter();
            findings
                .filter(|finding| finding.severity == severity)
                .count()
        };
        words
            .into_iter()
            .filter(|(severity, _)| *severity >= least)
            .filter_map(|(severity, word)| match count(severity) {
                0 => None,
                1 => Some(format!("1 {word}")),
                count => Some(format!("{count} {word}s")),
            })
            .collect()
    }

    /// How many facts were compared, and with what outcome, in a sentence.
    #[must_use]
    pub fn compared(&self) -> String {
        let count = |outcome: Outcome| {
            let comparisons = self.comparisons.iter();
            comparisons.filter(|one| one.outcome == outcome).count()
        };
        let equal = match count(Outcome::Equal) {
            1 => "1 fact is equal".to_owned(),
            equal => format!("{equal} facts are equal"),
        };
        let others = [
            (Outcome::Equivalent, "is equivalent", "are equivalent"),
            (Outcome::Differs, "differs", "differ"),
            (Outcome::OneSided, "exists on one side", "exist on one side"),
            (Outcome::NotSeen, "has no evidence", "have no evidence"),
            (
                Outcome::Unreadable,
                "could not be read",
                "could not be read",
            ),
        ];
        let others =
            others
                .into_iter()
                .filter_map(|(outcome, one, several)| match count(outcome) {
                    0 => None,
                    1 => Some(format!("1 {one}")),
                    count => Some(format!("{count} {several}")),
                });
        let parts: Vec<String> = std::iter::once(equal).chain(others).collect();
        format!("{}.", parts.join(", "))
    }

    /// How many open differences favour the contender.
    #[must_use]
    pub fn favours(&self, contender: &str) -> usize {
        let open = self
            .findings
            .iter()
            .filter(|finding| finding.severity > Severity::Note);
        open.filter(|finding| finding.favours.as_deref() == Some(contender))
            .count()
    }
}

/// True when a variable names an instance, a place or a moment, and so differs between any two servers.
#[must_use]
pub fn is_of_the_instance(variable: &str) -> bool {
    table::table().is_of_the_instance(variable)
}

/// Audits a case. Never fails: what is missing is a finding.
#[must_use]
pub fn audit(case: &Case) -> Audit {
    let mut comparisons = Vec::new();
    let mut findings = Vec::new();
    for other in case.others().filter(|&other| case.is_comparable(other)) {
        let (compared, differences) = compare::compare(case, other);
        findings.extend(differences);
        comparisons.extend(compared);
    }
    findings.extend(rules::of_servers(case));
    let used = waive(&mut findings, &case.waivers);
    // Stable: findings of one weight stay in the order of their classes.
    findings.sort_by_key(Finding::rank);
    Audit {
        contenders: (0..case.contenders.len())
            .map(|index| identity(case, index))
            .collect(),
        baseline: case
            .contenders
            .get(case.baseline)
            .map(|baseline| baseline.name.clone())
            .unwrap_or_default(),
        contest: case.contest,
        about: case.about.clone(),
        grade: Grade::of(&findings),
        findings,
        comparisons,
        unused_waivers: case
            .waivers
            .iter()
            .enumerate()
            .filter(|(index, _)| !used.contains(index))
            .map(|(_, one)| one.clone())
            .collect(),
    }
}

fn identity(case: &Case, index: usize) -> Identity {
    let contender = &case.contenders[index];
    Identity {
        name: contender.name.clone(),
        product: contender.product,
        version: contender.version_text.clone(),
        source: contender.source.clone(),
        promise: durability_summary::promise(case, index),
        file_settings: contender.file_settings.clone(),
        proof: contender.proof.clone(),
    }
}

/// Applies waivers and says which were used. A waiver takes a finding out of the grade, except where
/// durability differs: then it remains a doubt, because no reason makes a lost commit comparable.
fn waive(findings: &mut [Finding], waivers: &[Waiver]) -> BTreeSet<usize> {
    let mut used = BTreeSet::new();
    for finding in findings
        .iter_mut()
        .filter(|finding| finding.severity > Severity::Note)
    {
        let is_meant = |waiver: &Waiver| waiver.is_of(&finding.rule, &finding.class);
        let Some(index) = waivers.iter().position(is_meant) else {
            continue;
        };
        used.insert(index);
        let is_durability = finding.severity == Severity::Void && finding.class.starts_with('D');
        finding.severity = if is_durability {
            Severity::Doubt
        } else {
            Severity::Note
        };
        finding.waived = Some(waivers[index].reason.clone());
    }
    used
}
