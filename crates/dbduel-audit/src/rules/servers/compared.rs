//! Rules about settings outside the comparison of facts: shown by no side, present on one side only, or covered by no
//! fact.

use dbduel_record::event::Severity;

use crate::compare::{Comparison, Outcome, compare};
use crate::finding::{Finding, FindingKind, Side, at_most};
use crate::reading::Read;
use crate::table::table;
use crate::value::Value;
use crate::{Case, ServerEvidence};

/// Facts and variables that a claim names; the values of all are in the evidence.
const NAMED: usize = 12;

pub fn without_variables(case: &Case) -> Vec<Finding> {
    let others = case.others().filter(|&other| !case.is_comparable(other));
    let finding = |other: usize| {
        let servers = [case.baseline, other].map(|index| &case.contenders[index]);
        let without = servers
            .into_iter()
            .filter(|server| server.variables.is_empty());
        let without: Vec<String> = without.map(|server| format!("`{}`", server.name)).collect();
        let claim = format!(
            "No settings compared: variables of {} are missing.",
            without.join(" and ")
        );
        let remedy = "Provide SHOW GLOBAL VARIABLES of every server.";
        Finding::new(Severity::Doubt, &case.pair(other), claim, remedy).of(FindingKind::Unreadable)
    };
    others.map(finding).collect()
}

pub fn one_sided(case: &Case) -> Vec<Finding> {
    let finding = |pair: [&str; 2], facts: Vec<Comparison>| {
        let claim = format!("On one of the servers only: {}.", titles(&facts));
        let remedy = "None; the values are in the evidence.";
        let sides = facts.into_iter().flat_map(|fact| fact.sides);
        let sides: Vec<Side> = sides.filter(|side| !side.from.is_empty()).collect();
        let finding = Finding::new(Severity::Note, &pair, claim, remedy);
        finding.of(FindingKind::Difference).resting_on(sides)
    };
    with_outcome(case, Outcome::OneSided, finding)
}

pub fn not_seen(case: &Case) -> Vec<Finding> {
    let finding = |pair: [&str; 2], facts: Vec<Comparison>| {
        let claim = format!("Not compared for lack of evidence: {}.", titles(&facts));
        let remedy = "Audit a running server or a record to see these.";
        Finding::new(Severity::Note, &pair, claim, remedy).of(FindingKind::Unreadable)
    };
    with_outcome(case, Outcome::NotSeen, finding)
}

/// A finding for each contender about the facts that compare like this to the baseline's, if there are any.
fn with_outcome(
    case: &Case,
    outcome: Outcome,
    finding: impl Fn([&str; 2], Vec<Comparison>) -> Finding,
) -> Vec<Finding> {
    let others = case.others().filter(|&other| case.is_comparable(other));
    let found = others.filter_map(|other| {
        let (mut facts, _) = compare(case, other);
        facts.retain(|fact| fact.outcome == outcome);
        (!facts.is_empty()).then(|| finding(case.pair(other), facts))
    });
    found.collect()
}

fn titles(facts: &[Comparison]) -> String {
    at_most(NAMED, facts.iter().map(|fact| fact.title.clone())).join(", ")
}

/// One finding for each contender about all variables that the tables do not know and that differ from the baseline's.
pub fn unclassified(case: &Case) -> Vec<Finding> {
    let others = case.others().filter(|&other| case.is_comparable(other));
    others
        .filter_map(|other| unclassified_of(case, other))
        .collect()
}

/// The same for one contender.
pub fn unclassified_of(case: &Case, other: usize) -> Option<Finding> {
    let table = table();
    let [one, two] = [case.baseline, other].map(|index| &case.contenders[index]);
    let differing: Vec<(&String, &String, &String)> = one
        .variables
        .iter()
        .filter_map(|(name, value)| Some((name, value, two.variables.get(name)?)))
        .filter(|(_, first, second)| !Value::read(first).is_same(&Value::read(second)))
        .filter(|(name, _, _)| !table.is_mapped(name) && table.why_ignored(name).is_none())
        .collect();
    if differing.is_empty() {
        return None;
    }
    let mut listed: Vec<&str> = differing
        .iter()
        .take(NAMED)
        .map(|(name, _, _)| name.as_str())
        .collect();
    if differing.len() > NAMED {
        listed.push("and others");
    }
    let side = |server: &ServerEvidence, second: bool| Side {
        contender: server.name.clone(),
        value: format!("{} variables", differing.len()),
        from: differing
            .iter()
            .map(|(name, a, b)| Read {
                name: (*name).clone(),
                value: (if second { *b } else { *a }).clone(),
            })
            .collect(),
    };
    let claim = format!("Unclassified variables differ: {}.", listed.join(", "));
    let remedy = "Set them equally, or classify them in the audit's tables.";
    let finding = Finding::new(Severity::Note, &case.pair(other), claim, remedy);
    let sides = [side(one, false), side(two, true)];
    Some(finding.of(FindingKind::Unknown).resting_on(sides))
}
