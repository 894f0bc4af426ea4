//! The audit of a record: what its servers were set to, and what the run showed.
//!
//! The same audit ran before the contest, on the settings alone; this one sees the counters too. It
//! takes the place of what the journal kept of the earlier one, as far as it says the same.

use dbduel_record::Record;
use dbduel_record::event::{Finding, Severity};

use super::audit::{self, Audit, AuditFinding, Case, case_of};
use super::rules::Found;
use super::summary::{Duel, Verdict};

/// How findings of the audit are called in journals and reports.
const PREFIX: &str = "audit.";

/// Audits a record.
pub fn audit_of(record: &Record, duels: &[Duel]) -> Audit {
    audit::audit(&case(record, duels))
}

/// A record as a case, with what its verdicts say.
pub fn case(record: &Record, duels: &[Duel]) -> Case {
    let mut case = case_of(record);
    case.margin = Some(margin(duels));
    case
}

/// The largest ratio of throughputs, or its inverse, that a verdict stands on; 1 without any.
fn margin(duels: &[Duel]) -> f64 {
    let comparisons = duels.iter().flat_map(|duel| &duel.comparisons);
    comparisons
        .filter(|comparison| matches!(comparison.verdict, Verdict::Faster | Verdict::Slower))
        .filter_map(|comparison| comparison.ratio.value())
        .filter(|ratio| *ratio > 0.0)
        .map(|ratio| ratio.max(1.0 / ratio))
        .fold(1.0, f64::max)
}

/// What a reader of the verdicts must be told of the audit: doubts, and what was accepted.
pub fn found(audit: &Audit) -> impl Iterator<Item = Found> + '_ {
    let is_told =
        |finding: &&AuditFinding| finding.severity > Severity::Note || finding.waived.is_some();
    let findings = audit.findings.iter().filter(is_told);
    findings.map(|finding| {
        let mut told = finding.to_finding();
        // A difference between two is about the one that differs from the baseline.
        if told.about.len() > 1 {
            told.about.retain(|name| *name != audit.baseline);
        }
        Found {
            finding: told,
            level: None,
        }
    })
}

/// True for a finding of the audit before the contest on which the audit after it has the last word.
pub fn is_superseded(finding: &Finding, audit: Option<&Audit>) -> bool {
    finding.rule.starts_with(PREFIX)
        && audit.is_some_and(|audit| {
            let mut later = audit.findings.iter();
            later.any(|one| one.to_finding().rule == finding.rule)
        })
}

/// Why a finding of the audit matters.
pub fn why<'a>(audit: &'a Audit, rule: &str) -> Option<&'a str> {
    let mut findings = audit.findings.iter();
    findings
        .find(|finding| finding.to_finding().rule == rule)
        .map(|finding| finding.why.as_str())
}
