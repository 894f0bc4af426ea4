//! Which settings make a fact equal.

use super::case::Case;
use super::reading::{self, Reading};
use super::table::Fact;
use super::value::Value;
use crate::finding::RemedySetting;

/// Settings that make a fact equal on two contenders; empty when there are none. A side whose value is
/// inferred, assumed or not determined is set also where it may have the value already.
#[must_use]
pub fn equalising(
    fact: &Fact,
    case: &Case,
    indices: &[usize; 2],
    readings: &[Reading<'_>; 2],
) -> Vec<RemedySetting> {
    let settings_to =
        |side: usize, target: &Value| remedy_settings(&readings[side], target, case, indices[side]);
    let is_there = |side: usize, target: &Value| {
        let value = readings[side].value();
        !readings[side].is_inferred
            && !readings[side].is_assumed
            && value.is_some_and(|value| value.is_same(target))
    };
    let is_lowered = |side: usize, target: &Value| {
        let is_raise_only = readings[side].row.is_some_and(|row| row.is_raise_only);
        let order = readings[side].value().and_then(|value| target.order(value));
        is_raise_only && order.is_some_and(std::cmp::Ordering::is_lt)
    };
    let can_reach = |side: usize, target: &Value| {
        is_there(side, target) || !is_lowered(side, target) && !settings_to(side, target).is_empty()
    };
    let rows = readings.iter().filter_map(|reading| reading.row);
    let own = rows.filter_map(|row| row.target.as_ref()).next();
    let wanted = own.or(fact.target.as_ref()).and_then(reading::constant);
    // The table's target first, then what one side has already.
    let shown = readings
        .iter()
        .filter_map(|reading| reading.value().cloned());
    for target in wanted.into_iter().chain(shown) {
        if (0..2).all(|side| can_reach(side, &target)) {
            return (0..2)
                .filter(|&side| !is_there(side, &target))
                .flat_map(|side| settings_to(side, &target))
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
