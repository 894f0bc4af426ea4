//! What makes a comparison unfair or weakens a verdict: rules are rows of one [table].
//!
//! A rule looks at the servers of a contest ([`servers`]) or at the record of a run ([`run`]). It does not sort, print or
//! change a verdict; a finding of severity void takes verdicts away in [`crate::judge::summarise`].

pub mod run;
pub mod servers;
pub mod table;

use dbduel_record::event::{Event, Severity};

use super::audit::classes::Weight;
use super::audit::subject::{self, Subject};
use super::audit::{Audit, Case};
use super::finding::{Finding, FindingKind};
use run::RunEvidence;
use servers::{Contender, Hit};
use table::rules;

/// The rule about option files that their servers do not take. What else is said of such a server is moot.
pub const REFUSED_OPTION_FILE: &str = "R46";

pub struct Rule {
    /// Stable name: `R3`, `load.lag`.
    pub id: &'static str,
    /// Its class in the audit, `I` for the contest as a whole; empty for a rule about the run.
    pub class: &'static str,
    /// How much it weighs when it hits one server only.
    pub weight: Weight,
    /// Why it matters, one sentence.
    pub why: &'static str,
    /// What it looks at, and how.
    pub check: Check,
}

/// What a rule looks at. The name, class and reason of its findings are filled in from its row.
#[derive(Clone, Copy)]
pub enum Check {
    /// Each server: what is wrong with it, if anything.
    Server(fn(&Contender<'_>) -> Option<Hit>),
    /// All servers together.
    Servers(fn(&Case) -> Vec<Finding>),
    /// The record of a run, and what was concluded from it.
    Run(fn(&RunEvidence<'_>) -> Vec<Finding>),
    /// Nothing: the comparison of its class's facts finds it.
    Facts,
}

impl Rule {
    fn named(&self, finding: Finding) -> Finding {
        Finding {
            rule: self.id.to_owned(),
            class: self.class.to_owned(),
            why: self.why.to_owned(),
            ..finding
        }
    }
}

/// The findings of the rules about servers.
#[must_use]
pub fn of_servers(case: &Case) -> Vec<Finding> {
    let (subject, classes) = (Subject::of(case), subject::classes(case));
    let mut findings = Vec::new();
    for rule in rules() {
        let found = match rule.check {
            Check::Server(check) => servers::weigh(rule.weight, check, case)
                .into_iter()
                .collect(),
            Check::Servers(check) => check(case),
            Check::Run(_) | Check::Facts => Vec::new(),
        };
        let is_declared =
            rule.class.starts_with('P') && (classes.contains(rule.class) || subject.has(rule.id));
        findings.extend(found.into_iter().map(|found| match is_declared {
            true => rule.named(declared(found)),
            false => rule.named(found),
        }));
    }
    findings
}

/// Makes a note of a doubt about performance in a class that the contest is about.
fn declared(mut finding: Finding) -> Finding {
    if finding.severity == Severity::Doubt {
        finding.severity = Severity::Note;
        finding.kind = FindingKind::Declared;
        finding.claim.push_str(" The contest is about this.");
    }
    finding
}

/// What stands beside the verdicts of a run, heaviest first: the findings of its journal, those of its audit that weigh, were
/// waived or are what the contest is about, and those of the rules about runs.
#[must_use]
pub fn beside_verdicts(run: &RunEvidence<'_>, audit: &Audit) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for event in &run.evidence.record.events {
        let Event::Noticed { finding } = &event.what else {
            continue;
        };
        let noticed = Finding::from(finding.clone());
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
        if let Check::Run(check) = rule.check {
            findings.extend(check(run).into_iter().map(|found| rule.named(found)));
        }
    }
    // Stable: findings of one weight stay in the order of the rules.
    findings.sort_by_key(Finding::rank);
    findings
}
