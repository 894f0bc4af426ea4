//! Variables that differ and that the tables do not know: listed, not hidden.

use dbduel_record::event::Severity;

use super::case::Case;
use super::finding::{AuditFinding, Kind, Side};
use super::reading::Read;
use super::table::table;
use super::value::Value;

/// Names that are listed in the claim; all are in the evidence.
const NAMES_LISTED: usize = 12;

/// One finding about all unmapped variables that both servers have and that differ, if there are any.
#[must_use]
pub fn find(case: &Case, other: usize) -> Option<AuditFinding> {
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
        .take(NAMES_LISTED)
        .map(|(name, _, _)| name.as_str())
        .collect();
    if differing.len() > NAMES_LISTED {
        listed.push("and others");
    }
    let side = |server: &super::ServerEvidence, second: bool| Side {
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
    Some(AuditFinding {
        rule: "unknown".to_owned(),
        class: "I".to_owned(),
        kind: Kind::Unknown,
        severity: Severity::Note,
        about: vec![one.name.clone(), two.name.clone()],
        favours: None,
        claim: format!(
            "Variables differ of which it is not known what they mean: {}.",
            listed.join(", ")
        ),
        why: "A setting that nobody has classified may be the cause of a result.".to_owned(),
        remedy: "Set them alike, or classify them in data/audit.".to_owned(),
        evidence: vec![side(one, false), side(two, true)],
        remedy_settings: Vec::new(),
        waived: None,
    })
}
