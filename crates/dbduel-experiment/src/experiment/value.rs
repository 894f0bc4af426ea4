//! A TOML value as a quantity: durations, sizes, shares, positive numbers, lists of integers.

use std::time::Duration;

use dbduel_record::plan::IoLimit;
use dbduel_text::percent;
use toml::de::DeValue;

use super::document::{describe, integer, number, string};
use super::quantity;

pub(super) fn integers(
    value: &DeValue<'_>,
    range: std::ops::RangeInclusive<i64>,
) -> Result<Vec<u32>, String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("expected a list of numbers, found {}", describe(value)))?;
    list.iter()
        .map(|entry| integer(entry.get_ref(), range.clone()).map(|number| number as u32))
        .collect()
}

pub(super) fn positive(value: &DeValue<'_>, unit: &str) -> Result<f64, String> {
    let number = number(value)?;
    if number > 0.0 {
        Ok(number)
    } else {
        Err(format!("expected more than 0 {unit}, found {number}"))
    }
}

pub(super) fn duration(value: &DeValue<'_>) -> Result<Duration, String> {
    match value {
        DeValue::String(text) => quantity::duration(text),
        other => Err(format!(
            "expected a duration such as \"20 min\", found {}",
            describe(other)
        )),
    }
}

pub(super) fn busy_poll(value: &DeValue<'_>) -> Result<Duration, String> {
    match value {
        DeValue::String(text) => quantity::busy_poll(text),
        other => Err(format!(
            "expected a duration such as \"2 ms\", found {}",
            describe(other)
        )),
    }
}

pub(super) fn size(value: &DeValue<'_>) -> Result<u64, String> {
    match value {
        DeValue::String(text) => quantity::size(text),
        other => Err(format!(
            "expected a size such as \"256 MiB\", found {}",
            describe(other)
        )),
    }
}

pub(super) fn duration_within(
    value: &DeValue<'_>,
    least_s: f64,
    most_s: f64,
) -> Result<Duration, String> {
    let duration = duration(value)?;
    if (least_s..=most_s).contains(&duration.as_secs_f64()) {
        return Ok(duration);
    }
    Err(format!(
        "expected between {least_s} s and {most_s} s, found {} s",
        duration.as_secs_f64()
    ))
}

/// A duration as both bounds, or two bounds: `"2 s to 6 s"`.
pub(super) fn duration_bounds(
    value: &DeValue<'_>,
    least_s: f64,
    most_s: f64,
) -> Result<[Duration; 2], String> {
    let bounds = match value {
        DeValue::String(text) => quantity::duration_bounds(text)?,
        other => {
            return Err(format!(
                "expected a duration such as \"4 s\" or bounds such as \"2 s to 6 s\", found {}",
                describe(other)
            ));
        }
    };
    let mut seconds = bounds.iter().map(Duration::as_secs_f64);
    match seconds.find(|bound| !(least_s..=most_s).contains(bound)) {
        Some(bound_s) => Err(format!(
            "expected between {least_s} s and {most_s} s, found {bound_s} s"
        )),
        None => Ok(bounds),
    }
}

pub(super) fn share_within(value: &DeValue<'_>, above: f64, below: f64) -> Result<f64, String> {
    let share = match value {
        DeValue::String(text) => quantity::share(text)?,
        other => number(other)?,
    };
    if share >= above && share < below {
        return Ok(share);
    }
    Err(format!(
        "expected a share from {above} to less than {below} (or \"{}\" to \"{}\"), found {share}",
        percent::of(above),
        percent::of(below)
    ))
}

/// Reads an I/O limit.
pub(super) fn io_limit(value: &DeValue<'_>) -> Result<IoLimit, String> {
    quantity::io_limit(&string(value)?)
}
