//! Rules about what makes a contest unfair or its result less relevant; they are rows of one [table].

pub(crate) mod servers;
mod table;

use dbduel_record::event::Severity;

use crate::Case;
use crate::classes::Weight;
use crate::finding::{Finding, FindingKind};
use crate::subject::{self, Subject};
use servers::{Contender, Hit};

pub use table::RULES;

/// The rule about option files that their servers reject. It makes other findings about such a server moot.
pub const REFUSED_OPTION_FILE: &str = "R46";

/// A rule about servers.
pub struct Rule {
    /// Stable name: `R3`, `one-sided`.
    pub id: &'static str,
    /// Its class, `I` for the contest as a whole.
    pub class: &'static str,
    /// How much it weighs when it hits one server only.
    pub weight: Weight,
    /// Why it matters, one sentence.
    pub why: &'static str,
    /// The scope of the rule, and its check.
    pub(crate) check: Check,
}

/// The scope of a rule and its check. The name, class and reason of its findings are filled in from its row.
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// Each server: what is wrong with it, if anything.
    Server(fn(&Contender<'_>) -> Option<Hit>),
    /// All servers together.
    Servers(fn(&Case) -> Vec<Finding>),
    /// Nothing: the comparison of its class's facts makes the findings.
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
pub(crate) fn of_servers(case: &Case) -> Vec<Finding> {
    let (subject, classes) = (Subject::of(case), subject::classes(case));
    let mut findings = Vec::new();
    for rule in RULES {
        let found = match rule.check {
            Check::Server(check) => servers::weigh(rule.weight, check, case)
                .into_iter()
                .collect(),
            Check::Servers(check) => check(case),
            Check::Facts => Vec::new(),
        };
        let names = [rule.id, rule.class];
        let is_declared = rule.class.starts_with('P')
            && (classes.contains(rule.class) || names.iter().any(|name| subject.has(name)));
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
