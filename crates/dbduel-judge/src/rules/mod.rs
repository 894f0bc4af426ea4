//! Rules about what weakens a verdict; they are rows of one [table] and look at the record of a run.
//!
//! A rule does not sort, print or change a verdict; a finding of severity void takes verdicts away in [`crate::summarise`].

pub(crate) mod run;
pub mod table;

use dbduel_audit::Audit;
use dbduel_audit::finding::{Finding, FindingKind};
use dbduel_record::event::{Event, Severity};

use run::RunEvidence;
use table::rules;

/// A rule about a run.
pub struct Rule {
    /// Stable name: `load.lag`.
    pub id: &'static str,
    /// Why it matters, one sentence.
    pub why: &'static str,
    /// Finds its problem in the record of a run and in the conclusions from it. The name and reason of its findings
    /// are filled in from here.
    pub(crate) check: fn(&RunEvidence<'_>) -> Vec<Finding>,
}

impl Rule {
    fn named(&self, finding: Finding) -> Finding {
        Finding {
            rule: self.id.to_owned(),
            why: self.why.to_owned(),
            ..finding
        }
    }
}

/// The findings about a run, heaviest first: those of its journal, those of its audit that weigh, were waived or are
/// about the subject of the contest, and those of the rules about runs.
#[must_use]
pub fn beside_verdicts(run: &RunEvidence<'_>, audit: &Audit) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for event in &run.evidence.record.events {
        let Event::Noticed { notice } = &event.what else {
            continue;
        };
        let noticed = Finding::from(notice.clone());
        // The audit before the contest saw no counters; that of the record has the last word. A resumed run notices the
        // same thing again.
        let mut audited = audit.findings.iter();
        let is_superseded = audited.any(|later| later.full_name() == noticed.rule);
        if !is_superseded && !findings.contains(&noticed) {
            findings.push(noticed);
        }
    }
    let is_listed = |finding: &&Finding| {
        finding.severity > Severity::Note
            || finding.waived.is_some()
            || finding.kind == FindingKind::Declared
    };
    findings.extend(audit.findings.iter().filter(is_listed).map(|finding| {
        let mut listed = finding.listed();
        // A difference between two is about the one that differs from the baseline.
        if listed.about.len() > 1 {
            listed.about.retain(|name| *name != audit.baseline);
        }
        listed
    }));
    for rule in rules() {
        let found = (rule.check)(run).into_iter();
        findings.extend(found.map(|finding| rule.named(finding)));
    }
    // Stable: findings of one weight stay in the order of the rules.
    findings.sort_by_key(Finding::rank);
    findings
}
