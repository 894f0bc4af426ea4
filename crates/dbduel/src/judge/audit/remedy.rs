//! Which settings make a fact equal.

use super::case::Case;
use super::finding::RemedySetting;
use super::reading::{self, Reading};
use super::table::Fact;
use super::value::Value;

/// Settings that make a fact equal on two contenders; empty when there are none.
#[must_use]
pub fn equalising(
    fact: &Fact,
    case: &Case,
    indices: &[usize; 2],
    readings: &[Reading<'_>; 2],
) -> Vec<RemedySetting> {
    let [Some(first), Some(second)] = [readings[0].value(), readings[1].value()] else {
        return Vec::new();
    };
    let can_reach = |side: usize, target: &Value, value: &Value| {
        value.is_same(target)
            || !remedy_settings(&readings[side], target, case, indices[side]).is_empty()
    };
    let wanted = fact.target.as_ref().and_then(reading::constant);
    // The table's target first, then what one side has already.
    let targets = wanted.into_iter().chain([first.clone(), second.clone()]);
    for target in targets {
        if can_reach(0, &target, first) && can_reach(1, &target, second) {
            let settings = [(0, first), (1, second)]
                .into_iter()
                .filter(|(_, value)| !value.is_same(&target));
            return settings
                .flat_map(|(side, _)| {
                    remedy_settings(&readings[side], &target, case, indices[side])
                })
                .collect();
        }
    }
    Vec::new()
}

/// The settings that bring a reading to `target`.
#[must_use]
pub fn remedy_settings(
    reading: &Reading<'_>,
    target: &Value,
    case: &Case,
    index: usize,
) -> Vec<RemedySetting> {
    reading::settings_for(reading, target, case, index)
        .into_iter()
        .map(|(name, value)| RemedySetting {
            contender: case.contenders[index].name.clone(),
            name,
            value,
        })
        .collect()
}
