//! Rules about what samplers saw of one side only.

use std::collections::BTreeSet;

use dbduel_record::event::Severity;

use super::{Case, Found, finding};

/// Waits that the performance schema of some contenders counts and that of others does not.
pub(super) fn waits_one_sided(case: &Case<'_>) -> Vec<Found> {
    let readings = case.evidence.record.readings.iter();
    let counting: BTreeSet<&str> = readings
        .filter(|reading| reading.source == "waits")
        .map(|reading| reading.contender.as_str())
        .collect();
    let names = case.summary.contenders.iter().map(|one| one.name.as_str());
    let (on, off): (Vec<&str>, Vec<&str>) = names.partition(|name| counting.contains(name));
    if on.is_empty() || off.is_empty() {
        return Vec::new();
    }
    let quoted = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let claim = format!(
        "The performance schema counts the waits of {} and not those of {}, so waits are not compared.",
        quoted(&on),
        quoted(&off)
    );
    let remedy = "Set performance_schema alike for all contenders: ON to have the waits in the explanation, OFF to save \
                  its cost.";
    vec![finding(Severity::Note, &on, claim, remedy)]
}
