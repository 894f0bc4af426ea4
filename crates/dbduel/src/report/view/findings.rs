//! Findings as text, which of them are beside the verdicts, and the disclosure checklist.

use dbduel_record::event::Severity;
use serde::Serialize;

use super::{Entry, entry};
use crate::judge::{Finding, Summary};

/// Doubts of the audit that stand beside the verdicts; the audit has a section for all of them.
const AUDIT_DOUBTS_SHOWN: usize = 5;

#[derive(Debug, Clone, Serialize)]
pub struct FindingView {
    /// `void`, `doubt` or `note`.
    pub severity: &'static str,
    pub sign: &'static str,
    pub rule: String,
    /// Why the rule matters; empty when it says so itself.
    pub why: String,
    pub claim: String,
    pub remedy: String,
}

pub(super) fn finding(finding: &Finding) -> FindingView {
    let (severity, sign) = severity(finding.severity);
    FindingView {
        severity,
        sign,
        rule: finding.rule.clone(),
        why: finding.why.clone(),
        claim: finding.claim.clone(),
        remedy: finding.remedy.clone(),
    }
}

/// A severity as a word and a sign.
#[must_use]
pub fn severity(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Void => ("void", "✕"),
        Severity::Doubt => ("doubt", "!"),
        Severity::Note => ("note", "·"),
    }
}

fn is_of_audit(finding: &Finding) -> bool {
    finding.severity == Severity::Doubt && finding.is_of_audit()
}

/// What must stand beside the verdicts: voids and doubts, of the audit's doubts only the first.
pub fn caveats(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    let heavy = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Note);
    let mut of_audit = 0;
    heavy.filter(move |finding| {
        of_audit += usize::from(is_of_audit(finding));
        !is_of_audit(finding) || of_audit <= AUDIT_DOUBTS_SHOWN
    })
}

/// How many doubts of the audit are not among the [`caveats`].
#[must_use]
pub fn audit_doubts_left(findings: &[Finding]) -> usize {
    let of_audit = findings.iter().filter(|finding| is_of_audit(finding));
    of_audit.count().saturating_sub(AUDIT_DOUBTS_SHOWN)
}

/// A section of the disclosure checklist.
#[derive(Debug, Clone, Serialize)]
pub struct DisclosureView {
    pub section: String,
    /// Items that the record has.
    pub present: Vec<String>,
    /// Items that it lacks, each with the place where it would be.
    pub missing: Vec<Entry>,
}

pub(super) fn disclosure(summary: &Summary) -> Vec<DisclosureView> {
    let mut sections: Vec<DisclosureView> = Vec::new();
    for item in &summary.disclosure {
        if sections
            .last()
            .is_none_or(|last| last.section != item.section)
        {
            sections.push(DisclosureView {
                section: item.section.clone(),
                present: Vec::new(),
                missing: Vec::new(),
            });
        }
        let Some(section) = sections.last_mut() else {
            continue;
        };
        if item.present {
            section.present.push(item.item.clone());
        } else {
            section.missing.push(entry(&item.item, item.place.clone()));
        }
    }
    sections
}

/// How much of it the record has.
pub(super) fn disclosed(summary: &Summary) -> String {
    let all = summary.disclosure.len();
    let present = summary
        .disclosure
        .iter()
        .filter(|item| item.present)
        .count();
    format!("{present} of {all} present, {} missing", all - present)
}
