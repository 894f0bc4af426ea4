//! The audit of a record: what its servers were set to, and what the run showed.
//!
//! The same audit ran before the contest, on the settings alone; this one sees the counters too. It
//! takes the place of what the journal kept of the earlier one, as far as it says the same.

use std::collections::BTreeMap;

use dbduel_record::Record;
use dbduel_record::event::{Finding, Severity};

use super::audit::{self, Audit, AuditFinding, Case, Kind, case_of};
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
    case.margins = Some(margins(duels));
    case
}

/// The ratio of throughputs farthest from 1 that a verdict stands on, of each contender that is faster or slower.
fn margins(duels: &[Duel]) -> BTreeMap<String, f64> {
    let mut margins = BTreeMap::new();
    let comparisons = duels.iter().flat_map(|duel| &duel.comparisons);
    let decided = comparisons
        .filter(|comparison| matches!(comparison.verdict, Verdict::Faster | Verdict::Slower));
    for comparison in decided {
        let Some(ratio) = comparison.ratio.value().filter(|ratio| *ratio > 0.0) else {
            continue;
        };
        let known = margins.entry(comparison.contender.clone()).or_insert(ratio);
        if ratio.ln().abs() > f64::ln(*known).abs() {
            *known = ratio;
        }
    }
    margins
}

/// What stands beside the verdicts: doubts, what was accepted, and differences that the contest is about.
pub fn found(audit: &Audit) -> impl Iterator<Item = Found> + '_ {
    let is_told = |finding: &&AuditFinding| {
        finding.severity > Severity::Note
            || finding.waived.is_some()
            || finding.kind == Kind::Declared
    };
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
