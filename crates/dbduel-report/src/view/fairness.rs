//! Whether the contest was fair, as text: grade, reasons and waivers.

use dbduel_audit::Finding;
use dbduel_audit::{Audit, Grade, Outcome};
use dbduel_judge::Summary;
use dbduel_record::event::Severity;
use serde::Serialize;

use super::{Entry, entry};
use crate::words;

/// Values shown per side; all are in the JSON.
const READS_SHOWN: usize = 4;

#[derive(Debug, Clone, Serialize)]
pub struct FairnessView {
    /// `fair`, `doubtful`, `unfair` or `not comparable`.
    pub grade: &'static str,
    /// CSS class of the grade: `fair`, `doubt` or `void`.
    pub tone: &'static str,
    pub sign: &'static str,
    /// Reason for the grade, a clause.
    pub because: String,
    /// Durability of a committed transaction; contenders with the same text share an entry.
    pub promises: Vec<Entry>,
    /// Findings that affect the grade, heaviest first.
    pub doubts: Vec<AuditView>,
    /// Findings that the experiment accepts.
    pub waived: Vec<AuditView>,
    /// Notes of the audit.
    pub notes: Vec<AuditView>,
    /// Facts that differ between a contender and the baseline.
    pub differences: Vec<DifferenceView>,
    /// Number of facts compared, and the outcome.
    pub compared: String,
    /// Waivers that no finding needed.
    pub unused_waivers: Vec<Entry>,
}

#[derive(Debug, Clone, Serialize)]
pub struct AuditView {
    /// `void`, `doubt` or `note`.
    pub severity: &'static str,
    pub sign: &'static str,
    /// Class and rule: `P3 flush.threads`.
    pub rule: String,
    pub claim: String,
    pub why: String,
    pub remedy: String,
    /// Contender that gains by it; empty where that is not known.
    pub favours: String,
    /// Why it was accepted; empty when it was not.
    pub waived: String,
    /// Evidence per contender.
    pub evidence: Vec<Entry>,
}

/// A fact in which a contender differs from the baseline.
#[derive(Debug, Clone, Serialize)]
pub struct DifferenceView {
    /// Class and title.
    pub fact: String,
    pub contender: String,
    pub baseline: String,
    pub value: String,
}

/// The audit of the contest; `None` when the judge did not run it.
pub(super) fn fairness(summary: &Summary) -> Option<FairnessView> {
    let audit = summary.audit.as_ref()?;
    let views = |keep: fn(&Finding) -> bool| {
        let kept = audit.findings.iter().filter(|finding| keep(finding));
        kept.map(finding).collect::<Vec<AuditView>>()
    };
    let (tone, sign) = match audit.grade {
        Grade::Fair => ("fair", "✓"),
        Grade::Doubtful | Grade::Unfair => ("doubt", "!"),
        Grade::NotComparable => ("void", "✕"),
    };
    let unused = audit.unused_waivers.iter();
    Some(FairnessView {
        grade: audit.grade.word(),
        tone,
        sign,
        because: because(audit),
        promises: promises(audit),
        doubts: views(|finding| finding.severity > Severity::Note),
        waived: views(|finding| finding.severity == Severity::Note && finding.waived.is_some()),
        notes: views(|finding| finding.severity == Severity::Note && finding.waived.is_none()),
        differences: differences(audit),
        compared: audit.compared(),
        unused_waivers: unused
            .map(|waiver| entry(&waiver.of, waiver.reason.clone()))
            .collect(),
    })
}

fn promises(audit: &Audit) -> Vec<Entry> {
    let mut said: Vec<(&str, Vec<String>)> = Vec::new();
    for contender in &audit.contenders {
        match said
            .iter_mut()
            .find(|(promise, _)| *promise == contender.promise)
        {
            Some((_, names)) => names.push(contender.name.clone()),
            None => said.push((&contender.promise, vec![contender.name.clone()])),
        }
    }
    let is_one = said.len() == 1 && audit.contenders.len() > 1;
    let entries = said.into_iter().map(|(promise, names)| {
        let of = match is_one {
            true => "all contenders".to_owned(),
            false => words::joined_texts(&names),
        };
        entry(&of, promise)
    });
    entries.collect()
}

/// Grade and reason in one line: `unfair: 3 doubts, 2 of them favour `mariadb`; 1 waived`.
#[must_use]
pub fn line(summary: &Summary) -> Option<String> {
    let audit = summary.audit.as_ref()?;
    Some(format!("{}: {}", audit.grade.word(), because(audit)))
}

fn because(audit: &Audit) -> String {
    let mut parts = audit.counted(Severity::Doubt);
    if parts.is_empty() {
        parts.push("notes only".to_owned());
    }
    for contender in &audit.contenders {
        match audit.favours(&contender.name) {
            0 => {}
            count => parts.push(format!("{count} in favour of `{}`", contender.name)),
        }
    }
    let waived = audit
        .findings
        .iter()
        .filter(|finding| finding.waived.is_some());
    match waived.count() {
        0 => {}
        waived => parts.push(format!("{waived} waived")),
    }
    if !audit.about.is_empty() {
        let names: Vec<String> = audit.about.iter().map(|name| format!("`{name}`")).collect();
        parts.push(format!("declared subject: {}", words::joined_texts(&names)));
    }
    parts.join(", ")
}

fn finding(finding: &Finding) -> AuditView {
    let (severity, sign) = super::severity(finding.severity);
    let shown = finding.evidence.iter().filter(|side| !side.from.is_empty());
    let evidence = shown.map(|side| {
        let reads = side.reads(READS_SHOWN, |read| {
            format!("{} = {}", read.name, read.value)
        });
        entry(&side.contender, reads.join(", "))
    });
    AuditView {
        severity,
        sign,
        rule: format!("{} {}", finding.class, finding.rule)
            .trim()
            .to_owned(),
        claim: finding.claim.clone(),
        why: finding.why.clone(),
        remedy: finding.remedy.clone(),
        favours: finding.favours.clone().unwrap_or_default(),
        waived: finding.waived.clone().unwrap_or_default(),
        evidence: evidence.collect(),
    }
}

fn differences(audit: &Audit) -> Vec<DifferenceView> {
    let differing = audit
        .comparisons
        .iter()
        .filter(|comparison| comparison.outcome == Outcome::Differs);
    differing
        .map(|comparison| DifferenceView {
            fact: format!("{} {}", comparison.class, comparison.title),
            contender: comparison.sides[1].contender.clone(),
            baseline: comparison.sides[0].value.clone(),
            value: comparison.sides[1].value.clone(),
        })
        .collect()
}
