//! Findings as text, which of them are beside the verdicts, and the disclosure checklist.
//!
//! In a suite a finding that holds for several workloads is listed once, with what it says of each.

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
    /// What it says of the other workloads for which it holds.
    pub others: Vec<Entry>,
    #[serde(skip)]
    is_of_audit: bool,
}

/// All findings in their order; those of a suite that differ in the workload and its figures only as one.
pub(super) fn views(summary: &Summary, findings: &[Finding]) -> Vec<FindingView> {
    let mut kept: Vec<(&Finding, Vec<&Finding>)> = Vec::new();
    for finding in findings {
        let is_of_workload = summary.suite.is_some() && finding.level.is_some();
        let key = |one: &Finding| {
            let is_of_workload = one.level.is_some();
            (
                is_of_workload,
                one.severity,
                one.rule.clone(),
                one.about.clone(),
            )
        };
        let mut alike = kept.iter_mut();
        match alike.find(|(first, _)| is_of_workload && key(first) == key(finding)) {
            Some((_, others)) => others.push(finding),
            None => kept.push((finding, Vec::new())),
        }
    }
    let views = kept.into_iter();
    views
        .map(|(first, others)| view(summary, first, &others))
        .collect()
}

fn view(summary: &Summary, first: &Finding, others: &[&Finding]) -> FindingView {
    let label = |finding: &Finding| {
        let mut duels = summary.duels.iter();
        let duel = duels.find(|duel| Some(duel.level) == finding.level);
        duel.map_or_else(String::new, |duel| duel.label.clone())
    };
    let mut claim = first.claim.clone();
    let mut labels: Vec<String> = Vec::new();
    for other in others.iter().map(|other| label(other)) {
        if other != label(first) && !labels.contains(&other) {
            labels.push(other);
        }
    }
    if !labels.is_empty() {
        let labels = labels.join(", ");
        claim.push_str(&format!(" Also at {labels}, with details of their own."));
    }
    let others = others.iter().map(|other| {
        let mut text = other.claim.clone();
        if other.remedy != first.remedy {
            text.push_str(&format!(" {}", other.remedy));
        }
        entry(&label(other), text)
    });
    let (severity, sign) = severity(first.severity);
    FindingView {
        severity,
        sign,
        rule: first.rule.clone(),
        why: first.why.clone(),
        claim,
        remedy: first.remedy.clone(),
        others: others.collect(),
        is_of_audit: first.is_of_audit(),
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

fn is_doubt_of_audit(finding: &FindingView) -> bool {
    finding.severity == "doubt" && finding.is_of_audit
}

/// What must stand beside the verdicts: voids and doubts, of the audit's doubts only the first.
pub(super) fn caveats(findings: &[FindingView]) -> Vec<FindingView> {
    let mut of_audit = 0;
    let heavy = findings.iter().filter(|finding| !finding.is_note());
    let shown = heavy.filter(|finding| {
        of_audit += usize::from(is_doubt_of_audit(finding));
        !is_doubt_of_audit(finding) || of_audit <= AUDIT_DOUBTS_SHOWN
    });
    shown.cloned().collect()
}

/// How many doubts of the audit are not among the [`caveats`].
pub(super) fn audit_doubts_left(findings: &[FindingView]) -> usize {
    let of_audit = findings.iter().filter(|finding| is_doubt_of_audit(finding));
    of_audit.count().saturating_sub(AUDIT_DOUBTS_SHOWN)
}

impl FindingView {
    /// True when it weakens no verdict.
    #[must_use]
    pub fn is_note(&self) -> bool {
        self.severity == "note"
    }
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
